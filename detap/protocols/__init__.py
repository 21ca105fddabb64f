"""Protocols: the settings in which implementations of a metric differ, as data.

A protocol is a frozen record; no code depends on its name. A preset reproduces a public
implementation. The signature lists the preset, the fields that differ from it, and detap's version:
metrics are comparable only if their signatures are equal.
"""

from detap.protocols.detection import Interpolation, Protocol
from detap.protocols.fields import ALL_AREAS, ANY_AREA, COCO_AREAS, RECALL_GRIDS, AreaRange
from detap.protocols.presets import COCO_PRECISION_EPS, PRESETS, protocol

__all__ = [
    "ALL_AREAS",
    "ANY_AREA",
    "COCO_AREAS",
    "COCO_PRECISION_EPS",
    "PRESETS",
    "RECALL_GRIDS",
    "AreaRange",
    "Interpolation",
    "Protocol",
    "protocol",
]
