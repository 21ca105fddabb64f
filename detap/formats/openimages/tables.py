"""Read Open Images' CSV files.

References: the description of Open Images' files (storage.googleapis.com/openimages/web); for
detections the columns of the Challenge's evaluator in TensorFlow's object detection library.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from detap.checks.tables import of_unknown_size
from detap.errors import Note
from detap.formats.base import Format
from detap.formats.by_name import objects
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.by_name.problems import refuse_empty
from detap.formats.image_sizes import sizes_of
from detap.formats.openimages.labels import Hierarchy
from detap.formats.openimages.rows import FORM, FORM_LABELS, FORM_SCORED, Rows
from detap.formats.stem_matching import empty_ground_truth
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile
from detap.tables.columns import check_scores, indices_in
from detap.tables.detection import Detections, GroundTruth


def read_ground_truth(
    path: Path,
    *,
    class_descriptions: Path | None = None,
    image_sizes: Path | None = None,
    image_labels: Path | None = None,
    hierarchy: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read a CSV with one row per box; images and classes are sorted by name.

    The name of an image is its ``ImageID`` without the suffix. Without `image_sizes`, boxes stay
    normalized: IoU is the same, but area ranges and inclusive pixels are refused. Image labels add
    their images and classes, and the lists ``positive`` and ``negative``. With a hierarchy, a box
    or a label of confidence 1 is repeated for every ancestor of its class, a label of confidence 0
    for every descendant.
    """
    read = Rows(path, FORM, limits, class_descriptions, image_sizes, as_is=as_is)
    refuse_empty(read.path, len(read), limits, "boxes", "annotations")
    labels = None
    if image_labels is not None:
        labels = Rows(image_labels, FORM_LABELS, limits, class_descriptions, as_is=True)
    sources = read.sources()
    if hierarchy is not None:
        tree = Hierarchy(hierarchy, read.descriptions, limits)
        read.expand(tree)
        if labels is not None:
            labels.expand(tree)
        sources += (SourceFile(tree.file, len(tree.above)),)
    images = sorted({*read.stems, *read.sizes.table, *([] if labels is None else labels.stems)})
    sizes = read.sizes.of(images) if read.sizes.table else None
    box_rows = read.box_rows(images, sizes)
    unknown = "boxes have an unknown group flag (IsGroupOf -1); read as 0"
    notes = nonzero_notes(
        Note("group-of-unknown", unknown, read.unknown, severity="info"),
        images_without_objects(len(images), box_rows.image),
    )
    if labels is not None:
        classes = sorted({*box_rows.classes, *labels.classes})
        index = indices_in(box_rows.classes, classes)
        box_rows = box_rows._replace(classes=tuple(classes), label=index[box_rows.label])
        sources += (SourceFile(labels.given, len(labels), sha256=labels.sha256),)
    box_rows = box_rows._replace(flags={"group_of": read.group_of[read.origin]}, sizes=sizes)
    table = objects.ground_truth(box_rows, read, sources, (*read.notes(sizes), *notes))
    if labels is None:
        return table
    return replace(table, listed=labels.listed(images, table.classes))


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    class_descriptions: Path | None = None,
    image_sizes: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read a CSV of detections, with a column ``Score`` or without.

    They have the image sizes of the ground truth; if it has none, they stay normalized too.
    """
    read = Rows(path, FORM_SCORED, limits, class_descriptions, image_sizes, as_is=as_is)
    check_scores(read.score, read.location)
    images = sorted(set(read.stems))
    sizes, known = None, ground_truth.image_sizes
    if not of_unknown_size(ground_truth) and (known is not None or read.sizes.table):
        rows = () if known is None else zip(ground_truth.images, known.tolist(), strict=True)
        of_truth = sizes_of(images, dict(rows))
        read.sizes.check_against(of_truth, images, read.path, "in the ground truth")
        sizes = np.where(np.isnan(of_truth), read.sizes.of(images), of_truth)
        # Unknown images are reported later.
        ours = set(ground_truth.images)
        sizes[[name not in ours for name in images]] = 1.0
    box_rows = read.box_rows(images, sizes)._replace(score=read.score)
    return objects.detections(box_rows, ground_truth, read, read.sources(), read.notes(sizes))


class OpenImages(Format):
    """CSV files of boxes in fractions of the image."""

    coordinates = "XMin, XMax, YMin, YMax"

    read_truth_file = staticmethod(read_ground_truth)
    read_detections_file = staticmethod(read_detections)

    def placeholder(self, path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
        """Return the images and classes named in a file, unchecked."""
        names = options.get("class_descriptions")
        rows = Rows(path, FORM_SCORED, limits, names, as_is=True, check=False)
        classes = {rows.descriptions.name(label) or label for label in rows.labels}
        return empty_ground_truth(set(rows.stems), classes)
