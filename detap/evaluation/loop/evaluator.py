"""Evaluator for training loops: collect batches, evaluate at the end.

Updates only store rows, so they are fast; matching follows in `compute`. The evaluator does not
communicate with other processes: the caller gathers their bytes and merges them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import wraps
from hashlib import blake2b
from itertools import pairwise
from threading import RLock
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np

from detap.errors import UsageError
from detap.evaluation.conditions import ignored_by_condition
from detap.evaluation.detection import evaluate, score_tables, select
from detap.evaluation.loop.batches import (
    BOX_FORMATS,
    FLAGS,
    BatchFormat,
    Ragged,
    Rows,
    check_sizes,
    detection_rows,
    joined,
    truth_rows,
)
from detap.evaluation.loop.name_index import class_index, image_index, refuse
from detap.evaluation.overlaps.boxes import refuse_polygons
from detap.evaluation.results import Result
from detap.evaluation.selection import Selection
from detap.protocols import Protocol
from detap.tables.arguments import check_table
from detap.tables.columns import Columns, Name, as_array
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers, checked_boxes
from detap.tables.masks import sizes_by_image
from detap.tables.npz import check_indices, decode, encode, names_of
from detap.tables.shapes import KINDS, Column, fields_of

Block = dict[str, Column]
"""The columns of an update, one row per box."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_KIND = "updates"
_FINITE = ("boxes", "score", "keypoints", "polygons")
"""Columns without NaN; in others NaN means that no value was given."""
_REPEATS = ("error", "identical")


def _locked(
    method: "Callable[Concatenate[Evaluator, _P], _R]",
) -> "Callable[Concatenate[Evaluator, _P], _R]":
    """Serialize calls of the decorated methods of an evaluator."""

    @wraps(method)
    def locked(self: "Evaluator", /, *arguments: _P.args, **options: _P.kwargs) -> _R:
        with self._lock:
            return method(self, *arguments, **options)

    return locked


class Evaluator:
    """Batch-wise evaluator for training loops.

    Threads may share an evaluator: calls run one at a time, and :meth:`compute` evaluates the
    updates before it.

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
        for option, value, accepted in (
            ("boxes", boxes, BOX_FORMATS),
            ("repeats", repeats, _REPEATS),
        ):
            if value not in accepted:
                raise UsageError(
                    f"{option} {value!r} is unknown; choose from {', '.join(accepted)}"
                )
        self.protocol = Protocol.of(protocol)
        if ground_truth is not None and classes is not None:
            raise UsageError("classes= does not apply if ground_truth, which has classes, is given")
        if isinstance(images, str) and images != "seen":
            raise UsageError(f'images is {images!r}; give a list of names, or "seen"')
        for name in self.protocol.reading:
            if (
                ground_truth is not None
                and len(ground_truth)
                and getattr(ground_truth, name) is None
            ):
                raise UsageError(
                    f"protocol {self.protocol.name} compares {name}, but ground_truth has none; "
                    f"pass {name}=True to read_ground_truth, or {name}= to GroundTruth.from_arrays"
                )
        if ground_truth is not None:
            ignored_by_condition(ground_truth, self.protocol)  # refuses missing attributes
            refuse_polygons(self.protocol, ground_truth)
        self.ground_truth = ground_truth
        self.boxes = boxes
        self._batch_format = BatchFormat(boxes, self.protocol)
        self._mask_sizes: Integers | None = None
        if (
            ground_truth is not None
            and ground_truth.masks is not None
            and ground_truth.mask is not None
        ):
            sizes = ground_truth.masks.sizes[ground_truth.mask]
            self._mask_sizes, _ = sizes_by_image(
                ground_truth.image, sizes, len(ground_truth.images)
            )
        self.repeats = repeats
        self.as_is = as_is
        image_names = None if images is None or isinstance(images, str) else _names_of(images)
        self._images = image_index(ground_truth, image_names)
        self._classes = class_index(ground_truth, classes)
        required_images = (
            ground_truth.images if ground_truth is not None and images is None else image_names
        )
        self._required_images = required_images or ()
        self._checked = False
        self._lock = RLock()
        self.reset()

    @_locked
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())

    def __repr__(self) -> str:
        return f"Evaluator({self.protocol.name!r}, {len(self.seen)} images seen)"

    @_locked
    def reset(self) -> None:
        """Remove all updates; keep the index of the ground truth."""
        self._seen: dict[Name, bytes] = {}
        self._images.reset()
        self._classes.reset()
        self._image_sizes: dict[Name, tuple[float, float]] = {}
        names = (name for name in self._batch_format.shapes if name != "polygons")
        no_shapes: dict[str, Any] = dict.fromkeys(names, ())
        detections = detection_rows(
            (), (), (), (), shapes=no_shapes, batch_format=self._batch_format, sizes=None
        )
        empty = {"boxes": (), "labels": (), **no_shapes}
        ground_truths = truth_rows((), empty, batch_format=self._batch_format, sizes=None)
        numbers = {name: np.zeros(0, np.int32) for name in ("image", "label")}
        self._detections, self._ground_truths = (
            [{**numbers, **rows.columns}] for rows in (detections, ground_truths)
        )

    @property
    @_locked
    def seen(self) -> tuple[Name, ...]:
        """The names of the updated images, in the order of updates."""
        return tuple(self._seen)

    @_locked
    def update(
        self,
        image_ids: Any,
        boxes: Ragged | None,
        scores: Ragged,
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
        scores : sequence of B (n,) arrays
            The scores.
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
            raise UsageError(
                "neither the evaluator nor the update has a ground truth; "
                "give ground_truth= to either"
                if ground_truth is None
                else "the evaluator has a ground truth; omit ground_truth in update"
            )
        names, batch_format = self._image_names(image_ids), self._batch_format
        shapes = batch_format.select_shapes(
            {"masks": masks, "keypoints": keypoints, "polygons": polygons}, "{}="
        )
        rows = [
            detection_rows(
                names, boxes, scores, labels, shapes=shapes, batch_format=batch_format, sizes=sizes
            )
        ]
        if ground_truth is not None:
            rows.append(truth_rows(names, ground_truth, batch_format=batch_format, sizes=sizes))
        if "masks" in shapes:
            self._check_sizes(names, rows)
        self._classes.check([label for table in rows for label in table.labels.distinct])
        new = self._record_images(names, rows)
        if rows[-1].image_sizes is not None:
            self._image_sizes |= dict(zip(names, rows[-1].image_sizes.tolist(), strict=True))
        numbers = self._images.indices(names)
        for table, blocks in zip(rows, (self._detections, self._ground_truths), strict=False):
            label = self._classes.indices(table.labels.distinct)[table.labels.number]
            image = np.repeat(numbers, table.counts)
            block = {"image": image, "label": label, **table.columns}
            if not new.all():
                mask = np.repeat(new, table.counts)
                block = {name: column[mask] for name, column in block.items()}
            blocks.append(block)

    def _check_sizes(self, names: Sequence[Name], rows: Sequence[Rows]) -> None:
        """Raise InputError if masks differ in size from other masks of their image."""
        if self._mask_sizes is not None:
            known_sizes: Integers | None = self._mask_sizes[self._images.indices(names)]
        else:
            known_sizes = check_sizes(names, rows[1], None, "ground truth") if rows[1:] else None
        check_sizes(names, rows[0], known_sizes, "detections")

    @_locked
    def update_records(self, image_ids: Any, records: Iterable[Mapping[str, Any]]) -> None:
        """Add the detections of a batch as records of a COCO results file.

        Parameters
        ----------
        image_ids : sequence of B int or str
            The images of the batch, also those without detections.
        records : iterable of mappings
            Records with ``image_id``, ``category_id``, ``bbox`` (x, y, width, height) and
            ``score``. If the protocol compares masks or keypoints, also ``segmentation`` (RLE) or
            ``keypoints``; ``bbox`` may then be missing in all records.

        Raises
        ------
        InputError
            As for :meth:`update`; if a record lacks a key or is of an image outside the batch.
        UsageError
            If the evaluator's box format is not ``xywh``, or it has no ground truth.
        """
        if self.boxes != "xywh":
            raise UsageError("records have xywh boxes; the evaluator requires boxes='xywh'")
        images = self._image_names(image_ids)
        rows: dict[Name, list[Mapping[str, Any]]] = {image: [] for image in images}
        record_list = list(records)
        shapes = {name: KINDS[name].key for name in self.protocol.reading}
        without_boxes = bool(shapes and record_list) and not any(
            "bbox" in record for record in record_list
        )
        box_keys = [] if without_boxes else ["bbox"]
        required = ("image_id", "category_id", *box_keys, *shapes.values(), "score")
        for number, record in enumerate(record_list):
            location = f"record {number}"
            for key in required:
                if key not in record:
                    refuse(f"{key} is missing", f"give {', '.join(required)}", location)
            if record["image_id"] not in rows:
                hint = "name every image of the batch in image_ids"
                refuse(f"image {record['image_id']!r} is not in the batch", hint, location)
            rows[record["image_id"]].append(record)
        columns: dict[str, Any] = {
            key: [[record[key] for record in rows[image]] for image in images] for key in required
        }
        if "keypoints" in shapes:
            columns["keypoints"] = [
                [*map(_keypoint_triples, keypoints)] for keypoints in columns["keypoints"]
            ]
        self.update(
            images,
            columns.get("bbox"),
            columns["score"],
            columns["category_id"],
            masks=columns.get(KINDS["masks"].key),
            keypoints=columns.get(KINDS["keypoints"].key),
        )

    def _image_names(self, image_ids: Any) -> list[Name]:
        names = Columns("detections").names("image_ids", as_array(image_ids))
        self._images.check(names)
        return names

    def _record_images(self, names: Sequence[Name], rows: Sequence[Rows]) -> Flags:
        """Record updated images; return a mask of the new ones, (B,) bool."""
        identical = self.repeats == "identical"
        return self._record_digests(names, self._digests(rows) if identical else [b""] * len(names))

    def _record_digests(self, names: Sequence[Name], digests: Sequence[bytes]) -> Flags:
        """Record images with the digests of their rows; return a mask of the new ones."""
        seen_now: dict[Name, bytes] = {}
        new = np.ones(len(names), np.bool_)
        for index, (name, digest) in enumerate(zip(names, digests, strict=True)):
            previous = self._seen.get(name, seen_now.get(name))
            if previous is not None and self.repeats == "error":
                hint = "repeats='identical' drops repeats with equal rows, as samplers make them"
                refuse(f"image {name!r} is updated twice", hint)
            if previous not in (None, digest):
                hint = (
                    "if detections depend on the batch, split images without repeats: "
                    "images[rank::processes]"
                )
                refuse(f"image {name!r} is updated twice, with different rows", hint)
            new[index] = previous is None
            seen_now[name] = digest
        self._seen.update(seen_now)
        return new

    def _digests(self, rows: Sequence[Rows]) -> list[bytes]:
        """Return a digest of each image's rows in a batch."""
        digests = [blake2b(digest_size=16) for _ in rows[0].counts]
        for table in rows:
            keys = [repr(self._classes.key(name)).encode() for name in table.labels.distinct]
            code = np.frombuffer(
                b"".join(blake2b(key, digest_size=8).digest() for key in keys), np.uint64
            )
            columns = (
                code[table.labels.number],
                *map(_without_negative_zero, table.columns.values()),
            )
            ends = [0, *np.cumsum(table.counts).tolist()]
            for digest, (start, end) in zip(digests, pairwise(ends), strict=True):
                digest.update(str(end - start).encode())
                for column in columns:
                    digest.update(column[start:end].tobytes())
        return [digest.digest() for digest in digests]

    # --- evaluation of the updates

    @_locked
    def compute(
        self, *, classes: Iterable[str] | None = None, threads: int | None = None
    ) -> Result:
        """Evaluate all updates.

        Only the first call checks the data if AP is near zero, as :func:`detap.evaluate` does:
        early epochs of a training have such an AP with valid data.

        Parameters
        ----------
        classes : iterable of str, optional
            Names of the classes to report, as for :func:`detap.evaluate`.
        threads : int, optional
            As for :func:`detap.evaluate`.

        Raises
        ------
        InputError
            If a required image was not updated, or boxes look like another box format.

        Warns
        -----
        DetapWarning
            As :func:`detap.evaluate`.
        """
        missing = [name for name in self._required_images if name not in self._seen]
        if missing:
            others = f" (nor {len(missing) - 1} more)" if len(missing) > 1 else ""
            hint = (
                "update every image, with empty arrays if it has no detections, or create the "
                "evaluator with images='seen' or a list of images"
            )
            refuse(f"image {missing[0]!r} was not updated{others}", hint)
        if not self._seen:
            refuse("no image was updated", "update each batch of the loop")
        options: dict[str, Any] = {"classes": classes, "threads": threads}
        if self._checked:
            result = score_tables(*self._tables(), self.protocol, **options)
        else:
            result = evaluate(*self._tables(), self.protocol, **options, as_is=self.as_is)
        self._checked = True
        return self._add_selection(result)

    def _add_selection(self, result: Result) -> Result:
        """Return the result with its selection of images, if it has not all of them."""
        total_images = (
            len(result.images) if self.ground_truth is None else len(self.ground_truth.images)
        )
        if len(result.images) == total_images:
            return result
        selection = result.selection or Selection()
        return replace(
            result, selection=replace(selection, images=result.images, total_images=total_images)
        )

    @_locked
    def to_bytes(self) -> bytes:
        """Return the updates as bytes, 48 per detection and the shapes, for :meth:`merge`."""
        header = {
            "settings": self._settings(),
            "images": list(self._seen),
            "digests": [digest.hex() for digest in self._seen.values()],
            "sizes": list(self._image_sizes.items()),
        }
        columns: dict[str, Column] = {}
        position = np.zeros(len(self._images), np.int32)
        position[self._images.indices(list(self._seen))] = np.arange(len(self._seen))
        for table, blocks in self._blocks().items():
            joined_blocks = _concatenate(blocks)
            joined_blocks["image"] = position[joined_blocks["image"]]
            labels, index = np.unique(joined_blocks["label"], return_inverse=True)
            joined_blocks["label"] = index.astype(np.int32)
            header[table] = self._classes.names_at(labels.tolist())
            columns |= {f"{table}/{name}": column for name, column in joined_blocks.items()}
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
        merged._images, merged._classes = copy(self._images), copy(self._classes)
        merged.reset()
        for number, data in enumerate(parts):
            merged._add(data, f"part {number}")
        return merged

    def _settings(self) -> dict[str, Any]:
        """Return the settings that merged evaluators share."""
        truth = self.ground_truth
        digest = None
        if truth is not None:
            hashed = blake2b(repr((truth.images, truth.class_ids)).encode(), digest_size=16)
            for column in truth.columns().values():
                hashed.update(column.tobytes())
            digest = hashed.hexdigest()
        return {
            "protocol": json.loads(json.dumps(self.protocol.as_dict())),
            "boxes": self.boxes,
            "repeats": self.repeats,
            "ground_truth": digest,
        }

    def _blocks(self) -> dict[str, list[Block]]:
        """Return the rows of all updates by table."""
        tables = {"detections": self._detections}
        return (
            tables
            if self.ground_truth is not None
            else {**tables, "ground truth": self._ground_truths}
        )

    def _add(self, data: bytes, part: str) -> None:
        """Add the updates of another evaluator."""
        header, columns = decode(data, _KIND, part)
        settings = header.get("settings")
        for name, value in self._settings().items():
            if not isinstance(settings, dict) or settings.get(name) != value:
                refuse(f"has another {name} than this evaluator", "use one for all", part)
        try:
            names = list(names_of(header["images"]))
            digests = [bytes.fromhex(digest) for digest in header["digests"]]
            sizes = {name: (float(w), float(h)) for name, (w, h) in header["sizes"]}
            labels = {table: list(names_of(header[table])) for table in self._blocks()}
        except (KeyError, TypeError, ValueError) as error:
            refuse(f"is damaged: {error}", "", part)
        self._images.check(names)
        blocks = {}
        for table, pending in self._blocks().items():
            self._classes.check(labels[table])
            counts = len(names), len(labels[table])
            blocks[table] = _read_block(table, columns, pending[0], counts, part)
        new = self._record_digests(names, digests)
        self._image_sizes |= sizes
        images = self._images.indices(names)
        for table, pending in self._blocks().items():
            block, classes = blocks[table], self._classes.indices(labels[table])
            kept = new[block["image"]]
            block["image"], block["label"] = images[block["image"]], classes[block["label"]]
            pending.append({name: column[kept] for name, column in block.items()})

    def _tables(self) -> tuple[GroundTruth, Detections]:
        """Return the pending rows as tables, images in ground truth order."""
        ground_truth = (
            self._ground_truth_table() if self.ground_truth is None else self.ground_truth
        )
        columns = self._join_blocks(self._detections)
        detections = Detections(
            **self._box_columns("detections", columns, ground_truth.images),
            images=ground_truth.images,
            classes=ground_truth.classes,
            class_ids=ground_truth.class_ids,
            score=columns["score"],
        )
        if "area" in columns and not np.isnan(columns["area"]).all():
            area = columns["area"]
            detections = replace(
                detections, area=np.where(np.isnan(area), detections.box_area, area)
            )
        if len(self._seen) == len(ground_truth.images):
            return ground_truth, detections
        return select(ground_truth, detections, images=list(self._seen))

    def _ground_truth_table(self) -> GroundTruth:
        """Return the ground truths of the updates as a table."""
        images = self._images.ordered_names()
        columns = self._join_blocks(self._ground_truths)
        boxes = self._box_columns("ground truth", columns, images)
        area = columns["area"]
        flags: dict[str, Any] = {flag: columns[flag] for flag in FLAGS}
        ids = self._classes.ordered_names()
        unknown = np.nan, np.nan
        sizes = [self._image_sizes.get(image, unknown) for image in images]
        return GroundTruth(
            **boxes,
            images=images,
            classes=tuple(self._classes.titles.get(name, str(name)) for name in ids),
            class_ids=ids,
            area=np.where(np.isnan(area), boxes["box_area"], area),
            image_sizes=np.array(sizes) if self._image_sizes else None,
            extra={name: columns[name] for name in self.protocol.attributes},
            width_height=_width_height(columns["boxes"], self.boxes)
            if "keypoints" in columns
            else None,
            **flags,
        )

    def _join_blocks(self, blocks: Sequence[Block]) -> Block:
        """Return the columns of all updates, sorted by image, with indices by sorted name."""
        columns = _concatenate(blocks)
        if self.ground_truth is None:
            columns["image"] = self._images.ranks()[columns["image"]]
            columns["label"] = self._classes.ranks()[columns["label"]]
        image = columns["image"]
        if (image[1:] < image[:-1]).any():
            order = np.argsort(image, kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
        return columns

    def _box_columns(self, table: str, columns: Block, images: tuple[Name, ...]) -> dict[str, Any]:
        """Return the columns of boxes and shapes that both tables have."""
        box_format = "xyxy" if self.boxes == "xyxy" else "xywh"
        reader = _UpdatedRows(table, columns["image"], images)
        boxes = checked_boxes(reader, columns["boxes"], box_format, as_is=self.as_is)
        names = ("corners", "box_area", "notes")
        return {
            "image": columns["image"],
            "label": columns["label"],
            **dict(zip(names, boxes, strict=True)),
            **fields_of({name: columns[name] for name in self._batch_format.shapes}),
        }


class _UpdatedRows(Columns):
    """Reader of the rows of several updates, which errors name by image."""

    def __init__(self, table: str, image: Integers, images: tuple[Name, ...]) -> None:
        super().__init__(table)
        self._image = image
        self._images = images

    def location(self, row: int) -> str:
        """Return the image of a row, and its index within the image."""
        number = self._image[row]
        first = int(np.argmax(self._image == number))
        return f"image {self._images[number]!r}, row {row - first}"


def _concatenate(blocks: Sequence[Block]) -> Block:
    """Return the columns of all updates."""
    return {name: joined([block[name] for block in blocks]) for name in blocks[0]}


def _read_block(
    table: str, columns: Mapping[str, Column], empty: Block, counts: tuple[int, int], part: str
) -> Block:
    """Return the checked columns of a part, with the dtypes and shapes of an empty block."""
    block: Block = {}
    for name, expected in empty.items():
        column: Any = columns.get(f"{table}/{name}")
        block[name] = column
        same = type(column) is type(expected) and len(column) == len(block["image"])
        if same and isinstance(expected, np.ndarray):
            same = column.dtype == expected.dtype and column.shape[1:] == expected.shape[1:]
            same = same and (name not in _FINITE or bool(np.isfinite(column).all()))
        if not same:
            refuse(f"is damaged: column {name} of the {table} is invalid", "", part)
    for name, count in zip(("image", "label"), counts, strict=True):
        check_indices(name, block[name], count, part)
    return block


def _names_of(images: Iterable[Name]) -> tuple[Name, ...]:
    """Return image names as Python integers or text."""
    values: Any = images if hasattr(images, "__array__") else [*images]
    return tuple(Columns("detections").names("images", values))


def _width_height(boxes: Floats, box_format: str) -> Floats:
    """Return the given widths and heights of boxes, (n, 2)."""
    width_height: Floats = boxes[:, 2:] - boxes[:, :2] if box_format == "xyxy" else boxes[:, 2:]
    return width_height


def _without_negative_zero(column: Column) -> Column:
    """Return a column with 0.0 in place of -0.0, as they are equal but differ in bytes."""
    real = isinstance(column, np.ndarray) and column.dtype.kind == "f"
    return column + 0.0 if real else column


def _keypoint_triples(values: Any) -> Any:
    """Return flat keypoints as triples (x, y, v); others unchanged."""
    array = np.asarray(values, object)
    return array.reshape(-1, 3).tolist() if array.ndim == 1 and len(array) % 3 == 0 else values
