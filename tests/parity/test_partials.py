"""Real data in random shards: same bits as one run under every preset, and known values."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import detap
from detap.evaluation.detection import score_tables
from detap.evaluation.partial import Partial
from detap.evaluation.results import Result
from detap.formats.coco import tables as coco
from detap.formats.voc import tables as voc
from detap.protocols import Protocol, protocol
from tests.cases import BY_IMAGE
from tests.parity.compare import assert_same_bits

Tables = tuple[detap.GroundTruth, detap.Detections]
RULES = [
    *BY_IMAGE.values(),
    replace(protocol("coco"), class_agnostic=True),
    replace(protocol("coco"), max_dets_scope="image"),
    replace(protocol("coco"), max_dets=(None,)),
]


@cache
def voc2007(data: Path) -> Tables:
    truth = voc.read_ground_truth(data / "voc2007-test", image_set="test")
    return truth, voc.read_detections(data / "voc2007-test" / "detections", truth)


@cache
def coco_sample(data: Path) -> Tables:
    folder = data / "coco-val2014-100"
    truth = coco.read_ground_truth(folder / "instances_val2014_100.json")
    return truth, coco.read_detections(folder / "instances_val2014_fakebbox100_results.json", truth)


def merged(truth: detap.GroundTruth, detections: detap.Detections, protocol: Protocol) -> Result:
    """Return the result of seven shards of random images, merged in random order via bytes."""
    random = np.random.default_rng(11)
    owner = random.integers(0, 7, len(truth.images))
    blobs = []
    for shard in random.permutation(7):
        images = [truth.images[n] for n in np.flatnonzero(owner == shard)]
        share = detap.select(truth, detections, images=images)
        result = score_tables(*share, protocol, match_table=protocol.matching == "by-score")
        blobs.append(Partial.of(result, ground_truth=truth, input="").to_bytes())
    return detap.merge(blobs, truth).compute()


@pytest.mark.parametrize("read", [voc2007, coco_sample], ids=["voc2007", "coco"])
@pytest.mark.parametrize("protocol", RULES, ids=lambda rules: rules.name)
def test_shards_of_real_data(
    read: Callable[[Path], Tables], protocol: Protocol, real_data: Path
) -> None:
    truth, detections = read(real_data)
    # As a file that lists image after image, for protocols by which rows rank.
    detections = detections.select(np.argsort(detections.image, kind="stable"))
    whole, ours = score_tables(truth, detections, protocol), merged(truth, detections, protocol)
    for name in ("average_precision", "recall", "precision", "within_max_dets", "duplicates"):
        assert_same_bits(getattr(ours, name), getattr(whole, name), name)
    for name in ("ground_truths", "ignored", "detections_count", "true_positives"):
        assert_same_bits(getattr(ours, name), getattr(whole, name), name)
    assert repr(ours.summary) == repr(whole.summary)


def test_known_values_of_coco_val2014_100(real_data: Path) -> None:
    expected = json.loads(
        (real_data / "coco-val2014-100" / "expected_bbox.json").read_text("utf-8")
    )
    ours = merged(*coco_sample(real_data), protocol("coco"))
    assert ours.summary == pytest.approx(expected["stats"], abs=1e-12)
