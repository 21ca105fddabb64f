"""The oracle of the readers: a plain reader of each format, with the standard library only.

Nothing of detap is used here but the shape of its columns. Each function returns the rows of a
valid file and None for any other.
"""

import json
import math
import re
from typing import Any

Rows = list[tuple[Any, ...]]
MOST_LEVELS = 100


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    pass


class _Huge:
    """An integer that no field can use."""


def _need(condition: bool) -> None:
    if not condition:
        raise _Refused


def _load(data: bytes) -> Any:
    def unite(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _need(len({key for key, _ in pairs}) == len(pairs))
        return dict(pairs)

    def constant(_: str) -> Any:
        raise _Refused

    try:
        value = json.loads(
            data.removeprefix(b"\xef\xbb\xbf").decode(),
            object_pairs_hook=unite,
            parse_constant=constant,
            parse_int=lambda text: int(text) if len(text) <= 400 else _Huge(),
        )
    except (ValueError, RecursionError):
        raise _Refused from None
    _need(_levels(value) <= MOST_LEVELS)
    return value


def _levels(value: Any) -> int:
    if isinstance(value, list):
        return 1 + max(map(_levels, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(_levels, value.values()), default=0)
    return 0


def _identifier(value: Any) -> int | str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    _need(isinstance(value, int | str) and not isinstance(value, bool))
    if isinstance(value, str):
        _text(value)
    result: int | str = value
    return result


def _text(value: Any) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _Refused from None


def _number(value: Any) -> float:
    _need(isinstance(value, int | float) and not isinstance(value, bool))
    try:
        number = float(value)
    except OverflowError:
        raise _Refused from None
    _need(math.isfinite(number))
    return number


def _score(value: Any) -> float:
    if value is None:
        return math.nan
    number = _number(value)
    _need(isinstance(value, float) or number == value)  # else two could become one
    return number


def _box(record: Any) -> tuple[float, ...]:
    value = record.get("bbox")
    _need(isinstance(value, list) and len(value) == 4)
    x, y, width, height = map(_number, value)
    derived = (width * height, x + width, y + height)
    _need(all(map(math.isfinite, derived)))
    return (x, y, derived[1], derived[2], derived[0])


def _flag(record: Any, key: str) -> bool:
    if key not in record:
        return False
    value = record[key]
    _need(isinstance(value, bool | int | float) and value in (0, 1))
    return bool(value)


def coco_results(
    data: bytes, images: tuple[int | str, ...], categories: dict[int | str, str]
) -> Rows | None:
    """Return image id, category id, x1, y1, x2, y2, area, score of each detection."""
    try:
        return _results(_load(data), images, categories)
    except _Refused:
        return None


def _results(value: Any, images: tuple[int | str, ...], categories: dict[int | str, str]) -> Rows:
    if isinstance(value, dict):
        lists = [key for key in ("annotations", "predictions") if isinstance(value.get(key), list)]
        _need(len(lists) == 1)
        value = value[lists[0]]
    _need(isinstance(value, list))
    rows: Rows = []
    for record in value:
        _need(isinstance(record, dict))
        image, category = (
            _identifier(record.get("image_id")),
            _identifier(record.get("category_id")),
        )
        rows.append((image, category, *_box(record), _score(record.get("score"))))
        _need(image in images)
        _need(isinstance(category, str) == isinstance(next(iter(categories)), str))
    _need(len({math.isnan(row[-1]) for row in rows}) < 2)
    return rows


Truth = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], Rows]


def coco_truth(data: bytes) -> Truth | None:
    """Return the images, the categories, and the annotations.

    Images are (id, width, height). Annotations are image id, category id, x1, y1, x2, y2, box area,
    area, crowd, ignore, group-of.
    """
    try:
        return _truth(_load(data))
    except _Refused:
        return None


def _unique(records: Any, *, by_image: bool = False) -> list[tuple[Any, Any]]:
    """Return id and record of each, repeated records once; ids may be those of an image."""
    record_by_id: dict[Any, Any] = {}
    kept: list[tuple[Any, Any]] = []
    _need(isinstance(records, list))
    for record in records:
        _need(isinstance(record, dict))
        if record.get("id") is None and (by_image or "id" not in record):
            kept.append((None, record))
            continue
        identifier: Any = _identifier(record["id"])
        if by_image:
            identifier = identifier, _identifier(record.get("image_id"))
        if identifier in record_by_id:
            # Equal as JSON values are: 1 and 1.0 alike, but also true and 1.
            _need(record_by_id[identifier] == record)
            continue
        record_by_id[identifier] = record
        kept.append((identifier, record))
    return kept


_REQUIRED = ("bbox", "image_id", "category_id")


def _sorted(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    _need(len({isinstance(row[0], str) for row in rows}) <= 1)
    return sorted(rows, key=lambda row: row[0])


def _truth(value: Any) -> Truth:
    _need(isinstance(value, dict))
    parts = {}
    for key in ("images", "annotations", "categories"):
        _need(key in value)
        parts[key] = _unique(value[key], by_image=key == "annotations")
    _need(bool(value["annotations"]))
    for key in ("images", "categories"):
        _need(all(identifier is not None for identifier, _ in parts[key]))
    images = _sorted(
        [
            (i, _length(record.get("width")), _length(record.get("height")))
            for i, record in parts["images"]
        ]
    )
    categories = _sorted([(i, _name(record)) for i, record in parts["categories"]])
    known_images, known_categories = {row[0] for row in images}, {row[0] for row in categories}
    rows: Rows = []
    for _, given in parts["annotations"]:
        # A null that is not required means absent.
        record = {k: v for k, v in given.items() if v is not None or k in _REQUIRED}
        box = _box(record)
        area = _number(record["area"]) if "area" in record else box[4]
        # An area that is given is none below 0; that of a box of negative size is what it is.
        _need(area >= 0 or "area" not in record)
        flags = [_flag(record, key) for key in ("iscrowd", "ignore", "isgroupof")]
        image, category = (
            _identifier(record.get("image_id")),
            _identifier(record.get("category_id")),
        )
        _need(image in known_images and category in known_categories)
        rows.append((image, category, *box, area, *flags))
    return images, categories, rows


def _name(record: Any) -> str | None:
    name = record.get("name")
    if "name" in record:
        _need(isinstance(name, str))
        _text(name)
    result: str | None = name
    return result


def _length(value: Any) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if usable and 0 < value < 2**53 else math.nan


_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def _text_lines(data: bytes) -> list[list[str]] | None:
    """Return the columns of each line that has any; None if the input is not text."""
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        return None
    lines = [re.split(r"[ \t]+", line.removesuffix("\r")) for line in text.split("\n")]
    return [columns for line in lines if (columns := [part for part in line if part])]


def yolo_lines(data: bytes) -> Rows | None:
    """Return the class and the numbers of each line."""
    lines = _text_lines(data)
    if lines is None:
        return None
    rows: Rows = []
    for columns in lines:
        word, numbers = columns[0], columns[1:]
        if not re.fullmatch("[0-9]+", word, re.ASCII) or not numbers:
            return None
        if not all(map(_DECIMAL.fullmatch, numbers)):
            return None
        values = [float(number) for number in numbers]
        if not all(map(math.isfinite, values)):
            return None
        rows.append((word, *values))
    return rows


def voc_lines(data: bytes, images: tuple[str, ...]) -> Rows | None:
    """Return image, score (if any), x1, y1, x2, y2 of each line of a class's file."""
    lines = _text_lines(data)
    if lines is None:
        return None
    rows: Rows = []
    for columns in lines:
        if len(columns) not in (5, 6) or columns[0] not in images:
            return None
        if not all(_DECIMAL.fullmatch(column) for column in columns[1:]):
            return None
        numbers = [float(column) for column in columns[1:]]
        x1, y1, x2, y2 = numbers[-4:]
        if not all(map(math.isfinite, [*numbers, (x2 - x1) * (y2 - y1)])):
            return None
        rows.append((columns[0], *numbers))
    return rows
