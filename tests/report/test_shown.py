"""Terminal colors and the order of changed images."""

from detap import evaluate
from detap.analysis.comparison import compare
from detap.report.sections.comparison import comparison_report
from detap.report.writers.json import as_dict
from detap.tables.detection import Detections, GroundTruth

BOX = [0, 0, 10, 10]
TRUTH = GroundTruth.from_arrays(
    image=[*"aabbccc"],
    label=["cat"] * 7,
    boxes=[[20 * n, 0, 20 * n + 10, 10] for n in (0, 1, 0, 1, 0, 1, 2)],
    images=[*"abcd"],
)


def make_detections(*places: tuple[str, int]) -> Detections:
    return Detections.from_arrays(
        image=[image for image, _ in places],
        label=["cat"] * len(places),
        boxes=[[20 * n, 0, 20 * n + 10, 10] for _, n in places],
        score=[1 - 0.01 * n for n in range(len(places))],
    ).reindex_like(TRUTH)


def test_most_changed_images_first_and_worse_before_better() -> None:
    # Missed: of a one before and none after, of b none and one, of c none and two; d has nothing.
    before = make_detections(("a", 0), ("b", 0), ("b", 1), ("c", 0), ("c", 1), ("c", 2))
    after = make_detections(("a", 0), ("a", 1), ("b", 0), ("c", 0))
    compared = compare(evaluate(TRUTH, before, "voc2012"), evaluate(TRUTH, after, "voc2012"))
    images = as_dict(comparison_report(compared))["images"]
    assert images["changed"] == 3
    assert [(entry["name"], entry["errors"]) for entry in images["all"]] == [
        ("c", 2),
        ("b", 1),
        ("a", -1),
    ]
