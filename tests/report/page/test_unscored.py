"""The page of detections without scores: F1 over IoU thresholds in place of the curves."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

import detap
from tests.report.page.cases import model_of

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


def test_the_confusions_and_images_of_all_detections(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page_of(), encoding="utf-8")
    operating = model_of(path)["analysis"]["operating"]
    # 8 + 9 + 8 detections are 4 + 5 + 4 true positives and 2 + 4 + 4 false positives of birds, cats
    # and dogs, as in the specification; two are ignored. All are at the only step.
    added = np.array([[int(text or 0) for text in of] for of in operating["added"]])
    assert operating["scores"] == [None]
    assert added[:, 0].tolist() == [4, 5, 4]
    assert added[:, 1:].sum(axis=1).tolist() == [2, 4, 4]


def test_the_sections_of_scores_are_left_out() -> None:
    page = page_of()
    for name in ("confusion", "breakdowns", "gallery"):
        assert f'<section id="{name}"' in page
        assert f'href="#{name}"' in page
    for name in ("errors", "operating", "curves", "calibration"):
        assert f'<section id="{name}"' not in page
        assert f'href="#{name}"' not in page
    assert '<label class="slider" hidden>' in page
    assert '<label class="slider">' in page_of("given")


def test_the_page_of_scores_has_no_thresholds() -> None:
    page = page_of("given")
    assert 'id="thresholds"' not in page
    assert 'id="curves"' in page
    assert '"totalsName":"mean / sum"' in page
