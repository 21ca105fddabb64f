"""Evaluator for training loops: collect batches, evaluate at the end.

Updates only store rows, so they are fast; matching follows in `compute`.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import wraps
from hashlib import blake2b
from itertools import pairwise
from threading import RLock
from typing import Any, Concatenate, Literal, NoReturn, ParamSpec, TypeVar

import numpy as np

from detap.errors import InputError, Problem, UsageError
from detap.evaluation.conditions import ignored_by_condition
from detap.evaluation.detection import evaluate, score_tables, select
from detap.evaluation.loop.batches import (
    BOX_FORMATS,
    FLAGS,
    Batch,
    ImageRows,
    Ragged,
    given_shapes,
    joined,
    shapes_compared,
)
from detap.evaluation.overlaps.boxes import refuse_polygons
from detap.evaluation.results import Result
from detap.evaluation.selection import Selection
from detap.protocols import Protocol
from detap.tables.arguments import check_table
from detap.tables.columns import Columns, Name, as_array, check_scores, indices_in
from detap.tables.detection import Detections, Flags, GroundTruth, checked_boxes
from detap.tables.masks import SizedMasks, check_sizes
from detap.tables.npz import check_indices, decode, encode, names_of
from detap.tables.shapes import KINDS, Column, fields_of
from detap.text_input import join_names, suggest

Block = dict[str, Column]
"""The columns of an update, one row per box."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_KIND = "updates"
_FINITE = ("boxes", "keypoints", "polygons")
"""Columns without NaN; in others NaN means that no value was given."""
_ALL_IMAGES = (
    "name every image of the test set in images= of GroundTruth.from_arrays, also those without "
    "ground truth"
)


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
            ("repeats", repeats, ("error", "identical")),
        ):
            if value not in accepted:
                hint = f"choose from {', '.join(accepted)}"
                raise UsageError(f"{option} {value!r} is unknown; {hint}")
        self.protocol = Protocol.of(protocol)
        if ground_truth is not None and classes is not None:
            raise UsageError("classes= does not apply if ground_truth, which has classes, is given")
        if isinstance(images, str) and images != "seen":
            raise UsageError(f'images is {images!r}; give a list of names, or "seen"')
        self.ground_truth, self.boxes = ground_truth, boxes
        self.repeats, self.as_is = repeats, as_is
        self._mask_sizes: dict[Name, list[int]] = {}
        names: tuple[Name, ...] | None = None
        self._image_unknown = "is not in images=", ""
        self._label_unknown = "", ""
        self._class_ids: tuple[Name, ...] | None = None
        self._class_names: Mapping[Name, str] = {}
        self._known_labels: dict[Name, int] = {}
        if ground_truth is not None:
            self._check_ground_truth(ground_truth)
            names, self._class_ids = ground_truth.images, ground_truth.class_ids
            self._known_labels = _index(ground_truth.classes)
            ids = join_names(ground_truth.class_ids)
            label_hint = f"labels are class names or category ids, such as {ids}"
            self._label_unknown = "is not in the ground truth", label_hint
            if images is None or isinstance(images, str):
                self._image_unknown = "is not in the ground truth", _ALL_IMAGES
        elif classes is not None:
            self._class_ids = tuple(Columns("ground truth").names("classes", list(classes)))
            self._class_names = dict(classes) if isinstance(classes, Mapping) else {}
            ids = join_names(self._class_ids)
            label_hint = f"classes= has {ids}; for numbers give a dict, such as {{0: 'cat'}}"
            self._label_unknown = "is not in classes=", label_hint
        # Class ids take precedence over equal names.
        self._known_labels |= _index(self._class_ids or ())
        if images is not None and not isinstance(images, str):
            given: Any = images if hasattr(images, "__array__") else [*images]
            listed = tuple(Columns("detections").names("images", given))
            known = frozenset(listed if names is None else names)
            unknown = [name for name in listed if name not in known]
            if unknown:
                raise UsageError(f"images: {join_names(unknown)} not in the ground truth")
            names = listed
        self._images = None if names is None else frozenset(names)
        self._required = () if names is None or isinstance(images, str) else names
        self._checked = False
        self._lock = RLock()
        self.reset()

    def _check_ground_truth(self, truth: GroundTruth) -> None:
        """Raise UsageError or InputError if a table lacks what the protocol requires."""
        for name in self.protocol.reading:
            if len(truth) and getattr(truth, name) is None:
                raise UsageError(
                    f"protocol {self.protocol.name} compares {name}, but ground_truth has none; "
                    f"pass {name}=True to read_ground_truth, or {name}= to GroundTruth.from_arrays"
                )
        ignored_by_condition(truth, self.protocol)  # refuses missing attributes
        refuse_polygons(self.protocol, truth)
        if truth.masks is not None:
            sizes = truth.masks.sizes[truth.mask]
            for image, size in zip(truth.image.tolist(), sizes.tolist(), strict=True):
                self._mask_sizes.setdefault(truth.images[image], size)

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
        self._labels = dict(self._known_labels)
        self._image_sizes: dict[Name, tuple[float, float]] = {}
        names = [name for name in shapes_compared(self.protocol) if name != "polygons"]
        shapes: dict[str, Any] = dict.fromkeys(names, ())
        tables = [self._batch("detections", ()).read_detections((), (), (), shapes, None)]
        if self.ground_truth is None:
            given = {"boxes": (), "labels": (), **shapes}
            tables.append(self._batch("ground truth", ()).read_ground_truth(given, None))
        self._blocks = {batch.table: [batch.block()] for batch in tables}

    def _batch(self, table: str, images: Sequence[Name]) -> Batch:
        return Batch(table, images, self.protocol, self.boxes)

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
            raise UsageError(
                "neither the evaluator nor the update has a ground truth; "
                "give ground_truth= to either"
                if ground_truth is None
                else "the evaluator has a ground truth; omit ground_truth in update"
            )
        names = self._image_names(image_ids)
        given = {"masks": masks, "keypoints": keypoints, "polygons": polygons}
        shapes = given_shapes(self.protocol, given, "{}=")
        detections = self._batch("detections", names)
        batches = [detections.read_detections(boxes, scores, labels, shapes, sizes)]
        if ground_truth is not None:
            truth = self._batch("ground truth", names).read_ground_truth(ground_truth, sizes)
            batches.append(truth)
        if "masks" in shapes:
            self._check_mask_sizes(names, batches)
        self._check_labels([label for batch in batches for label in batch.labels.distinct])
        digests = self._digests(batches) if self.repeats == "identical" else [b""] * len(names)
        self._add(names, digests, {b.table: (b.block(), b.labels.distinct) for b in batches})
        image_sizes = batches[-1].image_sizes
        if image_sizes is not None:
            self._image_sizes |= dict(zip(names, image_sizes.tolist(), strict=True))

    def _check_mask_sizes(self, names: Sequence[Name], batches: Sequence[Batch]) -> None:
        """Raise InputError if masks differ in size from other masks of their image."""
        known = [n for n, name in enumerate(names) if name in self._mask_sizes]
        sizes = np.array([self._mask_sizes[names[n]] for n in known], np.int32).reshape(-1, 2)
        tables = [SizedMasks("ground truth", np.array(known, np.intp), sizes)]
        tables += [SizedMasks(b.table, b.image, b.columns["masks"].sizes) for b in batches[::-1]]
        check_sizes(names, tables)

    @_locked
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
        images = self._image_names(image_ids)
        rows: dict[Name, list[Mapping[str, Any]]] = {image: [] for image in images}
        records = list(records)
        shapes = {name: KINDS[name].key for name in self.protocol.reading}
        without_boxes = shapes and records and not any("bbox" in record for record in records)
        boxes = [] if without_boxes else ["bbox"]
        has_score = [record.get("score") is not None for record in records]
        given = np.where(has_score, 0.0, np.nan)
        check_scores(given, lambda row: ("detections", f"record {row}"))
        score = ["score"] if all(has_score) else []
        keys = ["image_id", "category_id", *boxes, *shapes.values(), *score]
        for number, record in enumerate(records):
            location = f"record {number}"
            for key in keys:
                if key not in record:
                    _refuse(f"{key} is missing", f"give {', '.join(keys)}", location)
            if record["image_id"] not in rows:
                hint = "name every image of the batch in image_ids"
                _refuse(f"image {record['image_id']!r} is not in the batch", hint, location)
            rows[record["image_id"]].append(record)
        columns: dict[str, Any] = {
            key: [[record[key] for record in rows[image]] for image in images] for key in keys
        }
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

    def _image_names(self, image_ids: Any) -> list[Name]:
        names = Columns("detections").names("image_ids", as_array(image_ids))
        self._check_images(names)
        return names

    def _check_images(self, names: Sequence[Name]) -> None:
        _check_names("image", names, self._images, self._seen, self._image_unknown)

    def _check_labels(self, labels: Sequence[Name]) -> None:
        known = None if self._class_ids is None else self._known_labels
        _check_names("label", labels, known, self._labels, self._label_unknown)

    def _add(
        self,
        names: Sequence[Name],
        digests: Sequence[bytes],
        blocks: Mapping[str, tuple[Block, Sequence[Name]]],
    ) -> None:
        """Add blocks, whose images and labels are positions in `names` and their own labels."""
        first = len(self._seen)
        new = self._record(names, digests)
        image = np.cumsum(new, dtype=np.int32) + np.int32(first - 1)
        for table, (block, labels) in blocks.items():
            if self._class_ids is None:
                for name in labels:
                    self._labels.setdefault(name, len(self._labels))
            label = np.array([self._labels[name] for name in labels], np.int32)
            mask = None if new.all() else new[block["image"]]
            block |= {"image": image[block["image"]], "label": label[block["label"]]}
            self._blocks[table].append(
                block if mask is None else {name: column[mask] for name, column in block.items()}
            )

    def _record(self, names: Sequence[Name], digests: Sequence[bytes]) -> Flags:
        """Record images with the digests of their rows; return a mask of the new ones."""
        seen_now: dict[Name, bytes] = {}
        new = np.ones(len(names), np.bool_)
        for index, (name, digest) in enumerate(zip(names, digests, strict=True)):
            previous = self._seen.get(name, seen_now.get(name))
            if previous is not None and self.repeats == "error":
                hint = "repeats='identical' drops repeats with equal rows, as samplers make them"
                _refuse(f"image {name!r} is updated twice", hint)
            if previous not in (None, digest):
                hint = (
                    "if detections depend on the batch, split images without repeats: "
                    "images[rank::processes]"
                )
                _refuse(f"image {name!r} is updated twice, with different rows", hint)
            new[index] = previous is None
            seen_now[name] = digest
        self._seen.update(seen_now)
        return new

    def _digests(self, batches: Sequence[Batch]) -> list[bytes]:
        """Return a digest of each image's rows in a batch."""
        digests = [blake2b(digest_size=16) for _ in batches[0].images]
        for batch in batches:
            # The name or id of a known class has one number, that of another is its own.
            keys = [repr(self._known_labels.get(n, n)).encode() for n in batch.labels.distinct]
            codes = b"".join(blake2b(key, digest_size=8).digest() for key in keys)
            columns = [np.frombuffer(codes, np.uint64)[batch.labels.number]]
            columns += map(_without_negative_zero, batch.columns.values())
            ends = [0, *np.cumsum(batch.counts).tolist()]
            for digest, (start, end) in zip(digests, pairwise(ends), strict=True):
                digest.update(str(end - start).encode())
                for column in columns:
                    digest.update(column[start:end].tobytes())
        return [digest.digest() for digest in digests]

    # --- evaluation of the updates

    @_locked
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
            If a required image was not updated, or boxes look like another box format.

        Warns
        -----
        DetapWarning
            As :func:`detap.evaluate`.
        """
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
        images = truth.images
        if len(self._seen) < len(images):
            truth, detections = select(truth, detections, images=list(self._seen))
        options: dict[str, Any] = {"classes": classes, "threads": threads}
        if self._checked:
            result = score_tables(truth, detections, self.protocol, **options)
        else:
            result = evaluate(truth, detections, self.protocol, **options, as_is=self.as_is)
        self._checked = True
        if len(result.images) == len(images):
            return result
        selection = replace(
            result.selection or Selection(), images=result.images, total_images=len(images)
        )
        return replace(result, selection=selection)

    @_locked
    def to_bytes(self) -> bytes:
        """Return the updates as bytes, 48 per detection and the shapes, for :meth:`merge`."""
        header = {
            "settings": self._settings(),
            "images": list(self._seen),
            "digests": [digest.hex() for digest in self._seen.values()],
            "sizes": list(self._image_sizes.items()),
            "labels": list(self._labels if self._class_ids is None else self._class_ids),
        }
        columns = {
            f"{table}/{name}": column
            for table, blocks in self._blocks.items()
            for name, column in _concatenated(blocks).items()
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

    def _add_part(self, data: bytes, part: str) -> None:
        """Add the updates of another evaluator."""
        header, columns = decode(data, _KIND, part)
        settings = header.get("settings")
        for name, value in self._settings().items():
            if not isinstance(settings, dict) or settings.get(name) != value:
                _refuse(f"has another {name} than this evaluator", "use one for all", part)
        try:
            names, labels = names_of(header["images"]), names_of(header["labels"])
            digests = [
                bytes.fromhex(digest) for _, digest in zip(names, header["digests"], strict=True)
            ]
            sizes = {name: (float(w), float(h)) for name, (w, h) in header["sizes"]}
        except (KeyError, TypeError, ValueError) as error:
            _refuse(f"is damaged: {error}", "", part)
        self._check_images(names)
        self._check_labels(labels)
        counts = len(names), len(labels)
        blocks = {
            table: (_read_block(table, columns, blocks[0], counts, part), labels)
            for table, blocks in self._blocks.items()
        }
        self._add(names, digests, blocks)
        self._image_sizes |= sizes

    def _tables(self) -> tuple[GroundTruth, Detections]:
        """Return the pending rows as tables, images in ground truth order."""
        truth = self.ground_truth
        truth = self._ground_truth_table() if truth is None else truth
        columns, fields = self._rows("detections", truth.images, truth.class_ids)
        area = columns.get("area")
        if area is not None:
            some = not np.isnan(area).all()
            fields["area"] = np.where(np.isnan(area), fields["box_area"], area) if some else None
        image, score = fields["image"], columns["score"]
        check_scores(score, lambda row: ("detections", f"image {truth.images[image[row]]!r}"))
        return truth, Detections(**fields, classes=truth.classes, score=score)

    def _ground_truth_table(self) -> GroundTruth:
        """Return the ground truths of the updates as a table."""
        images = tuple(sorted(self._seen))
        ids = tuple(sorted(self._labels)) if self._class_ids is None else self._class_ids
        columns, fields = self._rows("ground truth", images, ids)
        unknown = np.nan, np.nan
        sizes = [self._image_sizes.get(image, unknown) for image in images]
        if "keypoints" in columns:
            boxes = columns["boxes"]
            corners = self.boxes == "xyxy"
            fields["width_height"] = boxes[:, 2:] - boxes[:, :2] if corners else boxes[:, 2:]
        return GroundTruth(
            **fields,
            **{name: columns[name] for name in FLAGS},
            classes=tuple(self._class_names.get(name, str(name)) for name in ids),
            area=np.where(np.isnan(columns["area"]), fields["box_area"], columns["area"]),
            image_sizes=np.array(sizes) if self._image_sizes else None,
            extra={name: columns[name] for name in self.protocol.attributes},
        )

    def _rows(
        self, table: str, images: tuple[Name, ...], ids: tuple[Name, ...]
    ) -> tuple[Block, dict[str, Any]]:
        """Return the columns of all updates, sorted by image, and the fields of both tables."""
        columns = _concatenated(self._blocks[table])
        image = columns["image"] = indices_in(self._seen, images)[columns["image"]]
        if self._class_ids is None:
            columns["label"] = indices_in(self._labels, ids)[columns["label"]]
        if (image[1:] < image[:-1]).any():
            order = np.argsort(image, kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
        box_format = "xyxy" if self.boxes == "xyxy" else "xywh"
        reader = ImageRows(table, images, columns["image"])
        boxes = checked_boxes(reader, columns["boxes"], box_format, as_is=self.as_is)
        return columns, {
            **{name: columns[name] for name in ("image", "label")},
            **dict(zip(("corners", "box_area", "notes"), boxes, strict=True)),
            **fields_of({name: columns[name] for name in shapes_compared(self.protocol)}),
            "images": images,
            "class_ids": ids,
        }


def _concatenated(blocks: Sequence[Block]) -> Block:
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
            same = same and (name != "score" or not np.isinf(column).any())
        if not same:
            _refuse(f"is damaged: column {name} of the {table} is invalid", "", part)
    for name, count in zip(("image", "label"), counts, strict=True):
        check_indices(name, block[name], count, part)
    return block


def _check_names(
    subject: str,
    names: Sequence[Name],
    known: Collection[Name] | None,
    earlier: Iterable[Name],
    unknown: tuple[str, str],
) -> None:
    """Raise InputError for an unknown name; without known ones, if numbers and text are mixed."""
    first = next(iter(earlier), names[0] if names else "")
    for name in names:
        if known is not None and name not in known:
            nearest = suggest(name, map(str, known)) if isinstance(name, str) else ""
            hint = "; ".join(filter(None, (nearest, unknown[1])))
            _refuse(f"{subject} {name!r} {unknown[0]}", hint)
        if known is None and isinstance(name, str) != isinstance(first, str):
            message = f"{subject}s {first!r} and {name!r} mix numbers and text"
            _refuse(message, "use only numbers, or only text")


def _index(names: Iterable[Name]) -> dict[Name, int]:
    return {name: index for index, name in enumerate(names)}


def _refuse(message: str, hint: str, location: str = "") -> NoReturn:
    """Raise an InputError about detections of the loop."""
    raise InputError(Problem("detections", location, message, hint))


def _without_negative_zero(column: Column) -> Column:
    """Return a column with 0.0 in place of -0.0, as they are equal but differ in bytes."""
    real = isinstance(column, np.ndarray) and column.dtype.kind == "f"
    return column + 0.0 if real else column


def _keypoint_triples(values: Any) -> Any:
    """Return flat keypoints as triples (x, y, v); others unchanged."""
    array = np.asarray(values, object)
    return array.reshape(-1, 3).tolist() if array.ndim == 1 and len(array) % 3 == 0 else values
