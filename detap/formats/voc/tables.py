"""Read PASCAL VOC: folders of XML, or of text files with one box per line.

References: the VOC 2012 development kit, "Annotation file format" and "Detection results file
format"; for one text file per image, the formats of Cartucho/mAP and of Padilla et al. 2021,
Electronics 10(3):279.
"""

import os
from typing import Any

from detap.errors import UsageError
from detap.formats.options import TRUTH, named_coordinates
from detap.formats.reading.attributes import Attributes
from detap.formats.text.class_names import ClassNames
from detap.formats.text.detections import read_detections
from detap.formats.text.folder import ground_truth_folder
from detap.formats.text.lines import LineForm
from detap.formats.text.reader import FolderReader
from detap.formats.voc.annotations import AnnotationReader
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import check_choice
from detap.tables.detection import BOX_FORMATS, GroundTruth

__all__ = ["read_detections", "read_ground_truth"]


def read_ground_truth(
    path: Path,
    *,
    image_set: Path | None = None,
    class_names: Path | None = None,
    boxes: str = "xyxy",
    attributes: tuple[str, ...] = (),
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of a VOC tree or a folder of XML or text files.

    The name of an image is its file name without the suffix. Only ``object`` elements directly
    under the root of an XML are read, with their ``name``, ``difficult`` and ``bndbox``. A line of
    a text file is ``class x1 y1 x2 y2`` or ``class x y width height``, optionally followed by
    ``difficult``. `attributes` are further elements of XML objects. Images are in the order of the
    image set, else sorted by name; classes are sorted by name.
    """
    check_choice("boxes", boxes, BOX_FORMATS)
    folder = ground_truth_folder(os.fspath(path))
    is_xml = folder.suffix == ".xml"
    reader = (AnnotationReader if is_xml else FolderReader)(folder, as_is, limits, image_set)
    names = ClassNames.read(class_names, reader.problems, limits)
    reader.problems.raise_any()
    columns: dict[str, Any] = {}
    if isinstance(reader, AnnotationReader):
        if boxes != "xyxy":
            coordinates = "xmin, ymin, xmax, ymax"
            raise UsageError(named_coordinates("VOC XML", coordinates, TRUTH, boxes))
        extra = Attributes(attributes, texts=True)
        reader.read_annotations(extra)
        columns = {"nested": reader.nested, "sizes": reader.sizes, "extra": extra.columns()}
    else:
        reader.read(LineForm("class", False, boxes, names.resolve))
        columns = {"sources": names.source()}
    reader.problems.raise_any()
    rows = reader.rows
    return reader.ground_truth(
        rows.names,
        boxes=rows.table(4),
        box_format=boxes,
        flags={"difficult": rows.flag},
        **columns,
    )
