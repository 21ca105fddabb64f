"""Causes of the difference of two reports: data, protocol, version or detector."""

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
    """Return the case with a detector that misses its only cat: AP 0."""
    truth, detections = difficult()
    return truth, detections.select(detections.score != 0.8)


def inputs(detections: str = "d") -> list[Record]:
    return [
        {"role": "ground_truth", "path": "gt", "sha256": "t" * 64, "files": 1, "records": 3},
        {"role": "detections", "path": "dt", "sha256": detections * 64, "files": 1, "records": 4},
    ]


def record(
    protocol: str = "voc2012", tables: Tables | None = None, detections: str = "d", **more: Any
) -> Record:
    """Return the used part of a report of ``detap eval``."""
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


def portions(diff: ReportDiff) -> dict[str, float]:
    return {", ".join(portion.causes): portion.value for portion in diff.contributions}


def made(tables: Tables | None = None, detections: str = "d") -> ReportInputs:
    return ReportInputs(tables or difficult(), inputs(detections))


@pytest.mark.parametrize(
    ("second", "cause", "value"),
    [
        (record("voc2012|ignore-flags:none"), "protocol", 2 / 3 - 1 / 2),
        (record(tables=worse(), detections="e"), "detections", -1 / 2),
        (record(selection={"classes": ["cat"], "images": None}), "selection", 0),
        (record(detap_version="0.0.9"), "version", 0),
    ],
)
def test_one_cause_explains_the_whole_difference(second: Record, cause: str, value: float) -> None:
    diff = report_diff(record(), second)
    assert diff.differing == (cause,)
    assert portions(diff) == {cause: pytest.approx(value, abs=1e-15)}
    assert diff.is_known


def test_another_ground_truth() -> None:
    second = record()
    second["inputs"][0]["sha256"] = "u" * 64
    assert report_diff(record(), second).differing == ("ground truth",)


def test_class_names_belong_to_either_role() -> None:
    """Class names are read with the ground truth or with the detections, by format."""
    first, second = record(), record()
    names = {"path": "names", "sha256": "n" * 64, "files": 1, "records": 2}
    first["inputs"].insert(1, {"role": "ground_truth", **names})
    second["inputs"].append({"role": "detections", **names})
    assert report_diff(first, second).differing == ()
    second["inputs"][0]["sha256"] = "u" * 64
    assert report_diff(first, second).differing == ("ground truth",)


def test_several_causes_need_the_inputs() -> None:
    diff = report_diff(record(), record("coco", tables=worse(), detections="e"))
    assert diff.differing == ("detections", "protocol")
    assert not diff.is_known
    assert list(portions(diff)) == ["detections", "protocol"]


def test_reports_without_sha256_are_inconclusive() -> None:
    second = record()
    for entry in second["inputs"]:
        entry["sha256"] = None
    diff = report_diff(record(), second)
    assert [cause.differs for cause in diff.causes][:3] == [None, False, None]
    assert not diff.is_known
    second["inputs"][1]["records"] = 5  # counts do
    assert [cause.differs for cause in report_diff(record(), second).causes][:3] == [
        None,
        False,
        True,
    ]


def test_fields_without_effect_on_the_metric_are_not_a_cause() -> None:
    diff = report_diff(record("coco"), record("coco|max-dets:1,100"), "AP50")
    assert diff.differing == ()


@pytest.mark.parametrize("side", [0, 1])
def test_contributions_of_protocol_and_detector(side: int) -> None:
    """By hand, all points: difficult ignored 1/2, counted 2/3; the worse detector has 0 and 1/3.

    Without the .8 and with difficult counted, the first detection matches one of three cats.
    """
    first = record()
    second = record("voc2012|ignore-flags:none", tables=worse(), detections="e")
    given = made() if side == 0 else made(worse(), "e")
    diff = report_diff(first, second, source=given)
    protocol = (2 / 3 - 1 / 2, 1 / 3)[side]
    assert portions(diff) == pytest.approx(
        {"protocol": protocol, "detections": -1 / 6 - protocol}, abs=1e-15
    )
    assert diff.protocols is not None
    assert diff.protocols.total == pytest.approx(protocol, abs=1e-15)
    assert fsum(portions(diff).values()) == pytest.approx(diff.total, abs=1e-15)


def test_contribution_of_the_version() -> None:
    """An earlier version gave .25 and this one 1/2."""
    first = record(detap_version="0.0.9", summary={"mAP": 0.25})
    second = record("voc2012|ignore-flags:none")
    diff = report_diff(first, second, source=made())
    assert portions(diff) == pytest.approx({"protocol": 1 / 6, "version": 1 / 4}, abs=1e-15)


def test_version_and_detector_cannot_be_separated() -> None:
    first = record()
    second = record(
        "voc2012|ignore-flags:none", tables=worse(), detections="e", detap_version="0.0.9"
    )
    diff = report_diff(first, second, source=made())
    assert list(portions(diff)) == ["protocol", "detections, version"]


def test_inputs_of_neither_report() -> None:
    diff = report_diff(record(), record("coco"), source=made(detections="x"))
    (remark,) = diff.remarks
    assert remark == "the given inputs and reading options match neither report"
    assert list(portions(diff)) == ["protocol"]


def test_inputs_that_do_not_reproduce_the_value() -> None:
    """For example if the report is of selected classes that were not selected again."""
    first = record(summary={"mAP": 0.25})
    diff = report_diff(first, record("coco"), source=made())
    assert diff.remarks == (
        "the first report has mAP 0.25, but these inputs give 0.5; use the same classes, "
        "images and reading options",
    )
    assert not diff.is_known


def test_values_that_prevent_an_explanation() -> None:
    raised = record(retained_metrics=["mAP"])
    diff = report_diff(record("voc2012|ignore-flags:none"), raised)
    assert diff.remarks == ("mAP of the second report was retained from an older report",)
    assert not diff.is_known
    diff = report_diff(record("coco"), record("voc2012", summary={"mAP": None}), "AP50")
    assert diff.remarks == ("mAP of the second report is undefined",)
    assert not diff.is_known


def test_map_may_be_compared_to_ap50() -> None:
    diff = report_diff(record(), record("coco"), "AP50")
    assert diff.names == ("mAP", "AP50")
    with pytest.raises(UnknownNameError, match="protocol voc2012 has no metric 'AP75'"):
        report_diff(record(), record("coco"), "AP75")
    with pytest.raises(UnknownNameError, match="a report has no metric 'AP55'; did you mean AP75"):
        report_diff(record("coco"), record("coco"), "AP55")
