"""Metrics against limits: names, comparisons and messages, without an evaluation."""

import re
from dataclasses import dataclass
from math import nan
from typing import Any

import pytest

from detap.errors import UsageError
from detap.gates.checks import Gate, Interval, Intervals, check
from detap.gates.config import Limit
from detap.gates.metric_names import MetricName, Metrics, resolve


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


def test_a_limit_without_name_is_for_the_primary_metric() -> None:
    (gate,) = floor("0.5")
    assert (gate.name, gate.status) == ("AP", "passed")
    assert gate.message == "AP 0.5000, required >= 0.5"


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


def test_a_float_is_compared_as_its_decimal() -> None:
    # The float 0.1 + 0.2 is above 0.3, and fails a drop that allows none from 0.3 upwards only.
    assert floor("0.3", numbers(ap=0.1 + 0.2))[0].status == "passed"
    assert floor("0.30000000000000005", numbers(ap=0.1 + 0.2))[0].status == "failed"


def test_an_undefined_metric_fails_with_a_message() -> None:
    (gate,) = floor("APs=0")
    assert gate.failed
    assert gate.message == "APs undefined, required >= 0"
    (gate,) = floor("class:ghost.AP=0")
    assert gate.status == "undefined"


def test_classes_one_all_and_the_smallest() -> None:
    assert [gate.name for gate in floor("class:person.AP=0.6")] == ["class:person.AP"]
    gates = floor("class:*.AP=0.5")
    assert [(gate.name, gate.status) for gate in gates] == [
        ("class:person.AP", "passed"),
        ("class:cat.AP", "failed"),
    ]
    (gate,) = floor("min-class.AP=0.4")
    assert (gate.name, gate.value, gate.status) == ("min-class.AP", 0.4, "passed")


def test_the_smallest_names_its_class() -> None:
    (gate,) = floor("min-class.AP=0.5")
    assert gate.message == "min-class.AP (cat) 0.4000, required >= 0.5"
    both = [{"name": name, "AP": 0.4, "ground_truths": 9} for name in ("person", "cat", "dog")]
    (gate,) = floor("min-class.AP=0.5", numbers(rows=both))
    assert gate.message == "min-class.AP (person and 2 more) 0.4000, required >= 0.5"
    none = [{"name": "person", "AP": nan, "ground_truths": 0}]
    assert floor("min-class.AP=0.5", numbers(rows=none))[0].message == (
        "min-class.AP undefined, required >= 0.5"
    )
    slices = Metrics("AP", {"AP": 0.5}, slices={"day": numbers()})
    assert floor("slice:day.min-class.AP=0.2", slices)[0].message == (
        "slice:day.min-class.AP (cat) 0.4000, required >= 0.2"
    )


def test_the_drop_of_the_smallest_names_both_classes() -> None:
    now, then = ([dict(row) for row in numbers().rows] for _ in range(2))
    now[1]["AP"] = 0.1
    (gate,) = drop("min-class.AP=0.1", numbers(rows=now), numbers(rows=then))
    assert gate.message == "min-class.AP (cat) dropped by 0.3000 (0.4000 to 0.1000), allowed 0.1"
    now[0]["AP"] = 0.05
    (gate,) = drop("min-class.AP=0.1", numbers(rows=now), numbers(rows=then))
    assert gate.message == (
        "min-class.AP (person, cat in the baseline) dropped by 0.3500 (0.4000 to 0.0500), "
        "allowed 0.1"
    )


def test_counts_have_minimums_too() -> None:
    assert floor("class:person.ground_truths=50")[0].status == "passed"
    assert floor("class:person.ground_truths=51")[0].status == "failed"


def odd(name: str, measure: str = "AP") -> Metrics:
    rows = [{"name": name, measure: 0.1, "ground_truths": 1}]
    return numbers(rows=[*rows, {"name": "other", measure: 0.9, "ground_truths": 1}])


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a.b", "class:a.b.AP"),
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
    (gate,) = floor(f"{written}=0.05", odd(name))
    assert gate.value == 0.1
    assert gate.status == "passed"


def test_a_metric_name_may_contain_a_dot() -> None:
    (gate,) = floor("class:a.b.AP62.5=0.05", odd("a.b", "AP62.5"))
    assert gate.value == 0.1


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
    assert floor("slice:night.AP=0.2", of)[0].name == "slice:night.AP"


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
    with pytest.raises(UsageError) as caught:
        floor(f"{name}=0.5")
    assert message in str(caught.value)


def test_an_unknown_slice_gets_suggestions() -> None:
    with pytest.raises(UsageError, match=r"unknown slice 'nigt'; did you mean 'night'\?"):
        floor("slice:nigt.AP=0.5", Metrics("AP", {"AP": 1.0}, slices={"night": numbers()}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AP50", "'AP50' is not a number; use 0.5 or NAME=0.5"),
        ("AP50=", "'' is not a number"),
        ("=0.5", "'=0.5': no metric name before '='"),
        ("AP=nan", "'nan' is not a number"),
        ("AP=1_0", "'1_0' is not a number"),
        ("50%", "expected a number such as 0.5, not a percentage"),
    ],
)
def test_a_minimum_must_be_a_number(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Limit.of("minimum", text)


def test_a_minimum_out_of_range_is_rejected() -> None:
    with pytest.raises(UsageError, match="minimum 70 can never pass: AP50 is at most 1"):
        floor("AP50=70")
    assert floor("class:person.duplicates=2")[0].status == "passed"


def test_a_drop_is_the_difference_of_the_decimals() -> None:
    # 0.75 - 0.745 is 0.0050000000000000044 in floats, and 0.005 on paper.
    (gate,) = drop("0.005", numbers(ap=0.745), numbers(ap=0.75))
    assert gate.status == "passed"
    assert gate.message == "AP dropped by 0.0050 (0.7500 to 0.7450), allowed 0.005"
    (gate,) = drop("0.005", numbers(ap=0.7449999), numbers(ap=0.75))
    assert gate.failed
    assert gate.message == "AP dropped by 0.0050001 (0.7500 to 0.7450), allowed 0.005"


def test_a_relative_drop_is_a_fraction_of_the_baseline() -> None:
    (gate,) = drop("AP=1%", numbers(ap=0.495), numbers(ap=0.5))
    assert gate.status == "passed"
    (gate,) = drop("AP=1%", numbers(ap=0.4949), numbers(ap=0.5))
    assert gate.failed
    assert gate.message == ("AP dropped by 0.0051 (0.5000 to 0.4949), allowed 1% (0.005000)")


def test_a_rise_and_no_change_pass() -> None:
    (gate,) = drop("0", numbers(ap=0.6), numbers(ap=0.5))
    assert (gate.status, gate.message) == ("passed", "AP rose by 0.1000 (0.5000 to 0.6000)")
    (gate,) = drop("0", numbers(ap=0.5), numbers(ap=0.5))
    assert (gate.status, gate.message) == ("passed", "AP unchanged (0.5000)")


def test_a_negative_max_drop_is_rejected() -> None:
    with pytest.raises(ValueError, match="a drop limit must be at least 0"):
        Limit.of("drop", "-0.1")


def test_classes_are_matched_by_name_in_any_order() -> None:
    now, then = numbers(), numbers(rows=[dict(row) for row in numbers().rows[::-1]])
    gates = drop("class:*.AP=0", now, then)
    assert [(gate.name, gate.status) for gate in gates] == [
        ("class:person.AP", "passed"),
        ("class:cat.AP", "passed"),
    ]


def test_classes_of_the_same_name_are_matched_by_id() -> None:
    rows = [{"name": "cat", "id": number, "AP": number / 10} for number in (1, 2)]
    now, then = numbers(rows=rows), numbers(rows=rows[::-1])
    for limit in ("class:*.AP=0", "class:cat.AP=0"):
        assert [gate.drop for gate in drop(limit, now, then)] == [0, 0]


def test_a_metric_undefined_in_the_baseline_has_not_dropped() -> None:
    (gate,) = drop("APs=0.1", numbers(), numbers())
    assert gate.status == "undefined"
    assert gate.message == "APs undefined, allowed drop 0.1"
    assert gate.limit == "0.1"
    then = Metrics("AP", {"AP": nan}, ())
    (gate,) = drop("0.1", numbers(), then)
    assert gate.message == "AP undefined in the baseline, allowed drop 0.1"


def test_a_metric_missing_in_the_baseline_is_a_usage_error() -> None:
    message = "'AP50' is not in the baseline; regenerate it or use --baseline-detections"
    with pytest.raises(UsageError, match=f"^{message}$"):
        drop("AP50=0.1", numbers(), Metrics("AP", {"AP": 0.5}))


@dataclass
class Fixed:
    """The same interval for every metric."""

    ends: Interval
    confidence: float = 0.95

    def interval(self, name: MetricName) -> Interval:
        return self.ends


def intervals(low: float, high: float) -> Intervals:
    return Fixed((low, high))


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ((0.006, 0.02), "failed"),
        ((0.005, 0.02), "inconclusive"),  # the whole interval must be beyond the bound
        ((-0.01, 0.02), "inconclusive"),
        ((-0.01, 0.005), "passed"),
        ((nan, nan), "undefined"),
    ],
)
def test_only_drops_beyond_the_interval_fail(ends: tuple[float, float], verdict: str) -> None:
    (gate,) = drop("0.005", numbers(ap=0.49), numbers(ap=0.5), intervals=intervals(*ends))
    assert gate.status == verdict
    assert gate.failed == (verdict in ("failed", "undefined"))
    if verdict == "inconclusive":
        assert gate.message.endswith("; inconclusive: the CI contains the limit")
        assert gate.warned


def test_the_message_has_the_interval() -> None:
    (gate,) = drop("0.005", numbers(ap=0.48), numbers(ap=0.5), intervals=intervals(0.0123, 0.03))
    assert gate.message == (
        "AP dropped by 0.0200 (0.5000 to 0.4800), allowed 0.005; "
        "95% CI of the drop [0.0123, 0.0300]"
    )


def test_a_class_with_few_ground_truths_warns() -> None:
    worse = [dict(row) for row in numbers().rows]
    worse[1]["AP"] = 0.1
    (gate,) = drop("class:cat.AP=0.1", numbers(rows=worse), numbers(), min_ground_truths=6)
    assert (gate.status, gate.failed) == ("too-few-ground-truths", False)
    assert gate.message.endswith("warning only: 5 ground truths, minimum 6")
    (gate,) = drop("class:cat.AP=0.1", numbers(rows=worse), numbers(), min_ground_truths=5)
    assert gate.failed


@pytest.mark.parametrize(
    ("person", "status"),
    [(0.4, "too-few-ground-truths"), (0.35, "failed")],
)
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


# --- maximums, rises, and what is only rounding


def rise(text: str, now: Metrics, then: Metrics, **options: Any) -> list[Gate]:
    return check([Limit.of("rise", text)], now, then, **options)


def ceiling(text: str, of: Metrics | None = None) -> list[Gate]:
    return check([Limit.of("maximum", text)], of or numbers())


def changed(measure: str, value: Any, row: int = 0) -> Metrics:
    rows = [dict(entry) for entry in numbers().rows]
    rows[row][measure] = value
    return numbers(rows=rows)


def test_a_maximum() -> None:
    (gate,) = ceiling("class:person.duplicates=3")
    assert (gate.kind, gate.status) == ("maximum", "passed")
    assert gate.message == "class:person.duplicates 3, required <= 3"
    (gate,) = ceiling("class:person.duplicates=2")
    assert (gate.status, gate.message) == ("failed", "class:person.duplicates 3, required <= 2")
    (gate,) = ceiling("AP=0.4")
    assert gate.message == "AP 0.5000, required <= 0.4"
    (gate,) = ceiling("APs=0.4")
    assert (gate.status, gate.message) == (
        "undefined",
        "APs undefined, required <= 0.4",
    )
    assert [gate.status for gate in ceiling("class:*.duplicates=0")] == [
        "failed",
        "passed",
        "passed",
    ]


def test_a_limit_outside_0_to_1_of_a_fraction_is_rejected() -> None:
    with pytest.raises(UsageError, match="maximum 70 can never fail: AP50 is at most 1"):
        ceiling("AP50=70")
    with pytest.raises(UsageError, match="maximum 1 can never fail: AP is at most 1"):
        ceiling("1")
    assert floor("AP=1")[0].status == "failed"
    assert ceiling("AP=0.999")[0].status == "passed"
    with pytest.raises(ValueError, match=r"expected a number such as 0\.5, not a percentage"):
        Limit.of("maximum", "50%")


def test_a_maximum_rise() -> None:
    (gate,) = rise("class:person.duplicates=1", changed("duplicates", 5), numbers())
    assert (gate.kind, gate.status, gate.drop) == ("rise", "failed", -2.0)
    assert gate.message == "class:person.duplicates rose by 2 (3 to 5), allowed 1"
    (gate,) = rise("class:person.duplicates=2", changed("duplicates", 5), numbers())
    assert gate.message == "class:person.duplicates rose by 2 (3 to 5), allowed 2"
    assert gate.status == "passed"
    (gate,) = rise("class:person.duplicates=0", changed("duplicates", 1), numbers())
    assert (gate.status, gate.message) == (
        "passed",
        "class:person.duplicates dropped by 2 (3 to 1)",
    )
    (gate,) = rise("class:person.duplicates=50%", changed("duplicates", 5), numbers())
    assert gate.message.endswith("allowed 50% (1.500000)")
    with pytest.raises(ValueError, match="a rise limit must be at least 0"):
        Limit.of("rise", "-1")
    (gate,) = rise("APs=0.1", numbers(), numbers())
    assert gate.message == "APs undefined, allowed rise 0.1"


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [  # of the drop: a rise of 0.006 to 0.02 is a drop of -0.02 to -0.006
        ((-0.02, -0.006), "failed"),
        ((-0.02, -0.005), "inconclusive"),
        ((-0.005, 0.01), "passed"),
        ((nan, nan), "undefined"),
    ],
)
def test_noise_of_a_rise(ends: Interval, verdict: str) -> None:
    (gate,) = rise("0.005", numbers(ap=0.51), numbers(ap=0.5), intervals=intervals(*ends))
    assert gate.status == verdict
    assert gate.interval == pytest.approx(ends, nan_ok=True)
    if verdict == "failed":
        assert gate.message.endswith("95% CI of the rise [0.0060, 0.0200]")


def test_few_ground_truths_warn_of_a_rise_too() -> None:
    now = changed("duplicates", 9, row=1)
    (gate,) = rise("class:cat.duplicates=1", now, numbers(), min_ground_truths=6)
    assert (gate.status, gate.warned) == ("too-few-ground-truths", True)


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


def test_rounding_does_not_exceed_a_limit() -> None:
    # 0.75 less 0.745 as a sum in another order makes it.
    (gate,) = drop("0.005", numbers(ap=0.745 - 2**-53), numbers(ap=0.75))
    assert gate.status == "passed"
    assert ", allowed 0.005" in gate.message
    assert gate.message.startswith("AP dropped by 0.0050 ")
    (gate,) = drop(
        "0.005", numbers(ap=0.74), numbers(ap=0.75), intervals=intervals(0.005 + 1e-15, 0.02)
    )
    assert gate.status == "inconclusive"
    (gate,) = drop(
        "0.005", numbers(ap=0.748), numbers(ap=0.75), intervals=intervals(0.001, 0.005 + 1e-15)
    )
    assert gate.status == "passed"


# --- what only one of the two has


def without(name: str) -> Metrics:
    return numbers(rows=[dict(row) for row in numbers().rows if row["name"] != name])


def test_a_class_missing_in_the_baseline_is_undefined_there() -> None:
    (gate,) = drop("class:person.AP=0.9", numbers(), without("person"))
    assert (gate.status, gate.failed) == ("undefined", True)
    assert gate.message == "class:person.AP undefined in the baseline, allowed drop 0.9"


def test_a_wildcard_includes_a_lost_class() -> None:
    gates = drop("class:*.AP=0.9", without("person"), numbers())
    assert [(gate.name, gate.status) for gate in gates] == [
        ("class:cat.AP", "passed"),
        ("class:person.AP", "undefined"),
    ]
    # Of another ground truth, the class is there and has no object.
    now = changed("AP", nan)
    now.rows[0]["ground_truths"] = 0  # type: ignore[index]
    gates = drop("class:*.AP=0.9", now, numbers())
    assert [(gate.name, gate.status) for gate in gates] == [
        ("class:person.AP", "undefined"),
        ("class:cat.AP", "passed"),
    ]
    (gate,) = [
        gate
        for gate in drop("class:*.duplicates=1", without("person"), numbers())
        if gate.name == "class:person.duplicates"
    ]
    assert (gate.status, gate.value) == ("failed", 0)


def test_a_wildcard_skips_a_class_that_never_had_the_metric() -> None:
    assert "class:ghost.AP" not in [
        gate.name for gate in drop("class:*.AP=0.9", numbers(), numbers())
    ]


@pytest.mark.parametrize("kind", ["drop", "rise"])
def test_a_wildcard_without_any_defined_metric_fails(kind: Any) -> None:
    """A gate never passes on an undefined or empty result."""
    then = changed("AP", nan)
    then.rows[1]["AP"] = nan  # type: ignore[index]
    assert [
        (gate.name, gate.status) for gate in check([Limit.of(kind, "class:*.AP=0.9")], then, then)
    ] == [
        ("class:person.AP", "undefined"),
        ("class:cat.AP", "undefined"),
    ]
    parts = Metrics("AP", {"AP": 0.5}, slices={"day": numbers(), "night": numbers()})
    gates = check([Limit.of(kind, "slice:*.APs=0.9")], parts, parts)
    assert [(gate.name, gate.status) for gate in gates] == [
        ("slice:day.APs", "undefined"),
        ("slice:night.APs", "undefined"),
    ]


def test_a_wildcard_includes_a_lost_slice() -> None:
    now = Metrics("AP", {"AP": 0.5}, slices={"day": numbers()})
    then = Metrics("AP", {"AP": 0.5}, slices={"day": numbers(), "night": numbers()})
    gates = drop("slice:*.AP=0.9", now, then)
    assert [(gate.name, gate.status) for gate in gates] == [
        ("slice:day.AP", "passed"),
        ("slice:night.AP", "undefined"),
    ]
    with pytest.raises(UsageError, match="slice 'night' is not in the baseline"):
        drop("slice:*.AP=0.9", then, now)


def test_metrics_of_a_lost_class_gated_by_name() -> None:
    rows = [{"name": "a", "AP": 0.5, "ground_truths": 1}]
    more = Metrics("AP", {"AP": 0.5}, rows, compute_rows=lambda name: {"AP90": [0.1]}[name])
    then = Metrics(
        "AP",
        {"AP": 0.5},
        [{"name": name, "AP": 0.5, "AP90": 0.1, "ground_truths": 1} for name in "ba"],
    )
    assert [(gate.name, gate.status) for gate in drop("class:*.AP90=0", more, then)] == [
        ("class:a.AP90", "passed"),
        ("class:b.AP90", "undefined"),
    ]


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


def test_changes_need_a_baseline() -> None:
    with pytest.raises(UsageError, match="a drop limit requires a baseline"):
        check([Limit.of("drop", "0")], numbers())


# --- limits that never fail


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (
            "drop",
            "AP=100%",
            "'100%': a drop limit of 100% or more can never fail; use 1% or NAME=1%",
        ),
        (
            "drop",
            "class:cat.duplicates=250%",
            "'250%': a drop limit of 100% or more can never fail",
        ),
        ("minimum", "-1", "'-1': a minimum below 0 can never fail; use 0.5 or NAME=0.5"),
        ("minimum", "class:cat.true_positives=-1e-9", "a minimum below 0 can never fail"),
    ],
)
def test_a_limit_that_can_never_fail_is_rejected(kind: Any, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Limit.of(kind, text)


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


def test_suggested_limits_can_fail() -> None:
    # From 0.5 to 0.4: by 0.1, a fifth of it.
    for bound, verdict in (("0.01", "failed"), ("1%", "failed"), ("25%", "passed")):
        (gate,) = drop(f"AP={bound}", numbers(ap=0.4), numbers(ap=0.5))
        assert gate.status == verdict


def test_counts_and_unbounded_metrics_change_by_any_amount() -> None:
    (gate,) = drop("class:person.duplicates=1", changed("duplicates", 1), numbers())
    assert (gate.drop, gate.status) == (2, "failed")
    name = "false-positives-per-image"
    now, then = (Metrics("AP", {"AP": 0.5, name: value}) for value in (7.5, 5.0))
    (gate,) = rise(f"{name}=2", now, then)
    assert (gate.drop, gate.status) == (-2.5, "failed")
    # A small number may rise by any percentage.
    (gate,) = rise("AP=100%", numbers(ap=0.5), numbers(ap=0.2))
    assert gate.status == "failed"


# --- classes of other ids


def test_classes_of_another_ground_truth_are_matched_by_name() -> None:
    then = numbers(rows=[{**row, "id": 10 + index} for index, row in enumerate(numbers().rows)])
    now = numbers(rows=[{**row, "id": index} for index, row in enumerate(numbers().rows)])
    gates = drop("class:*.AP=0", now, then.with_ids_of(now))
    assert [(gate.name, gate.status) for gate in gates] == [
        ("class:person.AP", "passed"),
        ("class:cat.AP", "passed"),
    ]


def test_a_name_shared_by_two_classes_is_matched_only_by_id() -> None:
    def twins(*ids: int) -> Metrics:
        return numbers(rows=[{"name": "a", "id": i, "AP": i / 10, "ground_truths": 1} for i in ids])

    now, then = twins(1, 2), twins(2, 3).with_ids_of(twins(1, 2))
    assert [row["id"] for row in then.rows] == [2, 3]
    first, second, third = drop("class:*.AP=0", now, then)
    assert [gate.status for gate in (first, second, third)] == ["undefined", "passed", "undefined"]
