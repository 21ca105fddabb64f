"""--classes and --images select after scoring everything."""

from pathlib import Path

import pytest

from tests.cli.conftest import Files, Run, write_coco
from tests.cli.test_shards import numbers
from tests.coco import results_of, truth_of
from tests.shards import JSON


@pytest.fixture
def limited(tmp_path: Path) -> Files:
    """Write a cat and a dog on one image, both detected, the cat with the higher score."""
    rows = [(1, label, [0, 0, 100, 100]) for label in (1, 2)]
    truth, (cat, dog) = truth_of(rows, {1: "cat", 2: "dog"}, [1]), results_of(rows)
    detections = [cat, dog | {"score": 0.8}]
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
