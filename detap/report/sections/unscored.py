"""Counts and metrics of detections without scores at each IoU threshold."""

from collections.abc import Iterator
from typing import Any

from detap.analysis.rankings import over_rankings
from detap.evaluation.results import Result
from detap.evaluation.unscored import unknown_labels
from detap.protocols.summary import percent
from detap.report.fields import Count, Fraction, Object, dict_of, each, field, list_of
from detap.report.model import Block, columns_of
from detap.report.sections.tie_range import bounds_block, tie_block

_ADJECTIVES = ("failed", "truncated", "malformed")  # other notes are what an answer has
_METRICS = {"F1": "F1", "P": "P", "R": "R", "macro_F1": "macro-F1", "mean_iou": "mean IoU"}
_COUNTS = ("true_positives", "false_positives", "false_negatives", "ignored_detections")

ThresholdEntry = Object(
    "ThresholdEntry",
    "Of all classes together.",
    iou=float,
    **each(Count, *_COUNTS),
    **each(Fraction, *_METRICS),
)

ResponsesData = Object(
    "ResponsesData",
    "Of the answers of a model.",
    dialect=str,
    lines=field(Count, "Number of answers."),
    images_without_response=list[str],
    failed=field(list[str], "Images with an answer that failed."),
    bad_boxes=Count,
    notes=field(dict_of(Count), "Answers by the code of a note."),
)

UnscoredData = Object(
    "UnscoredData",
    by_threshold=field(list_of(ThresholdEntry), required=False),
    unknown_labels=field(dict_of(Count), "Detections by label.", required=False),
    responses=field(ResponsesData, required=False),
)


def blocks(result: Result) -> Iterator[Block]:
    """Yield the blocks of detections without scores, with made-up ones, or of answers."""
    data: dict[str, Any] = {}
    lines: tuple[str, ...] = ()
    if not result.protocol.has_scores:
        table, positives = result.match_table, int(result.ground_truths.sum())
        rows = []
        for t, iou in enumerate(result.protocol.iou_thresholds):
            true = int(table.is_true_positive(0, t).sum())
            ignored = int(table.is_ignored(0, t).sum())
            counts = true, len(table) - true - ignored, positives - true, ignored
            at = percent(iou)
            values = {key: result.metric(f"{name}@{at}") for key, name in _METRICS.items()}
            values |= zip(_COUNTS, counts, strict=True)
            rows.append(ThresholdEntry(iou=iou, **values))
        data = UnscoredData(by_threshold=rows, unknown_labels=unknown_labels(result._run))
    if (responses := result.detections.responses) is not None:
        data["responses"] = ResponsesData(**responses._asdict())
        noted = sorted(responses.notes.items(), key=lambda item: (-item[1], item[0]))
        notes = {"failed": 0} | {code: n for code, n in noted if code != "bad-boxes"}
        words = [
            f"{n} {'' if code in _ADJECTIVES else 'with '}{code.replace('-', ' ')}"
            for code, n in notes.items()
        ]
        answers = "1 answer" if responses.lines == 1 else f"{responses.lines} answers"
        line = f"{answers}: {', '.join(words)}, {responses.bad_boxes} bad boxes"
        lines = (line.replace("json", "JSON"),)
    if data:
        yield Block("unscored", "Answers" if lines else "", data, lines)
    if result.protocol.scores == "area":
        yield tie_block(result)
    elif result.protocol.scores == "1":
        title = "AP over rankings of the detections (they have no scores)"
        yield bounds_block(title, over_rankings(result), *columns_of("fraction", "mean"))
