"""Which columns of a table hold what: told by their names and types, and by nothing else.

Two shapes are known: a row for each box, and, as Hugging Face's datasets have it, a row for each
image with a column ``objects`` that holds lists.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from detap.io.problems import FaultError, Problems

SHAPE_OF_DETECTIONS = (
    "detections have the columns image_id, category_id or category, score, and x, y, width, height "
    "or x1, y1, x2, y2 or bbox"
)
SHAPE_OF_TRUTH = (
    "ground truth has the columns image_id, category_id or category, and x, y, width, height or "
    "x1, y1, x2, y2 or bbox; it may have area, iscrowd, difficult, ignore, group_of and id"
)

BOX = "bbox"
SIDES = ("x", "y", "width", "height")
CORNERS = ("x1", "y1", "x2", "y2")
FLAGS = ("iscrowd", "difficult", "ignore", "group_of")

_OBJECTS = "objects"
_KEY = b"boxes"
_ENCODINGS = {"xywh": "xywh", "xyxy": "xyxy"}


@dataclass(frozen=True, slots=True)
class Shape:
    """Which columns hold what.

    Attributes
    ----------
    nested : bool
        Whether a row is an image, and its objects are in lists.
    fields : dict of str to pyarrow.Field
        What each box has, by name; those of `objects` where nested.
    box : tuple of str
        The four columns of a box, or the one of all four.
    box_format : {"xywh", "xyxy"}
        What the four numbers are.
    class_names : tuple of str or None
        What the classes 0, 1, ... are called, where the schema lists that.
    sized : bool
        Whether images have a width and a height; nested only.
    """

    nested: bool
    fields: Mapping[str, Any]
    box: tuple[str, ...]
    box_format: str
    class_names: tuple[str, ...] | None
    sized: bool

    @property
    def id_column(self) -> str | None:
        """The column of the classes' ids: a category of numbers holds ids, not names."""
        if "category_id" in self.fields:
            return "category_id"
        return None if self.named else "category"

    @property
    def named(self) -> bool:
        """Whether boxes have the names of their classes."""
        return "category" in self.fields and is_text(self.fields["category"].type)

    @property
    def class_columns(self) -> tuple[str, ...]:
        """The columns of the classes: of their ids, if they have any, then of their names."""
        names = ("category",) if self.named else ()
        return names if self.id_column is None else (self.id_column, *names)

    @property
    def columns(self) -> tuple[str, ...]:
        """What is to be read."""
        if not self.nested:
            return tuple(self.fields)
        return ("image_id", _OBJECTS, *(("width", "height") if self.sized else ()))

    def rows(self, batch: Any) -> tuple[dict[str, Any], Any | None]:
        """Return the columns of the boxes of a batch; and how many each image has, where nested.

        Raises
        ------
        FaultError
            Where an image has no lists, or lists that differ in length.
        """
        if not self.nested:
            return {name: batch.column(name) for name in self.fields}, None
        objects = batch.column(_OBJECTS)
        if objects.null_count:
            raise FaultError("objects is null", "give an image without objects an empty list")
        if not pa.types.is_struct(objects.type):
            counts = list_lengths(objects)
            parts = objects.flatten()
            columns = _flat(parts)
            return {name: columns[name] for name in self.fields}, counts
        lists = _flat(objects)
        counts = list_lengths(lists[self.box[0]])
        for name in self.fields:
            found = list_lengths(lists[name])
            if found.null_count or not found.equals(counts):
                message = f"objects.{name} has other lengths than objects.{self.box[0]}, or nulls"
                raise FaultError(message, "give each object all of them")
        return {name: lists[name].flatten() for name in self.fields}, counts


def shape_of(schema: Any, scored: bool, boxes: str | None, problems: Problems) -> Shape:
    """Tell which columns of a table hold what.

    Parameters
    ----------
    schema : pyarrow.Schema
    scored : bool
        Whether detections are due, which have a score.
    boxes : {"xywh", "xyxy"} or None
        What the four numbers of `bbox` are, where that is given.
    problems : Problems
        What is wrong is noted and raised.

    Raises
    ------
    InputError
    """
    hint = SHAPE_OF_DETECTIONS if scored else SHAPE_OF_TRUTH
    for name in sorted({name for name in schema.names if schema.names.count(name) > 1}):
        problems.add("", f"has two columns {name}", "keep one of the two")
    problems.raise_any()
    top = {field.name: field for field in schema}
    nested = _OBJECTS in top and BOX not in top
    fields = dict(_inner(top[_OBJECTS])) if nested else top
    prefix = f"{_OBJECTS}." if nested else ""
    metadata = schema.metadata or {}
    names = _class_names(metadata, nested, problems)
    wanted = ("category_id", "category", *FLAGS, *(("score",) if scored else ("area", "id")))
    _check_presence(top, fields, scored, problems, hint)
    box = _box_columns(fields, prefix, problems, hint)
    problems.raise_any()
    box_format = _encoding(fields, box, metadata, boxes, problems)
    ours = (*wanted, *box) if nested else ("image_id", *wanted, *box)
    found = Shape(
        nested,
        {name: fields[name] for name in ours if name in fields and not (scored and name in FLAGS)},
        box,
        box_format,
        names,
        nested and {"width", "height"} <= top.keys(),
    )
    _check_types({"image_id": top["image_id"], **found.fields}, found, prefix, problems)
    problems.raise_any()
    return found


def _inner(field: Any) -> Iterator[tuple[str, Any]]:
    """Give the fields of the objects, whether they are structs in a list or lists in a struct."""
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


def is_list(kind: Any) -> bool:
    """Return whether a column holds lists."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def list_lengths(column: Any) -> Any:
    """Return how long each list is."""
    import pyarrow.compute  # 0.04 s, which columns of numbers need not

    return pyarrow.compute.list_value_length(column)


def is_text(kind: Any) -> bool:
    """Return whether a column holds text, numbered or not."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_name(kind: Any) -> bool:
    """Return whether a column may call images, classes or annotations."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return is_text(kind) or is_number(kind)


def is_number(kind: Any) -> bool:
    """Return whether a column holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _check_presence(
    top: Mapping[str, Any],
    fields: Mapping[str, Any],
    scored: bool,
    problems: Problems,
    hint: str,
) -> None:
    if "image_id" not in top:
        listed = ", ".join(list(top)[:12])
        problems.add("", f"has no column image_id; it has {listed or 'none'}", hint)
    if not {"category_id", "category"} & fields.keys():
        problems.add("", "has no column category_id, nor category", hint)
    if scored and "score" not in fields:
        truth = sorted(fields.keys() & {"area", "iscrowd", "difficult", "ignore", "group_of"})
        looks = f"; it looks like ground truth, with {' and '.join(truth)}" if truth else ""
        problems.add("", f"has no column score{looks}", hint)
    if not scored and "score" in fields:
        message = "has a column score, so it looks like detections"
        problems.add("", message, "give the ground truth; or, if that it is, leave the column out")


def _box_columns(
    fields: Mapping[str, Any], prefix: str, problems: Problems, hint: str
) -> tuple[str, ...]:
    whole = [names for names in (SIDES, CORNERS, (BOX,)) if set(names) <= fields.keys()]
    if len(whole) > 1:
        listed = " and ".join(f"{prefix}{', '.join(names)}" for names in whole)
        problems.add("", f"has boxes twice: {listed}", "keep one of them")
    elif not whole:
        problems.add("", "has no columns of boxes", hint)
    return whole[0] if whole else ()


def _encoding(
    fields: Mapping[str, Any],
    box: tuple[str, ...],
    metadata: Mapping[bytes, bytes],
    boxes: str | None,
    problems: Problems,
) -> str:
    """Return what the four numbers are: named by their columns, or the metadata, or the caller."""
    named = "xywh" if box == SIDES else "xyxy"
    where = "the columns"
    if box == (BOX,):
        own = fields[BOX].metadata or {}
        text = own.get(_KEY, metadata.get(_KEY, b"")).decode("utf-8", "replace")
        if text and text not in _ENCODINGS:
            message = f"the metadata `boxes` of bbox is {text!r}"
            problems.add("", message, f"it is one of {', '.join(_ENCODINGS)}")
            return "xywh"
        named, where = _ENCODINGS.get(text, ""), "the metadata"
    if not named and boxes is None:
        problems.add(
            "",
            "nothing says what the four numbers of bbox are",
            "give the field, or the schema, the metadata `boxes`: xywh (x, y, width, height) or "
            "xyxy (x1, y1, x2, y2); or give boxes='xywh' (--boxes xywh) or 'xyxy'",
        )
    elif named and boxes not in (None, named):
        message = f"boxes are {named} by {where}, and {boxes} by what is given (--boxes)"
        problems.add("", message, "leave --boxes out, or mend the file")
    return named or boxes or "xywh"


def _check_types(fields: Mapping[str, Any], shape: Shape, prefix: str, problems: Problems) -> None:
    for name, field in fields.items():
        kind = field.type
        where = name if name == "image_id" else f"{prefix}{name}"
        due = ""
        if name in ("image_id", "category_id", "id"):
            due = "" if _is_name(kind) else "whole numbers or text"
        elif name == "category":
            numbers = pa.types.is_integer(kind) and (shape.nested or shape.class_names)
            due = "" if is_text(kind) or numbers else "text (numbers stand in category_id)"
        elif name in FLAGS:
            due = "" if pa.types.is_boolean(kind) or is_number(kind) else "true or false, or 1 or 0"
        elif name == BOX:
            good = is_list(kind) and is_number(kind.value_type)
            if good and pa.types.is_fixed_size_list(kind) and kind.list_size != 4:
                good = False
            due = "" if good else "lists of 4 numbers"
        elif not is_number(kind):
            due = "numbers"
        if due:
            problems.add("", f"column {where} is of the type {kind}", f"it must hold {due}")


def _class_names(
    metadata: Mapping[bytes, bytes], nested: bool, problems: Problems
) -> tuple[str, ...] | None:
    """Return the names that Hugging Face's metadata give the numbers of `category`."""
    text = metadata.get(b"huggingface")
    if text is None:
        return None
    try:
        features = json.loads(text)["info"]["features"]
        found = _labels(_found(features[_OBJECTS] if nested else features, "category"))
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        problems.add("", f"the metadata huggingface cannot be read: {error!r:.60}", "mend them")
        return None
    if found is not None and len(set(found)) != len(found):
        problems.add("", "the metadata huggingface name two classes alike", "make names distinct")
    return found


def _found(node: Any, name: str) -> Any:
    """Return the feature of a name, below lists of features."""
    while isinstance(node, list | dict) and node:
        if isinstance(node, list):
            node = node[0]
        elif name in node:
            return node[name]
        else:
            node = node.get("feature")
    return None


def _labels(feature: Any) -> tuple[str, ...] | None:
    while isinstance(feature, dict) and "names" not in feature:
        feature = feature.get("feature")
    names = feature.get("names") if isinstance(feature, dict) else None
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("names are no list of text")
    return tuple(names)
