"""The page of detections without scores: F1 over IoU thresholds in place of the curves."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

import detap

QUICKSTART = Path("fixtures/quickstart/coco")


def page_of(missing_scores: str | None = None) -> str:
    truth = detap.read_ground_truth(QUICKSTART / "instances.json")
    detections = detap.read_detections(QUICKSTART / "no-scores.json", truth)
    if missing_scores is not None:
        detections = replace(detections, score=np.linspace(0, 1, len(detections)))
    return detap.evaluate(truth, detections).to_page()


def test_the_table_and_line_of_thresholds() -> None:
    page = page_of()
    section = page.partition('<section id="thresholds"')[2].partition("</section>")[0]
    assert "F1 over IoU thresholds" in section
    # 26/37 at .5, 8/37 at .9, as in the specification's counts: 13 and 4 true positives of 14.
    assert re.search(r">0\.5<.*?>0\.7027<", section, re.DOTALL)
    assert re.search(r">0\.9<.*?>0\.2162<", section, re.DOTALL)
    assert section.count("<polyline") == 1
    assert 'id="curves"' not in page
    assert '"totalsName":"all classes"' in page


def test_the_page_of_scores_has_no_thresholds() -> None:
    page = page_of("given")
    assert 'id="thresholds"' not in page
    assert 'id="curves"' in page
    assert '"totalsName":"mean / sum"' in page
