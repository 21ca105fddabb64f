"""Meaning of the columns of a table, detected from names, types and metadata.

A row is a box; or an image with lists in a column ``objects``, as in Hugging Face datasets.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from detap.io.problems import FaultError, Problems

_HINTS = {
    True: "expected the columns image_id, category_id or category, score, and x, y, width, height "
    "or x1, y1, x2, y2 or bbox",
    False: "expected the columns image_id, category_id or category, and x, y, width, height or "
    "x1, y1, x2, y2 or bbox; optionally area, iscrowd, difficult, ignore, group_of and id",
}
"""Hints by whether rows have scores."""

BOX = "bbox"
XYWH = ("x", "y", "width", "height")
CORNERS = ("x1", "y1", "x2", "y2")
FLAGS = {"iscrowd": "crowd", "difficult": "difficult", "ignore": "ignore", "group_of": "group_of"}

_OBJECTS = "objects"
_KEY = b"boxes"
_BOX_FORMATS = {"xywh": "xywh", "xyxy": "xyxy", "corners": "xyxy"}


class Shape:
    """Meaning of the columns, detected from a schema, whose problems are raised.

    `boxes` is the format of `bbox`, if the file does not say it.
    """

    def __init__(self, schema: Any, scored: bool, boxes: str | None, problems: Problems) -> None:
        self._problems = problems
        for name in sorted({name for name in schema.names if schema.names.count(name) > 1}):
            problems.add_here("", f"duplicate column {name}", "keep one of them")
        problems.raise_any()
        top = {field.name: field for field in schema}
        self.nested = _OBJECTS in top and BOX not in top  # a row is an image with lists of objects
        self.sized = self.nested and {"width", "height"} <= top.keys()
        prefix = f"{_OBJECTS}." if self.nested else ""
        fields = dict(_inner(top[_OBJECTS])) if self.nested else top
        metadata = schema.metadata or {}
        self.class_names = self._class_names(metadata)  # of classes 0, 1, ..., if in the schema
        self._check_presence(top, fields, scored)
        complete = [names for names in (XYWH, CORNERS, (BOX,)) if set(names) <= fields.keys()]
        if len(complete) > 1:
            listed = " and ".join(f"{prefix}{', '.join(names)}" for names in complete)
            problems.add_here("", f"several box columns: {listed}", "keep one of them")
        elif not complete:
            problems.add_here("", "no box columns", _HINTS[scored])
        problems.raise_any()
        (self.box,) = complete  # the four columns of a box, or the one with all four values
        self.box_format = self._box_format(fields, metadata, boxes)  # "xywh" or "xyxy"
        names = ["category_id", "category"]
        names += [*(("score",) if scored else (*FLAGS, "area", "id")), *self.box]
        if scored and "score" in fields and pa.types.is_null(fields["score"].type):
            names.remove("score")  # all are null
        if not self.nested:
            names.insert(0, "image_id")
        # The columns of a box by name; those of `objects` if nested.
        self.fields = {name: fields[name] for name in names if name in fields}
        has_names = "category" in fields and _is_text(fields["category"].type)
        self.id_column = None if has_names else "category"  # of class ids; numbers are ids
        if "category_id" in fields:
            self.id_column = "category_id"
        columns = (self.id_column, "category" if has_names else None)
        self.class_columns = tuple(name for name in columns if name)  # ids, then names
        for name, field in {"image_id": top["image_id"], **self.fields}.items():
            expected = _expected(name, field.type, self.nested or bool(self.class_names))
            if expected:
                where = name if name == "image_id" else f"{prefix}{name}"
                problems.add_here("", f"column {where} has type {field.type}, expected {expected}")
        problems.raise_any()
        self.columns = tuple(self.fields)  # to read
        if self.nested:
            self.columns = ("image_id", _OBJECTS, *(("width", "height") if self.sized else ()))

    def _check_presence(
        self, top: Mapping[str, Any], fields: Mapping[str, Any], scored: bool
    ) -> None:
        """Report missing columns, and a score in ground truth."""
        hint = _HINTS[scored]
        if "image_id" not in top:
            listed = ", ".join(list(top)[:12])
            self._problems.add_here("", f"no column image_id (columns: {listed or 'none'})", hint)
        if not {"category_id", "category"} & fields.keys():
            self._problems.add_here("", "no column category_id or category", hint)
        if not scored and "score" in fields:
            message = "column score in ground truth (detections?)"
            self._problems.add_here("", message, "if this is ground truth, remove the column")

    def _box_format(
        self, fields: Mapping[str, Any], metadata: Mapping[bytes, bytes], boxes: str | None
    ) -> str:
        """Return the box format: from the columns, the metadata, or the caller."""
        named = "xywh" if self.box == XYWH else "xyxy"
        source = "the columns"
        if self.box == (BOX,):
            box_metadata = fields[BOX].metadata or {}
            text = box_metadata.get(_KEY, metadata.get(_KEY, b"")).decode("utf-8", "replace")
            if text and text not in _BOX_FORMATS:
                expected = ", ".join(_BOX_FORMATS)
                message = f"metadata `boxes` of bbox is {text!r}, expected one of {expected}"
                self._problems.add_here("", message)
                return "xywh"
            named, source = _BOX_FORMATS.get(text, ""), "the metadata"
        if not named and boxes is None:
            hint = "pass boxes='xywh' or 'xyxy' (--boxes), or set the metadata `boxes`"
            self._problems.add_here("", "box format of bbox is unknown", hint)
        elif named and boxes not in (None, named):
            message = f"boxes are {named} according to {source}, but --boxes is {boxes}"
            self._problems.add_here("", message, "omit --boxes, or correct the file")
        return named or boxes or "xywh"

    def _class_names(self, metadata: Mapping[bytes, bytes]) -> tuple[str, ...] | None:
        """Return the class names in Hugging Face metadata."""
        text = metadata.get(b"huggingface")
        if text is None:
            return None
        try:
            features = json.loads(text)["info"]["features"]
            category = _feature(features[_OBJECTS] if self.nested else features, "category")
            names = _feature(category, "names")
            if names is not None and not (
                isinstance(names, list) and all(isinstance(name, str) for name in names)
            ):
                raise ValueError("names are not a list of strings")
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            self._problems.add_here("", f"invalid metadata huggingface: {error!r:.60}")
            return None
        if names is not None and len(set(names)) != len(names):
            self._problems.add_here("", "duplicate class names in the metadata huggingface")
        return None if names is None else tuple(names)

    def rows(self, table: Any) -> tuple[dict[str, Any], Any | None]:
        """Return the box columns of a table, and the number of boxes per image if nested."""
        if not self.nested:
            return {name: table[name] for name in self.fields}, None
        objects = table[_OBJECTS].combine_chunks()
        if objects.null_count:
            raise FaultError("objects is null", "use an empty list for an image without objects")
        if not pa.types.is_struct(objects.type):
            columns = _flat(objects.flatten())
            return {name: columns[name] for name in self.fields}, list_lengths(objects)
        lists = _flat(objects)
        counts = list_lengths(lists[self.box[0]])
        for name in self.fields:
            lengths = list_lengths(lists[name])
            if lengths.null_count or not lengths.equals(counts):
                message = f"objects.{name} and objects.{self.box[0]} differ in length, or are null"
                raise FaultError(message)
        return {name: lists[name].flatten() for name in self.fields}, counts


def _inner(field: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of the objects: structs in a list, or lists in a struct."""
    kind = field.type
    if is_list(kind) and pa.types.is_struct(kind.value_type):
        yield from ((part.name, part) for part in kind.value_type)
    elif pa.types.is_struct(kind):
        for part in kind:
            if is_list(part.type):
                inner = part.type.value_field
                yield part.name, inner.with_metadata(part.metadata or inner.metadata)


def _flat(structs: Any) -> dict[str, Any]:
    """Return the columns of a column of structs, by name."""
    return {field.name: part for field, part in zip(structs.type, structs.flatten(), strict=True)}


def list_lengths(column: Any) -> Any:
    """Return the length of each list."""
    import pyarrow.compute  # takes 0.04 s, only for lists

    return pyarrow.compute.list_value_length(column)


def is_list(kind: Any) -> bool:
    """Return True if a type is a list."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_text(kind: Any) -> bool:
    """Return True if a type is text, dictionary-encoded or not."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _expected(name: str, kind: Any, numbered: bool) -> str:
    """Return the expected type of a column if it has another one, else ""."""
    is_integer, is_number = pa.types.is_integer(kind), _is_number(kind)
    if name in ("image_id", "category_id", "id"):
        if pa.types.is_dictionary(kind):
            is_number = _is_number(kind.value_type)
        return "" if is_number or _is_text(kind) else "integers or strings"
    if name == "category":
        valid = _is_text(kind) or (is_integer and numbered)
        return "" if valid else "strings (category_id has numbers)"
    if name in FLAGS:
        return "" if pa.types.is_boolean(kind) or is_number else "booleans, or 0 and 1"
    if name == BOX:
        valid = is_list(kind) and _is_number(kind.value_type)
        uneven = pa.types.is_fixed_size_list(kind) and kind.list_size != 4
        return "" if valid and not uneven else "lists of 4 numbers"
    return "" if is_number else "numbers"


def _feature(node: Any, name: str) -> Any:
    """Return the feature of a name, in nested lists of features."""
    while isinstance(node, list | dict) and node:
        if isinstance(node, list):
            node = node[0]
        elif name in node:
            return node[name]
        else:
            node = node.get("feature")
    return None
