"""Read results files into columns: records by `Fields`, odd ones by `records.py`."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.coco.columns import (
    SHAPE_OF_RESULTS,
    detections_of,
    listed_names,
)
from detap.formats.coco.id_mapping import (
    CLASS_NAMES_AS_IDS,
    check_images,
    image_indices,
)
from detap.formats.coco.outlines import (
    KeypointLists,
    Quadrilaterals,
    SegmentationLists,
)
from detap.formats.coco.records import (
    Columns,
    result_values,
)
from detap.formats.coco.truth import NO_BOX
from detap.formats.json._fields import Fields
from detap.formats.json.document import Document, Ids, RecordList, loaded, names_of
from detap.io.json_text import short_json
from detap.tables.columns import check_scores, indices_in
from detap.tables.detection import (
    Detections,
    Flags,
    Floats,
    GroundTruth,
    Integers,
    Name,
    encode_boxes,
)
from detap.tables.notes import class_map_hint
from detap.text_input import join_names


class ResultsFile:
    """A results file being read; with `masks`, rows with a box have a segmentation too.

    A score is that of `result_score_key`, else ``score``.
    """

    def __init__(
        self,
        *,
        boxes: str = "xywh",
        masks: bool = False,
        keypoints: bool = False,
        keypoint_keys: tuple[str, ...] = (),
        result_score_key: str = "",
    ) -> None:
        self.boxes = boxes
        self.masks = masks
        self.keypoints = (keypoint_keys or ("keypoints",)) if keypoints else ()
        self._drops_unlabeled, self._score_key = bool(keypoint_keys), result_score_key
        self.categories: list[Any] = []
        self.images: list[Any] = []
        self.only_shapes = ""  # masks or keypoints that all records have instead of a box
        self._has_masks = masks or not keypoints
        of_box = ["poly", *(["segmentation"] if self._has_masks else [])]  # if it is missing
        of_box += [] if masks else ["keypoints"]
        required = ("image_id", "category_id", *self.keypoints)
        kept = {*(("segmentation",) if masks else ()), *self.keypoints}
        boxless = {"keypoints", *of_box} - kept
        spans = kept | boxless | ({"id"} if kept else set())
        columns: Columns = [
            *(("image_id", "key"), ("category_id", "key")),
            *((name, "span") for name in sorted(spans)),
            *(("bbox", "box"), ("score", "score"), ("file_name", "key")),
            *(((result_score_key, "score"),) if result_score_key else ()),
        ]
        self._fields = Fields(
            columns,
            [("bbox", *of_box), *((key,) for key in required)],
            xyxy=boxes == "xyxy",
            only_boxless=sorted(boxless),
        )
        self._result = partial(
            result_values, columns=columns, boxes=boxes, shapes=of_box, keys=required
        )
        self.fields = (self._fields,)

    def read(self, document: Document) -> None:
        """Read the file, and number its ids; :meth:`columns` raises problems of some records."""
        self._limits, self.problems, fields = document.limits, document.problems, self._fields
        self._records = RecordList(document, "", fields, self._result)
        self._records.drain = self._drain
        has_ids = self.masks or bool(self.keypoints)
        self._records.identify = lambda row: loaded(fields, "id", row) if has_ids else None
        self.segmentations = SegmentationLists(self._records)
        keys = {*self.keypoints, "keypoints"}
        self._keypoints = {key: KeypointLists(self._records, key) for key in sorted(keys)}
        self._quadrilaterals = Quadrilaterals(self._records, "poly")
        first = document.peek()
        if first == "[":
            self._records.read()
        elif first == "{":
            self._read_members(document)
        else:
            document.fail("not a JSON array", SHAPE_OF_RESULTS)
        document.finish()
        if 2 * (lists := self._records.lists) > self._fields.rows:
            count = f"{lists} list{'s' * (lists != 1)}"
            message = f"has {count}, such as one per image, expected one of all detections"
            document.problems.instead(message, SHAPE_OF_RESULTS)
        self.image_ids, self.category_ids = Ids(fields, "image_id"), Ids(fields, "category_id")
        if self.image_ids.names == [None]:  # all records are faulty
            self.problems.raise_any()

    def _read_members(self, document: Document) -> None:
        problems = document.problems
        for key in document.members():
            if key in ("annotations", "predictions") and document.peek() == "[":
                if not self._records.name:
                    self._records.name = key
                    self._records.read()
                    continue
                message = "both annotations and predictions are lists"
                problems.add_here("", message, "keep the one with the detections")
            if key in ("categories", "images"):
                value = document.value(key)
                setattr(self, key, value if isinstance(value, list) else [])
            else:
                document.skip(key)
        if not self._records.name:
            message = "is an object without a list of annotations or predictions"
            problems.add_first("", message, SHAPE_OF_RESULTS)

    @property
    def has_segmentations(self) -> bool:
        """True if a record has a segmentation."""
        return self._has_masks and self._fields.holds("segmentation")

    def _drain(self) -> None:
        fields = self._fields
        if self.masks or self.has_segmentations:
            self.segmentations.drain()
        for key, points in {**self._keypoints, "poly": self._quadrilaterals}.items():
            if fields.holds(key):
                points.drain()

    def columns(self, truth: GroundTruth, *, by_name: bool = False) -> Detections:
        """Return the table without files; raise InputError with all problems of the file.

        Unknown categories follow those of `truth`. If `by_name`, the caller maps categories by
        name, and all are unknown here.
        """
        fields, problems, of_yolo = self._fields, self.problems, truth.format == "yolo"
        counted = None if truth.keypoints is None or not len(truth) else truth.keypoints.shape[1]
        for key, lists in self._keypoints.items():
            alone = self.keypoints == (key,)
            pairs, same = of_yolo and alone, key in self.keypoints
            lists.finish(counted if alone else None, pairs=pairs, same=same)
        self._quadrilaterals.finish()
        image, label = self._image_ids(by_file=of_yolo), self.category_ids
        class_ids = () if by_name else truth.class_ids
        class_names = self._class_names(label, class_ids, truth.classes)
        self.category_names = listed_names(self.categories, "name")
        file_names = listed_names(self.images, "file_name")
        index_by_id, notes = image_indices(truth, image.index, file_names, compare=True)
        image_index = image.indices(index_by_id)
        image_index[[*self._records.faulty]] = 0  # only the ids of the others are compared
        known = set(class_names)
        unknown = tuple(name for name in label.names if name not in known)
        label_index = label.indices({name: i for i, name in enumerate((*class_names, *unknown))})
        if class_names is not class_ids:
            notes += (replace(CLASS_NAMES_AS_IDS, count=len(label.index)),)
        limits, images = self._limits, (image.rows, image.names)
        where = self._records.location
        extra = check_images(image_index, images, truth, problems, limits=limits, location=where)
        self._check_category_types(label, class_names)
        problems.raise_any()
        score, score_notes = self._scores()
        mask, masks = None, None
        if self.masks or self.has_segmentations:
            mask, masks = self.segmentations.columns()
            if not (self.masks or len(masks)):
                mask, masks = None, None
        box = fields.take("bbox").reshape(-1, 4)
        missing = int(np.isnan(box[:, 0]).sum())
        self._fill_boxes(box, mask)
        if missing == len(box) > 0 and not len(self._quadrilaterals.rows):
            self.only_shapes = "keypoints" if mask is None else "masks"
        corners, box_area = encode_boxes(box, self.boxes, copy=False)
        points = None
        if self.keypoints:
            points = np.concatenate([self._keypoints[k].array() for k in self.keypoints], axis=1)
        unlabeled: Flags = np.zeros(len(score), np.bool_)
        if self._drops_unlabeled and points is not None:
            unlabeled = ~np.any(points[:, :, 2] > 0, axis=1)
        message = f"detections without v > 0 in {', '.join(self.keypoints)} are dropped"
        note = Note("unlabeled-detections-dropped", message, severity="info")
        table, self._origin = detections_of(
            truth,
            class_ids,
            unknown,
            (unlabeled, note),
            extra,
            image=image_index,
            label=label_index,
            corners=corners,
            box_area=box_area,
            score=score,
            mask=mask,
            masks=masks,
            keypoints=None if points is None else points[:, :, :2].copy(),
            polygons=self._quadrilaterals.array(corners),
            notes=(*notes, *score_notes),
        )
        return table

    def _scores(self) -> tuple[Floats, tuple[Note, ...]]:
        """Return the scores, NaN in all rows or none, and a note if some lack the score key."""
        score = self._fields.take("score")
        notes: tuple[Note, ...] = ()
        if self._score_key:
            of_key = self._fields.take(self._score_key)
            score = np.where(np.isnan(of_key), score, of_key)
            message = f"{self._score_key} missing; using score"
            missing = int(np.isnan(of_key).sum())
            notes = nonzero_notes(Note("missing-score-key", message, missing, severity="info"))
        check_scores(score, lambda row: (self.problems.file, self._records.location(row)))
        return score, notes

    def location(self, row: int) -> str:
        """Return the location of a row of the table."""
        return f"[{self._origin[row]}]"

    def _class_names(
        self, ids: Ids, known: tuple[Name, ...], names: tuple[str, ...]
    ) -> tuple[Name, ...]:
        """Return `known` ids of the ground truth, or its class names if results have these."""
        is_text = all(isinstance(name, str) for name in ids.index)
        if not known or isinstance(known[0], str) or not ids.index or not is_text:
            return known
        unknown = [name for name in ids.index if name not in names]
        if unknown and not self._limits.any_classes:
            self.problems.add_first(
                "",
                f"category_id is text, and {join_names(unknown)} ({len(unknown)} of "
                f"{len(ids.index)} names) are not class names of the ground truth",
                class_map_hint(unknown, names) or "use the ground truth's category ids or names",
            )
        return names

    def _image_ids(self, *, by_file: bool) -> Ids:
        """Return the ids of the images; a file name comes first if `by_file`."""
        image = self.image_ids
        if by_file and self._fields.holds("file_name"):
            files, names = names_of(self._fields, "file_name"), image.names
            rows = [
                file if isinstance(file, str) else names[row]
                for row, file in zip(image.rows.tolist(), files, strict=True)
            ]
            image.index = {name: k for k, name in enumerate(dict.fromkeys(rows))}
            image.rows = indices_in(rows, image.index)
        return image

    def _fill_boxes(self, box: Floats, mask: Integers | None) -> None:
        """Set the boxes that records lack: of the mask, later; of the keypoints; of the polygon."""
        missing = np.isnan(box[:, 0])
        if mask is not None:
            box[missing & (mask >= 0)] = NO_BOX
            missing &= mask < 0
        for points in (self._keypoints["keypoints"], self._quadrilaterals):
            rows, low, high = points.corners(missing)
            missing[rows] = False
            first = low + (high - low) / 2 if self.boxes == "cxcywh" else low
            box[rows] = np.hstack([first, high if self.boxes == "xyxy" else high - low])

    def _check_category_types(self, ids: Ids, known: Sequence[Name]) -> None:
        if not known:
            return
        names = ids.names
        expects_text = isinstance(known[0], str)
        expected = "a string" if expects_text else "a number"
        wrong = np.array([isinstance(name, str) != expects_text for name in names], np.bool_)
        for row in np.flatnonzero(wrong[ids.rows]).tolist() if wrong.any() else ():
            given = short_json(names[ids.rows[row]])
            message = f"category_id is {given}, expected {expected} as in the ground truth"
            self.problems.add_here(self._records.location(row), message)
