"""The sentences of explanations."""

from math import nan

import pytest

from detap import metrics
from detap.analysis.explanation.protocol_diff import Difference, End
from detap.analysis.explanation.report_diff import Cause, Contribution, ReportDiff
from detap.analysis.explanation.shapley import Part
from detap.protocols import protocol
from detap.protocols.steps import steps
from detap.report.sections.explanation import account_sentence, difference_sentence, percent

VOC, COCO = protocol("voc2012"), protocol("coco")
STEPS = steps(
    VOC.only_metric(metrics.named(VOC, "mAP")), COCO.only_metric(metrics.named(COCO, "AP50"))
)[:2]


def difference(first: float, second: float, *changes: float) -> Difference:
    return Difference(
        End(VOC, metrics.named(VOC, "mAP"), first),
        End(COCO, metrics.named(COCO, "AP50"), second),
        STEPS,
        tuple(Part(change, change, change, change, change) for change in changes),
        4,
        ("that inclusive pixels is off", "that difficult objects count"),
    )


@pytest.mark.parametrize(
    ("share", "told"),
    [(1.0, "All"), (0.996, "Nearly all"), (0.994, "99 %"), (0.9355, "94 %"), (1.2, "120 %")],
)
def test_a_share_in_words(share: float, told: str) -> None:
    assert percent(share) == told


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (
            difference(0.5, 0.25, -0.0625, -0.1875),
            "75 % of the difference is that difficult objects count",
        ),
        (
            difference(0.5, 0.25, 0.125, -0.375),
            "150 % of the difference is that difficult objects count; others take 50 % back",
        ),
        (
            difference(0.5, 0.25, -0.25, 0.0),
            "All of the difference is that inclusive pixels is off",
        ),
        (
            difference(0.5, 0.5, 0.25, -0.25),
            "voc2012 and coco give the same AP50 here: what their axes change adds up to nothing",
        ),
        (difference(0.5, 0.5, 0.0, 0.0), "voc2012 and coco give the same AP50 here"),
    ],
)
def test_what_a_difference_comes_to(found: Difference, told: str) -> None:
    assert difference_sentence(found) == told


def account(
    differs: dict[str, bool | None],
    portions: dict[str, float],
    values: tuple[float, float] = (0.5, 0.25),
    protocols: Difference | None = None,
) -> ReportDiff:
    causes = tuple(Cause(name, told, "", "") for name, told in differs.items())
    parts = tuple(Contribution(tuple(names.split(", ")), part) for names, part in portions.items())
    return ReportDiff(("mAP", "AP50"), values, causes, portions=parts, protocols=protocols)


BOTH: dict[str, bool | None] = {"protocol": True, "detections": True}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (account({}, {}, (0.5, 0.5)), "The two reports say the same: AP50 0.5 and 0.5"),
        (account({}, {}), "Nothing that the reports tell differs, but AP50 does: 0.5 and 0.25"),
        (
            account({"detections": True}, {"detections": -0.25}),
            "All of the difference is that the detections are others",
        ),
        (
            account(BOTH, {"protocol": -0.0625, "detections": -0.1875}),
            "75 % of the difference is that the detections are others, 25 % that the protocol is "
            "another",
        ),
        (
            account(
                BOTH,
                {"protocol": -0.0625, "detections": -0.1875},
                protocols=difference(0.5, 0.4375, 0.0, -0.0625),
            ),
            "75 % of the difference is that the detections are others, 25 % that the protocol is "
            "another; all of the protocol's part is that difficult objects count",
        ),
        (
            account(
                {**BOTH, "version": True}, {"protocol": -0.0625, "detections, version": -0.1875}
            ),
            "75 % of the difference is that the detections are others and detap is of another "
            "version, 25 % that the protocol is another",
        ),
        (
            account(BOTH, {"protocol": nan, "detections": nan}),
            "The protocol is another and the detections are others: what part each has is not "
            "known",
        ),
        (
            account({"protocol": True}, {"protocol": nan}, (0.5, nan)),
            "The protocol is another: what part that has is not known",
        ),
        (
            account({"protocol": True, "detections": None}, {"protocol": nan, "detections": nan}),
            "The protocol is another, and whether the detections differ the reports do not tell: "
            "what part each has is not known",
        ),
        (
            account(BOTH, {"protocol": 0.25, "detections": -0.25}, (0.5, 0.5)),
            "AP50 is the same in both, although the protocol is another and the detections are "
            "others",
        ),
    ],
)
def test_what_two_reports_come_to(found: ReportDiff, told: str) -> None:
    assert account_sentence(found) == told
