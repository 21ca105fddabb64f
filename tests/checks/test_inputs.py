"""Checks of negative sizes and category ids: shards are checked like one file.

Thirty images have two objects each, of classes 1 to 5 in turn, and detections exactly on them. What
looks wrong about one image alone is one box in thirty or sixty: too few to be refused in the whole,
and all that there is in a shard of its own.
"""

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import detap
from detap import Evaluator
from detap.checks.inputs import category_shift
from detap.cli import main
from detap.errors import InputError
from tests.cli.conftest import Run
from tests.coco import Row, results_of, truth_of

Records = list[dict[str, Any]]
Capture = pytest.CaptureFixture[str]

IMAGES = 30
NAMES = {k: f"c{k}" for k in range(1, 6)}


ROWS: list[Row] = [
    (image, (2 * image + k + 1) % 5 + 1, [10 + 50 * k, 10, 30, 40])
    for image in range(1, IMAGES + 1)
    for k in (0, 1)
]


def objects() -> Records:
    return list(truth_of(ROWS, NAMES, [])["annotations"])


def results() -> Records:
    return results_of(ROWS, 0.5)


def shifted(record: dict[str, Any]) -> None:
    """Add one to the category ids of the first image: 4 and 5 become 5 and 6."""
    record["category_id"] += 1


def unknown(record: dict[str, Any]) -> None:
    record["category_id"] = 77


def turned(record: dict[str, Any]) -> None:
    x, y, width, height = record["bbox"]
    record["bbox"] = [x + width, y, -width, height]


FAULTS = {
    "shifted": (shifted, "every category_id looks off by +1"),
    "unknown": (unknown, " of the results is in the ground truth"),
    "turned": (turned, "negative width"),
}


class Written:
    """Ground truth and results, as one file each and as a tiny shard and the remaining images."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts = {"whole": range(1, IMAGES + 1), "tiny": [1], "rest": range(2, IMAGES + 1)}

    def path(self, name: str) -> str:
        return str(self.folder / f"{name}.json")

    def write(self, truths: Records, detections: Records) -> None:
        for name, images in self.parts.items():
            objects, answers = (
                [record for record in records if record["image_id"] in images]
                for records in (truths, detections)
            )
            truth = truth_of([], NAMES, images, size=(200, 100)) | {"annotations": objects}
            Path(self.path(f"gt-{name}")).write_text(json.dumps(truth))
            Path(self.path(f"dt-{name}")).write_text(json.dumps(answers))

    def call(self, truths: Sequence[str], detections: Sequence[str], *more: str) -> list[str]:
        words = [word for name in truths for word in ("--gt", self.path(f"gt-{name}"))]
        words += [word for name in detections for word in ("--dt", self.path(f"dt-{name}"))]
        return ["eval", *words, *more]

    def statuses(self, *more: str) -> dict[str, int]:
        """Return the exit status of each way to evaluate all images."""
        shards = ["tiny", "rest"]
        ways = {
            "file": self.call(["whole"], ["whole"]),
            "shards": self.call(["whole"], shards),
            "pairs": self.call(shards, shards),
            "tables": self.call(["whole"], shards, "--errors", "tidecv"),
            "truths": self.call(shards, ["whole"]),
        }
        return {name: main([*words, *more, "-q"]) for name, words in ways.items()}


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def made_wrong(
    records: Records, wrong: Callable[[dict[str, Any]], None], images: Sequence[int]
) -> Records:
    changed = copy.deepcopy(records)
    for record in changed:
        if record["image_id"] in images:
            wrong(record)
    return changed


@pytest.mark.parametrize("fault", FAULTS)
def test_a_tiny_shard_of_detections_is_checked_with_the_others(
    written: Written, fault: str, capsys: Capture
) -> None:
    """On one image of thirty it is the detector's fault; on all, it is an error everywhere."""
    wrong, message = FAULTS[fault]
    written.write(objects(), made_wrong(results(), wrong, [1]))
    assert set(written.statuses().values()) == {0}
    written.write(objects(), made_wrong(results(), wrong, range(1, IMAGES + 1)))
    capsys.readouterr()
    for name, status in written.statuses().items():
        assert (name, status) == (name, 2)
    errors = capsys.readouterr().err.split("Error: ")[1:]
    assert [message in error for error in errors] == [True] * 5
    assert set(written.statuses("--as-is").values()) == {0}


def test_negative_sizes_of_a_tiny_ground_truth_are_checked_with_the_others(
    written: Written, capsys: Capture
) -> None:
    written.write(made_wrong(objects(), turned, [1]), results())
    assert set(written.statuses().values()) == {0}
    written.write(made_wrong(objects(), turned, [1, 2]), results())
    capsys.readouterr()
    assert set(written.statuses().values()) == {2}
    errors = capsys.readouterr().err.split("Error: ")[1:]
    assert ["negative width" in error for error in errors] == [True] * 5
    assert set(written.statuses("--as-is").values()) == {0}


@pytest.mark.parametrize("whole", [True, False])
def test_a_process_with_few_boxes_is_checked_with_the_others(whole: bool) -> None:
    """One of 60 boxes is converted, alone in its process; or three are, one in twenty."""
    for wrong, refused in (([1], False), ([1, 2, 3], True)):
        blobs = []
        for images in ([1], range(2, IMAGES + 1)):
            detections = made_wrong(results(), turned, wrong)
            truths = objects() if whole else made_wrong(objects(), turned, wrong)
            # One turned box an image: the second of each is as it was.
            for many, given in ((detections, results()), (truths, objects())):
                many[1::2] = given[1::2]
            evaluator = updated(images, truths, detections, whole=whole)
            blobs.append(evaluator.to_bytes())
        union = evaluator.merge(blobs)
        if not refused:
            union.compute()
            continue
        with pytest.raises(InputError, match="expected no negative width or height"):
            union.compute()


def updated(
    images: Sequence[int], truths: Records, detections: Records, *, whole: bool
) -> Evaluator:
    classes = [1, 2, 3, 4, 5]
    table = (
        detap.GroundTruth.from_arrays(
            image=[record["image_id"] for record in truths],
            label=[record["category_id"] for record in truths],
            boxes=[record["bbox"] for record in truths],
            box_format="xywh",
            classes=classes,
            as_is=False,
        )
        if whole
        else None
    )
    evaluator = Evaluator(table, classes=None if whole else classes, images="seen")

    def of(records: Records, key: str, image: int) -> list[Any]:
        return [record[key] for record in records if record["image_id"] == image]

    for image in images:
        own = {"boxes": [of(truths, "bbox", image)], "labels": [of(truths, "category_id", image)]}
        evaluator.update(
            [image],
            [of(detections, "bbox", image)],
            [of(detections, "score", image)],
            [of(detections, "category_id", image)],
            ground_truth=None if whole else own,
        )
    return evaluator


def test_a_slice_is_not_checked_alone(written: Written) -> None:
    """The slice of the one image with wrong boxes has metrics."""
    written.write(objects(), made_wrong(results(), turned, [1]))
    slices = written.folder / "slices.json"
    slices.write_text(json.dumps({"one": [1], "others": [*range(2, IMAGES + 1)]}))
    words = written.call(["whole"], ["tiny", "rest"], "--slices", str(slices))
    assert main(words) == 0


@pytest.mark.parametrize(("objects_of_shard", "status"), [(19, 0), (20, 2)])
def test_ids_like_stems_need_more_objects_in_one_of_several_inputs(
    tmp_path: Path, objects_of_shard: int, status: int, command: Run
) -> None:
    """Image k has the file {41 - k}.jpg; one shard has those numbers as ids."""
    count = 40
    images = range(1, count + 1)
    boxes = {k: [3 * k, 2 * k, 20 + 3 * k, 20 + 2 * k] for k in images}
    rows: list[Row] = [(k, 1, boxes[k]) for k in images]
    truth = truth_of(rows, NAMES, images, size=(1000, 1000))
    for image in truth["images"]:
        image["file_name"] = f"{count + 1 - image['id']}.jpg"
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    stems: list[Row] = [(count + 1 - k, 1, boxes[k]) for k in images if abs(k - 20.5) > 5]
    by_stem = results_of(stems[:objects_of_shard])
    taken = {record["image_id"] for record in by_stem}
    right = results_of(row for row in rows if row[0] not in taken)
    words = ["eval", "--gt", str(tmp_path / "gt.json")]
    for name, records in (("stems", by_stem), ("right", right)):
        (tmp_path / f"{name}.json").write_text(json.dumps(records))
        words += ["--dt", str(tmp_path / f"{name}.json")]
    ended = command(*words)
    assert ended.status == status
    assert ("looks like the number in the file name" in ended.err) == (status == 2)


# --- counts of category pairs: index and id of the object's class, id of the detection, count

OFF_BY_ONE = "every category_id looks off by +1 (e.g. 2 overlaps class 1)"


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # 19 of 20 are wrong, one in twenty is right: all are off by one.
        ([(0, 1, 2, 10), (1, 2, 3, 9), (2, 3, 3, 1)], OFF_BY_ONE),
        ([(0, 1, 2, 10), (1, 2, 3, 8), (2, 3, 3, 2)], ""),
        # At least 0.8 of the objects must have the same offset.
        ([(0, 1, 2, 8), (1, 2, 3, 8), (2, 3, 9, 4)], OFF_BY_ONE),
        ([(0, 1, 2, 8), (1, 2, 3, 7), (2, 3, 9, 5)], ""),
        (
            [(0, 3, 2, 5), (1, 5, 4, 5)],
            "every category_id looks off by -1 (e.g. 2 overlaps class 3)",
        ),
        # Ids 7 and 3 at positions 0 and 1.
        (
            [(0, 7, 0, 5), (1, 3, 1, 5)],
            "category_id looks like the 0-based position in the list of categories (e.g. 0 "
            "overlaps class 7)",
        ),
        ([(0, 1, 2, 20)], ""),  # one class
        ([(0, 1, 2, 5), (1, 2, 3, 4)], ""),  # nine objects
        ([], ""),
    ],
)
def test_category_ids_are_off_if_nearly_all_objects_agree(
    pairs: list[tuple[int, int, int, int]], expected: str
) -> None:
    assert category_shift(pairs, unknown=False) == expected


def test_few_objects_must_all_agree_if_categories_are_unknown() -> None:
    pairs = [(0, 1, 2, 5), (1, 2, 3, 4)]
    assert category_shift(pairs, unknown=True) == OFF_BY_ONE
    assert category_shift([(0, 1, 2, 5), (1, 2, 3, 3), (2, 3, 9, 1)], unknown=True) == ""
