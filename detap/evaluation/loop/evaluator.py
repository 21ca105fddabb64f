"""Evaluator for training loops: collect batches, evaluate at the end.

Updates only store rows, so they are fast; matching follows in `compute`.
"""

from collections.abc import Iterable, Mapping, Sequence
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
from detap.evaluation.loop.batches import BOX_FORMATS, Batch, Ragged, joined, shapes_compared
from detap.evaluation.overlaps.boxes import missing_shapes, refuse_polygons
from detap.evaluation.results import Result
from detap.evaluation.selection import name_mask
from detap.io.problems import check_choice
from detap.protocols import Protocol
from detap.tables.arguments import check_table
from detap.tables.columns import Columns, Name, as_array, check_scores, reindexed
from detap.tables.detection import Detections, GroundTruth, Integers, checked_boxes, class_table
from detap.tables.masks import SizedMasks, check_sizes
from detap.tables.npz import check_indices, decode, encode, names_of
from detap.tables.shapes import KINDS, Column, fields_of
from detap.text_input import join_names, suggest

Block = dict[str, Column]
"""The rows of a table in an update; `image` is a position in the batch, in ascending order."""

Update = dict[str, Block]
"""The block of each table."""

_KIND = "updates"
_IMAGES_HINT = "name every image of the test set in images=, also those without ground truth"
_MISSING_HINT = (
    "update every image, with empty arrays if it has no detections, or create the evaluator with "
    "images='seen' or a list of images"
)
_LABEL_HINT = "labels are class names or ids, such as "


class Evaluator:
    """Batch-wise evaluator for training loops, which threads may share.

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
        Left, top, width, height as in COCO files; left, top, right, bottom; or center x, center y,
        width, height.
    classes : sequence, or mapping of identifier to name, optional
        All classes, in the order of the result, if `ground_truth` is not given; by default the
        sorted labels of the updates. Processes whose bytes are merged need the same classes.
    images : sequence of int or str, or "seen", optional
        The images to evaluate, which must all be updated before :meth:`compute`; by default those
        of `ground_truth`. With "seen", the updated images.
    repeats : {"error", "identical"}
        Whether an image that is updated twice is an error, or dropped if its rows are identical:
        samplers repeat images to fill the last batch.
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
        check_choice("boxes", boxes, BOX_FORMATS)
        check_choice("repeats", repeats, ("error", "identical"))
        self.protocol = Protocol.of(protocol)
        self.ground_truth, self.boxes = ground_truth, boxes
        self.repeats, self.as_is = repeats, as_is
        names: Sequence[Name] | None = None
        self._classes: tuple[tuple[Name, ...], tuple[str, ...]] | None = None  # ids and names
        if ground_truth is not None:
            self._check_ground_truth(ground_truth, classes)
            names = ground_truth.images
            self._classes = ground_truth.class_ids, ground_truth.classes
        elif classes is not None:
            self._classes = class_table(Columns("ground truth"), classes)
        ids, class_names = self._classes or ((), ())
        # Class ids take precedence over equal names.
        labels = [*enumerate(class_names), *enumerate(ids)]
        self._known_labels: dict[Name, int] = {name: label for label, name in labels}
        self._hints = {"image": _IMAGES_HINT, "label": _LABEL_HINT + join_names(ids)}
        if classes is not None:
            self._hints["label"] += "; for numbers give a dict, such as classes={0: 'cat'}"
        if isinstance(images, str) and images != "seen":
            raise UsageError(f'images is {images!r}; give a list of names, or "seen"')
        if images is not None and not isinstance(images, str):
            listed = Columns("detections").names("images", [*as_array(images)])
            if names is not None:
                name_mask("image", tuple(names), listed)  # refuses unknown ones
            names = listed
        self._images = None if names is None else dict.fromkeys(names)
        self._required = () if isinstance(images, str) else self._images or ()
        self._checked = False
        self._lock = Lock()
        self.reset()

    def _check_ground_truth(self, truth: GroundTruth, classes: object) -> None:
        """Raise UsageError or InputError if a table lacks what the protocol requires."""
        check_table(truth, GroundTruth)
        if classes is not None:
            raise UsageError("classes= does not apply if ground_truth, which has classes, is given")
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
        none = {"boxes": (), "labels": (), **dict.fromkeys(self.protocol.reading, ())}
        batches = [self._batch("detections", ()).read({**none, "scores": ()}, None)]
        if self.ground_truth is None:
            batches.append(self._batch("ground truth", ()).read(none, None))
        with self._lock:
            self._seen: dict[Name, tuple[Update, int]] = {}  # with the position in the update
            self._labels = dict(self._known_labels)
            self._image_sizes: dict[Name, tuple[float, float]] = {}
            empty = {batch.table: batch.columns for batch in batches}
            self._updates: list[tuple[Integers, Update]] = [(np.zeros(0, np.int32), empty)]

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
            In the evaluator's format, an empty array for an image without detections. None to use
            the bounding boxes of the masks, keypoints or polygons.
        scores : sequence of B (n,) arrays, or None
            None, in all updates, if the detections have no scores.
        labels : sequence of B (n,) arrays of int, or lists of str
            Category ids or class names of the ground truth.
        masks : sequence of B (n, H, W) arrays of bool or uint8, or lists of n masks, optional
            If the protocol compares masks: bitmaps of the image's size, or RLEs of COCO with
            ``size`` and ``counts``.
        keypoints : sequence of B (n, P, 3) arrays, optional
            If the protocol compares keypoints: x and y in pixels; the third is not used.
        polygons : sequence of B (n, 8) or (n, 4, 2) arrays, optional
            Instead of `boxes`, if the protocol compares polygons: x and y in pixels of the four
            corners of quadrilaterals such as rotated boxes, in order around.
        ground_truth : mapping, optional
            The ground truths of the batch, if the evaluator has none: ``boxes`` and ``labels`` as
            above; ``masks``, ``keypoints`` (x, y, v, with ``boxes``) or ``polygons`` if the
            protocol compares them; optional ``area`` in square pixels (by default that of the mask,
            polygon or box), ``crowd``, ``difficult``, ``ignore``, ``group_of``, and attributes of
            `ignore_where` as numbers. Area ranges in percent need ``image_sizes``, (B, 2) widths
            and heights in pixels, or `sizes`.
        sizes : (B, 2) array, optional
            Width and height of each image in pixels, if all boxes are normalized.

        Raises
        ------
        InputError
            If an image or label is unknown, an image is updated twice, columns differ in length,
            masks of an image differ in size, or a value is invalid.
        UsageError
            If `ground_truth` or shapes are missing, or given and not used.
        """
        if (ground_truth is None) == (self.ground_truth is None):
            raise UsageError("give ground_truth= either to the evaluator, or to each update")
        names = Columns("detections").names("image_ids", as_array(image_ids))
        batches = [self._batch("detections", names)]
        image_sizes = None if sizes is None else batches[0].read_sizes("sizes", sizes)
        given = {"boxes": boxes, "scores": scores, "labels": labels}
        given |= {"masks": masks, "keypoints": keypoints, "polygons": polygons}
        batches[0].read(given, image_sizes)
        if ground_truth is not None:
            batches.append(self._batch("ground truth", names).read(ground_truth, image_sizes))
            if ground_truth.get("image_sizes") is not None:
                reader = self._batch("ground truth", names)
                image_sizes = reader.read_sizes("image_sizes", ground_truth["image_sizes"])
        if "masks" in self.protocol.reading:  # those of a given ground truth follow in `compute`
            sized = [SizedMasks(b.table, b.image, b.columns["masks"].sizes) for b in batches[::-1]]
            check_sizes(names, sized)
        named = [] if image_sizes is None else zip(names, image_sizes.tolist(), strict=True)
        self._add(batches, dict(named))

    def update_records(self, image_ids: Any, records: Iterable[Mapping[str, Any]]) -> None:
        """Add the detections of a batch as records of a COCO results file.

        Parameters
        ----------
        image_ids : sequence of B int or str
            The images of the batch, also those without detections.
        records : iterable of mappings
            Records with ``image_id``, ``category_id``, ``bbox`` (x, y, width, height), and
            ``segmentation`` (RLE) or ``keypoints`` if the protocol compares them. All may lack
            ``score``, and ``bbox`` if they have shapes.

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
        of_image: dict[Name, list[Mapping[str, Any]]] = {name: [] for name in images}
        for number, record in enumerate(records):
            location, missing = f"record {number}", [k for k in keys if record.get(k) is None]
            if missing:
                _refuse(f"{missing[0]} is missing", f"give {', '.join(keys)}", location)
            if record["image_id"] not in of_image:
                hint = "name every image of the batch in image_ids"
                _refuse(f"image {record['image_id']!r} is not in the batch", hint, location)
            of_image[record["image_id"]].append(record)
        columns = {key: [[r[key] for r in of_image[name]] for name in images] for key in keys}
        if "keypoints" in shapes:
            columns["keypoints"] = [list(map(_keypoint_triples, k)) for k in columns["keypoints"]]
        rows: Any = {name: columns[key] for name, key in shapes.items()}
        boxes, scores = columns.get("bbox"), columns.get("score")
        self.update(images, boxes, scores, columns["category_id"], **rows)

    def _add(self, batches: Sequence[Batch], sizes: Mapping[Name, tuple[float, float]]) -> None:
        """Add the rows of a batch, and the sizes of images."""
        names = batches[0].images
        with self._lock:
            self._check_names("image", names, self._images, self._seen)
            known = None if self._classes is None else self._known_labels
            labels, update = dict(self._labels), Update()
            for batch in batches:
                self._check_names("label", batch.label_names, known, labels)
                number = [labels.setdefault(name, len(labels)) for name in batch.label_names]
                label = np.array(number, np.int32)[batch.columns["label"]]
                update[batch.table] = batch.columns | {"label": label}
            self._updates.append((self._number_images(names, update), update))
            self._labels = labels
            self._image_sizes |= sizes

    def _check_names(
        self, subject: str, names: Sequence[Name], known: Any, earlier: Iterable[Name]
    ) -> None:
        """Raise InputError for an unknown name; without known ones, for mixed numbers and text."""
        if known is None:
            Columns("detections").names(f"{subject}s", [*islice(earlier, 1), *names])
            return
        for name in names:
            if name not in known:
                nearest = suggest(name, map(str, known)) if isinstance(name, str) else ""
                hint = "; ".join(filter(None, (nearest, self._hints[subject])))
                _refuse(f"{subject} {name!r} is unknown", hint)

    def _number_images(self, names: Sequence[Name], update: Update) -> Integers:
        """Record the images of an update; return their numbers, -1 for those seen before."""
        seen: dict[Name, tuple[Update, int]] = {}
        numbers = np.full(len(names), -1, np.int32)
        for position, name in enumerate(names):
            first = self._seen.get(name) or seen.get(name)
            if first is None:
                numbers[position] = len(self._seen) + len(seen)
                seen[name] = update, position
            elif self.repeats == "error":
                hint = "repeats='identical' drops repeats with equal rows, as samplers make them"
                _refuse(f"image {name!r} is updated twice", hint)
            elif _rows_of(*first) != _rows_of(update, position):
                hint = "split images without repeats, as images[rank::processes]"
                _refuse(f"image {name!r} is updated twice, with different rows", hint)
        self._seen |= seen
        return numbers

    # --- evaluation of the updates

    def compute(
        self, *, classes: Iterable[Name] | None = None, threads: int | None = None
    ) -> Result:
        """Evaluate all updates.

        Only the first call checks the data if AP is near zero, as :func:`detap.evaluate` does: in
        early epochs of a training it may be with valid data.

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
                _refuse(f"image {missing[0]!r} was not updated{others}", _MISSING_HINT)
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
                "labels": list(self._label_names),
            }
            columns = {
                f"{table}/{name}": column
                for table in self._updates[0][1]
                for name, column in self._rows(table).items()
            }
        return bytes(encode(_KIND, header, columns))

    def merge(self, parts: Iterable[bytes]) -> "Evaluator":
        """Return an evaluator with the updates of several, such as those of all processes.

        Parts may have any order; those of this evaluator count only if its bytes are among them.

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
            batches = []
            for table, empty in self._updates[0][1].items():
                rows: Block = {name: columns[f"{table}/{name}"] for name in empty}
                batches.append(self._batch(table, names))
                batches[-1].columns, batches[-1].label_names = rows, [*labels]
                if {*map(len, rows.values())} != {len(rows["image"])}:
                    raise ValueError(f"columns of the {table} differ in length")
                check_indices("image", rows["image"], len(names), part)
                check_indices("label", rows["label"], len(labels), part)
        except (KeyError, TypeError, ValueError) as error:
            _refuse(f"is damaged: {error}", "", part)
        self._add(batches, sizes)

    @property
    def _label_names(self) -> tuple[Name, ...]:
        """The name of each label that rows have."""
        return tuple(self._labels) if self._classes is None else self._classes[0]

    def _tables(self) -> tuple[GroundTruth, Detections]:
        """Return the rows of all updates as tables, images in ground truth order."""
        truth = self.ground_truth
        if truth is None:
            labels = self._classes or class_table(Columns("ground truth"), sorted(self._labels))
            truth = GroundTruth(**self._fields("ground truth", tuple(sorted(self._seen)), *labels))
        fields = self._fields("detections", truth.images, truth.class_ids, truth.classes)
        detections = Detections(**fields)
        rows = self._batch("detections", truth.images)
        rows.image = detections.image
        check_scores(detections.score, lambda row: (rows.table, rows.location(row)))
        return truth, detections

    def _rows(self, table: str) -> Block:
        """Return the columns of all updates, with the numbers of images, without repeats."""
        blocks = [{**u[table], "image": n[u[table]["image"]]} for n, u in self._updates]
        columns = {name: joined([block[name] for block in blocks]) for name in blocks[0]}
        new = columns["image"] >= 0
        return columns if new.all() else {name: column[new] for name, column in columns.items()}

    def _fields(
        self, table: str, images: tuple[Name, ...], ids: tuple[Name, ...], names: tuple[str, ...]
    ) -> dict[str, Any]:
        """Return the fields of a table of all updates, sorted by image."""
        columns = self._rows(table)
        columns["label"] = reindexed(columns["label"], self._label_names, ids)
        image = columns["image"] = reindexed(columns["image"], self.seen, images)
        if (image[1:] < image[:-1]).any():
            order = np.argsort(image, kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
        boxes, box_format = columns.pop("boxes"), "xyxy" if self.boxes == "xyxy" else "xywh"
        reader = self._batch(table, images)
        reader.image = columns["image"]
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
        if of_truth and self._image_sizes:
            sizes = [self._image_sizes.get(image, (np.nan, np.nan)) for image in images]
            columns["image_sizes"] = np.array(sizes)
        shapes = {name: columns.pop(name) for name in shapes_compared(self.protocol)}
        columns |= {"corners": corners, "box_area": box_area, "notes": notes, **fields_of(shapes)}
        return {**columns, "images": images, "class_ids": ids, "classes": names}


def _rows_of(update: Update, position: int) -> list[bytes]:
    """Return the rows of an image in all tables as bytes, for comparison."""
    rows = []
    for block in update.values():
        of_image = slice(*np.searchsorted(block["image"], [position, position + 1]))
        rows += [column[of_image] for name, column in block.items() if name != "image"]
    # Zeros of either sign are equal, but differ in bytes.
    is_real = [isinstance(c, np.ndarray) and c.dtype.kind == "f" for c in rows]
    return [(c + 0.0 if r else c).tobytes() for c, r in zip(rows, is_real, strict=True)]


def _refuse(message: str, hint: str, location: str = "") -> NoReturn:
    """Raise an InputError about detections of the loop."""
    raise InputError(Problem("detections", location, message, hint))


def _keypoint_triples(values: Any) -> Any:
    """Return flat keypoints as triples (x, y, v); others unchanged."""
    array = np.asarray(values, object)
    return array.reshape(-1, 3).tolist() if array.ndim == 1 and len(array) % 3 == 0 else values
