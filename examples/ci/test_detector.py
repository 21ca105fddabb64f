from detap.testing import assert_detections


def test_the_detector():
    assert_detections(
        "instances.json",
        "results.json",
        protocol="coco",
        fail_under={"AP50": 0.85, "min-class.AP": 0.4},
        baseline="baseline.json",
        max_drop={"AP": 0.01, "class:*.AP": 0.05},
        max_rise={"class:*.false_positives": "10%"},
    )
