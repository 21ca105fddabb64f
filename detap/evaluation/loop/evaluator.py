"""Evaluator for training loops: collect batches, evaluate at the end.

Updates only store rows, so they are fast; matching follows in `compute`.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from hashlib import blake2b
from itertools import chain, islice
from threading import Lock
from typing import Any, Literal

import numpy as np

from detap._version import __version__
from detap.errors import UsageError
from detap.evaluation.conditions import ignored_by_condition
from detap.evaluation.detection import Result, evaluate, with_analyses
from detap.evaluation.loop.batches import BOX_FORMATS, Batch, Ragged, Table
from detap.evaluation.overlaps.boxes import missing_shapes, refuse_polygons
from detap.evaluation.scoring import score_tables
from detap.evaluation.selection import name_mask
from detap.io.problems import check_choice, check_list
from detap.io.stream import refuse
from detap.protocols import Protocol
from detap.tables.arguments import check_table
from detap.tables.columns import Columns, Name, as_array, check_scores
from detap.tables.concat import stacked
from detap.tables.detection import Detections, Flags, GroundTruth, class_table, negative_size_notes
from detap.tables.masks import check_sizes
from detap.tables.npz import check_indices, decode, encode, names_of
from detap.text_input import join_names, suggest

Update = dict[str, Any]  # tables by their title
Classes = tuple[tuple[Name, ...], tuple[str, ...]]  # ids and names

_LOCK = Lock()  # of all evaluators: one in each would keep them from being copied
_KIND = "updates"
_RECORD_KEYS = {"masks": "segmentation", "keypoints": "keypoints"}


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
        Format of all boxes: x and y of the left top corner, or (``cxcywh``) of the center.
    classes : sequence, or mapping of identifier to name, optional
        All classes, in order, if `ground_truth` is not given; by default the sorted labels of the
        updates. Processes whose bytes are merged need the same classes.
    images : sequence of int or str, or "seen", optional
        The images to evaluate, which must all be updated before :meth:`compute`; by default those
        of `ground_truth`. With "seen", the updated images.
    repeats : {"error", "identical"}
        Whether an image that is updated twice, as by samplers that fill the last batch, is an
        error, or dropped if its rows are identical.
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
        self._classes: Classes | None = None
        if ground_truth is not None:
            self._check_ground_truth(ground_truth, classes)
            self._classes = ground_truth.class_ids, ground_truth.classes
        elif classes is not None:
            self._classes = class_table(Columns("ground truth"), classes)
        ids, class_names = self._classes or ((), ())
        # Class ids take precedence over equal names.
        self._ids: dict[Name, Name] = dict(zip((*class_names, *ids), ids * 2, strict=True))
        numbers = "" if classes is None else "; for numbers give a dict, such as classes={0: 'cat'}"
        self._hints = {
            "image": "name every image of the test set in images=, also those without ground truth",
            "label": f"labels are class names or ids, such as {join_names(ids)}{numbers}",
        }
        names: Sequence[Name] | None = None if ground_truth is None else ground_truth.images
        if images is not None and not (isinstance(images, str) and images == "seen"):
            check_list("images", images, ', or "seen"')
            listed = Columns("detections").names("images", [*as_array(images)])
            if names is not None:
                name_mask("image", tuple(names), listed)  # refuses unknown ones
            names = listed
        self._images = None if names is None else dict.fromkeys(names)
        self._required = () if isinstance(images, str) else self._images or ()
        self._checked = False
        self._updates: list[Update] = []
        self.reset()
        none: Any = dict.fromkeys(self.protocol.reading, ())
        of_truth = {"boxes": (), "labels": (), **none} if ground_truth is None else None
        # The first update has the columns of evaluators without rows.
        Evaluator.update(self, [], (), (), (), **none, ground_truth=of_truth)

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

    def __repr__(self) -> str:
        return f"Evaluator({self.protocol.name!r}, {len(self.seen)} images seen)"

    def reset(self) -> None:
        """Remove all updates; keep the index of the ground truth."""
        with _LOCK:
            self._seen: dict[Name, tuple[Update, int]] = {}  # with the index in the update
            self._labels: dict[Name, None] = {}
            self._image_sizes: dict[Name, tuple[float, float]] = {}
            self._updates = self._updates[:1]

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
            Empty arrays for images without detections. None for the bounding boxes of the shapes.
        scores : sequence of B (n,) arrays, or None
            None, in all updates, if the detections have no scores.
        labels : sequence of B (n,) arrays of int, or lists of str
            Category ids or class names of the ground truth.
        masks : sequence of B (n, H, W) arrays of bool or uint8, or lists of n masks, optional
            If the protocol compares masks: bitmaps of the image's size, or COCO's RLEs.
        keypoints : sequence of B (n, P, 3) arrays, optional
            If the protocol compares keypoints: x and y in pixels; the third is not used.
        polygons : sequence of B (n, 8) or (n, 4, 2) arrays, optional
            Instead of `boxes`, if the protocol compares polygons: x and y in pixels of four corners
            in order around.
        ground_truth : mapping, optional
            The ground truths of the batch, if the evaluator has none: ``boxes``, ``labels`` and
            shapes as above, with v of ``keypoints``; optional ``area`` in square pixels (by default
            of the mask, polygon or box), ``crowd``, ``difficult``, ``ignore``, ``group_of``, and
            attributes of `ignore_where` as numbers. Area ranges in percent need ``image_sizes``,
            (B, 2) widths and heights in pixels, or `sizes`.
        sizes : (B, 2) array, optional
            Width and height of each image in pixels, if all boxes are normalized.

        Raises
        ------
        InputError
            If an image or label is unknown, an image is updated twice, or a value is invalid.
        UsageError
            If `ground_truth` or shapes are missing, or given and not used.
        """
        if (ground_truth is None) == (self.ground_truth is None):
            raise UsageError("give ground_truth= either to the evaluator, or to each update")
        names = Columns("detections").names("image_ids", as_array(image_ids))
        batch = Batch("detections", names, self.protocol)
        image_sizes = None if sizes is None else batch.read_sizes("sizes", sizes)
        given = {"boxes": boxes, "scores": scores, "labels": labels}
        given |= {"masks": masks, "keypoints": keypoints, "polygons": polygons}
        tables = [batch.read(given, self.boxes, image_sizes)]
        if ground_truth is not None:
            of_truth = Batch("ground truth", names, self.protocol)
            tables.append(of_truth.read(ground_truth, self.boxes, image_sizes))
            if ground_truth.get("image_sizes") is not None:
                image_sizes = of_truth.read_sizes("image_sizes", ground_truth["image_sizes"])
        masked = [(t.title, t.image, t.masks.sizes) for t in tables[::-1] if t.masks]
        if masked:
            check_sizes(names, *masked)  # those of a given ground truth follow in `compute`
        of_images = [] if image_sizes is None else zip(names, image_sizes.tolist(), strict=True)
        self._add(names, tables, of_images)

    def update_records(self, image_ids: Any, records: Iterable[Mapping[str, Any]]) -> None:
        """Add the detections of a batch as records of a COCO results file.

        Parameters
        ----------
        image_ids : sequence of B int or str
            The images of the batch, also those without detections.
        records : iterable of mappings
            With ``image_id``, ``category_id``, ``bbox``, ``score``, and ``segmentation`` (RLE) or
            ``keypoints`` if compared. All may lack ``score``, and ``bbox`` if they have shapes.

        Raises
        ------
        InputError
            As for :meth:`update`; if a record lacks a key or is of an image outside the batch.
        UsageError
            If the evaluator's box format is not ``xywh``, or it has no ground truth.
        """
        if self.boxes != "xywh":
            raise UsageError("records have xywh boxes; the evaluator requires boxes='xywh'")
        names, records = Columns("detections").names("image_ids", as_array(image_ids)), [*records]
        shapes = {name: _RECORD_KEYS[name] for name in self.protocol.reading}
        keys = {"labels": "category_id", "boxes": "bbox", **shapes, "scores": "score"}
        for name in ("boxes", "scores") if shapes else ("scores",):  # all may lack them
            if not any(record.get(keys[name]) is not None for record in records):
                del keys[name]
        of_image: dict[Name, list[Mapping[str, Any]]] = {name: [] for name in names}
        for number, record in enumerate(records):
            for key in ("image_id", *keys.values()):
                if record.get(key) is None:
                    hint = f"give image_id, {', '.join(keys.values())}"
                    refuse("detections", f"{key} is missing", hint, f"record {number}")
            if record["image_id"] not in of_image:
                message = f"image {record['image_id']!r} is not in the batch"
                hint = "name every image of the batch in image_ids"
                refuse("detections", message, hint, f"record {number}")
            of_image[record["image_id"]].append(record)
        given: Any = {k: [[r[key] for r in of_image[n]] for n in names] for k, key in keys.items()}
        if "keypoints" in given:
            given["keypoints"] = [[*map(_triples, rows)] for rows in given["keypoints"]]
        self.update(names, **{"boxes": None, "scores": None, **given})

    def _add(self, names: Sequence[Name], tables: Sequence[Table], sizes: Iterable[Any]) -> None:
        """Add the rows of a batch, and the sizes of images."""
        with _LOCK:
            self._check_names("image", names, self._images, self._seen)
            labels = dict.fromkeys(chain.from_iterable(table.class_ids for table in tables))
            self._check_names("label", [*labels], self._classes and self._ids, self._labels)
            update = {
                t.title: replace(t, class_ids=(*map(self._ids.get, t.class_ids, t.class_ids),))
                for t in tables
            }
            new = self._new_images(names, update)
            if not new.all():
                update = {k: t.select(np.flatnonzero(new[t.image])) for k, t in update.items()}
            self._updates.append(update)
            self._labels |= dict.fromkeys(map(self._ids.get, labels, labels))
            self._image_sizes.update(sizes)

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
                refuse("detections", f"{subject} {name!r} is unknown", hint)

    def _new_images(self, names: Sequence[Name], update: Update) -> Flags:
        """Record the images of an update; return which were not seen before, (B,) bool."""
        seen: dict[Name, tuple[Update, int]] = {}
        new = np.ones(len(names), np.bool_)
        for index, name in enumerate(names):
            first = self._seen.get(name) or seen.get(name)
            new[index] = first is None
            if first is None:
                seen[name] = update, index
            elif self.repeats == "error":
                hint = "repeats='identical' drops repeats with equal rows, as samplers make them"
                refuse("detections", f"image {name!r} is updated twice", hint)
            elif _rows_of(*first) != _rows_of(update, index):
                hint = "split images without repeats, as images[rank::processes]"
                refuse("detections", f"image {name!r} is updated twice, with different rows", hint)
        self._seen |= seen
        return new

    def compute(
        self, *, classes: Iterable[Name] | None = None, threads: int | None = None
    ) -> Result:
        """Evaluate all updates.

        Only the first call checks the data if AP is near zero: in early epochs it may be.

        Parameters
        ----------
        classes, threads : optional
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
        with _LOCK:
            missing = [name for name in self._required if name not in self._seen]
            if missing:
                others = f" (nor {len(missing) - 1} more)" if len(missing) > 1 else ""
                hint = "update every image, with empty arrays if it has none, or give images='seen'"
                refuse("detections", f"image {missing[0]!r} was not updated{others}", hint)
            if not self._seen:
                refuse("detections", "no image was updated", "update each batch of the loop")
            truth, detections = self._tables()
            images = None if len(self._seen) == len(truth.images) else [*self._seen]
        tables = truth, detections, self.protocol
        options: Any = {"classes": classes, "images": images, "threads": threads}
        if self._checked:
            return with_analyses(score_tables(*tables, **options))
        result = evaluate(*tables, as_is=self.as_is, **options)
        self._checked = True
        return result

    def to_bytes(self) -> bytes:
        """Return the updates as bytes, 56 per detection and the shapes, for :meth:`merge`."""
        with _LOCK:
            images, labels = self.seen, tuple(self._labels)
            sizes = list(self._image_sizes.items())
            by_title = {k: [update[k] for update in self._updates] for k in self._updates[0]}
        header = {"settings": self._settings(), "images": images, "labels": labels, "sizes": sizes}
        tables = {k: stacked(each, images, (labels, ())) for k, each in by_title.items()}
        columns = {f"{k}/{name}": c for k, t in tables.items() for name, c in t.arrays().items()}
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
            If bytes are damaged, settings differ, or `repeats` does not accept an image twice.
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
        settings = {"protocol": self.protocol.signature(__version__), "boxes": self.boxes}
        return settings | {"repeats": self.repeats, "ground_truth": hashed.hexdigest()}

    def _add_part(self, data: bytes, part: str) -> None:
        """Add the updates of another evaluator."""
        header, columns = decode(data, _KIND, part)
        try:
            for name, value in self._settings().items():
                if header["settings"][name] != value:
                    message = f"has another {name} than this evaluator"
                    refuse("detections", message, "use one for all", part)
            names, labels = names_of(header["images"]), names_of(header["labels"])
            sizes = [(name, (float(w), float(h))) for name, (w, h) in header["sizes"]]
            tables = []
            for title, empty in self._updates[0].items():
                rows: Any = {name: columns[f"{title}/{name}"] for name in empty.arrays()}
                tables.append(empty.with_columns(rows, images=names, class_ids=labels))
                if len({len(column) for name, column in rows.items() if name != "masks"}) > 1:
                    raise ValueError(f"columns of the {title} differ in length")
                check_indices(rows, len(names), len(labels), part)
        except (KeyError, TypeError, ValueError) as error:
            refuse("detections", f"is damaged: {error}", "", part)
        self._add(names, tables, sizes)

    def _tables(self) -> tuple[GroundTruth, Detections]:
        """Return the rows of all updates as tables, images in ground truth order."""
        truth = self.ground_truth
        if truth is None:
            classes = self._classes or class_table(Columns("ground truth"), sorted(self._labels))
            truth = self._checked_table("ground truth", tuple(sorted(self._seen)), classes)
            if self._image_sizes:
                sizes = [self._image_sizes.get(name, (np.nan, np.nan)) for name in truth.images]
                truth = replace(truth, image_sizes=np.array(sizes))
        classes = truth.class_ids, truth.classes
        return truth, self._checked_table("detections", truth.images, classes)

    def _checked_table(self, title: str, images: tuple[Name, ...], classes: Classes) -> Any:
        """Return the table of all updates, sorted by image, with checks of all rows."""
        table = stacked([update[title] for update in self._updates], images, classes)
        if (table.image[1:] < table.image[:-1]).any():
            table = table.select(np.argsort(table.image, kind="stable"))
        rows = Batch(title, images, self.protocol)
        rows.image = table.image
        if isinstance(table, Detections):
            check_scores(table.score, lambda row: (title, rows.location(row)))
        form = "xyxy" if self.boxes == "xyxy" else "xywh"
        notes = negative_size_notes(rows, table.corners, table.box_area, form, as_is=self.as_is)
        return replace(table, notes=notes)


def _rows_of(update: Update, index: int) -> list[Any]:
    """Return the rows of an image in all tables as bytes, for comparison."""
    rows: list[Any] = []
    for table in update.values():
        of_image = table.select(np.flatnonzero(table.image == index)).compact()
        rows.append([table.class_ids[label] for label in of_image.label.tolist()])
        for name, column in of_image.arrays().items():
            if name not in ("image", "label", "mask"):
                # Zeros of either sign are equal, but differ in bytes.
                is_real = isinstance(column, np.ndarray) and column.dtype.kind == "f"
                rows.append((column + 0.0 if is_real else column).tobytes())
    return rows


def _triples(keypoints: Any) -> Any:
    """Return keypoints in turn as triples x, y, v; others unchanged."""
    array = np.asarray(keypoints, object)  # keeps the type of each value
    return array.reshape(-1, 3).tolist() if array.ndim == 1 and len(array) % 3 == 0 else keypoints
