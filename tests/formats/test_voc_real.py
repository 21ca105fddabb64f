"""The readers on real VOC data, compared with the published counts."""

from pathlib import Path

import pytest

from detap.formats.text.lines import LineForm
from detap.formats.voc._scan import Annotations
from detap.formats.voc.tables import plain_start, read_detections, read_ground_truth
from tests.formats.voc_files import without_scanners

__all__ = ["without_scanners"]


def folder(real_data: Path, name: str) -> Path:
    path = real_data / name
    if not path.is_dir():
        pytest.skip(f"real data is absent: {path}")
    return path


def test_voc2007(real_data: Path) -> None:
    voc = folder(real_data, "voc2007-test")
    truth = read_ground_truth(voc, image_set="test")
    assert len(truth) == 14976
    assert int(truth.difficult.sum()) == 2944
    assert len(truth.images) == 4952
    assert len(truth.classes) == 20
    detections = read_detections(voc / "detections", truth)
    assert len(detections) == 111_247
    assert detections.classes == truth.classes
    assert {note.code: note.count for note in detections.notes} == {
        "detections-negative-size": 1970
    }
    line = (voc / "detections" / "comp4_det_test_aeroplane.txt").read_text().split("\n")[0]
    image, *numbers = line.split()
    assert truth.images[detections.image[0]] == image
    assert [detections.score[0], *detections.corners[0]] == list(map(float, numbers))


def test_the_scanner_reads_every_real_annotation(real_data: Path) -> None:
    for name in ("voc2007-test/Annotations", "bccd/Annotations", "voc-100/gt/voc_xml"):
        scanned = Annotations(100)
        for path in sorted(folder(real_data, name).glob("*.xml")):
            assert scanned.read(plain_start(path.read_bytes()), 0), path


def test_real_lines_are_regular(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a line was read by Python")

    root = folder(real_data, "cartucho-85")
    truth = read_ground_truth(root / "ground-truth")
    monkeypatch.setattr(LineForm, "read_line", refuse)
    assert len(read_detections(root / "detection-results", truth))


def test_bccd(real_data: Path) -> None:
    truth = read_ground_truth(folder(real_data, "bccd"))
    assert len(truth) == 4888
    assert len(truth.images) == 364
    # xmin == xmax and ymin == ymax: boxes of one pixel.
    assert {note.code: note.count for note in truth.notes} == {"one-pixel-boxes": 2}
    flat = truth.corners[(truth.corners[:, 0] == truth.corners[:, 2])]
    assert flat.tolist() == [[504, 337, 504, 337], [181, 329, 181, 329]]
