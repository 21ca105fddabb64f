"""Which protocols give a number."""

from pathlib import Path

import pytest

from detap import read_detections, read_ground_truth
from detap.analysis.explanation import protocol_search as module
from detap.analysis.explanation import searched
from detap.analysis.explanation.numbers import Tables
from detap.analysis.explanation.protocol_search import ProtocolMatch, protocol_search
from detap.analysis.explanation.target_value import TargetValue
from detap.errors import UnknownNameError, UsageError
from detap.evaluation.detection import score_tables
from detap.protocols import PRESETS, Protocol
from tests.analysis.test_protocol_diff import difficult


def told(entry: ProtocolMatch) -> str:
    changes = ", ".join(f"{name} {value}" for name, value in entry.changes.items())
    return f"{entry.name} by {entry.protocol.name}" + (f": {changes}" if changes else "")


@pytest.fixture(autouse=True)
def _some_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be four, so that what is found does not depend on others that come."""
    some = {name: PRESETS[name] for name in ("voc2007", "voc2012", "voc2007-py", "coco")}
    monkeypatch.setattr(Protocol, "presets", some)


@pytest.mark.parametrize(
    ("text", "digits", "equal", "other"),
    [
        (".6762879", 7, 0.6762879424942938, 0.676288),
        ("67.63", 4, 0.6762879424942938, 0.67624),
        (" 0.500 ", 3, 0.4995, 0.4994),
        ("0.6762879424942938", 16, 0.6762879424942938, 0.6762879424942939),
        ("1.000", 3, 0.9995, 0.9994),
        ("100.0", 3, 1.0, 0.999),
    ],
)
def test_equal_to_the_digits_given(text: str, digits: int, equal: float, other: float) -> None:
    wanted = TargetValue.of(text)
    assert wanted.digits == digits
    assert wanted.digits_of(equal) == digits
    assert wanted.digits_of(other) < digits


def test_to_how_many_digits_a_number_is_equal() -> None:
    wanted = TargetValue.of("0.7669419050")
    assert [wanted.digits_of(value) for value in (0.76694195900, 0.76691, 0.8, 0.1)] == [6, 4, 1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("high", "--value: 'high' is not a number"),
        ("nan", "--value: 'nan' is not a number"),
        ("-0.5", "--value -0.5 is outside \\[0, 1\\] and not a percentage"),
        ("101.25", "--value 101.25 is outside \\[0, 1\\] and not a percentage"),
        ("0.67", "--value 0.67 has too few digits and matches many protocols; use 3 decimals"),
        ("67", "--value 67 has too few digits"),
    ],
)
def test_what_is_no_number_to_look_for(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TargetValue.of(text)


def test_a_preset_is_enough() -> None:
    """fixtures/difficult: 6/11 by the rules of 2007."""
    found = protocol_search(difficult(), TargetValue.of("0.545455"))
    assert [told(entry) for entry in found.equal][:2] == ["mAP by voc2007", "mAP by voc2007-py"]
    assert len(found.scored) == 1
    assert found.pairs == 0


def test_an_axis_has_to_be_changed() -> None:
    """7/11 is that of 2007 where difficult objects count."""
    found = protocol_search(difficult(), TargetValue.of("0.63636"))
    assert [told(entry) for entry in found.equal][:2] == [
        "mAP by voc2007: ignore_flags ()",
        "mAP by voc2007-py: ignore_flags ()",
    ]
    assert len(found.scored) == 2


def test_two_axes_have_to_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is only COCO's, 6/11 takes 11 points and difficult objects that are neutral."""
    monkeypatch.setattr(Protocol, "presets", {"coco": Protocol.preset("coco")})
    found = protocol_search(difficult(), TargetValue.of("0.545455"), "AP50")
    assert {frozenset(entry.changes.items()) for entry in found.equal} == {
        frozenset({("interpolation", "11-point"), ("ignore_flags", ("difficult",))})
    }
    assert len(found.scored) == 3


def test_nothing_gives_it() -> None:
    found = protocol_search(difficult(), TargetValue.of("0.7777"))
    assert found.equal == ()
    assert len(found.scored) == 3
    distances = [found.target.distance(entry.value) for entry in found.candidates]
    assert distances == sorted(distances)


def test_what_changes_nothing_is_not_named() -> None:
    """Every candidate with changes has a number that nothing simpler has."""
    found = protocol_search(difficult(), TargetValue.of("0.7777"))
    for entry in found.candidates:
        for name in entry.changes:
            rest = {key: value for key, value in entry.changes.items() if key != name}
            base = Protocol.preset(entry.protocol.name).with_changes(**rest)
            assert entry.value not in score_tables(*difficult(), base).summary.values()


def test_the_likeliest_pairs_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = protocol_search(difficult(), TargetValue.of("0.7777"))
    monkeypatch.setattr(module, "MAX_PAIRS", 3)
    few = protocol_search(difficult(), TargetValue.of("0.7777"))
    assert few.max_pairs == 3
    assert few.scored[2] <= 3 < whole.scored[2]
    assert few.pairs == whole.pairs


def test_a_number_of_a_name_is_looked_for_alone() -> None:
    found = protocol_search(difficult(), TargetValue.of("0.66337"), "AP50")
    assert {entry.name for entry in found.candidates} == {"AP50"}
    assert found.equal[0].protocol.name == "coco"
    with pytest.raises(UnknownNameError, match="has no metric 'AP99'"):
        protocol_search(difficult(), TargetValue.of("0.66337"), "AP99")


def test_values_that_are_held_are_in_all() -> None:
    found = protocol_search(difficult(), TargetValue.of("0.63636"), changes={"ignore_flags": ()})
    assert told(found.equal[0]) == "mAP by voc2007"
    assert all(entry.protocol.ignore_flags == () for entry in found.candidates)


def test_known_numbers_of_other_tools(real_data: Path) -> None:
    """voc2007-test: without the +1 pixel, and with difficult objects counted (its README)."""
    tables = _voc2007(real_data)
    for text, due in (
        (".6762879", "AP50 by coco"),
        (".682513", "mAP by voc2012: ignore_flags ()"),
        (".743535", "mAP by voc2007-py: inclusive_pixels False"),
        (".770646", "mAP by voc2012"),
    ):
        assert told(protocol_search(tables, TargetValue.of(text)).candidates[0]) == due


def _voc2007(real_data: Path) -> Tables:
    folder = real_data / "voc2007-test"
    truth = read_ground_truth(folder / "Annotations")
    return truth, read_detections(folder / "detections", truth)


def test_a_preset_of_a_new_overlap_is_left_out_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Protocol, "presets", {name: PRESETS[name] for name in ("coco", "dota")})
    monkeypatch.setattr(searched, "_SHAPES", {})  # as if quadrilaterals were new
    found, skipped = searched.searched_presets({})
    assert [protocol.name for protocol in found] == ["coco"]
    assert skipped == [("compare polygon: --iou-type polygon", ("dota",))]
