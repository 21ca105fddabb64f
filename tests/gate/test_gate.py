"""Metrics against limits: names, comparisons and messages, without an evaluation."""

import re
from math import nan
from typing import Any

import pytest

from detap.errors import UsageError
from detap.gates.checks import Gate, Interval, Intervals, check
from detap.gates.config import Limit
from detap.gates.metric_names import Metrics, resolve
from tests.raised import raised


def numbers(
    *, ap: float = 0.5, rows: list[dict[str, Any]] | None = None, **slices: Metrics
) -> Metrics:
    standard = [
        {"name": "person", "id": 1, "AP": 0.6, "AP50": 0.8, "ground_truths": 50, "duplicates": 3},
        {"name": "cat", "id": 2, "AP": 0.4, "AP50": 0.7, "ground_truths": 5, "duplicates": 0},
        {"name": "ghost", "id": 3, "AP": nan, "AP50": nan, "ground_truths": 0, "duplicates": 0},
    ]
    return Metrics("AP", {"AP": ap, "AP50": 0.7, "APs": None}, rows or standard, slices=slices)


def floor(text: str, of: Metrics | None = None) -> list[Gate]:
    return check([Limit.of("minimum", text)], of or numbers())


def drop(text: str, now: Metrics, then: Metrics, **options: Any) -> list[Gate]:
    return check([Limit.of("drop", text)], now, then, **options)


def statuses(gates: list[Gate]) -> list[tuple[str, str]]:
    return [(gate.name, gate.status) for gate in gates]


def changed(measure: str, value: Any, row: int = 0) -> Metrics:
    rows = [dict(entry) for entry in numbers().rows]
    rows[row][measure] = value
    return numbers(rows=rows)


def without(name: str) -> Metrics:
    return numbers(rows=[dict(row) for row in numbers().rows if row["name"] != name])


LIMITS = [
    ("minimum", "0.5", "passed", "AP 0.5000, required >= 0.5"),  # of the primary metric
    ("minimum", "AP=1", "failed", "AP 0.5000, required >= 1"),
    ("minimum", "APs=0", "undefined", "APs undefined, required >= 0"),
    ("minimum", "class:ghost.AP=0", "undefined", "class:ghost.AP undefined, required >= 0"),
    ("minimum", "class:person.AP=0.6", "passed", "class:person.AP 0.6000, required >= 0.6"),
    ("minimum", "class:cat.ground_truths=5", "passed", "class:cat.ground_truths 5, required >= 5"),
    ("minimum", "class:cat.ground_truths=6", "failed", "class:cat.ground_truths 5, required >= 6"),
    ("minimum", "min-class.AP=0.4", "passed", "min-class.AP (cat) 0.4000, required >= 0.4"),
    ("minimum", "min-class.AP=0.5", "failed", "min-class.AP (cat) 0.4000, required >= 0.5"),
    ("maximum", "class:person.duplicates=3", "passed", "class:person.duplicates 3, required <= 3"),
    ("maximum", "class:person.duplicates=2", "failed", "class:person.duplicates 3, required <= 2"),
    ("maximum", "AP=0.999", "passed", "AP 0.5000, required <= 0.999"),
    ("maximum", "AP=0.4", "failed", "AP 0.5000, required <= 0.4"),
    ("maximum", "APs=0.4", "undefined", "APs undefined, required <= 0.4"),
]


@pytest.mark.parametrize(("kind", "text", "status", "message"), LIMITS)
def test_limits(kind: Any, text: str, status: str, message: str) -> None:
    (gate,) = check([Limit.of(kind, text)], numbers())
    assert (gate.kind, gate.status, gate.message) == (kind, status, message)
    assert gate.failed == (status != "passed")


@pytest.mark.parametrize(
    ("kind", "text", "statuses"),
    [
        ("minimum", "class:*.AP=0.5", ["passed", "failed"]),  # the ghost has no AP
        ("maximum", "class:*.duplicates=0", ["failed", "passed", "passed"]),
    ],
)
def test_limits_on_all_classes(kind: Any, text: str, statuses: list[str]) -> None:
    gates = check([Limit.of(kind, text)], numbers())
    assert [gate.status for gate in gates] == statuses
    metric = text.partition("*")[2].partition("=")[0]
    names = ["person", "cat", "ghost"][: len(statuses)]
    assert [gate.name for gate in gates] == [f"class:{name}{metric}" for name in names]


@pytest.mark.parametrize(
    ("names", "value", "message"),
    [
        (("person", "cat", "dog"), 0.4, "min-class.AP (person and 2 more) 0.4000, required >= 0.5"),
        (("person",), nan, "min-class.AP undefined, required >= 0.5"),
    ],
)
def test_several_classes_or_none_with_the_minimum(
    names: tuple[str, ...], value: float, message: str
) -> None:
    rows = [{"name": name, "AP": value, "ground_truths": 9} for name in names]
    assert floor("min-class.AP=0.5", numbers(rows=rows))[0].message == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0.69999999, "AP 0.69999999, required >= 0.7"),
        (0.7 - 2**-53, "AP 0.6999999999999998, required >= 0.7"),
        (0.7, "AP 0.7000, required >= 0.7"),
        (0.7000000001, "AP 0.7000000001, required >= 0.7"),
        (1e-300, "AP 0.0000, required >= 0.7"),
        (0.0, "AP 0.0000, required >= 0.7"),
    ],
)
def test_a_value_near_its_minimum_is_shown_with_more_digits(value: float, message: str) -> None:
    (gate,) = floor("0.7", numbers(ap=value))
    assert gate.message == message
    assert gate.failed == (value < 0.7)


def odd(name: str, measure: str) -> Metrics:
    rows = [{"name": name, measure: 0.1, "ground_truths": 1}]
    return numbers(rows=[*rows, {"name": "other", measure: 0.9, "ground_truths": 1}])


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a.b", "class:a.b.AP"),
        ("a.b", "class:a.b.AP62.5"),
        ("a.AP", "class:a.AP.AP"),
        ("class:x", "class:class:x.AP"),
        ("a::b", "class:a::b.AP"),
        ("a=b", "class:a=b.AP"),
        ("*", r"class:\*.AP"),
        (r"\*", r"class:\\*.AP"),
        ("a*", "class:a*.AP"),
        (r"\a", r"class:\a.AP"),
        ("", "class:.AP"),
        ("line\nbreak", "class:line\nbreak.AP"),
        ("slice:night.AP", "class:slice:night.AP.AP"),
    ],
)
def test_names_may_contain_dots_colons_stars_and_equals_signs(name: str, written: str) -> None:
    (gate,) = floor(f"{written}=0.05", odd(name, "AP62.5" if written.endswith(".5") else "AP"))
    assert (gate.value, gate.status) == (0.1, "passed")


def test_slices() -> None:
    of = Metrics(
        "AP",
        {"AP": 0.5},
        slices={"night": numbers(ap=0.2), "night.rain": numbers(ap=0.1), "day": numbers(ap=0.9)},
    )
    assert floor("slice:night.AP=0.2", of)[0].value == 0.2
    assert floor("slice:night.rain.AP=0.2", of)[0].value == 0.1  # the longest name owns the rest
    assert floor("slice:night.class:cat.AP=0.2", of)[0].value == 0.4
    assert floor("slice:day.min-class.AP=0.2", of)[0].value == 0.4
    assert [gate.value for gate in floor("slice:*.AP=0.15", of)] == [0.2, 0.1, 0.9]
    assert floor("slice:day.min-class.AP=0.2", of)[0].message == (
        "slice:day.min-class.AP (cat) 0.4000, required >= 0.2"
    )
    assert floor("slice:night.AP=0.2", of)[0].name == "slice:night.AP"
    with pytest.raises(UsageError, match=r"unknown slice 'nigt'; did you mean 'night'\?"):
        floor("slice:nigt.AP=0.5", of)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("AP5", "unknown metric 'AP5'; did you mean 'AP50'"),
        ("ap50", "did you mean 'AP50'"),
        ("xyz", "available: AP, AP50, APs"),
        ("class:persn.AP", "'class:persn.AP': unknown class 'persn'; did you mean 'person'?"),
        ("class:person.x.7", "'class:person.x.7': unknown class metric '7'"),
        ("class:person.AP5", "unknown class metric 'AP5'; did you mean 'AP50'"),
        ("class:person.name", "unknown class metric 'name'"),
        ("min-class.apx", "unknown class metric 'apx'; did you mean 'AP'"),
        ("duplicates", "did you mean class:NAME.duplicates or max-class.duplicates?"),
        ("recall@precision", "it needs a number before the limit: recall@precision=0.9=0.5"),
        ("slice:night.AP", "no slices; use --slices or --slice-by"),
        ("person", "unknown metric 'person'; did you mean class:person.AP?"),
        ("person.AP50", "unknown metric 'person.AP50'; did you mean class:person.AP50?"),
        ("class:person", "unknown class metric 'person'"),
    ],
)
def test_an_unknown_name_is_an_error_with_suggestions(name: str, message: str) -> None:
    assert message in str(raised(UsageError, floor, f"{name}=0.5"))


DUPLICATES = "class:person.duplicates"
LOST = [{**row, "AP": ap} for row, ap in zip(numbers().rows, (0.05, 0.1, nan), strict=True)]


@pytest.mark.parametrize(
    ("kind", "text", "values", "status", "message"),
    [
        # 0.75 - 0.745 is 0.0050000000000000044 in floats, and 0.005 on paper.
        ("drop", "0.005", (0.75, 0.745), "passed", "AP dropped by 0.0050 (0.7500 to 0.7450)"),
        ("drop", "0.005", (0.75, 0.745 - 2**-53), "passed", "AP dropped by 0.0050 (0.7500 to 0.7"),
        ("drop", "0.005", (0.75, 0.7449999), "failed", "AP dropped by 0.0050001 (0.7500 to 0.7"),
        ("drop", "AP=1%", (0.5, 0.495), "passed", "AP dropped by 0.0050 (0.5000 to 0.4950)"),
        ("drop", "AP=1%", (0.5, 0.4949), "failed", "AP dropped by 0.0051 (0.5000 to 0.4949)"),
        ("drop", "0", (0.5, 0.6), "passed", "AP rose by 0.1000 (0.5000 to 0.6000)"),
        ("drop", "0", (0.5, 0.5), "passed", "AP unchanged (0.5000)"),
        ("drop", "0.1", (nan, 0.5), "undefined", "AP undefined in the baseline, allowed drop 0.1"),
        ("rise", "AP=100%", (0.2, 0.5), "failed", "AP rose by 0.3000 (0.2000 to 0.5000)"),
    ],
)
def test_changes_of_a_fraction(
    kind: Any, text: str, values: tuple[float, float], status: str, message: str
) -> None:
    then, now = (numbers(ap=ap) for ap in values)
    (gate,) = check([Limit.of(kind, text)], now, then)
    assert gate.status == status
    assert gate.message.startswith(message)


@pytest.mark.parametrize(
    ("kind", "text", "now", "status", "message"),
    [
        ("rise", "=1", 5, "failed", f"{DUPLICATES} rose by 2 (3 to 5), allowed 1"),
        ("rise", "=2", 5, "passed", f"{DUPLICATES} rose by 2 (3 to 5), allowed 2"),
        ("rise", "=50%", 5, "failed", f"{DUPLICATES} rose by 2 (3 to 5), allowed 50% (1.500000)"),
        ("rise", "=0", 1, "passed", f"{DUPLICATES} dropped by 2 (3 to 1)"),
        ("drop", "=1", 1, "failed", f"{DUPLICATES} dropped by 2 (3 to 1), allowed 1"),
    ],
)
def test_changes_of_a_count(kind: Any, text: str, now: int, status: str, message: str) -> None:
    """A count changes by any amount."""
    limit = Limit.of(kind, f"{DUPLICATES}{text}")
    (gate,) = check([limit], changed("duplicates", now), numbers())
    assert (gate.kind, gate.status, gate.message) == (kind, status, message)


@pytest.mark.parametrize(
    ("kind", "text", "now", "then", "message"),
    [
        ("drop", "APs=0.1", numbers(), numbers(), "APs undefined, allowed drop 0.1"),
        ("rise", "APs=0.1", numbers(), numbers(), "APs undefined, allowed rise 0.1"),
        (
            *("drop", "class:person.AP=0.9", numbers(), without("person")),
            "class:person.AP undefined in the baseline, allowed drop 0.9",
        ),
        (
            *("drop", "min-class.AP=0.1", changed("AP", 0.1, row=1), numbers()),
            "min-class.AP (cat) dropped by 0.3000 (0.4000 to 0.1000), allowed 0.1",
        ),
        (
            *("drop", "min-class.AP=0.1", numbers(rows=LOST), numbers()),
            "min-class.AP (person, cat in the baseline) dropped by 0.3500 (0.4000 to 0.0500), "
            "allowed 0.1",
        ),
        (
            *("drop", "AP=1%", numbers(ap=0.4949), numbers(ap=0.5)),
            "AP dropped by 0.0051 (0.5000 to 0.4949), allowed 1% (0.005000)",
        ),
        (
            *("rise", "fp=2", Metrics("AP", {"fp": 7.5}), Metrics("AP", {"fp": 5.0})),
            "fp rose by 2.5000 (5.0000 to 7.5000), allowed 2",
        ),
    ],
)
def test_changes_of_other_metrics(
    kind: Any, text: str, now: Metrics, then: Metrics, message: str
) -> None:
    (gate,) = check([Limit.of(kind, text)], now, then)
    assert (gate.failed, gate.message) == (True, message)


def test_classes_of_the_same_name_are_matched_by_id() -> None:
    rows = [{"name": "cat", "id": number, "AP": number / 10} for number in (1, 2)]
    now, then = numbers(rows=rows), numbers(rows=rows[::-1])
    for limit in ("class:*.AP=0", "class:cat.AP=0"):
        assert [gate.drop for gate in drop(limit, now, then)] == [0, 0]


def test_a_metric_missing_in_the_baseline_is_a_usage_error() -> None:
    message = "'AP50' is not in the baseline; regenerate it or use --baseline-detections"
    with pytest.raises(UsageError, match=f"^{message}$"):
        drop("AP50=0.1", numbers(), Metrics("AP", {"AP": 0.5}))


def intervals(low: float, high: float) -> Intervals:
    return Intervals(0.95, lambda name: (low, high))


@pytest.mark.parametrize(
    ("kind", "now", "ends", "status"),
    [  # of the drop: a rise of 0.006 to 0.02 is a drop of -0.02 to -0.006
        ("drop", 0.49, (0.006, 0.02), "failed"),
        ("drop", 0.49, (0.005, 0.02), "inconclusive"),  # all of it must be beyond the bound
        ("drop", 0.49, (0.005 + 1e-15, 0.02), "inconclusive"),
        ("drop", 0.49, (-0.01, 0.02), "inconclusive"),
        ("drop", 0.498, (0.001, 0.005 + 1e-15), "passed"),
        ("drop", 0.49, (-0.01, 0.005), "passed"),
        ("drop", 0.49, (nan, nan), "undefined"),
        ("rise", 0.51, (-0.02, -0.006), "failed"),
        ("rise", 0.51, (-0.02, -0.005), "inconclusive"),
        ("rise", 0.51, (-0.005, 0.01), "passed"),
        ("rise", 0.51, (nan, nan), "undefined"),
    ],
)
def test_only_changes_beyond_the_interval_fail(
    kind: Any, now: float, ends: Interval, status: str
) -> None:
    limit = Limit.of(kind, "0.005")
    (gate,) = check([limit], numbers(ap=now), numbers(ap=0.5), intervals=intervals(*ends))
    assert gate.status == status
    assert gate.failed == (status in ("failed", "undefined"))
    assert gate.interval == pytest.approx(ends, nan_ok=True)
    if status == "inconclusive":
        assert gate.message.endswith("; inconclusive: the CI contains the limit")
        assert gate.warned
    if status == "failed":
        verb = {"drop": "dropped", "rise": "rose"}[kind]
        assert gate.message == (
            f"AP {verb} by 0.0100 (0.5000 to {now:.4f}), allowed 0.005; "
            f"95% CI of the {kind} [0.0060, 0.0200]"
        )


def test_a_class_with_few_ground_truths_warns() -> None:
    worse = [dict(row) for row in numbers().rows]
    worse[1]["AP"] = 0.1
    (gate,) = drop("class:cat.AP=0.1", numbers(rows=worse), numbers(), min_ground_truths=6)
    assert (gate.status, gate.failed) == ("too-few-ground-truths", False)
    assert gate.message.endswith("warning only: 5 ground truths, minimum 6")
    (gate,) = drop("class:cat.AP=0.1", numbers(rows=worse), numbers(), min_ground_truths=5)
    assert gate.failed


@pytest.mark.parametrize(("person", "status"), [(0.4, "too-few-ground-truths"), (0.35, "failed")])
def test_the_minimum_over_classes_with_a_relative_limit(person: float, status: str) -> None:
    """Half of the cat's 0.4 is less than its drop of 0.3; half of the person's 0.8 is 0.4."""
    now, then = ([dict(row) for row in numbers().rows] for _ in range(2))
    then[0]["AP"], now[0]["AP"], now[1]["AP"] = 0.8, person, 0.1
    (gate,) = drop("min-class.AP=50%", numbers(rows=now), numbers(rows=then), min_ground_truths=6)
    assert gate.status == status


def test_other_metrics_are_gated_by_name() -> None:
    def more(name: str) -> float:
        return {"AP90": 0.3}[name]

    def more_rows(name: str) -> list[float]:
        return {"AP90": [0.1, 0.2]}[name]

    rows = [{"name": "a", "AP": 0.5, "ground_truths": 1}, {"name": "b", "AP": 0.5}]
    of = Metrics("AP", {"AP": 0.5}, rows, compute_overall=more, compute_rows=more_rows)
    assert floor("AP90=0.2", of)[0].value == 0.3
    assert floor("class:b.AP90=0.2", of)[0].value == 0.2
    assert resolve("class:*.AP90", of)[0].text == "class:a.AP90"


@pytest.mark.parametrize("kind", ["drop", "rise"])
def test_rounding_is_not_a_change(kind: Any) -> None:
    for now, then in ((0.3, 0.1 + 0.2), (0.1 + 0.2, 0.3), (0.5, 0.5 + 1e-12), (0.5 + 1e-12, 0.5)):
        limit = Limit.of(kind, "0")
        (gate,) = check(
            [limit], numbers(ap=now), numbers(ap=then), intervals=intervals(-1e-13, 1e-13)
        )
        assert gate.status == "passed"
        assert gate.drop == 0
        assert f" unchanged ({now:.4f});" in gate.message
    (gate,) = check([Limit.of("drop", "0")], numbers(ap=0.5), numbers(ap=0.5 + 2e-12))
    assert (gate.status, gate.message) == (
        "failed",
        "AP dropped by 0.000000000002 (0.500000000002 to 0.5000), allowed 0",
    )


# --- what only one of the two has


def test_a_wildcard_includes_a_lost_class() -> None:
    gates = drop("class:*.AP=0.9", without("person"), numbers())
    assert statuses(gates) == [("class:cat.AP", "passed"), ("class:person.AP", "undefined")]
    # Of another ground truth, the class is there and has no object.
    now = changed("AP", nan)
    now.rows[0]["ground_truths"] = 0  # type: ignore[index]
    gates = drop("class:*.AP=0.9", now, numbers())
    assert statuses(gates) == [("class:person.AP", "undefined"), ("class:cat.AP", "passed")]
    (gate,) = [
        gate
        for gate in drop("class:*.duplicates=1", without("person"), numbers())
        if gate.name == "class:person.duplicates"
    ]
    assert (gate.status, gate.value) == ("failed", 0)


@pytest.mark.parametrize("kind", ["drop", "rise"])
def test_a_wildcard_without_any_defined_metric_fails(kind: Any) -> None:
    """A gate never passes on an undefined or empty result."""
    then = changed("AP", nan)
    then.rows[1]["AP"] = nan  # type: ignore[index]
    assert statuses(check([Limit.of(kind, "class:*.AP=0.9")], then, then)) == [
        ("class:person.AP", "undefined"),
        ("class:cat.AP", "undefined"),
    ]
    parts = Metrics("AP", {"AP": 0.5}, slices={"day": numbers(), "night": numbers()})
    gates = check([Limit.of(kind, "slice:*.APs=0.9")], parts, parts)
    assert statuses(gates) == [("slice:day.APs", "undefined"), ("slice:night.APs", "undefined")]


def test_a_wildcard_includes_a_lost_slice() -> None:
    now = Metrics("AP", {"AP": 0.5}, slices={"day": numbers()})
    then = Metrics("AP", {"AP": 0.5}, slices={"day": numbers(), "night": numbers()})
    gates = drop("slice:*.AP=0.9", now, then)
    assert statuses(gates) == [("slice:day.AP", "passed"), ("slice:night.AP", "undefined")]
    with pytest.raises(UsageError, match="slice 'night' is not in the baseline"):
        drop("slice:*.AP=0.9", then, now)


def test_metrics_of_a_lost_class_gated_by_name() -> None:
    """The report has the metric; it is computed for the class that is still there."""
    rows = [{"name": name, "AP": 0.5, "ground_truths": 1} for name in "ba"]
    then = Metrics("AP", {"AP": 0.5}, [row | {"AP90": 0.1} for row in rows])
    now = Metrics("AP", {"AP": 0.5}, rows[1:], compute_rows=lambda name: {"AP90": [0.1]}[name])
    gates = drop("class:*.AP90=0", now, then)
    assert statuses(gates) == [("class:a.AP90", "passed"), ("class:b.AP90", "undefined")]


def test_all_metrics_of_a_slice_without_images_are_undefined() -> None:
    rows = [{"name": "a", "AP": 0.5, "ground_truths": 1, "true_positives": 3}]
    whole = Metrics(
        "AP",
        {"AP": 0.5},
        rows,
        compute_overall=lambda name: {"AP90": 0.3}[name],
        compute_rows=lambda name: {"AP90": [0.1]}[name],
    )
    of = Metrics("AP", {"AP": 0.5}, rows, slices={"empty": whole.undefined()})
    for name in ("AP", "AP90", "class:a.AP", "class:a.AP90", "min-class.AP"):
        (gate,) = floor(f"slice:empty.{name}=0", of)
        assert (gate.status, gate.value != gate.value) == ("undefined", True)
    (gate,) = floor("slice:empty.class:a.true_positives=0", of)
    assert (gate.status, gate.value, gate.ground_truths) == ("passed", 0, 0)
    with pytest.raises(UsageError, match="no class has ground truth"):
        floor("slice:empty.class:*.AP=0", of)
    with pytest.raises(UsageError, match="unknown metric 'AP91'"):
        floor("slice:empty.AP91=0", of)


# --- limits that never fail


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("minimum", "AP50", "'AP50' is not a number; use 0.5 or NAME=0.5"),
        ("minimum", "AP50=", "'' is not a number"),
        ("minimum", "=0.5", "'=0.5': no metric name before '='"),
        ("minimum", "AP=nan", "'nan' is not a number"),
        ("minimum", "AP=1_0", "'1_0' is not a number"),
        ("minimum", "50%", "expected a number such as 0.5, not a percentage"),
        ("maximum", "50%", "expected a number such as 0.5, not a percentage"),
        ("minimum", "-1", "'-1': a minimum below 0 can never fail; use 0.5 or NAME=0.5"),
        ("minimum", "class:cat.true_positives=-1e-9", "a minimum below 0 can never fail"),
        ("drop", "-0.1", "a drop limit must be at least 0"),
        ("rise", "-1", "a rise limit must be at least 0"),
        ("drop", "AP=100%", "'100%': a drop limit of 100% or more can never fail; use 1% or NAME"),
        ("drop", "class:cat.duplicates=250%", "'250%': a drop limit of 100% or more can never"),
    ],
)
def test_text_that_is_no_limit(kind: Any, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Limit.of(kind, text)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("minimum", "AP50=70", "minimum 70 can never pass: AP50 is at most 1"),
        ("maximum", "AP50=70", "maximum 70 can never fail: AP50 is at most 1"),
        ("maximum", "1", "maximum 1 can never fail: AP is at most 1"),
        ("drop", "0", "a drop limit requires a baseline"),
    ],
)
def test_limits_without_sense(kind: Any, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check([Limit.of(kind, text)], numbers())


@pytest.mark.parametrize("kind", ["drop", "rise"])
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1", "use 0.01 or 1%"),
        ("1.0", "use 0.01 or 1.0%"),
        ("2", "use 0.02 or 2%"),
        ("class:cat.AP=1", "use 0.01 or 1%"),
        ("min-class.AP=5", "use 0.05 or 5%"),
        ("APs=1", "use 0.01 or 1%"),  # undefined
        ("100", "use 0.01 or 1%"),
    ],
)
def test_no_fraction_changes_by_more_than_1(kind: Any, text: str, hint: str) -> None:
    with pytest.raises(
        UsageError, match=rf"{kind} limit [\d.]+ can never fail: .+ is at most 1; {hint}$"
    ):
        check([Limit.of(kind, text)], numbers(), numbers())


# --- classes of other ids


def test_classes_of_another_ground_truth_are_matched_by_name() -> None:
    """In any order; the ghost never had the metric."""
    rows = numbers().rows[::-1]
    then = numbers(rows=[{**row, "id": 10 + index} for index, row in enumerate(rows)])
    now = numbers(rows=[{**row, "id": index} for index, row in enumerate(numbers().rows)])
    gates = drop("class:*.AP=0", now, then.with_ids_of(now))
    assert statuses(gates) == [("class:person.AP", "passed"), ("class:cat.AP", "passed")]


def test_a_name_shared_by_two_classes_is_matched_only_by_id() -> None:
    def twins(*ids: int) -> Metrics:
        return numbers(rows=[{"name": "a", "id": i, "AP": i / 10, "ground_truths": 1} for i in ids])

    now, then = twins(1, 2), twins(2, 3).with_ids_of(twins(1, 2))
    assert [row["id"] for row in then.rows] == [2, 3]
    first, second, third = drop("class:*.AP=0", now, then)
    assert [gate.status for gate in (first, second, third)] == ["undefined", "passed", "undefined"]
