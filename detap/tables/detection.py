"""Tables of ground truths and detections, as read-only columns.

A table is a struct of arrays, not an object per box. Images and classes have dense indices from 0;
their names are kept for reports.

Three areas of a box differ in their last bits, so each is kept:

``corners``
    x1, y1, x2, y2. From an x, y, w, h file, x2 is ``x + w`` as a float64 sum.
``box_area``
    Width times height in the file's own format. Computed from the corners it would differ in the
    last bits for most boxes, and metrics would not equal the reference's.
``area``
    Ground truths only: the annotated area, such as the mask's; the box's if there is none.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import ne
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detap.display import Displayed
from detap.errors import InputError, Note, Problem
from detap.io.digest import sha256_of_source
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile
from detap.io.problems import check_list
from detap.io.stream import refuse
from detap.io.writing import write
from detap.protocols.summary import FREQUENCIES
from detap.tables import shapes
from detap.tables._loops import encode
from detap.tables.columns import Columns, Names, check_rows, in_form_of, indices_in
from detap.tables.columns import Name as Name  # noqa: PLC0414 - re-exported
from detap.tables.masks import Masks
from detap.tables.notes import (
    AS_IS,
    UNICODE_FORM,
    backward,
    backward_note,
    exchanged,
    extra_images_note,
    too_many,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

CategoryPair = tuple[int, int, int, int]
"""Index and id of an object's class, category id on the object, count in the image."""

CategorySample = tuple[tuple[int, tuple[CategoryPair, ...]], ...]
"""Keys of sampled images, ascending, and their category pairs."""

SAMPLED_IMAGES = 32
"""Number of images in a category sample."""

BOX_FORMATS = ("xyxy", "xywh")

LISTS = ("negative", "positive", "not_exhaustive")
"""Names of the lists of pairs of image and class."""

GROUPS = tuple(FREQUENCIES.values())
"""Names of class groups."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Table(Displayed):
    """Base class of both tables, with N rows.

    Attributes
    ----------
    image : (N,) int32
        Index into `images`.
    label : (N,) int32
        Index into `classes`.
    corners : (N, 4) float64
        x1, y1, x2, y2 in pixels.
    box_area : (N,) float64
        Width times height, computed from the file's numbers, in square pixels.
    images : tuple of int or str
        Name of each image, by index.
    classes : tuple of str
        Name of each class, by index.
    class_ids : tuple of int or str
        Id of each class, by index: a COCO category id, or the name.
    files : tuple of SourceFile
        Files of the rows; empty for arrays.
    notes : tuple of Note
        Notes of the reader.
    polygons : (N, 8) float64 or None
        Quadrilaterals x1, y1, ... x4, y4, whose bounding boxes are `corners`; None for plain
        boxes.
    mask : (N,) int32 or None
        Index into `masks`; None if no masks were read.
    masks : Masks or None
    keypoints : (N, P, 3) or (N, P, 2) float64 or None
        x and y in pixels of P keypoints per row; for ground truths also v, above 0 if labeled. None
        if no keypoints were read.
    """

    title: ClassVar[str]
    _rows: ClassVar[str]
    _columns: ClassVar[tuple[str, ...]]
    _optional: ClassVar[tuple[str, ...]] = ("polygons", "mask", "keypoints")

    image: Integers
    label: Integers
    corners: Floats
    box_area: Floats
    images: tuple[Name, ...]
    classes: tuple[str, ...]
    class_ids: tuple[Name, ...]
    files: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()
    polygons: Floats | None = None
    mask: Integers | None = None
    masks: Masks | None = None
    keypoints: Floats | None = None

    def __post_init__(self) -> None:
        for what in ("image", "images", "classes"):
            check_rows(self.title, len(getattr(self, what)), what)
        for column in self.columns().values():
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.image)

    def __repr__(self) -> str:
        sizes = f"{len(self)} {self._rows}, {len(self.images)} images, {len(self.classes)} classes"
        return f"{type(self).__name__}({sizes})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns with one value per row, by name, without missing ones."""
        names = self._columns + self._optional
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def arrays(self) -> dict[str, Any]:
        """Return the columns, and the masks if there are any."""
        return self.columns() | ({} if self.masks is None else {"masks": self.masks})

    @property
    def path(self) -> str:
        """Path of the first file, or the name of the table if it has none."""
        return self.files[0].path if self.files else self.title

    @property
    def images_with_rows(self) -> Flags:
        """Flags of the images that have rows, (I,) bool."""
        return np.bincount(self.image, minlength=len(self.images)) > 0

    def select(self, rows: NDArray[Any]) -> Self:
        """Return the table of some rows, with unchanged image and class indices."""
        return self.with_columns({name: column[rows] for name, column in self.columns().items()})

    def compact(self) -> Self:
        """Return the table with the masks of its rows alone."""
        if self.masks is None or self.mask is None:
            return self
        has = self.mask >= 0  # readers fill missing masks later
        mask = np.where(has, np.cumsum(has, dtype=np.int32) - np.int32(1), self.mask)
        return replace(self, masks=self.masks[self.mask[has]], mask=mask)

    def with_columns(self, columns: Mapping[str, Any], **changes: Any) -> Self:
        """Return the table with other columns, without optional ones that are not given."""
        absent: dict[str, Any] = dict.fromkeys(self._optional)
        return replace(self, **(absent | dict(columns)), **changes)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroundTruth(_Table):
    """G ground truths.

    Attributes
    ----------
    area : (G,) float64
        The annotated area; the box's if the file has none.
    crowd, difficult, ignore, group_of : (G,) bool
        Flags of the file; the protocol decides their effect.
    no_keypoints : (G,) bool or None
        True for objects without labeled keypoints (COCO's `num_keypoints` is 0); None if no
        keypoints were read.
    width_height : (G, 2) float64 or None
        Width and height of the boxes as in the file; read only with keypoints.
    zero_id : (G,) bool
        True for annotation id 0, which some tools treat as unmatched.
    image_sizes : (I, 2) float64 or None
        Width and height of each image in pixels, NaN where unknown.
    format : str
        Format of the file, which decides how images are named; empty for arrays.
    extra : mapping of str to (G,) float64 or str
        Further columns that protocols use, such as KITTI's ``occluded``, NaN or empty if missing.
    listed : mapping of str to (P, 2) int32
        Pairs of image and class index, by list: ``negative`` pairs have no object, ``positive``
        pairs have one, annotated or not, ``not_exhaustive`` pairs may have more than are annotated.
        Lists that the file lacks are missing.
    groups : mapping of int or str to str
        Group of each grouped class, by class id: ``rare``, ``common`` or ``frequent``.
    sigmas : tuple of float
        OKS sigmas of the file, one per keypoint; empty if it has none.
    class_map : str
        The class map that has been applied, as JSON; empty if none.
    """

    title = "ground truth"
    _rows = "ground truths"
    _columns = (
        *("image", "label", "corners", "box_area", "area"),
        *("crowd", "difficult", "ignore", "group_of", "zero_id"),
    )
    _optional = (*_Table._optional, "no_keypoints", "width_height")

    area: Floats
    crowd: Flags
    difficult: Flags
    ignore: Flags
    group_of: Flags
    zero_id: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    no_keypoints: Flags | None = None
    width_height: Floats | None = None
    image_sizes: Floats | None = None
    format: str = ""
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    listed: Mapping[str, Integers] = field(default_factory=dict)
    groups: Mapping[Name, str] = field(default_factory=dict)
    sigmas: tuple[float, ...] = ()
    class_map: str = ""

    def __post_init__(self) -> None:
        if len(self.zero_id) != len(self.image):
            object.__setattr__(self, "zero_id", np.zeros(len(self.image), np.bool_))
        super().__post_init__()

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns with one value per row, by name, including extra ones."""
        return super().columns() | dict(self.extra)

    def with_columns(self, columns: Mapping[str, Any], **changes: Any) -> Self:
        """Return the table with other columns; extra columns that are not given are dropped."""
        extra = {name: columns[name] for name in self.extra if name in columns}
        own = {name: column for name, column in columns.items() if name not in extra}
        return super().with_columns(own, extra=extra, **changes)

    def marked(self, flag: str) -> Flags:
        """Return a flag of the rows by name, (G,) bool; False if it was not read."""
        column: Flags | None = getattr(self, flag)
        return np.zeros(len(self), np.bool_) if column is None else column

    def in_lists(
        self, names: Iterable[str], image: Integers, label: Integers, *, or_present: bool = False
    ) -> Flags:
        """Flag the pairs of image and class that are in any of the lists, (n,) bool.

        Parameters
        ----------
        names : iterable of str
            Names of lists; those missing from `listed` are skipped.
        image, label : (n,) int32
            Indices of the pairs; classes unknown to the table are in no list.
        or_present : bool
            True to include pairs with a ground truth.
        """
        width = max(len(self.classes), int(label.max(initial=-1)) + 1)
        pairs = [self.listed[name].T for name in names if name in self.listed]
        if or_present:
            pairs.append(np.stack([self.image, self.label]))
        known, classes = np.concatenate(pairs, axis=1)
        keys = np.append(np.sort(known * np.int64(width) + classes), -1)
        key = image * np.int64(width) + label
        flags: Flags = keys[np.searchsorted(keys[:-1], key)] == key  # np.isin would import numpy.ma
        return flags

    @classmethod
    def from_arrays(
        cls,
        *,
        image: ArrayLike,
        label: ArrayLike,
        boxes: ArrayLike | None = None,
        box_format: str = "xyxy",
        area: ArrayLike | None = None,
        crowd: ArrayLike | None = None,
        difficult: ArrayLike | None = None,
        ignore: ArrayLike | None = None,
        group_of: ArrayLike | None = None,
        extra: Mapping[str, ArrayLike] | None = None,
        listed: Mapping[str, Iterable[tuple[Name, Name]]] | None = None,
        groups: Mapping[Name, str] | None = None,
        images: Sequence[Name] | None = None,
        image_sizes: ArrayLike | None = None,
        classes: Sequence[Name] | Mapping[Name, str] | None = None,
        masks: Any = None,
        keypoints: ArrayLike | None = None,
        polygons: ArrayLike | None = None,
        as_is: bool = False,
    ) -> "GroundTruth":
        """Create a table from arrays, with checks.

        Parameters
        ----------
        image, label : (G,) array of int or str
            Names of each row's image and class.
        boxes : (G, 4) array of float
            In the given `box_format`, in pixels; by default the bounding boxes of the masks or
            polygons.
        box_format : {"xyxy", "xywh"}
            x1, y1, x2, y2, or x, y, width, height.
        area : (G,) array of float, optional
            The annotated area; by default the pixels of the mask, or the area of the polygon or
            box.
        crowd, difficult, ignore, group_of : (G,) array of bool, optional
            False by default.
        extra : mapping of str to (G,) array of float or str, optional
            Further columns that a protocol needs, such as KITTI's ``occluded`` and ``truncated``.
        listed : mapping of str to pairs of image and class, optional
            Lists of pairs of names, also empty ones: ``negative`` and ``not_exhaustive`` for LVIS,
            ``negative`` and ``positive`` for the Open Images Challenge; see `listed`.
        groups : mapping of class to str, optional
            ``rare``, ``common`` or ``frequent``.
        images : sequence of int or str, optional
            All images, including those without ground truth; by default those of `image`, sorted.
        image_sizes : (I, 2) array of float, optional
            Width and height of each of the images in pixels, NaN if unknown.
        classes : sequence, or mapping of identifier to name, optional
            All classes, in order; by default those of `label`, sorted.
        masks : (G, H, W) array of bool or uint8, or sequence of G masks, optional
            Bitmaps (H, W), or COCO's RLE with ``size`` and ``counts``.
        keypoints : (G, P, 3) array of float, optional
            x, y in pixels, and v, above 0 for labeled keypoints.
        polygons : (G, 8) or (G, 4, 2) array of float, optional
            Quadrilaterals such as rotated boxes, instead of boxes: x, y of four corners in order
            around, in either direction, in pixels. ``iou_type="polygon"`` compares them (preset
            ``coco-polygon`` or ``dota``). They are not outlines of masks; for these use `masks`.
        as_is : bool
            True to accept any number of boxes with negative width or height (by default one in
            twenty is an error), and boxes that look normalized.

        Raises
        ------
        InputError
            If a column has a wrong length, an invalid box or an unknown name.
        """
        given = {"masks": masks, "keypoints": keypoints, "polygons": polygons}
        names = images, classes
        rows = _Rows("ground truth", (image, label), (boxes, given), box_format, names, as_is=as_is)
        all_images, ids = rows.fields["images"], rows.fields["class_ids"]
        if area is None:
            areas = rows.fields["box_area"].copy() if rows.own_area is None else rows.own_area
        else:
            areas = rows.numbers("area", area, (rows.length,))
            rows.refuse("area", areas, ~(np.isfinite(areas) & (areas >= 0)), "a finite number >= 0")
        flags = {"crowd": crowd, "difficult": difficult, "ignore": ignore, "group_of": group_of}
        none = np.zeros(rows.length, np.bool_)
        marks: dict[str, Any] = {
            name: rows.flags(name, none if values is None else values, rows.length)
            for name, values in flags.items()
        }
        sizes = None
        if image_sizes is not None:
            sizes = rows.numbers("image_sizes", image_sizes, (len(all_images), 2))
            invalid = (sizes <= 0) | np.isinf(sizes)
            rows.refuse("image_sizes", sizes, invalid, "two positive numbers, or NaN if unknown")
        return cls(
            **rows.fields,
            image_sizes=sizes,
            area=areas,
            **marks,
            extra={name: rows.extra(name, values) for name, values in (extra or {}).items()},
            listed={
                name: rows.listed(name, pairs, all_images, ids)
                for name, pairs in (listed or {}).items()
            },
            groups=rows.grouped(groups or {}, ids),
        )


class ResponseCounts(NamedTuple):
    """The answers of a model that detections were read from."""

    dialect: str
    lines: int
    images_without_response: list[str]
    failed: list[str]  # images with an answer that failed
    bad_boxes: int
    notes: dict[str, int]  # answers by the code of a note

    def joined(self, other: "ResponseCounts") -> "ResponseCounts":
        """Return the answers of both."""
        without = {*other.images_without_response}
        return ResponseCounts(
            self.dialect,
            self.lines + other.lines,
            [name for name in self.images_without_response if name in without],
            list(dict.fromkeys((*self.failed, *other.failed))),
            self.bad_boxes + other.bad_boxes,
            dict(Counter(self.notes) + Counter(other.notes)),
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Detections(_Table):
    """N detections.

    Attributes
    ----------
    score : (N,) float64
        Confidence in any unit; only its order matters. NaN in all rows of detections without
        scores.
    area : (N,) float64 or None
        Area for the area ranges if unmatched, such as a mask's pixels; None for the box's area.
    categories : CategorySample
        Categories on sampled objects, checked by :mod:`detap.checks.inputs`.
    missing_scores : {"none", "1", "area"}
        What an evaluation takes in place of missing scores.
    without_scores : bool
        True if the input has no place for scores, which rows show too; without rows only this does.
    responses : ResponseCounts or None
        The answers of a model that they were read from.
    only_known : bool
        True if the format leaves out detections of classes that the ground truth lacks.
    """

    title = _rows = "detections"
    _columns = ("image", "label", "corners", "box_area", "score")
    _optional = ("area", *_Table._optional)

    score: Floats = field(default_factory=lambda: np.zeros(0))
    area: Floats | None = None
    categories: CategorySample = ()
    missing_scores: Literal["none", "1", "area"] = "none"
    without_scores: bool = False
    responses: ResponseCounts | None = None
    only_known: bool = False

    @classmethod
    def from_arrays(
        cls,
        *,
        image: ArrayLike,
        label: ArrayLike,
        boxes: ArrayLike | None = None,
        score: ArrayLike | None = None,
        box_format: str = "xyxy",
        masks: Any = None,
        keypoints: ArrayLike | None = None,
        polygons: ArrayLike | None = None,
        as_is: bool = False,
    ) -> "Detections":
        """Create a table from arrays, with checks.

        Parameters
        ----------
        image, label : (N,) array of int or str
            Names of each row's image and class, as in the ground truth.
        boxes : (N, 4) array of float
            In the given `box_format`, in pixels; by default the bounding boxes of the masks,
            keypoints or polygons.
        score : (N,) array of float, optional
            Any finite numbers. By default the detections have no scores.
        box_format : {"xyxy", "xywh"}
            x1, y1, x2, y2, or x, y, width, height.
        masks : (N, H, W) array of bool or uint8, or sequence of N masks, optional
            As for :meth:`GroundTruth.from_arrays`.
        keypoints : (N, P, 3) or (N, P, 2) array of float, optional
            x, y in pixels; further values are ignored.
        polygons : (N, 8) or (N, 4, 2) array of float, optional
            As for :meth:`GroundTruth.from_arrays`.
        as_is : bool
            As for :meth:`GroundTruth.from_arrays`.

        Raises
        ------
        InputError
            If a column has a wrong length, or an invalid box or score.
        """
        given = {"masks": masks, "keypoints": keypoints, "polygons": polygons}
        rows = _Rows("detections", (image, label), (boxes, given), box_format, as_is=as_is)
        none = np.full(rows.length, np.nan)
        return cls(
            **rows.fields,
            score=none if score is None else rows.finite("score", score, none.shape),
            without_scores=score is None,
            area=rows.own_area if boxes is None else None,
        )

    @property
    def has_scores(self) -> bool:
        """False for detections without scores."""
        return not (np.isnan(self.score[0]) if len(self) else self.without_scores)

    def save(self, path: Path) -> None:
        """Write the table as ``.npz``: columns, names, notes, and the digests of its files.

        ``detap eval --dt 'rank-*.npz'`` and :func:`detap.read_detections` read such files, several
        as one table. A file is complete or not there.

        Parameters
        ----------
        path : str or os.PathLike

        Raises
        ------
        OutputError
            If the file cannot be written, for example because the disk is full.
        """
        from detap.tables import npz  # zipfile takes 0.003 s

        header = {
            "images": self.images,
            "classes": self.classes,
            "class_ids": self.class_ids,
            "categories": self.categories,
            **({} if self.has_scores else {"without_scores": True}),
            "notes": [[n.code, n.message, n.count, n.severity] for n in self.notes],
            "files": [file._replace(sha256=_digest_of(file)) for file in self.files],
        }
        write(str(path), [npz.encode("detections", header, self.arrays())])

    @classmethod
    def load(cls, path: Path, *, limits: Limits = DEFAULT_LIMITS) -> "Detections":
        """Read a table that :meth:`save` wrote. Nothing is unpickled.

        Parameters
        ----------
        path : str or os.PathLike
        limits : Limits, optional

        Raises
        ------
        InputError
            If the file is damaged, too large, or was not written by :meth:`save`.
        """
        from detap.tables import npz

        try:
            header, columns = npz.load(path, limits)
            return cls(
                **columns,
                **{name: header[name] for name in ("images", "classes", "class_ids")},
                categories=_tuples(header["categories"]),
                without_scores=header.get("without_scores", False),
                notes=tuple(
                    Note(code, message, count, severity=severity)
                    for code, message, count, severity in header["notes"]
                ),
                files=tuple(SourceFile(*_tuples(file)) for file in header["files"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            refuse(str(path), f"is damaged: {type(error).__name__}: {error}")

    def reindex_like(
        self, ground_truth: GroundTruth, *, extra_images: str = "error"
    ) -> "Detections":
        """Return these detections with the image and class indices of `ground_truth`.

        Unknown classes follow those of `ground_truth`. With `extra_images` ``"drop"``, detections
        on images that `ground_truth` does not have are left out, with a note.

        Raises
        ------
        InputError
            If a detection is on an image that `ground_truth` does not have.
        """
        images, known_ids = ground_truth.images, ground_truth.class_ids
        own_images, own_ids = in_form_of(self.images, images), in_form_of(self.class_ids, known_ids)
        table, notes = self, self.notes
        if changed := sum(map(ne, own_images + own_ids, self.images + self.class_ids)):
            notes = (
                *(note for note in notes if note.code != "unknown-classes"),
                replace(UNICODE_FORM, count=changed),
            )
        elif self.images == images and self.class_ids[: len(known_ids)] == known_ids:
            return self
        _check_name_types("image", self.images, images)
        _check_name_types("class", self.class_ids, known_ids)
        image = indices_in(own_images, images)
        seen = np.unique(self.image)
        unknown = [self.images[number] for number in seen if image[number] < 0]
        if unknown and extra_images == "drop" and len(unknown) < len(seen):
            rows = np.flatnonzero(image[self.image] >= 0)
            notes = (*notes, extra_images_note(len(self) - len(rows), len(unknown)))
            table = self.select(rows).compact()
        elif unknown:
            others = f", nor are {len(unknown) - 1} others" if len(unknown) > 1 else ""
            message = f"image {unknown[0]!r} is not in the ground truth{others}"
            raise InputError(Problem("detections", "", message, _IMAGES_HINT))
        known = set(known_ids)
        added = [number for number, name in enumerate(own_ids) if name not in known]
        ids = known_ids + tuple(own_ids[number] for number in added)
        return replace(
            table,
            image=image[table.image],
            label=indices_in(own_ids, ids)[table.label],
            images=images,
            classes=ground_truth.classes + tuple(self.classes[number] for number in added),
            class_ids=ids,
            notes=notes,
        )


Table = TypeVar("Table", GroundTruth, Detections)


def _tuples(value: Any) -> Any:
    """Return lists of JSON as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _digest_of(file: SourceFile) -> str:
    """Return the digest of a source; empty if it is gone."""
    try:
        return str(sha256_of_source(file) or "")
    except InputError:
        return ""


_IMAGES_HINT = (
    "name every image of the test set in images= of GroundTruth.from_arrays, also those without "
    "ground truth: detections on them are false positives, and leaving them out would raise AP; to "
    "evaluate the other images only, pass images=ground_truth.images"
)


def _check_name_types(subject: str, names: tuple[Name, ...], expected: tuple[Name, ...]) -> None:
    """Raise InputError if one of the two has text and the other numbers."""
    if names and expected and isinstance(names[0], str) != isinstance(expected[0], str):
        hint = f"numbers and text are different names; the ground truth has {expected[0]!r}"
        raise InputError(Problem("detections", "", f"{subject} {names[0]!r}", hint))


class _Rows(Columns):
    """Reader of the columns that both tables have."""

    def __init__(
        self,
        table: str,
        columns: tuple[ArrayLike, ArrayLike],
        geometry: tuple[ArrayLike | None, Mapping[str, Any]],
        box_format: str,
        names: tuple[Sequence[Name] | None, Any] = (None, None),
        *,
        as_is: bool,
    ) -> None:
        super().__init__(table)
        (boxes, given), (images, classes) = geometry, names
        of_image, of_label = map(self.index_names, ("image", "label"), columns)
        self.length = len(of_image.number)
        if len(of_label.number) != self.length:
            hint = f"expected (n,), n = {self.length} as in {self.names_column}"
            self.fail(f"label has shape ({len(of_label.number)},)", hint)
        if box_format not in BOX_FORMATS:
            self.fail(f"box_format {box_format!r} is unknown", "use xyxy or xywh")
        shapes.refuse_other_shapes(self, {"boxes": boxes, **given})
        read = shapes.read_shapes(self, given, self.length)
        fields, self.own_area = shapes.fields_of(read), shapes.areas_of(read)
        if boxes is None:
            if not read:
                self.fail("no boxes", "pass boxes, masks or polygons")
            boxes = shapes.boxes_of(self, read)
            if box_format == "xyxy":
                boxes[:, 2:] += boxes[:, :2]
        box = self.numbers("boxes", boxes, (self.length, 4), kept=False)
        corners, box_area = finite_boxes(self, box, box_format)
        notes = negative_size_notes(self, corners, box_area, box_format, as_is=as_is)
        if "no_keypoints" in fields:  # of ground truths: OKS needs the sizes as given
            fields["width_height"] = box[:, 2:] - (box[:, :2] if box_format == "xyxy" else 0)
        all_images = tuple(of_image.distinct if images is None else self.names("images", images))
        ids, class_names = class_table(self, of_label.distinct if classes is None else classes)
        self.fields = fields | {
            "image": self.indices("image", of_image, all_images),
            "label": self.indices("label", of_label, ids),
            "corners": corners,
            "box_area": box_area,
            "images": all_images,
            "classes": class_names,
            "class_ids": ids,
            "notes": notes,
        }

    def extra(self, name: str, values: ArrayLike) -> NDArray[Any]:
        """Return a further column of ground truths, (n,) float64 or str."""
        if name in GroundTruth.__dataclass_fields__:
            self.fail(f"extra has a column {name}, which is a field of GroundTruth")
        column = self._shaped(name, values, (self.length,))
        if len(column) and all(isinstance(value, str) for value in column.tolist()):
            return column.astype(np.str_)
        return self.finite(name, values, column.shape)

    def indices(self, subject: str, column: Names, names: tuple[Name, ...]) -> Integers:
        """Return the index into `names` of each row of `column`."""
        plural = {"image": "images", "label": "classes"}[subject]
        if len(set(names)) != len(names):
            self.fail(f"{plural} has duplicate names")
        indices = indices_in(column.distinct, names)
        for number in np.flatnonzero(indices < 0)[:1].tolist():
            unknown = column.distinct[number]
            other_type = bool(names) and isinstance(names[0], str) != isinstance(unknown, str)
            hint = f"numbers and text are different names; {plural} has {names[0]!r}"
            self.fail(f"{subject} {unknown!r} is not in {plural}", hint if other_type else "")
        return indices[column.number]

    def listed(
        self,
        name: str,
        pairs: Iterable[tuple[Name, Name]],
        images: tuple[Name, ...],
        classes: tuple[Name, ...],
    ) -> Integers:
        """Return the indices of pairs of image and class, sorted, (P, 2) int32."""
        if name not in LISTS:
            self.fail(f"unknown list {name!r}", f"use {', '.join(LISTS)}")
        image, label = ({n: i for i, n in enumerate(names)} for names in (images, classes))
        index_pairs = []
        for pair in pairs:
            if not (isinstance(pair, tuple) and len(pair) == 2):
                self.fail(f"list {name} has {pair!r}", "expected pairs (image, class)")
            if pair[0] not in image or pair[1] not in label:
                self.fail(f"list {name} has {pair!r}, whose image or class is unknown")
            index_pairs.append((image[pair[0]], label[pair[1]]))
        return np.array(sorted(set(index_pairs)), np.int32).reshape(-1, 2)

    def grouped(self, groups: Mapping[Name, str], classes: tuple[Name, ...]) -> dict[Name, str]:
        """Return the group of each class, checked."""
        for identifier, group in groups.items():
            if identifier not in classes:
                self.fail(f"groups has {identifier!r}, which is not in classes")
            if group not in GROUPS:
                self.fail(f"groups has {group!r}", f"use {', '.join(GROUPS)}")
        return dict(groups)


def finite_boxes(columns: Columns, boxes: Floats, box_format: str) -> tuple[Floats, Floats]:
    """Return the corners and areas of boxes, which are finite."""
    corners, area = encode_boxes(boxes, box_format)
    wrong = ~np.isfinite(np.column_stack((boxes, area)))
    columns.refuse("boxes", boxes, wrong, "finite coordinates and area")
    return corners, area


def negative_size_notes(
    columns: Columns, corners: Floats, area: Floats, box_format: str, *, as_is: bool
) -> tuple[Note, ...]:
    """Return the notes on boxes of negative size; raise InputError if they are too many."""
    notes: tuple[Note, ...] = (AS_IS,) if as_is else ()
    negative = backward(corners, area)
    if not len(negative):
        return notes
    row = columns.first(negative)
    box = corners[row].copy()
    if box_format != "xyxy":
        box[2:] = np.round(box[2:] - box[:2], 9)  # as given: the sum was rounded
    location = columns.location(row)
    if not as_is and too_many(len(negative), len(corners)):
        looks = exchanged(corners)[0] if box_format == "xyxy" else ""
        expected = f"expected no negative width or height ({looks or box_format})"
        columns.fail(f"boxes is {box.tolist()}", f"{expected}; or pass as_is=True", location)
    kind = columns.table.replace(" ", "-")
    return *notes, backward_note(kind, len(negative), f"{location}, {box.tolist()}")


def encode_boxes(boxes: Floats, box_format: str, *, copy: bool = True) -> tuple[Floats, Floats]:
    """Return the corners (N, 4) and areas (N,) of boxes, computed from the given numbers."""
    as_floats = np.array if copy else np.asarray
    corners, area = as_floats(boxes, np.float64, order="C"), np.empty(len(boxes))
    if box_format == "cxcywh":
        corners[:, :2] -= corners[:, 2:] / 2
    encode(corners, area, box_format == "xyxy")
    return corners, area


def distinct_name(name: str, identifier: Name) -> str:
    """Return a distinct name for a class that shares its name with another."""
    return f"{name} (id {identifier})"


def class_table(
    columns: Columns, classes: Sequence[Name] | Mapping[Name, str]
) -> tuple[tuple[Name, ...], tuple[str, ...]]:
    """Return the ids and names of the classes."""
    check_list("classes", classes)
    ids = tuple(columns.names("classes", list(classes)))
    if not isinstance(classes, Mapping):
        return ids, tuple(map(str, ids))
    for name in classes.values():
        if not isinstance(name, str):
            columns.fail(f"class name is {name!r}", "expected text")
    return ids, tuple(classes.values())
