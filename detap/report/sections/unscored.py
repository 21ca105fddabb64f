"""Counts and metrics of detections without scores at each IoU threshold."""

from collections.abc import Iterator

from detap.analysis.rankings import over_rankings
from detap.evaluation.results import Result
from detap.evaluation.unscored import unknown_labels
from detap.protocols.summary import percent
from detap.report.fields import Count, Fraction, Object, dict_of, field, list_of
from detap.report.model import Block, Table, columns_of, name_column
from detap.report.sections.tie_range import tie_block

ThresholdEntry = Object(
    "ThresholdEntry",
    "The counts and metrics of all classes together at an IoU threshold.",
    iou=float,
    true_positives=Count,
    false_positives=Count,
    false_negatives=Count,
    ignored_detections=Count,
    F1=Fraction,
    P=Fraction,
    R=Fraction,
    macro_F1=Fraction,
    mean_iou=Fraction,
)

UnscoredData = Object(
    "UnscoredData",
    "Of detections without scores.",
    by_threshold=field(list_of(ThresholdEntry), "One entry per IoU threshold."),
    unknown_labels=field(
        dict_of(Count), "Detections by label, of labels that the ground truth lacks."
    ),
)


def blocks(result: Result) -> Iterator[Block]:
    """Yield the blocks of detections without scores, or with made-up ones."""
    if not result.protocol.has_scores:
        yield _by_threshold(result)
    if result.protocol.scores == "area":
        yield tie_block(result)
    elif result.protocol.scores == "1":
        yield _over_rankings(result)


def _by_threshold(result: Result) -> Block:
    """Return the counts and metrics at each threshold."""
    table, positives = result.match_table, int(result.ground_truths.sum())
    rows = []
    for t, iou in enumerate(result.protocol.iou_thresholds):
        true = int(table.is_true_positive(0, t).sum())
        ignored = int(table.is_ignored(0, t).sum())
        values = {
            key: result.metric(f"{name}@{percent(iou)}")
            for key, name in (
                *(("F1", "F1"), ("P", "P"), ("R", "R")),
                *(("macro_F1", "macro-F1"), ("mean_iou", "mean IoU")),
            )
        }
        rows.append(
            ThresholdEntry(
                iou=iou,
                true_positives=true,
                false_positives=len(table) - true - ignored,
                false_negatives=positives - true,
                ignored_detections=ignored,
                **values,
            )
        )
    data = UnscoredData(by_threshold=rows, unknown_labels=unknown_labels(result._run))
    return Block("unscored", "", data)


def _over_rankings(result: Result) -> Block:
    """Return AP over the rankings that the detections could have."""
    data = {name: ranked._asdict() for name, ranked in over_rankings(result).items()}
    rows = tuple({"name": name, **values} for name, values in data.items())
    columns = (name_column("metric"), *columns_of("fraction", "lowest", "mean", "highest"))
    title = "AP over rankings of the detections (they have no scores)"
    return Block("tie_range", title, data, table=Table(columns, rows))
