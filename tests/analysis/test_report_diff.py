"""Why two reports differ: data, protocol, version or detector."""

from functools import cache
from math import fsum, isnan
from typing import Any

import pytest

from detap._version import __version__
from detap.analysis.explanation.numbers import Tables
from detap.analysis.explanation.report_diff import ReportDiff, ReportInputs, report_diff
from detap.errors import UnknownNameError
from detap.evaluation.detection import evaluate
from detap.protocols import Protocol
from tests.analysis.test_protocol_diff import difficult

Record = dict[str, Any]


@cache
def worse() -> Tables:
    """Return the case with a detector that misses the one cat it can find: AP 0."""
    truth, found = difficult()
    return truth, found.select(found.score != 0.8)


def inputs(detections: str = "d") -> list[Record]:
    return [
        {"role": "ground_truth", "path": "gt", "sha256": "t" * 64, "files": 1, "records": 3},
        {"role": "detections", "path": "dt", "sha256": detections * 64, "files": 1, "records": 4},
    ]


def record(
    protocol: str = "voc2012", tables: Tables | None = None, detections: str = "d", **more: Any
) -> Record:
    """Return what detap eval writes, as far as it is looked at."""
    result = evaluate(*(tables or difficult()), Protocol.parse(protocol))
    return {
        "schema_version": 2,
        "detap_version": __version__,
        "kind": "detection",
        "protocol": result.protocol.as_dict(),
        "inputs": inputs(detections),
        "summary": {name: None if isnan(v) else v for name, v in result.summary.items()},
        "classes": [],
        **more,
    }


def portions(found: ReportDiff) -> dict[str, float]:
    return {", ".join(portion.causes): portion.value for portion in found.contributions}


def made(tables: Tables | None = None, detections: str = "d") -> ReportInputs:
    return ReportInputs(tables or difficult(), inputs(detections))


def test_nothing_differs() -> None:
    found = report_diff(record(), record())
    assert found.contributions == ()
    assert [cause.differs for cause in found.causes] == [False] * 5
    assert found.total == 0


@pytest.mark.parametrize(
    ("second", "cause", "value"),
    [
        (record("voc2012|ignore-flags:none"), "protocol", 2 / 3 - 1 / 2),
        (record(tables=worse(), detections="e"), "detections", -1 / 2),
        (record(selection={"classes": ["cat"], "images": None}), "selection", 0),
        (record(detap_version="0.0.9"), "version", 0),
    ],
)
def test_one_cause_has_the_whole_difference(second: Record, cause: str, value: float) -> None:
    found = report_diff(record(), second)
    assert found.differing == (cause,)
    assert portions(found) == {cause: pytest.approx(value, abs=1e-15)}
    assert found.is_known


def test_another_ground_truth() -> None:
    second = record()
    second["inputs"][0]["sha256"] = "u" * 64
    assert report_diff(record(), second).differing == ("ground truth",)


def test_a_list_of_names_is_of_either_side() -> None:
    """A format that numbers its objects reads it with them, another with the detections."""
    first, second = record(), record()
    names = {"path": "names", "sha256": "n" * 64, "files": 1, "records": 2}
    first["inputs"].insert(1, {"role": "ground_truth", **names})
    second["inputs"].append({"role": "detections", **names})
    assert report_diff(first, second).differing == ()
    second["inputs"][0]["sha256"] = "u" * 64
    assert report_diff(first, second).differing == ("ground truth",)


def test_of_several_causes_nothing_is_known_from_reports_alone() -> None:
    found = report_diff(record(), record("coco", tables=worse(), detections="e"))
    assert found.differing == ("detections", "protocol")
    assert not found.is_known
    assert list(portions(found)) == ["detections", "protocol"]


def test_reports_without_sha256_do_not_tell() -> None:
    second = record()
    for entry in second["inputs"]:
        entry["sha256"] = None
    found = report_diff(record(), second)
    assert [cause.differs for cause in found.causes][:3] == [None, False, None]
    assert not found.is_known
    second["inputs"][1]["records"] = 5  # counts do
    assert [cause.differs for cause in report_diff(record(), second).causes][:3] == [
        None,
        False,
        True,
    ]


def test_axes_that_the_number_does_not_depend_on_are_no_cause() -> None:
    found = report_diff(record("coco"), record("coco|max-dets:1,100"), "AP50")
    assert found.differing == ()


@pytest.mark.parametrize("side", [0, 1])
def test_what_the_protocol_and_the_detector_have(side: int) -> None:
    """By hand: all points, difficult neutral 1/2, counted 2/3; the worse detector has 0 and 1/3.

    Without the .8, difficult counted: of three cats one is found by the first detection.
    """
    first = record()
    second = record("voc2012|ignore-flags:none", tables=worse(), detections="e")
    given = made() if side == 0 else made(worse(), "e")
    found = report_diff(first, second, source=given)
    protocol = (2 / 3 - 1 / 2, 1 / 3)[side]
    assert portions(found) == pytest.approx(
        {"protocol": protocol, "detections": -1 / 6 - protocol}, abs=1e-15
    )
    assert found.protocols is not None
    assert found.protocols.total == pytest.approx(protocol, abs=1e-15)
    assert fsum(portions(found).values()) == pytest.approx(found.total, abs=1e-15)


def test_what_the_version_has() -> None:
    """An earlier version said .25 where this one says 1/2."""
    first = record(detap_version="0.0.9", summary={"mAP": 0.25})
    second = record("voc2012|ignore-flags:none")
    found = report_diff(first, second, source=made())
    assert portions(found) == pytest.approx({"protocol": 1 / 6, "version": 1 / 4}, abs=1e-15)


def test_what_the_version_and_the_detector_have_is_not_told_apart() -> None:
    first = record()
    second = record(
        "voc2012|ignore-flags:none", tables=worse(), detections="e", detap_version="0.0.9"
    )
    found = report_diff(first, second, source=made())
    assert list(portions(found)) == ["protocol", "detections, version"]


def test_inputs_of_neither_report() -> None:
    found = report_diff(record(), record("coco"), source=made(detections="x"))
    (remark,) = found.remarks
    assert remark == "the given inputs and reading options match neither report"
    assert list(portions(found)) == ["protocol"]


def test_inputs_that_do_not_give_the_number() -> None:
    """As where the report is of chosen classes, and these were not chosen again."""
    first = record(summary={"mAP": 0.25})
    found = report_diff(first, record("coco"), source=made())
    assert found.remarks == (
        "the first report has mAP 0.25, but these inputs give 0.5; use the same classes, "
        "images and reading options",
    )
    assert not found.is_known


def test_numbers_that_stand_in_the_way() -> None:
    raised = record(retained_metrics=["mAP"])
    found = report_diff(record("voc2012|ignore-flags:none"), raised)
    assert found.remarks == ("mAP of the second report was retained from an older report",)
    assert not found.is_known
    found = report_diff(record("coco"), record("voc2012", summary={"mAP": None}), "AP50")
    assert found.remarks == ("mAP of the second report is undefined",)
    assert not found.is_known


def test_the_number_of_one_threshold_may_be_called_the_mean() -> None:
    found = report_diff(record(), record("coco"), "AP50")
    assert found.names == ("mAP", "AP50")
    with pytest.raises(UnknownNameError, match="protocol voc2012 has no metric 'AP75'"):
        report_diff(record(), record("coco"), "AP75")
    with pytest.raises(UnknownNameError, match="a report has no metric 'AP55'; did you mean AP75"):
        report_diff(record("coco"), record("coco"), "AP55")
