"""--classes and --images select after scoring everything."""

from pathlib import Path

import pytest

from tests.cli.conftest import Files, Run, write_coco
from tests.cli.test_shards import numbers
from tests.shards import JSON


@pytest.fixture
def limited(tmp_path: Path) -> Files:
    """Write a cat and a dog on one image, both detected, the cat with the higher score."""
    box = [0, 0, 100, 100]
    truth = {
        "images": [{"id": 1, "width": 640, "height": 480}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"id": n, "image_id": 1, "category_id": n, "bbox": box, "area": 1e4, "iscrowd": 0}
            for n in (1, 2)
        ],
    }
    detections = [
        {"image_id": 1, "category_id": n, "bbox": box, "score": score}
        for n, score in ((1, 0.9), (2, 0.8))
    ]
    return write_coco(tmp_path, truth, detections)


LIMIT = ("--max-dets", "1", "--max-dets-scope", "image")


def test_max_dets_per_image_counts_all_classes(detap: Run, limited: Files) -> None:
    """The cat is the image's only detection within max_dets, selected or not: the dog's AP is 0."""
    both = numbers(detap(*limited.arguments, *LIMIT, *JSON))
    dog = numbers(detap(*limited.arguments, *LIMIT, "--classes", "dog", *JSON))
    assert [row["AP"] for row in both["classes"]] == [pytest.approx(1.0), 0.0]
    assert dog["classes"] == both["classes"][1:]
    assert dog["summary"]["AP"] == 0.0


def test_class_agnostic_pools_only_the_selected_classes(detap: Run, limited: Files) -> None:
    asked = (*limited.arguments, *LIMIT, "--class-agnostic", "--classes", "dog", *JSON)
    record = numbers(detap(*asked))
    assert record["summary"]["AP"] == pytest.approx(1.0)
    assert record["selection"]["signature"] == ["classes:1-of-2-cd6357ef"]


def test_a_selection_of_all_images_says_so(detap: Run, limited: Files) -> None:
    for chosen in ("1", "seen"):
        done = detap(*limited.arguments, "--images", chosen)
        assert "\nSelection\nall images\n" in done.out
