"""Protocols: everything in which implementations of "the same" metric differ, as data.

A protocol is a frozen record with one field per axis. No code asks for a protocol's name. A preset
reproduces one public implementation. The signature names the preset, every field that departs from
it, and detap's version: two numbers may be compared only when theirs are equal.

==============  =============================================================
fields.py         what an axis is, the kinds of values, what all protocols share
detection.py    the axes of detection
summary.py     the numbers that a protocol has: names and titles
presets.py      the presets of detection
steps.py        what leads from one protocol to another
ranking.py      retrieval and classification: axes and presets
==============  =============================================================
"""

from detap.protocols.detection import Interpolation, Protocol
from detap.protocols.fields import (
    ALL_AREAS,
    ANY_AREA,
    COCO_AREAS,
    MAX_THRESHOLDS,
    PROPOSAL_AREAS,
    RECALL_GRIDS,
    AreaRange,
    linspace,
)
from detap.protocols.presets import COCO_MAX_IOU_THRESHOLD, COCO_PRECISION_EPS, PRESETS, protocol
from detap.protocols.summary import MetricSpec

__all__ = [
    "ALL_AREAS",
    "ANY_AREA",
    "COCO_AREAS",
    "COCO_MAX_IOU_THRESHOLD",
    "COCO_PRECISION_EPS",
    "MAX_THRESHOLDS",
    "PRESETS",
    "PROPOSAL_AREAS",
    "RECALL_GRIDS",
    "AreaRange",
    "Interpolation",
    "MetricSpec",
    "Protocol",
    "linspace",
    "protocol",
]
