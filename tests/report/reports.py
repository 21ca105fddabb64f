"""A hand-made report for the writers."""

from collections.abc import Mapping
from math import nan
from typing import Any

from detap.errors import Note
from detap.protocols import protocol
from detap.report.model import Block, Cell, Column, Report, Table

COLUMNS = (
    Column("name", "class", "class", "name"),
    Column("AP", "AP", "AP", "fraction"),
    Column("AP50", "AP50", "AP50", "fraction"),
    Column("AP75", "AP75", "AP75", "fraction"),
    Column("APs", "APs", "APs", "fraction", 1),
    Column("AR1", "AR1", "AR1", "fraction", 2),
    Column("AR100", "AR100", "AR", "fraction"),
    Column("ground_truths", "ground truths", "GT", "count"),
    Column("ignored", "ignored", "ignored", "count"),
    Column("detections", "detections", "det", "count"),
    Column("true_positives", "true positives", "TP", "count"),
    Column("false_positives", "false positives", "FP", "count"),
    Column("duplicates", "duplicates", "dup", "count"),
)


def row(name: str, share: float = 0.5, count: int = 7) -> dict[str, Cell]:
    counts: dict[str, Cell] = {c.key: count for c in COLUMNS if c.kind == "count"}
    shares: dict[str, Cell] = {c.key: share for c in COLUMNS if c.kind == "fraction"}
    return {"name": name, "id": name, **shares, **counts, "within_max_dets": count}


def report(*rows: Mapping[str, Cell], blocks: tuple[Block, ...] = (), **changes: Any) -> Report:
    rules = protocol("coco")
    return Report(
        kind="detection",
        version="0.1.0",
        signature=rules.signature("0.1.0"),
        protocol=rules.as_dict(),
        inputs=(
            {
                "role": "ground_truth",
                "path": "gt.json",
                "sha256": None,
                "files": 1,
                "records": 3,
                "images": 2,
            },
        ),
        summary={"AP": 0.5, "AP50": nan},
        param_columns=(
            Column("iou", "IoU", "IoU", "text"),
            Column("area", "area", "area", "text"),
            Column("max_dets", "max dets", "max dets", "count"),
        ),
        params={"AP": ("0.50:0.95", "all", "100"), "AP50": ("0.50", "all", "100")},
        table=Table(COLUMNS, rows, row("mean / sum")),
        notes=(Note("missing-area", "annotations have no area", 3),),
        blocks=blocks,
        **changes,
    )
