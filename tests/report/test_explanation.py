"""Sentences of explanations."""

from math import nan

import pytest

from detap import metrics
from detap.analysis.explanation.protocol_diff import ProtocolDiff, ProtocolValue, StepEffect
from detap.analysis.explanation.report_diff import Cause, Contribution, ReportDiff
from detap.protocols import protocol
from detap.protocols.steps import steps
from detap.report.sections.explanation import percent, protocol_diff_sentence, report_diff_sentence

VOC, COCO = protocol("voc2012"), protocol("coco")
STEPS = steps(
    VOC.only_metric(metrics.named(VOC, "mAP")), COCO.only_metric(metrics.named(COCO, "AP50"))
)[:2]


def difference(first: float, second: float, *changes: float) -> ProtocolDiff:
    return ProtocolDiff(
        ProtocolValue(VOC, metrics.named(VOC, "mAP"), first),
        ProtocolValue(COCO, metrics.named(COCO, "AP50"), second),
        STEPS,
        tuple(StepEffect(change, change, change, change, change) for change in changes),
        4,
        ("that inclusive pixels is off", "that difficult objects count"),
    )


@pytest.mark.parametrize(
    ("share", "message"),
    [(1.0, "100%"), (0.996, "nearly 100%"), (0.994, "99%"), (0.9355, "94%"), (1.2, "120%")],
)
def test_text_of_a_fraction(share: float, message: str) -> None:
    assert percent(share) == message


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        (
            difference(0.5, 0.25, -0.0625, -0.1875),
            "Main cause: difficult objects count (75% of the difference)",
        ),
        (
            difference(0.5, 0.25, 0.125, -0.375),
            "Main cause: difficult objects count (150% of the difference; other fields "
            "\N{MINUS SIGN}50%)",
        ),
        (
            difference(0.5, 0.25, -0.25, 0.0),
            "Main cause: inclusive pixels is off (100% of the difference)",
        ),
        (
            difference(0.5, 0.5, 0.25, -0.25),
            "voc2012 and coco give the same AP50: the effects of their fields cancel",
        ),
        (difference(0.5, 0.5, 0.0, 0.0), "voc2012 and coco give the same AP50"),
    ],
)
def test_sentence_of_a_protocol_diff(diff: ProtocolDiff, message: str) -> None:
    assert protocol_diff_sentence(diff) == message


def account(
    differs: dict[str, bool | None],
    portions: dict[str, float],
    values: tuple[float, float] = (0.5, 0.25),
    protocols: ProtocolDiff | None = None,
) -> ReportDiff:
    causes = tuple(Cause(name, description, "", "") for name, description in differs.items())
    parts = tuple(Contribution(tuple(names.split(", ")), part) for names, part in portions.items())
    return ReportDiff(("mAP", "AP50"), values, causes, contributions=parts, protocols=protocols)


BOTH: dict[str, bool | None] = {"protocol": True, "detections": True}


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        (account({}, {}, (0.5, 0.5)), "The reports are equal: AP50 0.5 and 0.5"),
        (account({}, {}), "AP50 differs (0.5 and 0.25), but no recorded cause does"),
        (
            account({"detections": True}, {"detections": -0.25}),
            "Main cause: different detections (100% of the difference)",
        ),
        (
            account(BOTH, {"protocol": -0.0625, "detections": -0.1875}),
            "Main cause: different detections (75% of the difference, different protocols 25%)",
        ),
        (
            account(
                BOTH,
                {"protocol": -0.0625, "detections": -0.1875},
                protocols=difference(0.5, 0.4375, 0.0, -0.0625),
            ),
            "Main cause: different detections (75% of the difference, different protocols 25%; of "
            "the protocols: difficult objects count 100%)",
        ),
        (
            account(
                {**BOTH, "version": True}, {"protocol": -0.0625, "detections, version": -0.1875}
            ),
            "Main cause: different detections and different versions of detap (75% of the "
            "difference, different protocols 25%)",
        ),
        (
            account(BOTH, {"protocol": nan, "detections": nan}),
            "Different protocols and different detections; each contribution is unknown",
        ),
        (
            account({"protocol": True}, {"protocol": nan}, (0.5, nan)),
            "Different protocols; the contribution is unknown",
        ),
        (
            account({"protocol": True, "detections": None}, {"protocol": nan, "detections": nan}),
            "Different protocols, unknown whether the detections differ; each contribution is "
            "unknown",
        ),
        (
            account(BOTH, {"protocol": 0.25, "detections": -0.25}, (0.5, 0.5)),
            "AP50 is equal in both reports despite different protocols and different detections",
        ),
    ],
)
def test_sentence_of_a_report_diff(diff: ReportDiff, message: str) -> None:
    assert report_diff_sentence(diff) == message
