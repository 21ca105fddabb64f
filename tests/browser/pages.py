"""Sizes, data and helpers of the tests in a browser."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

WIDE, NARROW, SHEET = (1280, 900), (390, 844), (688, 1016)  # the last within the margins of A4
SIZES = [(1400, 900), (800, 900), NARROW]

Open = Callable[..., Any]

REAL = {
    "voc2007-test": ("Annotations", "detections"),
    "coco-val2014-100": (
        "instances_val2014_100.json",
        "instances_val2014_fakebbox100_results.json",
    ),
}
HEADLINES = {"voc2007-test": "0.7706", "coco-val2014-100": "0.5046"}  # of expected*.json there
COUNTS = (3, 20, 80, 1203)  # numbers of classes; LVIS v1 has 1,203
CLASSES = {"voc2007-test": 20, "coco-val2014-100": 80, "5000-images": 80}


def fragment_of(tab: Any, key: str) -> str | None:
    """Wait for a key in the URL fragment and return its value."""
    tab.wait_for_timeout(300)
    values = parse_qs(tab.url.partition("#")[2]).get(key)
    return values[0] if values else None


def audit(tab: Any, axe: str) -> list[Any]:
    """Return the violations reported by axe; without passes it takes a quarter of the time."""
    tab.evaluate(axe)
    report = tab.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
    return [
        (
            entry["id"],
            [
                node["html"][:160] + " " + node["failureSummary"][:300]
                for node in entry["nodes"][:3]
            ],
        )
        for entry in report["violations"]
    ]


def column(tab: Any, index: int) -> list[str]:
    texts: list[str] = tab.locator(
        f"#classes-table tbody tr > :nth-child({index})"
    ).all_inner_texts()
    return texts
