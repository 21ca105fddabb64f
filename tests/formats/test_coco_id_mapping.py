"""COCO files of real tools: stems as ids, class numbers with a ground truth of class names."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from detap import read_detections, read_ground_truth
from detap.errors import InputError, UsageError
from detap.formats.catalogue import FORMATS
from detap.formats.coco import results
from detap.formats.coco.format import placeholder_ground_truth
from detap.formats.coco.truth import image_values_of_file
from detap.io.limits import DEFAULT_LIMITS
from detap.tables.notes import LEAVE_OUT, SAME_IMAGES
from tests.cli.conftest import Run
from tests.coco import results_of, saved, truth_of
from tests.formats.coco_files import odd_fields, result_columns
from tests.formats.exports import write
from tests.formats.voc_files import item, tree, xml
from tests.raised import raised

NAMES = ("cat", "dog", "owl")


def record(image: Any, label: Any, box: Sequence[float], score: float = 0.5) -> dict[str, Any]:
    return {"image_id": image, "category_id": label, "bbox": [*box], "score": score}


def coco_truth(
    folder: Path,
    files: Mapping[int, str | None],
    boxes: Mapping[int, Sequence[float]] | None = None,
) -> Path:
    """Write ground truth: an owl on each image, at x = 100 times its id, or at `boxes`."""
    rows = [(i, 3, (boxes or {}).get(i, [100 * i, 0, 10, 10])) for i in files]
    truth = truth_of(rows, dict(enumerate(NAMES, 1)), files, size=None, area=100)
    return write(folder / "instances.json", truth)


# --- images by stem


STEMS: dict[str, tuple[list[Any], dict[int, str | None]]] = {
    "stems as text": (["a", "b.v2", "007"], {5: "x/a.jpg", 6: "x/b.v2.png", 7: "007.jpg"}),
    "Ultralytics: a number where the stem is one": (
        ["a", "b.v2", 7],
        {5: "a.jpg", 6: "b.v2.png", 7: "007.jpg"},
    ),
    "numbers alone": ([12, 3, 9], {5: "000012.jpg", 6: "000003.jpg", 7: "9.jpg"}),
    "numbers of which some are ids": ([6, 7, 8], {5: "6.jpg", 6: "7.jpg", 7: "8.jpg"}),
    "file names": (["a.jpg", "b.v2.png", "d/c.jpg"], {5: "a.jpg", 6: "b.v2.png", 7: "c.jpg"}),
}


@pytest.mark.parametrize("name", STEMS)
def test_image_ids_may_be_stems(tmp_path: Path, name: str) -> None:
    ids, files = STEMS[name]
    truth = read_ground_truth(coco_truth(tmp_path, files))
    detections = read_detections(
        write(tmp_path / "dt.json", [record(i, 3, [0, 0, 9, 9]) for i in ids]), truth
    )
    assert [detections.images[number] for number in detections.image] == [5, 6, 7]
    assert detections.images == truth.images


def test_stems_may_be_mixed_with_ids_if_all_are_known(tmp_path: Path) -> None:
    truth = read_ground_truth(coco_truth(tmp_path, {5: "a.jpg", 6: "b.jpg"}))
    path = write(tmp_path / "dt.json", [record("b", 3, [0, 0, 9, 9])])
    assert result_columns(path.read_bytes(), truth).image.tolist() == [1]
    mixed = write(tmp_path / "dt.json", [record("b", 3, [0, 0, 9, 9]), record(5, 3, [0, 0, 9, 9])])
    with pytest.raises(InputError, match='image_id "b" is not in the ground truth'):
        result_columns(mixed.read_bytes(), truth)


def test_a_stem_that_no_image_has_is_an_error(tmp_path: Path) -> None:
    truth = read_ground_truth(coco_truth(tmp_path, {5: "a.jpg", 6: "b.jpg"}))
    path = write(tmp_path / "dt.json", [record("a", 3, [0, 0, 9, 9]), record("c", 3, [0, 0, 9, 9])])
    assert str(raised(InputError, read_detections, path, truth)) == (
        f'{path}: [1]: image_id "c" is not in the ground truth (ids are numbers); '
        f"{SAME_IMAGES}, or {LEAVE_OUT}"
    )


def test_two_stems_of_one_number_are_ambiguous(tmp_path: Path) -> None:
    truth = read_ground_truth(coco_truth(tmp_path, {5: "07.jpg", 6: "7.jpg"}))
    path = write(tmp_path / "dt.json", [record(7, 3, [0, 0, 9, 9])])
    with pytest.raises(InputError, match="no image_id of the results is in the ground truth"):
        read_detections(path, truth)


def test_a_stem_of_very_many_digits_is_not_a_number(tmp_path: Path) -> None:
    truth = read_ground_truth(coco_truth(tmp_path, {5: "1" * 5000 + ".jpg", 6: "7.jpg"}))
    path = write(tmp_path / "dt.json", [record(7, 3, [0, 0, 9, 9])])
    assert read_detections(path, truth).image.tolist() == [1]


def test_ids_may_be_text_of_numbers_if_all_are(tmp_path: Path) -> None:
    truth = read_ground_truth(coco_truth(tmp_path, {5: None, 6: None}))
    rows = [record(name, 3, [0, 0, 9, 9]) for name in ("06", "5")]
    table = read_detections(write(tmp_path / "dt.json", rows), truth)
    assert table.image.tolist() == [1, 0]
    assert [(note.code, note.count) for note in table.notes] == [("image-ids-as-text", 2)]
    for other in ("7", 5, "5.0", "9" * 5000):
        path = write(tmp_path / "dt.json", [*rows, record(other, 3, [0, 0, 9, 9])])
        with pytest.raises(InputError, match=r"image_id .* in the ground truth"):
            read_detections(path, truth)


def test_known_ids_of_other_images_are_refused(tmp_path: Path) -> None:
    """Files count from 1, ids from 0: every stem but the last is also the id of the next image."""
    files = {i: f"{i + 1:06d}.jpg" for i in range(12)}
    truth = read_ground_truth(coco_truth(tmp_path, files))
    rows = [record(i + 1, 3, [100 * i, 0, 10, 10]) for i in range(11)]
    path = write(tmp_path / "dt.json", rows)
    assert str(raised(InputError, read_detections, path, truth)) == (
        f"{path}: image_id looks like the number in the file name, expected the ground truth's id: "
        "in a sample, 11 ground truths would be overlapped instead of 0; use the ground truth's "
        "image ids, or pass as_is=True (--as-is)"
    )
    assert len(read_detections(path, truth, as_is=True)) == 11
    by_id = [{**row, "image_id": row["image_id"] - 1} for row in rows]
    assert len(read_detections(write(tmp_path / "dt.json", by_id), truth)) == 11
    alike = read_ground_truth(coco_truth(tmp_path, {i: f"{i:06d}.jpg" for i in range(12)}))
    assert len(read_detections(write(tmp_path / "dt.json", rows), alike)) == 11


# --- classes by name


@pytest.fixture
def voc(tmp_path: Path) -> Path:
    """Write six VOC images, each with a dog and an owl."""
    both = xml(item("dog", (0, 0, 10, 10)), item("owl", (50, 0, 60, 10)))
    return tree(tmp_path / "voc", {f"{n:03d}": both for n in range(1, 7)})


def both_matched(dog: Any, owl: Any, images: Sequence[Any] = range(1, 7)) -> list[dict[str, Any]]:
    return [
        row
        for image in images
        for row in (record(image, dog, [0, 0, 10, 10]), record(image, owl, [50, 0, 10, 10]))
    ]


def labels(path: Path, truth_path: Path, **options: Any) -> list[str]:
    truth = read_ground_truth(truth_path)
    detections = read_detections(path, truth, **options)
    assert {truth.images[number] for number in detections.image} == {f"00{n}" for n in range(1, 7)}
    assert detections.images == truth.images
    return sorted({truth.classes[k] for k in detections.label})


def test_results_that_name_their_images_and_categories(voc: Path, tmp_path: Path) -> None:
    """The ids of such a file are its own: here they are reversed."""
    document = {
        "images": [{"id": 7 - n, "file_name": f"val/{n:03d}.jpg"} for n in range(1, 7)],
        "categories": [{"id": 2, "name": "owl"}, {"id": 3, "name": "dog"}],
        "annotations": both_matched(3, 2, range(6, 0, -1)),
    }
    assert labels(write(tmp_path / "dt.json", document), voc) == ["dog", "owl"]


@pytest.mark.parametrize("first", [0, 1])
def test_the_first_number_of_a_class_list_follows_from_ids_or_boxes(
    voc: Path, tmp_path: Path, first: int
) -> None:
    names = write(tmp_path / "names.txt", "".join(f"{name}\n" for name in (*NAMES, "ant")))
    dt = write(tmp_path / "dt.json", both_matched(1 + first, 2 + first))
    assert labels(dt, voc, class_names=names) == ["dog", "owl"]
    [note] = [
        note
        for note in read_detections(dt, read_ground_truth(voc), class_names=names).notes
        if note.code == "categories-counted"
    ]
    assert note.message == f"category_id {first} is the first name of {names}"
    assert labels(dt, voc, class_names=names, first_category_id=first) == ["dog", "owl"]
    with pytest.raises(
        InputError, match=f"looks like {first}, not {1 - first}: the boxes then overlap"
    ):
        labels(dt, voc, class_names=names, first_category_id=1 - first)
    other = labels(dt, voc, class_names=names, first_category_id=1 - first, as_is=True)
    assert other != ["dog", "owl"]


@pytest.mark.parametrize(("first", "ids"), [(0, (0, 1)), (1, (2, 3))])
def test_the_lowest_or_highest_id_shows_the_first_number(
    voc: Path, tmp_path: Path, first: int, ids: tuple[int, int]
) -> None:
    """0 occurs only if counting from 0, 3 of three names only from 1: boxes are not needed."""
    names = write(tmp_path / "names.txt", "dog\nowl\ncat\n" if first == 0 else "cat\ndog\nowl\n")
    far = [{**row, "bbox": [200, 200, 5, 5]} for row in both_matched(*ids)]
    assert labels(write(tmp_path / "dt.json", far), voc, class_names=names) == ["dog", "owl"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no list": ({}, "category_id 1 is a number, but the ground truth has class names (e.g."),
    "too few boxes": (
        {"class_names": "cat\ndog\nowl\nant\n"},
        "so the 4 names of {names} may be counted from 0 or 1, and too few boxes overlap to "
        "decide; pass first_category_id",
    ),
    "too short": (
        {"class_names": "dog\n"},
        "category_id ranges from 1 to 2, but {names} has 1 name, counted from 0 or 1; use the "
        "class names of the detector",
    ),
    "too short by what is said": (
        {"class_names": "cat\ndog\n", "first_category_id": 0},
        "{names} has 2 names, counted from 0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_that_may_be_any_class_are_refused(voc: Path, tmp_path: Path, name: str) -> None:
    options, expected = REFUSED[name]
    names = tmp_path / "names.txt"
    if "class_names" in options:
        options = {**options, "class_names": write(names, options["class_names"])}
    far = [{**row, "bbox": [200, 200, 5, 5]} for row in both_matched(1, 2)]
    error = raised(InputError, labels, write(tmp_path / "dt.json", far), voc, **options)
    assert expected.format(names=names) in str(error)


def test_the_first_number_is_0_or_1(voc: Path, tmp_path: Path) -> None:
    names = write(tmp_path / "names.txt", "cat\ndog\nowl\n")
    dt = write(tmp_path / "dt.json", both_matched(1, 2))
    with pytest.raises(UsageError, match="first_category_id '2' is unknown; use one of 0, 1"):
        labels(dt, voc, class_names=names, first_category_id=2)
    message = r"^first_category_id \(--first-category-id\) requires class_names \(--class-names\)$"
    with pytest.raises(UsageError, match=message):
        labels(dt, voc, first_category_id=1)


def test_a_text_id_with_different_names_in_both_inputs_is_refused(tmp_path: Path) -> None:
    gt = coco_truth(tmp_path, {1: "1.jpg"})
    text = json.loads(gt.read_text())
    for entry in (*text["categories"], *text["annotations"]):
        key = "category_id" if "category_id" in entry else "id"
        entry[key] = f"c{entry[key]}"
    truth = read_ground_truth(write(gt, text))
    document = {
        "annotations": [record(1, "c3", [100, 0, 10, 10])],
        "categories": [{"id": "c3", "name": "owl"}],
    }
    detections = read_detections(write(tmp_path / "dt.json", document), truth)
    assert [detections.class_ids[k] for k in detections.label] == ["c3"]
    document["categories"] = [{"id": "c3", "name": "cat"}]
    with pytest.raises(
        InputError, match='category "c3" has the name "cat", expected "owl" as in the'
    ):
        read_detections(write(tmp_path / "dt.json", document), truth)


def test_unknown_class_names_are_skipped_and_counted(voc: Path, tmp_path: Path) -> None:
    names = write(tmp_path / "names.txt", "dog\nowl\nant\n")
    dt = write(tmp_path / "dt.json", [*both_matched(0, 1), record(1, 2, [0, 0, 5, 5])])
    detections = read_detections(dt, read_ground_truth(voc), class_names=names)
    assert len(detections) == 12
    [note] = [note for note in detections.notes if note.code == "unknown-categories"]
    assert (note.count, "ant" in note.message) == (1, True)


def test_a_class_list_also_serves_coco_ground_truth_with_id_gaps(tmp_path: Path) -> None:
    """Predictions number 80 classes, the ground truth has ids up to 90: names match them."""
    gt = coco_truth(tmp_path, {1: "1.jpg"})
    document = json.loads(gt.read_text())
    for entry in (*document["categories"], *document["annotations"]):
        key = "category_id" if "category_id" in entry else "id"
        entry[key] = {1: 10, 2: 20, 3: 90}[entry[key]]
    write(gt, document)
    names = write(tmp_path / "names.txt", "cat\ndog\nowl\n")
    dt = write(tmp_path / "dt.json", [record(1, 3, [100, 0, 10, 10])])
    truth = read_ground_truth(gt)
    detections = read_detections(dt, truth, class_names=names)
    assert [detections.class_ids[k] for k in detections.label] == [90]


def test_the_command_accepts_voc_with_coco_results(voc: Path, tmp_path: Path, detap: Run) -> None:
    names = write(tmp_path / "names.txt", "cat\ndog\nowl\nant\n")
    dt = write(tmp_path / "dt.json", both_matched(2, 3))
    call = ("eval", "--gt", str(voc), "--dt", str(dt), "--protocol", "coco", "--strict-iou")
    report = detap(*call, "--class-names", str(names), "--output-format", "json").report()
    assert report["summary"]["AP"] == 1.0
    assert str(names) in [source["path"] for source in report["inputs"]]
    assert detap("check", "--dt", str(dt), "--class-names", str(names)).status == 0


# --- files as tools write them


def test_invalid_sizes_and_dates_are_accepted(tmp_path: Path) -> None:
    """Roboflow's file: date_captured a number, sizes 0 or missing, a category without boxes."""
    gt = coco_truth(tmp_path, {1: "1.jpg", 2: "2.jpg"})
    document = json.loads(gt.read_text())
    document["images"][0] |= {"date_captured": 2024.5, "width": 0, "height": 0, "license": 1}
    document["info"] = {"year": 2024, "date_created": None}
    document["licenses"] = [{"id": 1, "url": "", "name": "any"}]
    document["categories"].append({"id": 0, "name": "all", "supercategory": "none"})
    truth = read_ground_truth(write(tmp_path / "_annotations.coco.json", document))
    assert truth.classes == ("all", *NAMES)
    assert truth.images == (1, 2)


# --- categories by name

LISTED = {1: "person", 2: "traffic light", 3: "cat"}


def named_pair(folder: Path, listed: Any, used: list[int], images: int = 1) -> tuple[Path, Path]:
    """Write ground truth of an object of each class of LISTED, and results on the same boxes."""
    rows = [(1, k, [100 * k, 0, 50, 50]) for k in LISTED]
    truth = truth_of(rows, LISTED, range(1, images + 1), size=None)
    detections = results_of(((1, k, [100 * at, 0, 50, 50]) for at, k in enumerate(used, 1)), 0.5)
    categories = [{"id": k, "name": name} for k, name in listed.items()]
    return saved(folder, truth, {"categories": categories, "annotations": detections})


def named_classes(folder: Path, listed: Any, used: list[int]) -> tuple[list[str], dict[str, Any]]:
    """Return the classes of the detections, and the notes about their names."""
    gt, dt = named_pair(folder, listed, used)
    truth = read_ground_truth(gt)
    fast = read_detections(dt, truth)
    with pytest.MonkeyPatch.context() as patch:  # the same if Python parses every record
        patch.setattr(results, "Fields", odd_fields)
        other = read_detections(dt, truth)
    assert other.label.tolist() == fast.label.tolist()
    assert other.notes == fast.notes
    notes = {n.code: (n.message, n.severity) for n in fast.notes if n.code.startswith("categor")}
    return [fast.classes[k] for k in fast.label.tolist()], notes


def test_categories_of_the_same_names_are_matched_by_name(tmp_path: Path) -> None:
    listed = {0: "person", 1: "traffic light", 2: "cat"}
    classes, notes = named_classes(tmp_path, listed, [0, 1, 2])
    assert classes == ["person", "traffic light", "cat"]
    message = "category ids of the results differ; matched by name"
    assert notes == {"categories-matched-by-name": (message, "info")}


def test_names_that_agree_with_the_ids_give_no_note(tmp_path: Path) -> None:
    assert named_classes(tmp_path, LISTED, [1, 2, 3]) == (list(LISTED.values()), {})


def test_names_that_differ_in_case_or_separators_are_matched_with_a_warning(tmp_path: Path) -> None:
    listed = {7: "Person", 8: "traffic_light", 9: "cat"}
    classes, notes = named_classes(tmp_path, listed, [7, 8, 9])
    assert classes == ["person", "traffic light", "cat"]
    message, warning = notes["category-names-alike"]
    assert warning
    assert "'Person as person', 'traffic_light as traffic light'" in message


def test_two_names_that_differ_only_in_case_match_nothing(tmp_path: Path) -> None:
    listed = {1: "cat", 7: "Person", 8: "PERSON"}
    classes, notes = named_classes(tmp_path, listed, [7, 8, 1])
    assert classes == ["cat"]
    message, warning = notes["categories-unmatched"]
    assert warning
    assert "only in the results: 'Person', 'PERSON'" in message
    assert "only in the ground truth: 'person', 'traffic light'" in message


def test_ids_without_a_name_are_skipped_with_a_warning(tmp_path: Path) -> None:
    classes, notes = named_classes(tmp_path, {0: "person", 1: "cat"}, [0, 2, 1])
    assert classes == ["person", "cat"]
    message = (
        "unmatched category names (only in the results: 'id 2'; only in the ground truth: "
        "'traffic light')"
    )
    assert notes["categories-unmatched"] == (message, "warning")


def test_names_that_contradict_the_ids_in_both_inputs_are_an_error(tmp_path: Path) -> None:
    gt, dt = named_pair(tmp_path, {1: "person", 2: "horse", 3: "dog"}, [1, 2, 3])
    error = raised(InputError, read_detections, dt, read_ground_truth(gt))
    assert [problem.message for problem in error.problems] == [
        'category 2 has the name "horse", expected "traffic light" as in the ground truth',
        'category 3 has the name "dog", expected "cat" as in the ground truth',
    ]


# --- samples and metadata


LONG = "9" * 5000
"""More digits than Python converts to an integer."""


def test_attributes_and_file_names_of_images(tmp_path: Path) -> None:
    path = coco_truth(tmp_path, {1: "a.jpg", 2: "b.jpg", 3: None})
    document = json.loads(path.read_text())
    document["images"][0]["id"] = 1.0
    document["images"][0]["weather"] = "rain"
    document["images"][1]["weather"] = None
    document["info"] = {"version": 0}
    text = json.dumps(document).replace('"version": 0', f'"version": {LONG}')
    truth = read_ground_truth(write(path, text))
    assert FORMATS["coco"].image_attribute(truth, "weather") == {1: "rain"}
    del document["info"]
    document["images"][0]["id"] = 1
    names = {1: "a.jpg", 2: "b.jpg"}
    broken = json.dumps(document)[:-1] + f', "info": NaN, "more": {LONG}' + "}"
    assert image_values_of_file(str(write(tmp_path / "nan.json", broken)), "file_name") == names
    assert image_values_of_file(str(write(path, document)), "file_name") == names


def test_names_in_results_without_ground_truth(tmp_path: Path) -> None:
    records = [record(1, 7, [0, 0, 5, 5]), record(2.0, 8, [0, 0, 5, 5]), {"image_id": True}]
    document: dict[str, Any] = {"annotations": [*records, 5, {"image_id": 0}]}
    listed: list[Any] = [{"id": 7, "name": "cat"}, {"id": 8}, {"name": "dog"}, 5]
    for categories, classes in ((listed, ("cat", "8")), (5, ("7", "8")), (None, ("7", "8"))):
        options = {"class_names": "names.txt", "boxes": "xyxy"}
        text = json.dumps(document | {"categories": categories})
        text = text.replace('"image_id": 0', f'"image_id": {LONG}')
        path = write(tmp_path / "dt.json", text)
        truth = placeholder_ground_truth(path, options, DEFAULT_LIMITS)
        assert (truth.images, truth.class_ids, truth.classes) == ((1, 2), (7, 8), classes)
        assert options == {"boxes": "xyxy"}
