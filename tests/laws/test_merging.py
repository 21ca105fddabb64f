"""Detections of any split of the images, merged in any order, are those of one process."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import detap
from detap import Detections, GroundTruth
from detap.formats import read_detections
from detap.protocols import PRESETS, Protocol, protocol
from tests.cases import BY_IMAGE, Case, cases
from tests.evaluation.test_evaluator import in_order_of_images
from tests.laws.test_keypoints import RULES, keypoint_cases
from tests.laws.test_keypoints import scored as scored_keypoints
from tests.laws.test_laws import assert_same_result
from tests.laws.test_masks import Scene, mask_cases
from tests.laws.test_masks import scored as scored_masks

pytestmark = pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")

METRICS = {
    **{name: replace(protocol("coco"), metrics=(name,)) for name in ("JI", "oLRP", "CPM")},
    "LRP@score=0.5": replace(protocol("voc2012"), metrics=("LRP@score=0.5",)),
    "recall@fppi=0.25": replace(protocol("coco"), metrics=("recall@fppi=0.25",)),
    "MR-2": replace(protocol("voc2012"), metrics=("MR-2", "MR-4")),
    "lvis-fixed": replace(protocol("lvis-fixed"), max_dets=(2,)),
    "lvis-fixed-segm": replace(protocol("lvis-fixed-segm"), max_dets=(2,)),
}
"""Protocols with metrics other than AP and AR, or with a limit over all images."""

SHAPES = [PRESETS[name] for name in ("coco-segm", "coco-boundary", "coco-polygon", "lvis", "dota")]


def saved(detections: Detections, split: list[int], folder: Path) -> list[Path]:
    """Save the detections in a file per part, with the images whose entry is its number."""
    part_of_row = np.array(split)[detections.image]
    paths = [folder / f"{number}.npz" for number in range(max(split) + 1)]
    for number, path in enumerate(paths):
        detections.select(part_of_row == number).save(path)
    return paths


def report(result: detap.Result) -> dict[str, Any]:
    """Return the JSON report without its inputs and the note on their order."""
    content = result.to_dict()
    content.pop("inputs")
    content["notes"] = [n for n in content["notes"] if n["code"] != "interleaved-inputs"]
    return content


def check_merged(
    tables: tuple[GroundTruth, Detections], rules: Protocol, data: st.DataObject
) -> None:
    """Check the merged result of a drawn split against that of one process."""
    truth, detections = tables[0], replace(tables[1], notes=())
    images = len(truth.images)
    split = data.draw(st.lists(st.integers(0, 3), min_size=images, max_size=images))
    with tempfile.TemporaryDirectory() as folder:
        paths = data.draw(st.permutations(saved(detections, split, Path(folder))))
        merged = detap.evaluate(truth, read_detections(paths, truth, as_is=True), rules)
        detections.save(Path(folder, "whole.npz"))
        one = read_detections(Path(folder, "whole.npz"), truth, as_is=True)
    whole = detap.evaluate(truth, one, rules)
    assert_same_result(merged, whole)
    for left, right in zip(report(merged).items(), report(whole).items(), strict=True):
        assert json.dumps(left) == json.dumps(right)
    if rules.matching == "by-score" and rules.iou_type != "keypoints":
        assert str(merged.errors()) == str(whole.errors())


@settings(phases=(Phase.explicit, Phase.generate))
@given(cases(), st.sampled_from([*BY_IMAGE.values()]), st.data())
def test_boxes(case: Case, rules: Protocol, data: st.DataObject) -> None:
    check_merged(case.with_dt(in_order_of_images(case.dt)).tables(), rules, data)


@settings(phases=(Phase.explicit, Phase.generate))
@given(cases(), st.sampled_from(SHAPES), st.data())
def test_shapes(case: Case, rules: Protocol, data: st.DataObject) -> None:
    case = case.with_dt(in_order_of_images(case.dt))
    check_merged(case.tables_for(rules), rules, data)


@pytest.mark.parametrize("rules", METRICS.values(), ids=METRICS)
@settings(phases=(Phase.explicit, Phase.generate))
@given(case=cases(), data=st.data())
def test_other_metrics(rules: Protocol, case: Case, data: st.DataObject) -> None:
    case = case.with_dt(in_order_of_images(case.dt))
    check_merged(case.tables_for(rules), rules, data)


@settings(phases=(Phase.explicit, Phase.generate))
@given(mask_cases(), st.data())
def test_masks_of_files(case: Scene, data: st.DataObject) -> None:
    result = scored_masks(*case)
    check_merged((result.ground_truth, result.detections), protocol("coco-segm"), data)


@settings(phases=(Phase.explicit, Phase.generate))
@given(keypoint_cases(), st.data())
def test_keypoints(case: Scene, data: st.DataObject) -> None:
    result = scored_keypoints(*case)
    check_merged((result.ground_truth, result.detections), RULES, data)
