"""Search for the protocols that give a value."""

from pathlib import Path

import pytest

from detap import read_detections, read_ground_truth
from detap.analysis.explanation import protocol_search as module
from detap.analysis.explanation.protocol_search import ProtocolMatch, TargetValue, protocol_search
from detap.errors import UnknownNameError
from detap.evaluation.scoring import score_tables
from detap.protocols import PRESETS, Protocol
from tests.analysis.test_protocol_diff import difficult


def describe(entry: ProtocolMatch) -> str:
    changes = ", ".join(f"{name} {value}" for name, value in entry.changes.items())
    return f"{entry.name} by {entry.protocol.name}" + (f": {changes}" if changes else "")


@pytest.fixture(autouse=True)
def _some_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restrict the search to four presets, so that new ones do not change the result."""
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
def test_values_are_equal_to_the_given_digits(
    text: str, digits: int, equal: float, other: float
) -> None:
    target = TargetValue.of(text)
    assert target.digits == digits
    assert target.digits_of(equal) == digits
    assert target.digits_of(other) < digits


def test_number_of_matching_digits() -> None:
    target = TargetValue.of("0.7669419050")
    assert [target.digits_of(value) for value in (0.76694195900, 0.76691, 0.8, 0.1)] == [6, 4, 1, 0]


def test_a_preset_is_enough() -> None:
    """fixtures/difficult: 6/11 by voc2007."""
    search = protocol_search(difficult(), TargetValue.of("0.545455"))
    assert [describe(entry) for entry in search.equal][:2] == [
        "mAP by voc2007",
        "mAP by voc2007-py",
    ]
    assert len(search.scored) == 1
    assert search.pairs == 0


def test_one_changed_field() -> None:
    """7/11 by voc2007 if difficult objects count."""
    search = protocol_search(difficult(), TargetValue.of("0.63636"))
    assert [describe(entry) for entry in search.equal][:2] == [
        "mAP by voc2007: ignore_flags ()",
        "mAP by voc2007-py: ignore_flags ()",
    ]
    assert len(search.scored) == 2


def test_two_changed_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """From coco, 6/11 needs 11-point interpolation and ignored difficult objects."""
    monkeypatch.setattr(Protocol, "presets", {"coco": Protocol.preset("coco")})
    search = protocol_search(difficult(), TargetValue.of("0.545455"), "AP50")
    assert {frozenset(entry.changes.items()) for entry in search.equal} == {
        frozenset({("interpolation", "11-point"), ("ignore_flags", ("difficult",))})
    }
    assert len(search.scored) == 3


def test_no_protocol_gives_the_value() -> None:
    search = protocol_search(difficult(), TargetValue.of("0.7777"))
    assert search.equal == ()
    assert len(search.scored) == 3
    distances = [search.target.distance(entry.value) for entry in search.candidates]
    assert distances == sorted(distances)


def test_changes_without_effect_are_not_listed() -> None:
    """No candidate with changes has a value that a simpler one has."""
    search = protocol_search(difficult(), TargetValue.of("0.7777"))
    for entry in search.candidates:
        for name in entry.changes:
            rest = {key: value for key, value in entry.changes.items() if key != name}
            base = Protocol.preset(entry.protocol.name).with_changes(**rest)
            assert entry.value not in score_tables(*difficult(), base).summary.values()


def test_the_most_likely_pairs_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = protocol_search(difficult(), TargetValue.of("0.7777"))
    monkeypatch.setattr(module, "MAX_PAIRS", 3)
    few = protocol_search(difficult(), TargetValue.of("0.7777"))
    assert few.max_pairs == 3
    assert few.scored[2] <= 3 < whole.scored[2]
    assert few.pairs == whole.pairs


def test_a_named_metric_is_searched_alone() -> None:
    search = protocol_search(difficult(), TargetValue.of("0.66337"), "AP50")
    assert {entry.name for entry in search.candidates} == {"AP50"}
    assert search.equal[0].protocol.name == "coco"
    with pytest.raises(UnknownNameError, match="has no metric 'AP99'"):
        protocol_search(difficult(), TargetValue.of("0.66337"), "AP99")


def test_given_changes_apply_to_all_candidates() -> None:
    search = protocol_search(difficult(), TargetValue.of("0.63636"), changes={"ignore_flags": ()})
    assert describe(search.equal[0]) == "mAP by voc2007"
    assert all(entry.protocol.ignore_flags == () for entry in search.candidates)


def test_known_numbers_of_other_tools(real_data: Path) -> None:
    """voc2007-test: without inclusive pixels, and with difficult objects counted (its README)."""
    folder = real_data / "voc2007-test"
    truth = read_ground_truth(folder / "Annotations")
    tables = truth, read_detections(folder / "detections", truth)
    for text, expected in (
        (".6762879", "AP50 by coco"),
        (".682513", "mAP by voc2012: ignore_flags ()"),
        (".743535", "mAP by voc2007-py: inclusive_pixels False"),
        (".770646", "mAP by voc2012"),
    ):
        assert describe(protocol_search(tables, TargetValue.of(text)).candidates[0]) == expected


def test_a_preset_of_an_unsupported_iou_type_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Protocol, "presets", {name: PRESETS[name] for name in ("coco", "dota")})
    monkeypatch.setattr(module, "_SHAPES", {})  # as if quadrilaterals were new
    presets, skipped = module.searched_presets({})
    assert [protocol.name for protocol in presets] == ["coco"]
    assert skipped == {"compare polygon: --iou-type polygon": ["dota"]}


def search_among(
    monkeypatch: pytest.MonkeyPatch, names: list[str], changes: dict[str, str], **options: bool
) -> tuple[list[str], dict[str, list[str]]]:
    monkeypatch.setattr(Protocol, "presets", {name: PRESETS[name] for name in names})
    presets, skipped = module.searched_presets(changes, **options)
    return [protocol.name for protocol in presets], skipped


def test_presets_of_boxes_reject_quadrilaterals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["dota", "coco-segm", "coco"]
    masks = {"compare masks: --iou-type segm": ["coco-segm"]}
    boxes = {"compare boxes: --shapes bbox": ["coco"]}
    assert search_among(monkeypatch, names, {}, polygons=True) == (["dota"], masks | boxes)
    changes = {"iou_type": "polygon"}
    searched_names, _ = search_among(monkeypatch, names, changes, polygons=True)
    assert searched_names == ["dota", "coco"]
    polygons = {"compare quadrilaterals: --iou-type polygon": ["dota"]}
    assert search_among(monkeypatch, names, {}) == (["coco"], polygons | masks)


def test_presets_of_the_given_iou_type_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"iou_type": "segm"}
    names, skipped = search_among(
        monkeypatch, ["voc2012", "dota", "coco-segm"], changes, polygons=True
    )
    assert names == ["coco-segm", "voc2012"]
    assert skipped == {"compare quadrilaterals: --iou-type polygon": ["dota"]}
