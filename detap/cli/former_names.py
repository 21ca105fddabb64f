"""Option names of the time before the first release, for the hint on an unknown option.

docs/json.md lists the former keys of reports. No other module knows a former name.
"""

from collections.abc import Container

FORMER_OPTIONS = {
    "absorbing": ("crowd-flags",),
    "allow-different": ("allow-mismatch",),
    "ap": ("interpolation",),
    "at": ("metric",),
    "detection-limits": ("max-dets",),
    "flat-boxes": ("degenerate-boxes",),
    "headline": ("primary-metric",),
    "height-min": ("min-height",),
    "id-zero": ("annotation-id-zero",),
    "iou-ceiling": ("max-iou-threshold",),
    "iou-grid": ("iou-dtype",),
    "limit-scope": ("max-dets-scope",),
    "most": ("top",),
    "neighbour-classes": ("neighbor-classes",),
    "neutral": ("ignore-flags",),
    "number": ("value", "metric"),
    "occlusion-max": ("max-occlusion",),
    "overlap": ("iou-type",),
    "pairing": ("matching",),
    "pixel-edge": ("inclusive-pixels",),
    "precision-guard": ("precision-eps",),
    "repartition": ("merge-images",),
    "resolve-drop": ("detectable-drop",),
    "score-floor": ("min-score",),
    "ties": ("tie-break",),
    "truncation-max": ("max-truncation",),
}
"""The present names of an option by its former name, without dashes in front."""


def present_name(former: str, names: Container[str]) -> str:
    """Return the present name of an option; empty if there is none."""
    candidates = FORMER_OPTIONS.get(former.replace("_", "-"), ())
    return next((name for name in candidates if name in names), "")
