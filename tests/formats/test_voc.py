"""Valid VOC files: the tables read."""

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.errors import InputError
from detap.evaluation.detection import evaluate
from detap.evaluation.results import class_rows
from detap.formats.voc.tables import read_detections, read_ground_truth
from detap.io.limits import Limits
from detap.tables.detection import GroundTruth
from tests.formats.helpers import codes
from tests.formats.voc_files import item, tree, write, xml
from tests.processes import finished

PART = (
    "<part><name>head</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax>"
    "</bndbox></part>"
)


@pytest.fixture(params=["scanned", "with care"], autouse=True)
def both_readers(request: pytest.FixtureRequest) -> None:
    """Run every test with the fast readers and with the fallback readers."""
    if request.param == "with care":
        request.getfixturevalue("without_scanners")


def test_a_tree(tmp_path: Path) -> None:
    cat = item("cat", (1, 2, 3, 4), "1")
    tree(tmp_path, {"b": xml(item(), cat), "a": xml(item("cat", (5, 6, 7.5, 8.25)))})
    truth = read_ground_truth(tmp_path)
    assert truth.images == ("a", "b")
    assert truth.classes == truth.class_ids == ("cat", "dog")
    assert truth.image.tolist() == [0, 1, 1]
    assert truth.label.tolist() == [0, 1, 0]
    assert truth.corners.tolist() == [[5, 6, 7.5, 8.25], [10, 20, 30, 40], [1, 2, 3, 4]]
    assert truth.box_area.tolist() == truth.area.tolist() == [2.5 * 2.25, 400, 4]
    assert truth.difficult.tolist() == [False, False, True]
    assert not any(flag.any() for flag in (truth.crowd, truth.ignore, truth.group_of))
    assert np.asarray(truth.image_sizes).tolist() == [[500, 375], [500, 375]]
    assert truth.files[0].path == str(tmp_path)
    assert truth.files[0].members == ("Annotations/a.xml", "Annotations/b.xml")
    assert truth.files[0].records == 3
    assert truth.notes == ()


def test_the_annotations_folder_and_any_other(tmp_path: Path) -> None:
    tree(tmp_path, {"a": xml(item())}, test=["a"])
    for folder in (tmp_path / "Annotations", write(tmp_path / "else", {"a.XML": xml(item())})):
        truth = read_ground_truth(str(folder))
        assert (truth.images, len(truth)) == (("a",), 1)
    truth = read_ground_truth(tmp_path / "Annotations", image_set="test")
    assert truth.files[1].path.endswith("ImageSets/Main/test.txt")


def test_parts_are_skipped_and_corners_are_read_by_name(tmp_path: Path) -> None:
    before = item("person", (10, 20, 30, 40), more=PART)
    behind = before.replace(PART, "").replace("</object>", f"{PART}{PART}</object>")
    turned = (
        "<object><bndbox><xmax>4</xmax><xmin>3</xmin><ymax> 2.5 </ymax><ymin>\n1e0\n</ymin>"
        "</bndbox><pose/><name> person\n</name></object>"
    )
    tree(tmp_path, {"a": xml(before, behind, turned)})
    truth = read_ground_truth(tmp_path)
    assert truth.classes == ("person",)
    assert truth.corners.tolist() == [[10, 20, 30, 40], [10, 20, 30, 40], [3, 1, 4, 2.5]]
    assert truth.difficult.tolist() == [False] * 3  # the last one does not say


def test_an_image_set_gives_images_and_order(tmp_path: Path) -> None:
    images = {name: xml(item()) for name in ("a", "b", "c", "with space")}
    tree(tmp_path, images, val=["c", "a", "", "with space", "c"])
    truth = read_ground_truth(tmp_path, image_set="val")
    assert truth.images == ("c", "a", "with space")
    assert codes(truth) == {"images-listed-twice": 1}
    assert truth.notes[0].message.endswith("which counts once: 'c'")
    assert truth.files[0].members == tuple(
        f"Annotations/{name}.xml" for name in ("a", "c", "with space")
    )
    assert (truth.files[1].path, truth.files[1].records) == (
        str(tmp_path / "ImageSets/Main/val.txt"),
        4,
    )
    listed = write(tmp_path, {"list": b"\xef\xbb\xbfb  1\r\na -1\r\nc 0\r\n"}) / "list"
    assert read_ground_truth(tmp_path, image_set=listed).images == ("b", "a", "c")


def test_other_files_are_skipped(tmp_path: Path) -> None:
    tree(tmp_path, {"a": xml(item())})
    annotations = tmp_path / "Annotations"
    write(
        annotations,
        {".DS_Store": b"\0", "._a.xml": b"\0", "a.xml~": "", "a.txt": "x", ".git/b.xml": "x"},
    )
    (annotations / "folder.xml").mkdir()
    truth = read_ground_truth(tmp_path)
    assert truth.images == ("a",)
    assert codes(truth) == {"files-skipped": 5}
    [note] = [note for note in truth.notes if note.code == "files-skipped"]
    assert note.message == "files skipped ('.DS_Store', '._a.xml', '.git', ...): not annotations"


def test_image_sizes(tmp_path: Path) -> None:
    sizes: dict[str, tuple[object, object] | None] = {
        "a": (640.5, 480),
        "b": None,
        "c": (0, 0),
        "d": ("wide", 10),
    }
    tree(tmp_path, {name: xml(item(), size=size) for name, size in sizes.items()})
    read = read_ground_truth(tmp_path).image_sizes
    nan = float("nan")
    expected = np.array([[640.5, 480], [nan, nan], [nan, nan], [nan, 10]])
    assert read is not None
    assert np.array_equal(read, expected, equal_nan=True)


def test_notes_on_ground_truth(tmp_path: Path) -> None:
    nested = item(more=f"<part>{item()}</part>")
    tree(
        tmp_path,
        {
            "a": xml(item(), item(), item("Dog")),
            "b": xml(item("cat", (5, 5, 5, 9)), item("cat", (1, 1, 501, 9))),
            "c": xml(),
            "d": xml(nested),
        },
    )
    truth = read_ground_truth(tmp_path)
    assert codes(truth) == {
        "repeated-objects": 1,
        "names-differ-in-case": 2,
        "one-pixel-boxes": 1,
        "ground-truth-beyond-image": 1,
        "images-without-objects": 1,
        "nested-objects": 1,
    }
    assert len(truth) == 6
    assert truth.classes == ("Dog", "cat", "dog")


@pytest.mark.parametrize(("boxes", "corners"), [("xyxy", [1, 2, 30, 40]), ("xywh", [1, 2, 31, 42])])
def test_text_ground_truth(tmp_path: Path, boxes: str, corners: list[float]) -> None:
    write(tmp_path, {"b.txt": "dog 1 2 30 40\r\n\r\n\tcat  5 6\t7 8.5 \n", "a.txt": ""})
    truth = read_ground_truth(tmp_path, boxes=boxes)
    assert truth.images == ("a", "b")
    assert truth.classes == ("cat", "dog")
    assert truth.label.tolist() == [1, 0]
    assert truth.corners.tolist()[0] == corners
    assert truth.box_area.tolist()[0] == (30 * 40 if boxes == "xywh" else 29 * 38)
    assert truth.image_sizes is None
    assert codes(truth) == {"images-without-objects": 1}


def test_text_ground_truth_with_difficult_and_numbered_classes(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"gt/a.txt": "1 1 2 3 4 difficult\n0 1 2 3 4\ncat 1 2 3 4\n", "names": "cat\ndog\n"},
    )
    truth = read_ground_truth(tmp_path / "gt", class_names=tmp_path / "names")
    assert truth.classes == ("cat", "dog")
    assert truth.label.tolist() == [1, 0, 0]
    assert truth.difficult.tolist() == [True, False, False]
    assert codes(truth) == {"repeated-objects": 1}
    assert truth.files[1].path == str(tmp_path / "names")


def test_class_names_are_refused_for_xml(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(
        "<annotation><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax>"
        "<ymax>9</ymax></bndbox></object></annotation>"
    )
    (tmp_path / "names").write_text("dog\n")
    truth = read_ground_truth(tmp_path, image_set=None, class_names=tmp_path / "names")
    assert [source.path for source in truth.files] == [str(tmp_path)]


def test_degenerate_xywh_ground_truth_is_noted(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "dog 1 2 0 4\n"})
    assert codes(read_ground_truth(tmp_path, boxes="xywh")) == {"zero-area-ground-truth": 1}


# --- detections ---------------------------------------------------------------------------------


@pytest.fixture
def truth(tmp_path: Path) -> GroundTruth:
    images = {"a": xml(item()), "b": xml(item("cat")), "c": xml(item("bird"))}
    return read_ground_truth(tree(tmp_path / "truth", images))


def test_class_files(tmp_path: Path, truth: GroundTruth) -> None:
    write(
        tmp_path / "dt",
        {
            "comp4_det_test_dog.txt": "b .5 1 2 3 4\na 0.25 5 6 7 8.5",
            "comp4_det_test_cat.txt": "\n",
            "comp4_det_test_emu.txt": gzip.compress(b"c 1e-1 1 2 3 4\r\n"),
            "notes.md": "x",
        },
    )
    detections = read_detections(tmp_path / "dt", truth)
    assert detections.images == truth.images
    assert detections.classes == detections.class_ids == ("bird", "cat", "dog", "emu")
    assert detections.image.tolist() == [1, 0, 2]
    assert detections.label.tolist() == [2, 2, 3]
    assert detections.score.tolist() == [0.5, 0.25, 0.1]
    assert detections.corners.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8.5], [1, 2, 3, 4]]
    assert detections.box_area.tolist() == [4, 5, 4]
    assert detections.files[0].records == 3
    assert detections.files[0].members[0] == "comp4_det_test_cat.txt"
    assert codes(detections) == {
        "classes-without-file": 1,
        "files-skipped": 1,
        "unknown-classes": 1,
    }


def test_a_class_with_difficult_objects_only_may_be_undefined(tmp_path: Path) -> None:
    objects = item(), item("cat"), item("bird", difficult="1"), item("cat", difficult="1")
    truth = read_ground_truth(tree(tmp_path / "truth", {"a": xml(*objects)}))
    write(tmp_path / "dt", {"comp4_det_test_dog.txt": "a .5 10 20 30 40\n"})
    detections = read_detections(tmp_path / "dt", truth)
    (note,) = detections.notes
    assert note.message.endswith(
        "have AP 0: 'bird', 'cat'; undefined if the protocol counts none of their objects, "
        "possibly 'bird'"
    )
    result = evaluate(truth, detections, "voc2012")
    by_name: dict[Any, Any] = {row["name"]: row["AP"] for row in class_rows(result)}
    assert by_name["cat"] == 0
    assert np.isnan(by_name["bird"])


def test_image_files(tmp_path: Path, truth: GroundTruth) -> None:
    write(
        tmp_path / "dt",
        {"b.txt": "dog 2 1 2 3 4\nemu .5 1 2 3 4\n", "a.txt": "cat -.5 5 6 7 8\n", "z.txt": ""},
    )
    detections = read_detections(tmp_path / "dt", truth)
    assert detections.image.tolist() == [0, 1, 1]
    assert detections.label.tolist() == [1, 2, 3]
    assert detections.score.tolist() == [-0.5, 2, 0.5]
    assert codes(detections) == {
        "images-without-file": 1,
        "unknown-classes": 1,
        "scores-outside-unit": 2,
    }


def test_numbered_classes_and_xywh(tmp_path: Path, truth: GroundTruth) -> None:
    write(tmp_path, {"dt/a.txt": "1 .5 1 2 3 4\n2 .5 1 2 3 4\n", "names": "cat\ndog\nbird seed\n"})
    detections = read_detections(
        tmp_path / "dt", truth, class_names=tmp_path / "names", boxes="xywh"
    )
    assert detections.classes == ("bird", "cat", "dog", "bird seed")
    assert detections.label.tolist() == [2, 3]
    assert detections.corners.tolist() == [[1, 2, 4, 6]] * 2
    assert detections.box_area.tolist() == [12, 12]


def test_a_single_file(tmp_path: Path, truth: GroundTruth) -> None:
    write(tmp_path, {"comp3_det_val_dog.txt": "a .5 1 2 3 4\n", "b.txt": "dog .5 1 2 3 4\n"})
    of_class = read_detections(tmp_path / "comp3_det_val_dog.txt", truth)
    of_image = read_detections(tmp_path / "b.txt", truth)
    assert (of_class.label.tolist(), of_class.image.tolist()) == ([2], [0])
    assert (of_image.label.tolist(), of_image.image.tolist()) == ([2], [1])
    assert of_class.files[0].path == str(tmp_path / "comp3_det_val_dog.txt")
    assert of_class.files[0].members == ()


def test_negative_sizes_are_kept(tmp_path: Path, truth: GroundTruth) -> None:
    # The image has 500 by 375 pixels. Such rows are among the real detections of VOC 2007.
    lines = ["a .5 510.5 2 500 4", "a .5 1 2 -7 4", "a .5 3 380 4 374", "a .5 0 0 -1 -2.5"]
    write(tmp_path / "dt", {"x_dog.txt": "\n".join(lines + ["a .5 1 2 3 4"] * 77)})
    detections = read_detections(tmp_path / "dt", truth)
    assert detections.corners.tolist()[0] == [510.5, 2, 500, 4]
    assert detections.box_area.tolist()[:4] == [-21, -16, -6, 2.5]
    assert codes(detections)["detections-negative-size"] == 4


def test_non_ascii_names(tmp_path: Path, truth: GroundTruth) -> None:
    write(tmp_path / "dt", {"a.txt": "犬 .5 1 2 3 4\ndog .5 1 2 3 4\n"})
    assert read_detections(tmp_path / "dt", truth).classes[-1] == "犬"
    images = read_ground_truth(tree(tmp_path / "more", {"é": xml(item())}))
    write(tmp_path / "more_dt", {"x_dog.txt": "é .5 1 2 3 4\n"})
    assert len(read_detections(tmp_path / "more_dt", images)) == 1


def test_a_file_name_that_is_not_utf8_is_an_image(tmp_path: Path) -> None:
    strange = b"\xff.xml".decode("utf-8", "surrogateescape")
    try:
        tree(tmp_path / "truth", {strange[:-4]: xml(item())})
    except OSError:
        pytest.skip("the file system wants names in UTF-8")
    truth = read_ground_truth(tmp_path / "truth")
    write(tmp_path / "dt", {"x_dog.txt": b"\xff .5 1 2 3 4\n"})
    assert truth.images == (strange[:-4],)
    with pytest.raises(InputError, match="is not UTF-8"):
        read_detections(tmp_path / "dt", truth)


def test_limits(tmp_path: Path, truth: GroundTruth) -> None:
    with pytest.raises(InputError, match="XML is nested 4 levels deep"):
        read_ground_truth(tmp_path / "truth", limits=Limits(nesting=3))
    write(tmp_path / "dt", {"a.txt": "dog .5 1 2 3 4\n" * 3})
    with pytest.raises(InputError, match="more than 2 records"):
        read_detections(tmp_path / "dt", truth, limits=Limits(records=2))
    with pytest.raises(InputError, match=r"a\.txt: is larger than 20 bytes"):
        read_detections(tmp_path / "dt", truth, limits=Limits(file_bytes=20))


def test_regular_files_are_read_without_lxml(tmp_path: Path) -> None:
    tree(tmp_path, {"a": xml(item())})
    program = (
        "import sys; from detap.formats.voc import tables as voc; "
        f"voc.read_ground_truth({str(tmp_path)!r}); print('lxml' in sys.modules)"
    )
    done = finished([sys.executable, "-c", program])
    assert done.stdout == "False\n"
