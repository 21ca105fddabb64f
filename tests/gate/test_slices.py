"""Slices: their images, and metrics equal to those of the images alone."""

import json
from pathlib import Path

import pytest

from detap.errors import InputError, Note
from detap.evaluation.slices import read_slices, slices_by
from tests.cli.conftest import Files, Run, instances, results, write_coco
from tests.formats.exports import write
from tests.raised import raised

IMAGES = [1, 2, 3, 4]
STRANGE = "slice images not in the ground truth"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"1": ["night", "rain"], "2": "night", "3": ["day"]}'),
        ("b.json", '{"night": [1, 2], "rain": 1, "day": [3]}'),
        ("c.csv", "image,tag\n1,night\n1,rain\n2,night\n3,day\n"),
        ("d.csv", "\ufeffImage,Tag\r\n1,night\r\n1,rain\r\n\r\n2,night\r\n3,day\r\n"),
    ],
)
def test_every_form_gives_the_same_slices(tmp_path: Path, name: str, content: str) -> None:
    slices, notes = read_slices(str(write(tmp_path / name, content)), IMAGES)
    assert slices == {"night": [1, 2], "rain": [1], "day": [3]}
    assert [(note.code, note.count) for note in notes] == [("images-without-slice", 1)]


def test_unknown_images_are_reported(tmp_path: Path) -> None:
    slices, notes = read_slices(str(write(tmp_path / "a.json", '{"night": [1, 9, 8]}')), [1, 4, 5])
    assert slices == {"night": [1]}
    assert notes == [
        Note("slice-unknown-image", f"{STRANGE} (e.g. '8')", 2),
        Note("images-without-slice", "images without a slice (e.g. '4')", 2, severity="info"),
    ]


OBJECT = 'is not a JSON object; write {"image": ["tag"]} or {"tag": ["image"]}'
HEADING = "line 1: is not the header image,tag; start the file with image,tag"
ROW = "write image,tag; one line per tag of an image"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "1", OBJECT),
        ("a.json", "[]", OBJECT),
        ("a.json", "{}", OBJECT),
        ("a.json", '{"a": [1], "a": [2]}', "is not JSON: duplicate key 'a'"),
        ("a.json", '{"1": [null]}', "entry '1': None is not a name; use names or integers"),
        ("a.json", '{"1": [true]}', "entry '1': True is not a name; use names or integers"),
        (
            "a.json",
            '{"night": [8, 9]}',
            "no image is in the ground truth (e.g. 'night'); "
            "use the image names of the ground truth",
        ),
        ("a.csv", "", HEADING),
        ("a.csv", "1,night\n", HEADING),
        ("a.csv", "image,tag\n1\n", f"line 2: has 1 columns, or an empty one; {ROW}"),
        ("a.csv", "image,tag\n1,\n", f"line 2: has 2 columns, or an empty one; {ROW}"),
        ("a.csv", "image,tag\n1,a\n,night\n", f"line 3: has 2 columns, or an empty one; {ROW}"),
        ("a.csv", "image,tag\n1,a,b\n", f"line 2: has 3 columns, or an empty one; {ROW}"),
        ("a.csv", 'image,tag\n1,"x\n', "line 2: is not CSV: unexpected end of data"),
        ("a.csv", b"image,\xff", "byte 6: 0xff is not UTF-8; save it as UTF-8"),
    ],
)
def test_errors_are_reported(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert str(raised(InputError, read_slices, str(path), IMAGES)) == f"{path}: {message}"


def test_invalid_json_is_reported(tmp_path: Path) -> None:
    for content in ("{", "[" * 100_000):
        path = str(write(tmp_path / "a.json", content))
        error = raised(InputError, read_slices, path, IMAGES)
        assert str(error).startswith(f"{path}: is not JSON: ")


def test_slices_by_attribute() -> None:
    slices, notes = slices_by({1: "night", 2: 7, 3: None}, "time", IMAGES)
    assert slices == {"time=7": [2], "time=night": [1]}
    text = "images without attribute 'time' are in no slice"
    assert notes == [Note("images-without-slice", text, 2, severity="info")]
    assert slices_by({"1": [2, 3]}, "at", ["1"]) == ({"at=[2, 3]": ["1"]}, [])
    # A value is cut, an image that nobody knows left out.
    assert slices_by({1: "x" * 300, 9: "y"}, "at", [1]) == ({f"at={'x' * 200}": [1]}, [])


def test_a_slice_has_the_metrics_of_its_images_alone(
    coco: Files, detap: Run, tmp_path: Path
) -> None:
    tags = write(tmp_path / "tags.json", '{"one": [1], "both": [1, 2]}')
    call = [*coco.arguments, "--output-format", "json"]
    whole = detap(*call, "--slices", tags).report()
    alone = detap(*call, "--images", "1").report()
    assert whole["slices"]["one"]["summary"] == alone["summary"]
    assert whole["slices"]["one"]["classes"] == alone["classes"]
    assert whole["slices"]["both"]["summary"] == whole["summary"]
    assert whole["slices"]["one"]["images"] == 1


def test_gates_on_slices(coco: Files, detap: Run, tmp_path: Path) -> None:
    tags = write(tmp_path / "tags.csv", "image,tag\n1,night\n2,day\n9,empty\n")
    call = [*coco.arguments, "--slices", tags]
    # On image 1 one of two cats is found: AP 51/101; on image 2 the dog.
    assert detap(*call, "--fail-under", "slice:night.AP50=0.5").status == 0
    ended = detap(*call, "--fail-under", "slice:night.AP50=0.51")
    assert ended.status == 1
    assert "gate failed: slice:night.AP50 0.5050, required >= 0.51" in ended.err
    assert "night" in ended.out
    assert detap(*call, "--fail-under", "slice:day.class:dog.AP=0.99").status == 0
    ended = detap(*call, "--fail-under", "slice:empty.AP=0")
    assert ended.status == 1
    assert "slice:empty.AP undefined" in ended.err
    assert detap(*call, "--fail-under", "slice:*.AP=0").status == 1


def test_drops_and_intervals_of_slices(coco: Files, detap: Run, tmp_path: Path) -> None:
    tags = write(tmp_path / "tags.json", '{"night": [1], "day": [2]}')
    base = tmp_path / "base.json"
    call = [*coco.arguments, "--slices", tags]
    assert detap(*call, "-o", base).status == 0
    worse = [detection for detection in results() if detection["image_id"] == 1]
    dt = write(tmp_path / "worse.json", json.dumps(worse))
    call = ["eval", "--gt", str(coco.gt), "--dt", dt, "--slices", tags]
    for against in (["--baseline", str(base)], ["--baseline-detections", str(coco.dt)]):
        ended = detap(*call, *against, "--max-drop", "slice:*.AP=0.1")
        assert ended.status == 1
        assert "gate failed: slice:day.AP dropped by 1.0000" in ended.err
        assert "slice:night.AP fell" not in ended.err
    noise = ["--confidence", "0.9", "--min-ground-truths", "0"]
    ended = detap(*call, *against, *noise, "--max-drop", "slice:day.AP=0.1")
    assert "90% CI of the drop [1.0000, 1.0000]" in ended.err
    plain = [*coco.arguments, "--baseline", str(base), "--max-drop", "slice:day.AP=0.1"]
    assert "no slices; use --slices" in detap(*plain).err
    assert detap(*plain, "--slice-by", "width").status == 2


def test_by_an_attribute_of_coco_images(tmp_path: Path, detap: Run) -> None:
    truth = instances()
    truth["images"][0]["time"] = "night"
    truth["images"][1]["time"] = "day"
    files = write_coco(tmp_path, truth)
    call = [*files.arguments, "--output-format", "json"]
    record = detap(*call, "--slice-by", "time").report()
    assert {tag: part["images"] for tag, part in record["slices"].items()} == {
        "time=day": 1,
        "time=night": 1,
    }
    assert "no image has an attribute 'weather'" in detap(*call, "--slice-by", "weather").refused()
    tags = write(tmp_path / "tags.json", '{"night": [1]}')
    assert "not both" in detap(*call, "--slices", tags, "--slice-by", "time").refused()


def test_by_an_element_of_voc_annotations(voc: Files, detap: Run) -> None:
    for image, database in ((1, "first"), (2, "second")):
        path = voc.gt / f"{image}.xml"
        source = f"<annotation><source><database>{database}</database></source>"
        path.write_text(path.read_text().replace("<annotation>", source))
    call = [*voc.arguments, "--output-format", "json"]
    record = detap(*call, "--slice-by", "source/database").report()
    assert list(record["slices"]) == ["source/database=first", "source/database=second"]


def test_a_baseline_slice_of_other_images_is_not_compared(
    coco: Files, detap: Run, tmp_path: Path
) -> None:
    first = write(tmp_path / "a.json", '{"night": [1], "day": [2]}')
    moved = write(tmp_path / "b.json", '{"night": [2], "day": [2]}')
    base = str(tmp_path / "base.json")
    assert detap(*coco.arguments, "--slices", first, "-o", base).status == 0
    call = [*coco.arguments, "--baseline", base]
    drop = ["--max-drop", "slice:night.AP=0.9"]
    assert detap(*call, "--slices", first, *drop).status == 0
    said = detap(*call, "--slices", moved, *drop).refused()
    assert "slice 'night': different images (baseline: 1; current: 1)" in said
    assert "Regenerate it or pass --allow-mismatch" in said
    assert detap(*call, "--slices", moved, *drop, "--allow-mismatch").status == 0
    assert detap(*call, "--slices", moved, "--max-drop", "slice:*.AP=0.9").status == 2
    # What is not gated need not be alike.
    assert detap(*call, "--slices", moved, "--max-drop", "slice:day.AP=0.9").status == 0
    assert detap(*call, "--slices", moved, "--max-drop", "AP=0.9").status == 0
    assert detap(*coco.arguments, "--slices", moved, "-o", tmp_path / "new.json").status == 0
    said = detap("baseline", "update", base, tmp_path / "new.json").refused()
    assert "slice 'night': different images" in said


@pytest.mark.parametrize(
    ("content", "slices"),
    [
        ('{"day": [1, 2], "night": []}', {"day": [1, 2], "night": []}),
        ('{"night": []}', {"night": []}),
        # From image to tags: an image without tags is in no slice.
        ('{"1": ["day"], "2": []}', {"day": [1]}),
    ],
)
def test_a_tag_that_lists_no_image_is_a_slice(
    tmp_path: Path, content: str, slices: dict[str, list[int]]
) -> None:
    assert read_slices(str(write(tmp_path / "a.json", content)), [1, 2])[0] == slices


@pytest.mark.parametrize("limit", ["slice:*.AP=0.1", "slice:night.AP=0.1"])
def test_a_slice_without_images_fails(coco: Files, detap: Run, tmp_path: Path, limit: str) -> None:
    tags = write(tmp_path / "tags.json", '{"day": [1, 2], "night": []}')
    call = [*coco.arguments, "--slices", tags]
    ended = detap(*call, "--fail-under", limit)
    assert ended.status == 1
    assert "gate failed: slice:night.AP undefined, required >= 0.1" in ended.err
    assert detap(*call, "--fail-under", "slice:day.AP=0.1").status == 0
    # Nor does it pass as what has not changed.
    base = str(tmp_path / "base.json")
    assert detap(*call, "-o", base).status == 0
    for earlier in (["--baseline", base], ["--baseline-detections", str(coco.dt)]):
        ended = detap(*call, *earlier, "--max-drop", limit)
        assert ended.status == 1
        assert "gate failed: slice:night.AP undefined, allowed drop 0.1" in ended.err
