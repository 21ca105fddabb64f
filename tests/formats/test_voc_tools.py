"""VOC XML of labelImg, CVAT and Roboflow, and text of Cartucho's and Padilla's tools."""

from pathlib import Path

import pytest

from detap import read_ground_truth
from detap.tables.detection import GroundTruth
from tests.cli.conftest import Run
from tests.formats.voc_files import write

LABELIMG = """<annotation>
\t<folder>photos</folder>
\t<filename>IMG_1.JPG</filename>
\t<path>C:\\Users\\me\\photos\\IMG_1.JPG</path>
\t<source>
\t\t<database>Unknown</database>
\t</source>
\t<size>
\t\t<width>640</width>
\t\t<height>480</height>
\t\t<depth>3</depth>
\t</size>
\t<segmented>0</segmented>
\t<object>
\t\t<name>traffic light</name>
\t\t<pose>Unspecified</pose>
\t\t<truncated>1</truncated>
\t\t<difficult>0</difficult>
\t\t<bndbox>
\t\t\t<xmin>1</xmin>
\t\t\t<ymin>2</ymin>
\t\t\t<xmax>640</xmax>
\t\t\t<ymax>480</ymax>
\t\t</bndbox>
\t</object>
</annotation>
"""

ROBOFLOW = """<annotation>
\t<folder></folder>
\t<filename>c_jpg.rf.0a1b.jpg</filename>
\t<path>c_jpg.rf.0a1b.jpg</path>
\t<source><database>roboflow.com</database></source>
\t<size><width>640</width><height>640</height><depth>3</depth></size>
\t<segmented>0</segmented>
\t<object>
\t\t<name>car</name>
\t\t<pose>Unspecified</pose>
\t\t<truncated>0</truncated>
\t\t<occluded>0</occluded>
\t\t<bndbox>
\t\t\t<xmin>11</xmin>
\t\t\t<xmax>33</xmax>
\t\t\t<ymin>22</ymin>
\t\t\t<ymax>44</ymax>
\t\t</bndbox>
\t</object>
</annotation>
"""

FILES = {
    "labelImg": ("IMG_1", LABELIMG, ("traffic light", False, [1, 2, 640, 480], (640, 480))),
    "Roboflow": ("c_jpg.rf.0a1b", ROBOFLOW, ("car", False, [11, 22, 33, 44], (640, 640))),
}


def row(truth: GroundTruth) -> tuple[str, bool, list[float], tuple[float, float]]:
    assert truth.image_sizes is not None
    [difficult], [corners] = truth.difficult.tolist(), truth.corners.tolist()
    width, height = truth.image_sizes[0].tolist()
    return truth.classes[0], difficult, corners, (width, height)


@pytest.mark.parametrize("tool", FILES)
def test_xml_as_tools_write_it(tmp_path: Path, tool: str) -> None:
    """The file name decides the image, whatever its content says; images may lie next to it."""
    stem, content, expected = FILES[tool]
    write(tmp_path / "valid", {f"{stem}.xml": content, f"{stem}.jpg": b"\xff\xd8", "x.txt": ""})
    truth = read_ground_truth(tmp_path / "valid", format="voc")
    assert truth.images == (stem,)
    assert row(truth) == expected


def headline(detap: Run, *words: str) -> float:
    value: float = detap("eval", *words, "--output-format", "json").report()["summary"]["mAP"]
    return value


# A cat matched with IoU 1 above a false positive; a difficult dog, and an empty image.


@pytest.mark.parametrize(
    ("ap", "edge", "expected"),
    [
        ("11-point", "--inclusive-pixels", 0.2683982684),
        ("all-point", "--inclusive-pixels", 0.2456866805),
        ("all-point", "--no-inclusive-pixels", 0.2253968254),
    ],
)
def test_object_detection_metrics_sample_2(
    detap: Run, real_data: Path, ap: str, edge: str, expected: float
) -> None:
    """Padilla's sample: `class [conf] x y w h`, at an IoU of 0.3."""
    folder = real_data / "odm-sample-2"
    words = ("--gt", f"{folder}/groundtruths", "--dt", f"{folder}/detections", "--boxes", "xywh")
    value = headline(detap, *words, "--iou", "0.3", "--interpolation", ap, edge)
    assert value == pytest.approx(expected, abs=5e-11)
