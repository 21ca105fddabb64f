"""Small VOC files for tests."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.errors import InputError
from detap.formats.voc._scan import Annotations
from tests.formats import exports
from tests.oracle.lines import PlainLines

Box = tuple[float | str, ...]


def item(
    name: str = "dog", box: Box = (10, 20, 30, 40), difficult: str | None = "0", more: str = ""
) -> str:
    flag = "" if difficult is None else f"<difficult>{difficult}</difficult>"
    corners = "".join(
        f"<{corner}>{value}</{corner}>"
        for corner, value in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
    )
    return f"<object><name>{name}</name>{flag}{more}<bndbox>{corners}</bndbox></object>"


def xml(*items: str, size: tuple[object, object] | None = (500, 375)) -> str:
    sides = (
        "" if size is None else f"<size><width>{size[0]}</width><height>{size[1]}</height></size>"
    )
    return f"<annotation>\n\t{sides}\n\t" + "\n\t".join(items) + "\n</annotation>\n"


def write(folder: Path, contents: Mapping[str, Any]) -> Path:
    for name, content in contents.items():
        exports.write(folder / name, content)
    return folder


def tree(folder: Path, images: Mapping[str, str | bytes], **sets: Iterable[str]) -> Path:
    """Write a VOC tree with its annotations by image, and its image sets."""
    write(folder, {f"Annotations/{image}.xml": content for image, content in images.items()})
    return write(
        folder,
        {f"ImageSets/Main/{name}.txt": "".join(f"{i}\n" for i in s) for name, s in sets.items()},
    )


def problems_of(error: InputError, folder: Path) -> list[str]:
    """Return the problems as lines, without the folder's own path."""
    return [str(problem).replace(f"{folder}/", "") for problem in error.problems]


class PlainAnnotations(Annotations):
    def read(self, data: bytes, file: int) -> None:
        del data, file


@pytest.fixture
def without_scanners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read every line, and every annotation, by plain Python and lxml."""
    monkeypatch.setattr("detap.formats.text.reader.RaggedLines", PlainLines)
    monkeypatch.setattr("detap.formats.voc.tables.Annotations", PlainAnnotations)


def same(first: Any, second: Any) -> None:
    """Assert that two tables are equal to the last bit."""
    for name, column in first.columns().items():
        other = second.columns()[name]
        assert column.dtype == other.dtype
        assert column.tobytes() == other.tobytes(), name
    for name in ("images", "classes", "class_ids", "files", "notes"):
        assert getattr(first, name) == getattr(second, name)
    sizes = getattr(first, "image_sizes", None)
    if sizes is not None:
        assert np.array_equal(sizes, second.image_sizes, equal_nan=True)
