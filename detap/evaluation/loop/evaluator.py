"""Evaluator for training loops: collect batches, evaluate at the end.

Updates only store rows, so they are fast; matching follows in `compute`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from hashlib import blake2b
from itertools import islice
from threading import Lock
from typing import Any, Literal, NoReturn

import numpy as np

from detap._version import __version__
from detap.errors import InputError, Problem, UsageError
from detap.evaluation.conditions import ignored_by_condition
from detap.evaluation.detection import evaluate, score_tables
from detap.evaluation.loop.batches import (
    BOX_FORMATS,
    Batch,
    ImageRows,
    Ragged,
    joined,
    read_sizes,
    shapes_compared,
)
from detap.evaluation.overlaps.boxes import missing_shapes, refuse_polygons
from detap.evaluation.results import Result
from detap.evaluation.selection import name_mask
from detap.io.problems import check_choice
from detap.protocols import Protocol
from detap.tables.arguments import check_table
from detap.tables.columns import Columns, Name, as_array, check_scores, indices_in
from detap.tables.detection import Detections, GroundTruth, Integers, checked_boxes, class_table
from detap.tables.masks import SizedMasks, check_sizes
from detap.tables.npz import check_indices, decode, encode, names_of
from detap.tables.shapes import KINDS, Column, fields_of
from detap.text_input import join_names, suggest

Block = dict[str, Column]
"""The rows of a table in an update; `image` is a position in the batch, in ascending order."""

Update = tuple[Integers, dict[str, Block]]
"""The number of each image, -1 if it is a repeat, and the block of each table."""

_KIND = "updates"
_IMAGES_HINT = "name every image of the test set in images=, also those without ground truth"


class Evaluator:
    """Batch-wise evaluator for training loops.

    Threads may share an evaluator: :meth:`compute` evaluates the updates before it.

    >>> evaluator = detap.Evaluator(ground_truth, boxes="xyxy")
    >>> for images in loader:
    ...     evaluator.update(image_ids, boxes, scores, labels)
    >>> result = evaluator.compute()

    Parameters
    ----------
    ground_truth : GroundTruth, optional
        All ground truths. Without it, each update must have the ground truths of its batch.
    protocol : Protocol or str
        A protocol or the name of a preset.
    boxes : {"xywh", "xyxy", "cxcywh"}
        The box format: left, top, width, height as in COCO files; left, top, right, bottom; or
        center x, center y, width, height.
    classes : sequence, or mapping of identifier to name, optional
        All classes, in the order of the result, if `ground_truth` is not given. By default the
        labels of the updates, sorted. Processes whose bytes are merged need the same classes.
    images : sequence of int or str, or "seen", optional
        The images to evaluate; each must be updated before :meth:`compute`. By default all of
        `ground_truth`. With "seen", the updated images.
    repeats : {"error", "identical"}
        An image that is updated twice is an error; or, if its rows are identical, the repeat is
        dropped. Samplers repeat images to fill the last batch.
    as_is : bool
        As for :meth:`GroundTruth.from_arrays` and :func:`detap.evaluate`.

    Raises
    ------
    UsageError
        If an argument is invalid.
    """

    def __init__(
        self,
        ground_truth: GroundTruth | None = None,
        protocol: Protocol | str = "coco",
        boxes: Literal["xywh", "xyxy", "cxcywh"] = "xywh",
        *,
        classes: Sequence[Name] | Mapping[Name, str] | None = None,
        images: Iterable[Name] | Literal["seen"] | None = None,
        repeats: Literal["error", "identical"] = "error",
        as_is: bool = False,
    ) -> None:
        if ground_truth is not None:
            check_table(ground_truth, GroundTruth)
        if ground_truth is not None and classes is not None:
            raise UsageError("classes= does not apply if ground_truth, which has classes, is given")
        if isinstance(images, str) and images != "seen":
            raise UsageError(f'images is {images!r}; give a list of names, or "seen"')
        check_choice("boxes", boxes, BOX_FORMATS)
        check_choice("repeats", repeats, ("error", "identical"))
        self.protocol = Protocol.of(protocol)
        self.ground_truth, self.boxes = ground_truth, boxes
        self.repeats, self.as_is = repeats, as_is
        names: tuple[Name, ...] | None = None
        self._class_ids: tuple[Name, ...] | None = None
        self._classes: tuple[str, ...] = ()
        if ground_truth is not None:
            self._check_ground_truth(ground_truth)
            names = ground_truth.images
            self._class_ids, self._classes = ground_truth.class_ids, ground_truth.classes
        elif classes is not None:
            self._class_ids, self._classes = class_table(Columns("ground truth"), classes)
        # Class ids take precedence over equal names.
        self._known_labels = _index(self._classes) | _index(self._class_ids or ())
        listed = join_names(self._class_ids or ())
        self._label_hint = f"labels are class names or ids, such as {listed}"
        if classes is not None:
            self._label_hint += "; for numbers give a dict, such as classes={0: 'cat'}"
        self._required: tuple[Name, ...] = () if isinstance(images, str) else names or ()
        if images is not None and not isinstance(images, str):
            self._required = tuple(Columns("detections").names("images", [*as_array(images)]))
            if names is not None:
                name_mask("image", names, self._required)  # refuses unknown ones
            names = self._required
        self._images = None if names is None else frozenset(names)
        self._checked = False
        self._lock = Lock()
        self.reset()

    def _check_ground_truth(self, truth: GroundTruth) -> None:
        """Raise UsageError or InputError if a table lacks what the protocol requires."""
        for name in self.protocol.reading:
            if len(truth) and getattr(truth, name) is None:
                raise missing_shapes(truth, name)
        ignored_by_condition(truth, self.protocol)  # refuses missing attributes
        refuse_polygons(self.protocol, truth)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

    def __repr__(self) -> str:
        return f"Evaluator({self.protocol.name!r}, {len(self.seen)} images seen)"

    def reset(self) -> None:
        """Remove all updates; keep the index of the ground truth."""
        names = [name for name in shapes_compared(self.protocol) if name != "polygons"]
        given: dict[str, Any] = {"boxes": (), "labels": (), **dict.fromkeys(names, ())}
        tables = [self._batch("detections", ()).read_detections({**given, "scores": ()}, None)]
        if self.ground_truth is None:
            tables.append(self._batch("ground truth", ()).read_ground_truth(given, None))
        empty = {batch.table: batch.columns for batch in tables}
        with self._lock:
            self._seen: dict[Name, tuple[int, int]] = {}  # number and position in `_updates`
            self._labels = dict(self._known_labels)
            self._image_sizes: dict[Name, tuple[float, float]] = {}
            self._updates: list[Update] = [(np.zeros(0, np.int32), empty)]

    def _batch(self, table: str, images: Sequence[Name]) -> Batch:
        return Batch(table, images, self.protocol, self.boxes)

    @property
    def seen(self) -> tuple[Name, ...]:
        """The names of the updated images, in the order of updates."""
        return tuple(self._seen)

    def update(
        self,
        image_ids: Any,
        boxes: Ragged | None,
        scores: Ragged | None,
        labels: Ragged,
        *,
        masks: Ragged | None = None,
        keypoints: Ragged | None = None,
        polygons: Ragged | None = None,
        ground_truth: Mapping[str, Any] | None = None,
        sizes: Any = None,
    ) -> None:
        """Add the detections of a batch of B images; an invalid batch changes nothing.

        Arrays may be lists, or of numpy, PyTorch (on any device) or another library with
        ``__array__`` or ``__dlpack__``. Values are not rounded, also those in half precision.

        Parameters
        ----------
        image_ids : sequence of B int or str
            The names of the images, as in the ground truth.
        boxes : sequence of B (n, 4) arrays, or None
            The boxes in the evaluator's format, an empty array for an image without detections.
            None to use the bounding boxes of the masks, keypoints or polygons.
        scores : sequence of B (n,) arrays, or None
            None, in all updates, if the detections have no scores.
        labels : sequence of B (n,) arrays of int, or lists of str
            Category ids or class names of the ground truth.
        masks : sequence of B (n, H, W) arrays of bool or uint8, or lists of n masks, optional
            Required if the protocol compares masks: bitmaps of the image's size, or RLEs of COCO
            with ``size`` and ``counts``.
        keypoints : sequence of B (n, P, 3) arrays, optional
            Required if the protocol compares keypoints: x and y in pixels; the third is not used.
        polygons : sequence of B (n, 8) or (n, 4, 2) arrays, optional
            Quadrilaterals such as rotated boxes, instead of `boxes`, if the protocol compares
            polygons: x and y of four corners in order around, in pixels.
        ground_truth : mapping, optional
            The ground truths of the batch, required if the evaluator has none. Keys are ``boxes``
            (optional with ``masks``) and ``labels`` as above; ``masks``, ``keypoints`` (x, y, v)
            or ``polygons`` (instead of ``boxes``) if the protocol compares them; and the optional
            ``area`` in square pixels (by default that of the mask, polygon or box), ``crowd``,
            ``difficult``, ``ignore`` and ``group_of``. ``image_sizes``, (B, 2) widths and heights
            in pixels, is required by area ranges in percent unless `sizes` is given. Attributes of
            `ignore_where` are numbers.
        sizes : (B, 2) array, optional
            Width and height of each image in pixels, if boxes are normalized, those of
            `ground_truth` too.

        Raises
        ------
        InputError
            If an image or label is unknown, an image is updated twice, columns differ in length,
            masks of an image differ in size, or a value is invalid.
        UsageError
            If `ground_truth` is missing, or the evaluator has one already; or if masks or keypoints
            are missing, or shapes are not compared by the protocol.
        """
        if (ground_truth is None) == (self.ground_truth is None):
            raise UsageError("give ground_truth= either to the evaluator, or to each update")
        names = Columns("detections").names("image_ids", as_array(image_ids))
        given = {"boxes": boxes, "scores": scores, "labels": labels}
        given |= {"masks": masks, "keypoints": keypoints, "polygons": polygons}
        image_sizes = read_sizes("sizes", names, sizes)
        batches = [self._batch("detections", names).read_detections(given, image_sizes)]
        if ground_truth is not None:
            truth = self._batch("ground truth", names).read_ground_truth(ground_truth, image_sizes)
            batches.append(truth)
            if ground_truth.get("image_sizes") is not None:
                image_sizes = read_sizes("image_sizes", names, ground_truth["image_sizes"])
        if "masks" in self.protocol.reading:  # those of a given ground truth follow in `compute`
            sized = [SizedMasks(b.table, b.image, b.columns["masks"].sizes) for b in batches[::-1]]
            check_sizes(names, sized)
        named = [] if image_sizes is None else zip(names, image_sizes.tolist(), strict=True)
        self._add(names, {b.table: (b.columns, b.label_names) for b in batches}, dict(named))

    def update_records(self, image_ids: Any, records: Iterable[Mapping[str, Any]]) -> None:
        """Add the detections of a batch as records of a COCO results file.

        Parameters
        ----------
        image_ids : sequence of B int or str
            The images of the batch, also those without detections.
        records : iterable of mappings
            Records with ``image_id``, ``category_id``, ``bbox`` (x, y, width, height) and
            ``score``, which all may lack. If the protocol compares masks or keypoints, also
            ``segmentation`` (RLE) or ``keypoints``; ``bbox`` may then be missing in all records.

        Raises
        ------
        InputError
            As for :meth:`update`; if a record lacks a key or is of an image outside the batch.
        UsageError
            If the evaluator's box format is not ``xywh``, or it has no ground truth.
        """
        if self.boxes != "xywh":
            raise UsageError("records have xywh boxes; the evaluator requires boxes='xywh'")
        images = Columns("detections").names("image_ids", as_array(image_ids))
        records = list(records)
        shapes = {name: KINDS[name].key for name in self.protocol.reading}
        optional = ("bbox", "score") if shapes else ("score",)
        keys = ["image_id", "category_id", "bbox", *shapes.values(), "score"]
        keys = [k for k in keys if k not in optional or any(r.get(k) is not None for r in records)]
        rows: dict[Name, dict[str, list[Any]]] = {name: {k: [] for k in keys} for name in images}
        for number, record in enumerate(records):
            location, missing = f"record {number}", [k for k in keys if record.get(k) is None]
            if missing:
                _refuse(f"{missing[0]} is missing", f"give {', '.join(keys)}", location)
            image = record["image_id"]
            if image not in rows:
                hint = "name every image of the batch in image_ids"
                _refuse(f"image {image!r} is not in the batch", hint, location)
            for key in keys:
                rows[image][key].append(record[key])
        columns = {key: [rows[image][key] for image in images] for key in keys}
        if "keypoints" in shapes:
            columns["keypoints"] = [list(map(_keypoint_triples, k)) for k in columns["keypoints"]]
        self.update(
            images,
            columns.get("bbox"),
            columns.get("score"),
            columns["category_id"],
            masks=columns.get(KINDS["masks"].key),
            keypoints=columns.get(KINDS["keypoints"].key),
        )

    def _add(
        self,
        names: Sequence[Name],
        blocks: Mapping[str, tuple[Block, Sequence[Name]]],
        image_sizes: Mapping[Name, tuple[float, float]],
    ) -> None:
        """Add blocks, with the names that their labels are indices into."""
        with self._lock:
            _check_names("image", names, self._images, self._seen, _IMAGES_HINT)
            known = None if self._class_ids is None else self._known_labels
            labels, update = dict(self._labels), dict[str, Block]()
            for table, (block, label_names) in blocks.items():
                _check_names("label", label_names, known, labels, self._label_hint)
                number = [labels.setdefault(name, len(labels)) for name in label_names]
                update[table] = block | {"label": np.array(number, np.int32)[block["label"]]}
            self._updates.append((self._number_images(names, update), update))
            self._labels = labels
            self._image_sizes |= image_sizes

    def _number_images(self, names: Sequence[Name], update: Mapping[str, Block]) -> Integers:
        """Record the images of an update; return their numbers, -1 for those seen before."""
        seen: dict[Name, tuple[int, int]] = {}
        numbers = np.full(len(names), -1, np.int32)
        for position, name in enumerate(names):
            if name not in self._seen and name not in seen:
                numbers[position] = len(self._seen) + len(seen)
                seen[name] = len(self._updates), position
                continue
            if self.repeats == "error":
                hint = "repeats='identical' drops repeats with equal rows, as samplers make them"
                _refuse(f"image {name!r} is updated twice", hint)
            number, first = self._seen.get(name) or seen[name]
            earlier = update if name in seen else self._updates[number][1]
            if any(_rows_of(earlier[t], first) != _rows_of(update[t], position) for t in update):
                hint = "split images without repeats, as images[rank::processes]"
                _refuse(f"image {name!r} is updated twice, with different rows", hint)
        self._seen |= seen
        return numbers

    # --- evaluation of the updates

    def compute(
        self, *, classes: Iterable[Name] | None = None, threads: int | None = None
    ) -> Result:
        """Evaluate all updates.

        Only the first call checks the data if AP is near zero, as :func:`detap.evaluate` does:
        early epochs of a training have such an AP with valid data.

        Parameters
        ----------
        classes : iterable of int or str, optional
            Names, or ids if integers, of the classes to report, as for :func:`detap.evaluate`.
        threads : int, optional
            As for :func:`detap.evaluate`.

        Raises
        ------
        InputError
            If a required image was not updated, boxes look like another box format, or masks differ
            in size from those of `ground_truth`.

        Warns
        -----
        DetapWarning
            As :func:`detap.evaluate`.
        """
        with self._lock:
            missing = [name for name in self._required if name not in self._seen]
            if missing:
                others = f" (nor {len(missing) - 1} more)" if len(missing) > 1 else ""
                hint = (
                    "update every image, with empty arrays if it has no detections, or create the "
                    "evaluator with images='seen' or a list of images"
                )
                _refuse(f"image {missing[0]!r} was not updated{others}", hint)
            if not self._seen:
                _refuse("no image was updated", "update each batch of the loop")
            truth, detections = self._tables()
            images = None if len(self._seen) == len(truth.images) else [*self._seen]
        options: dict[str, Any] = {"classes": classes, "images": images, "threads": threads}
        if self._checked:
            return score_tables(truth, detections, self.protocol, **options)
        result = evaluate(truth, detections, self.protocol, **options, as_is=self.as_is)
        self._checked = True
        return result

    def to_bytes(self) -> bytes:
        """Return the updates as bytes, 48 per detection and the shapes, for :meth:`merge`."""
        with self._lock:
            header = {
                "settings": self._settings(),
                "images": list(self._seen),
                "sizes": list(self._image_sizes.items()),
                "labels": list(self._labels if self._class_ids is None else self._class_ids),
            }
            columns = {
                f"{table}/{name}": column
                for table in self._updates[0][1]
                for name, column in self._rows(table).items()
            }
        return bytes(encode(_KIND, header, columns))

    def merge(self, parts: Iterable[bytes]) -> "Evaluator":
        """Return an evaluator with the updates of several, such as those of all processes.

        The order of the parts does not matter. The updates of this evaluator are included only if
        its bytes are.

        >>> result = evaluator.merge(parts).compute()

        Parameters
        ----------
        parts : iterable of bytes
            The :meth:`to_bytes` of evaluators with the settings and ground truth of this one.

        Raises
        ------
        InputError
            If bytes are damaged, settings differ, or an image is in two parts; if `repeats` is
            ``"identical"``, only if its rows differ.
        """
        merged = copy(self)
        merged.reset()
        for number, data in enumerate(parts):
            merged._add_part(data, f"part {number}")
        return merged

    def _settings(self) -> dict[str, str]:
        """Return the settings that merged evaluators share."""
        truth, hashed = self.ground_truth, blake2b(digest_size=16)
        if truth is not None:
            hashed.update(repr((truth.images, truth.class_ids)).encode())
            for column in truth.columns().values():
                hashed.update(column.tobytes())
        return {
            "protocol": self.protocol.signature(__version__),
            "boxes": self.boxes,
            "repeats": self.repeats,
            "ground_truth": hashed.hexdigest(),
        }

    def _add_part(self, data: bytes, part: str) -> None:
        """Add the updates of another evaluator."""
        header, columns = decode(data, _KIND, part)
        try:
            for name, value in self._settings().items():
                if header["settings"][name] != value:
                    _refuse(f"has another {name} than this evaluator", "use one for all", part)
            names, labels = names_of(header["images"]), names_of(header["labels"])
            sizes = {name: (float(w), float(h)) for name, (w, h) in header["sizes"]}
            blocks = {}
            for table, empty in self._updates[0][1].items():
                block: Block = {name: columns[f"{table}/{name}"] for name in empty}
                if {*map(len, block.values())} != {len(block["image"])}:
                    raise ValueError(f"columns of the {table} differ in length")
                for name, count in (("image", len(names)), ("label", len(labels))):
                    check_indices(name, block[name], count, part)
                blocks[table] = block, labels
        except (KeyError, TypeError, ValueError) as error:
            _refuse(f"is damaged: {error}", "", part)
        self._add(names, blocks, sizes)

    def _tables(self) -> tuple[GroundTruth, Detections]:
        """Return the rows of all updates as tables, images in ground truth order."""
        truth = self.ground_truth
        if truth is None:
            images = tuple(sorted(self._seen))
            ids, classes = self._class_ids, self._classes
            if ids is None:
                ids, classes = class_table(Columns("ground truth"), sorted(self._labels))
            fields = self._fields("ground truth", images, ids)
            if self._image_sizes:
                unknown = np.nan, np.nan
                sizes = [self._image_sizes.get(image, unknown) for image in images]
                fields["image_sizes"] = np.array(sizes)
            truth = GroundTruth(**fields, classes=classes)
        fields = self._fields("detections", truth.images, truth.class_ids)
        detections = Detections(**fields, classes=truth.classes)
        rows = ImageRows("detections", truth.images, detections.image)
        check_scores(detections.score, lambda row: (rows.table, rows.location(row)))
        return truth, detections

    def _rows(self, table: str) -> Block:
        """Return the columns of all updates, with the numbers of images, without repeats."""
        blocks = [update[table] for _, update in self._updates]
        columns = {name: joined([block[name] for block in blocks]) for name in blocks[0]}
        image = [numbers[update[table]["image"]] for numbers, update in self._updates]
        columns["image"] = np.concatenate(image)
        new = columns["image"] >= 0
        return columns if new.all() else {name: column[new] for name, column in columns.items()}

    def _fields(
        self, table: str, images: tuple[Name, ...], ids: tuple[Name, ...]
    ) -> dict[str, Any]:
        """Return the fields of a table of all updates, sorted by image."""
        columns = self._rows(table)
        image = columns["image"] = indices_in(self._seen, images)[columns["image"]]
        if self._class_ids is None:
            columns["label"] = indices_in(self._labels, ids)[columns["label"]]
        if (image[1:] < image[:-1]).any():
            order = np.argsort(image, kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
        boxes, box_format = columns.pop("boxes"), "xyxy" if self.boxes == "xyxy" else "xywh"
        reader = ImageRows(table, images, columns["image"])
        corners, box_area, notes = checked_boxes(reader, boxes, box_format, as_is=self.as_is)
        area = columns.pop("area", None)
        of_truth = table == "ground truth"
        if area is not None and (of_truth or not np.isnan(area).all()):
            columns["area"] = np.where(np.isnan(area), box_area, area)
        if of_truth:
            columns["extra"] = {name: columns.pop(name) for name in self.protocol.attributes}
        if of_truth and "keypoints" in columns:
            start = boxes[:, :2] if box_format == "xyxy" else 0.0
            columns["width_height"] = boxes[:, 2:] - start
        shapes = {name: columns.pop(name) for name in shapes_compared(self.protocol)}
        columns |= {"corners": corners, "box_area": box_area, "notes": notes}
        return {**columns, **fields_of(shapes), "images": images, "class_ids": ids}


def _rows_of(block: Block, image: int) -> list[bytes]:
    """Return the rows of an image as bytes, for comparison."""
    rows = slice(*np.searchsorted(block["image"], [image, image + 1]))
    columns = [column[rows] for name, column in block.items() if name != "image"]
    # Zeros of either sign are equal, but differ in bytes.
    is_real = [isinstance(c, np.ndarray) and c.dtype.kind == "f" for c in columns]
    return [(c + 0.0 if r else c).tobytes() for c, r in zip(columns, is_real, strict=True)]


def _check_names(
    subject: str,
    names: Sequence[Name],
    known: Collection[Name] | None,
    earlier: Iterable[Name],
    hint: str,
) -> None:
    """Raise InputError for an unknown name; without known ones, if numbers and text are mixed."""
    if known is None:
        Columns("detections").names(f"{subject}s", [*islice(earlier, 1), *names])
        return
    for name in names:
        if name not in known:
            nearest = suggest(name, map(str, known)) if isinstance(name, str) else ""
            _refuse(f"{subject} {name!r} is unknown", "; ".join(filter(None, (nearest, hint))))


def _index(names: Iterable[Name]) -> dict[Name, int]:
    return {name: index for index, name in enumerate(names)}


def _refuse(message: str, hint: str, location: str = "") -> NoReturn:
    """Raise an InputError about detections of the loop."""
    raise InputError(Problem("detections", location, message, hint))


def _keypoint_triples(values: Any) -> Any:
    """Return flat keypoints as triples (x, y, v); others unchanged."""
    array = np.asarray(values, object)
    return array.reshape(-1, 3).tolist() if array.ndim == 1 and len(array) % 3 == 0 else values
