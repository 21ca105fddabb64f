"""Small files of labelling tools, and how the command refuses invalid ones.

All have the same content: a dog and a cat on image a, nothing on image b.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.conftest import Run

DOG, CAT = (1.0, 2.0, 11.5, 22.0), (20.0, 5.0, 30.0, 15.0)
"""Corners of the two boxes."""

RESULTS = {
    "annotations": [
        {"image_id": "a", "category_id": 1, "bbox": [1, 2, 10.5, 20], "score": 0.9},
        {"image_id": "a", "category_id": 2, "bbox": [20, 5, 10, 10], "score": 0.8},
    ],
    "categories": [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}],
}
"""Detections of both, in COCO's form."""


class Bad(NamedTuple):
    """Invalid content, and a part of the message that names its location and the fault."""

    content: Any
    message: str
    detections: bool = False
    options: tuple[str, ...] = ()


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


def changed(record: Any, *keys: Any, to: Any = None, without: Any = None) -> Any:
    """Return a copy of JSON with another value at the keys, or without a key there."""
    copy = json.loads(json.dumps(record))
    at = copy
    for key in keys[:-1]:
        at = at[key]
    if without is not None:
        del (at[keys[-1]] if keys else at)[without]
    else:
        at[keys[-1]] = to
    return copy


def refused(
    folder: Path,
    bad: Bad,
    name: str,
    valid: Callable[[Path], Path],
    *,
    command: Run,
    file_format: str,
) -> None:
    """Check that ``detap eval`` refuses a file with status 2, names it, and prints no number."""
    path = write(folder / name, bad.content)
    options = ["--dt-format" if bad.detections else "--gt-format", file_format, *bad.options]
    ground_truth = valid(folder / "valid") if bad.detections else path
    detections = path if bad.detections else write(folder / "results.json", RESULTS)
    call = ["eval", "--gt", str(ground_truth), "--dt", str(detections), *options]
    said = command(*call).refused()
    assert str(path) in said
    assert bad.message in said, said
