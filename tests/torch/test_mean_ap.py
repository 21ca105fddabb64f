"""torchmetrics' names and values, compared with torchmetrics itself if it is installed."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detap.errors import DetapWarning, InputError, UsageError
from detap.protocols.fields import RECALL_GRIDS, linspace32
from tests.parity import reference
from tests.parity.compare import assert_same_bits
from tests.torch.references import torch as found_torch
from tests.torch.references import torchmetrics_map

torch = found_torch()

FORMS = ("xyxy", "xywh", "cxcywh")

# What torchmetrics' own documentation says of this image.
PREDS = {"boxes": [[258.0, 41.0, 606.0, 285.0]], "scores": [0.536], "labels": [0]}
TARGET = {"boxes": [[214.0, 41.0, 562.0, 285.0]], "labels": [0]}
DOCUMENTED = {
    "map": 0.6,
    "map_50": 1.0,
    "map_75": 1.0,
    "map_small": -1.0,
    "map_medium": -1.0,
    "map_large": 0.6,
    "mar_1": 0.6,
    "mar_10": 0.6,
    "mar_100": 0.6,
    "mar_small": -1.0,
    "mar_medium": -1.0,
    "mar_large": 0.6,
    "map_per_class": -1.0,
    "mar_100_per_class": -1.0,
    "classes": 0.0,
}


def metric(**given: Any) -> Any:
    from detap.torch import MeanAveragePrecision

    return MeanAveragePrecision(**given)


def tensors(item: dict[str, Any]) -> dict[str, Any]:
    return {key: torch.tensor(values) for key, values in item.items()}


def random_image(generator: Any, form: str, classes: int, *, extras: bool) -> tuple[Any, Any]:
    """Return detections and ground truths of an image: boxes close together, tied scores."""

    def boxes(count: int) -> Any:
        corner = torch.rand(count, 2, generator=generator) * 200
        size = torch.rand(count, 2, generator=generator) ** 2 * 150
        if form == "xywh":
            return torch.cat([corner, size], 1)
        if form == "cxcywh":
            return torch.cat([corner + size / 2, size], 1)
        return torch.cat([corner, corner + size], 1)

    there, detected = torch.randint(0, 6, (2,), generator=generator).tolist()
    detected *= 5
    target = {"boxes": boxes(there), "labels": torch.randint(0, classes, (there,))}
    if extras:
        target["iscrowd"] = (torch.rand(there, generator=generator) < 0.2).long()
        area = torch.rand(there, generator=generator)
        target["area"] = torch.where(area < 0.2, 0.0, area * 12_000)
    preds = {
        "boxes": boxes(detected),
        "scores": (torch.rand(detected, generator=generator) * 10).round() / 10,
        "labels": torch.randint(0, classes, (detected,)),
    }
    near = min(there, detected)
    shift = torch.rand(near, 4, generator=generator) * 3
    preds["boxes"][:near] = target["boxes"][:near] + shift
    preds["labels"][:near] = target["labels"][:near]
    return preds, target


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("form", FORMS)
def test_every_value_equals_torchmetrics(form: str, seed: int) -> None:
    """Shapes and types too; over batches, crowds, areas, thresholds, averages."""
    theirs_class = torchmetrics_map()
    given: dict[str, Any] = {"box_format": form, "class_metrics": seed % 2 == 0}
    if seed % 3 == 0:
        given["average"] = "micro"
    if seed % 4 == 0:
        given["iou_thresholds"] = [0.3, 0.5, 0.75]
    if seed % 5 == 0:
        given["max_detection_thresholds"] = [100, 2, 5]
    theirs, ours = theirs_class(**given), metric(**given)
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(3):
        classes = 1 if seed % 7 == 0 else 4
        batch = [random_image(generator, form, classes, extras=seed % 2 == 1) for _ in range(4)]
        preds, target = ([pair[side] for pair in batch] for side in (0, 1))
        theirs.update(preds, target)
        ours.update(preds, target)
    assert_same(ours.compute(), theirs.compute())


def masked(generator: Any, *, empty: bool) -> tuple[Any, Any]:
    """Return detections and ground truths of an image, with boxes other than the masks' bounds."""
    height, width = torch.randint(20, 200, (2,), generator=generator).tolist()

    def ellipses(count: int) -> Any:
        offset = torch.rand(count, 2, generator=generator) * torch.tensor([height, width])
        radius = torch.rand(count, 2, generator=generator) ** 2 * 100 + 1
        y, x = (
            (torch.arange(size) - offset[:, at, None]) / radius[:, at, None]
            for at, size in enumerate((height, width))
        )
        return y[:, :, None] ** 2 + x[:, None, :] ** 2 < 1

    preds, target = random_image(generator, "xyxy", 3, extras=bool(torch.rand(1) < 0.5))
    if not (empty or len(target["labels"])):
        return masked(generator, empty=empty)
    target["masks"], preds["masks"] = (ellipses(len(side["labels"])) for side in (target, preds))
    near = min(len(target["labels"]), len(preds["labels"]))
    shift = tuple(torch.randint(0, 3, (2,), generator=generator).tolist())
    # By class torchmetrics takes the areas of masks for boxes too: a negative one would count.
    preds["boxes"][:, 2:] = torch.maximum(preds["boxes"][:, :2], preds["boxes"][:, 2:])
    preds["masks"][:near] = torch.roll(target["masks"][:near], shift, (1, 2))
    preds["masks"] = preds["masks"].to([torch.bool, torch.uint8][near % 2])
    return preds, target


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("iou_type", ["segm", ("bbox", "segm"), ["segm", "bbox"], ("segm",)])
def test_masks_have_every_value_of_torchmetrics(iou_type: Any, seed: int) -> None:
    """With masks only, on images that have an object each; others are tested below."""
    theirs_class = torchmetrics_map()
    both = len(iou_type) == 2
    given: dict[str, Any] = {"iou_type": iou_type, "class_metrics": seed % 2 == 0}
    if seed % 3 == 0 and not (both and given["class_metrics"]):
        given["average"] = "micro"
    if seed % 4 == 0:
        given["iou_thresholds"] = [0.3, 0.5, 0.75]
    theirs, ours = theirs_class(**given), metric(**given)
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(2):
        batch = [masked(generator, empty=both) for _ in range(3)]
        preds, target = ([pair[side] for pair in batch] for side in (0, 1))
        theirs.update(preds, target)
        ours.update(preds, target)
    assert_same(ours.compute(), theirs.compute())


HALF = torch.zeros(1, 10, 10, dtype=torch.bool)
HALF[:, :5] = True


def item(masks: Any, *scores: float) -> dict[str, Any]:
    made = {"masks": masks, "labels": torch.zeros(len(masks), dtype=torch.int64)}
    return made | ({"scores": torch.tensor(scores)} if scores else {})


def test_detections_on_an_image_without_objects_count() -> None:
    """An FP above the one TP: torchmetrics omits it with masks only."""
    ours, theirs = metric(iou_type="segm"), torchmetrics_map()(iou_type="segm")
    for one in (ours, theirs):
        one.update([item(HALF, 0.9), item(HALF, 0.5)], [item(HALF[:0]), item(HALF)])
    assert ours.compute()["map"].item() == pytest.approx(0.5)
    assert theirs.compute()["map"].item() == pytest.approx(1)


def test_both_iou_types_are_averaged_equally() -> None:
    """torchmetrics takes the mean over classes for the second type, though average is micro.

    By hand, with all classes as one: the objects match detections of other classes.
    """
    given: dict[str, Any] = {"iou_type": ("bbox", "segm"), "class_metrics": True}
    ours, theirs = (each(**given, average="micro") for each in (metric, torchmetrics_map()))
    boxes = {"boxes": torch.tensor([[0.0, 0.0, 10.0, 5.0]])}
    for one in (ours, theirs):
        target = item(HALF) | boxes | {"labels": torch.tensor([1])}
        one.update([item(HALF, 0.9) | boxes], [target])
    for key in ("bbox_map", "segm_map"):
        assert ours.compute()[key].item() == pytest.approx(1)
    assert theirs.compute()["bbox_map"].item() == pytest.approx(1)
    assert theirs.compute()["segm_map"].item() == 0


BEFORE_UPDATE = "ignore:The ``compute`` method of metric:UserWarning"
"""torchmetrics' warning of a metric without updates."""


@pytest.mark.filterwarnings(BEFORE_UPDATE)
def test_the_result_of_each_iou_type() -> None:
    """The box of the object is missed, its mask is matched."""
    ours = metric(iou_type=("bbox", "segm"))
    assert ours.compute()["segm_map"].item() == -1
    boxes = {"boxes": torch.tensor([[0.0, 0.0, 10.0, 5.0]])}
    far = {"boxes": torch.tensor([[50.0, 50.0, 60.0, 60.0]])}
    assert ours([item(HALF, 0.9) | far], [item(HALF) | boxes])["segm_map"].item() == pytest.approx(
        1
    )
    assert ours.result().summary["AP"] == ours.result("bbox").summary["AP"] == 0
    assert ours.result("segm").summary["AP"] == pytest.approx(1)
    with pytest.raises(UsageError, match="iou_type 'mask' is not computed; choose from bbox, segm"):
        ours.result("mask")
    ours.reset()
    assert ours.result("segm") is None


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        assert ours[key].shape == value.shape, key
        assert ours[key].dtype == value.dtype, key
        assert torch.equal(ours[key], value), f"{key}: {ours[key]} and {value}"


def test_the_documented_example() -> None:
    ours = metric()
    ours.update([tensors(PREDS)], [tensors(TARGET)])
    values = ours.compute()
    assert {key: value.item() for key, value in values.items()} == pytest.approx(DOCUMENTED)
    assert all(value.shape == () for value in values.values())


@pytest.mark.filterwarnings(BEFORE_UPDATE)
def test_images_without_boxes_and_no_images() -> None:
    theirs, ours = torchmetrics_map()(class_metrics=True), metric(class_metrics=True)
    empty = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64)}
    for one in (theirs, ours):
        one.update([empty | {"scores": torch.zeros(0)}], [empty])
    assert_same(ours.compute(), theirs.compute())
    untouched = metric().compute()
    assert {value.item() for key, value in untouched.items() if key != "classes"} == {-1}
    assert untouched["classes"].shape == (0,)


def sample(folder: Path) -> tuple[list[Any], list[Any]]:
    """Return COCO's sample as torchmetrics' converter would: float32, x, y, width, height."""
    truth = json.loads((folder / "instances_val2014_100.json").read_text())["annotations"]
    results = json.loads((folder / "instances_val2014_fakebbox100_results.json").read_text())
    images = sorted({row["image_id"] for row in truth})
    preds, target = [], []
    for image in images:
        here = [row for row in truth if row["image_id"] == image]
        rows = [row for row in results if row["image_id"] == image]
        target.append(
            {
                "boxes": torch.tensor([row["bbox"] for row in here]),
                "labels": torch.tensor([row["category_id"] for row in here]),
                "iscrowd": torch.tensor([row["iscrowd"] for row in here]),
                "area": torch.tensor([row["area"] for row in here]),
            }
        )
        preds.append(
            {
                "boxes": torch.tensor([row["bbox"] for row in rows]).reshape(-1, 4),
                "labels": torch.tensor([row["category_id"] for row in rows], dtype=torch.int64),
                "scores": torch.tensor([row["score"] for row in rows]),
            }
        )
    return preds, target


def test_coco_sample_has_the_known_value(real_data: Path) -> None:
    """The value is that of torchmetrics 1.9.0 for these tensors."""
    preds, target = sample(real_data / "coco-val2014-100")
    ours = metric(box_format="xywh")
    ours.update(preds, target)
    assert ours.compute()["map"].item() == 0.5035117268562317


def test_recall_levels_of_numpy_give_the_values_of_pycocotools() -> None:
    """With its IoU thresholds too, the values are pycocotools' own."""
    torch.manual_seed(5)
    generator = torch.Generator().manual_seed(5)
    batch = [random_image(generator, "xywh", 3, extras=False) for _ in range(8)]
    ours = metric(
        box_format="xywh",
        iou_thresholds=np.linspace(0.5, 0.95, 10).tolist(),
        rec_thresholds=np.linspace(0, 1, 101).tolist(),
    )
    ours.update([p for p, _ in batch], [t for _, t in batch])
    annotations = [
        {"image_id": n, "category_id": c, "bbox": b, "area": b[2] * b[3], "iscrowd": 0}
        for n, (_, t) in enumerate(batch)
        for b, c in zip(t["boxes"].tolist(), t["labels"].tolist(), strict=True)
    ]
    results = [
        {"image_id": n, "category_id": c, "bbox": b, "score": s}
        for n, (p, _) in enumerate(batch)
        for b, c, s in zip(*(p[k].tolist() for k in ("boxes", "labels", "scores")), strict=True)
    ]
    instances = {
        "images": [{"id": n} for n in range(len(batch))],
        "categories": [{"id": c, "name": str(c)} for c in range(3)],
        "annotations": annotations,
    }
    theirs = reference.run(instances, results).summary
    assert theirs["AP"] > 0.01
    assert_same_bits([*ours.result().summary.values()], [*theirs.values()], "summary")


def test_thresholds_and_recall_levels_equal_torch() -> None:
    assert list(RECALL_GRIDS["float32"]) == torch.linspace(0, 1, 101).tolist()
    for start, stop, count in ((0.5, 0.95, 10), (0.0, 1.0, 11), (0.0, 1.0, 1000), (0.3, 0.7, 5)):
        assert list(linspace32(start, stop, count)) == torch.linspace(start, stop, count).tolist()


def test_max_dets_other_than_100_have_values() -> None:
    """pycocotools, and so torchmetrics, gives -1 for the mean precision at any other."""
    ours = metric(max_detection_thresholds=[300, 1, 10])
    ours.update([tensors(PREDS)], [tensors(TARGET)])
    values = ours.compute()
    assert values["map"].item() == pytest.approx(0.6)
    assert values["mar_300"].item() == pytest.approx(0.6)
    assert "mar_300_per_class" in values


def test_half_precision_is_converted_before_subtraction() -> None:
    """bfloat16 values near 2048 are 16 apart."""
    ours = metric()
    box = torch.tensor([[2048.0, 0.0, 2064.0, 10.0]], dtype=torch.bfloat16)
    item = {"boxes": box, "labels": torch.tensor([0])}
    ours.update([item | {"scores": torch.tensor([0.5], dtype=torch.bfloat16)}], [item])
    assert ours.result().ground_truth.area.tolist() == [160.0]


def test_images_named_by_a_key_count_once() -> None:
    """The second is repeated in a padded batch; without the key there would be three images."""
    ours = metric(image_key="image_id")
    preds, target = tensors(PREDS), tensors(TARGET)
    names = [{"image_id": torch.tensor([7])}, {"image_id": 8}]
    ours.update([preds, preds], [target | name for name in names])
    ours.update([preds], [target | names[1]])
    assert ours.result().images == (7, 8)
    with pytest.raises(UsageError, match="target 0 has no image_key 'image_id'"):
        ours.update([preds], [target])
    other = preds | {"scores": torch.tensor([0.1])}
    message = "image 8 is updated twice, with different rows"
    with pytest.raises(InputError, match=message):
        ours.update([preds, other], [target | names[1]] * 2)
    ours.update([other], [target | names[1]])
    with pytest.raises(InputError, match=message):
        ours.compute()


@pytest.mark.filterwarnings(BEFORE_UPDATE)
def test_forward_gives_the_values_of_its_batch_only() -> None:
    ours = metric()
    preds, target = tensors(PREDS), tensors(TARGET)
    far = {**target, "boxes": target["boxes"] + 1000}
    assert ours([preds], [target])["map_50"].item() == 1
    assert ours([preds], [far])["map_50"].item() == 0
    # One of two matched, the tied score of the other image after it: precision 1 to recall 0.5.
    assert ours.compute()["map_50"].item() == pytest.approx(51 / 101)
    ours.reset()
    assert ours.compute()["map"].item() == -1


def test_tensors_are_on_the_requested_device() -> None:
    ours = metric().to("meta")
    ours.update([tensors(PREDS)], [tensors(TARGET)])
    assert ours.compute()["map"].device.type == "meta"


@pytest.mark.filterwarnings("always::detap.errors.DetapWarning")
def test_normalized_boxes_are_scored_as_by_torchmetrics_with_a_warning() -> None:
    ours = metric()
    boxes = torch.tensor([[0.1, 0.1, 0.5, 0.5]]) + 0.01 * torch.arange(12)[:, None]
    labels = torch.zeros(12, dtype=torch.int64)
    prediction = {"boxes": boxes, "labels": labels, "scores": torch.linspace(1, 0.5, 12)}
    ours.update([prediction], [{"boxes": boxes, "labels": labels}])
    with pytest.warns(DetapWarning, match="look normalized"):
        assert ours.compute()["map"].item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"box_format": "corners"}, "box_format 'corners' is unknown; choose from xyxy, xywh, cxc"),
        ({"iou_type": "oks"}, "iou_type 'oks' is unknown; choose from bbox, segm, keypoints, or"),
        ({"iou_type": ("segm", "segm")}, r"iou_type \('segm', 'segm'\) is unknown"),
        ({"iou_type": ()}, "is unknown; choose from bbox, segm, keypoints, or several"),
        ({"average": "weighted"}, "average 'weighted' is unknown; choose from macro, micro"),
        ({"extended_summary": True}, r"extended_summary: .* in result\(\).full_precision\(\) and"),
        (
            {"rec_thresholds": [0.1, 0.2]},
            "rec_thresholds are not the 101 levels of a",
        ),
        ({"iou_thresholds": [1.5]}, "1.5"),
    ],
)
def test_invalid_arguments(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        metric(**given)


@pytest.mark.parametrize(
    ("preds", "target", "message"),
    [
        ([], [TARGET], "preds has 0 images, target has 1"),
        ([{"boxes": PREDS["boxes"]}], [TARGET], "preds 0 has no tensor 'scores'; give boxes, sco"),
        ([PREDS], [{"labels": [0]}], "target 0 has no tensor 'boxes'; give boxes, labels"),
        ([PREDS | {"boxes": [[0.0] * 5]}], [TARGET], r"preds 0: boxes has shape \(1, 5\)"),
        ([PREDS | {"scores": [0.5] * 2}], [TARGET], "image 0: 1 boxes and 2 scores; give one for"),
    ],
)
def test_invalid_batches(preds: Any, target: Any, message: str) -> None:
    with pytest.raises((UsageError, InputError), match=message):
        metric().update([tensors(item) for item in preds], [tensors(item) for item in target])


def test_invalid_masks() -> None:
    target = item(HALF)
    for preds, truth, message in (
        (tensors(PREDS), target, "preds 0 has no tensor 'masks'; give masks, scores, labels"),
        (item(HALF, 0.5), tensors(TARGET), "target 0 has no tensor 'masks'; give masks, labels"),
    ):
        with pytest.raises(UsageError, match=message):
            metric(iou_type="segm").update([preds], [truth])
    for preds, message in (
        (item(HALF * 0.7, 0.5), "detections: image 0: masks has dtype float32; expected bool, "),
        (item(HALF[:, 1:], 0.5), r"image 0: mask size \[9, 10\] differs from \["),
        (item(HALF, 0.5, 0.4), "detections: image 0: 1 masks and 2 scores; give one for each mask"),
    ):
        with pytest.raises(InputError, match=message):
            metric(iou_type="segm").update([preds], [target])


def test_an_invalid_batch_is_not_stored() -> None:
    ours = metric()
    ours.update([tensors(PREDS)], [tensors(TARGET)])
    for wrong in ({"scores": [float("nan")]}, {"scores": [0.5, 0.5]}):
        with pytest.raises(InputError):
            ours.update([tensors(PREDS | wrong)], [tensors(TARGET)])
    assert ours.compute()["map"].item() == pytest.approx(0.6)


# --- keypoints


def people(seed: int) -> tuple[list[Any], list[Any], dict[str, Any], list[dict[str, Any]]]:
    """Return a batch of persons as tensors, and the same as COCO's files."""
    generator = torch.Generator().manual_seed(seed)
    preds: list[Any] = []
    target: list[Any] = []
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for image in range(6):
        count = int(torch.randint(1, 5, (), generator=generator))
        keypoints = torch.rand(count, 17, 3, generator=generator) * 120
        keypoints[..., 2] = torch.randint(0, 3, (count, 17), generator=generator)
        corner, size = (torch.rand(count, 2, generator=generator) * scale for scale in (50, 150))
        boxes, areas = torch.cat([corner, size], 1), size[:, 0] * size[:, 1] * 0.5
        crowd = (torch.rand(count, generator=generator) < 0.2).long()
        labels = torch.ones(count, dtype=torch.int64)
        noise = torch.randn(count, 17, 3, generator=generator) * 6
        scores = (torch.rand(count, generator=generator) * 10).round() / 10
        preds.append({"keypoints": keypoints + noise, "scores": scores, "labels": labels})
        target.append(
            {"keypoints": keypoints, "boxes": boxes, "area": areas, "labels": labels}
            | {"iscrowd": crowd}
        )
        for row in range(count):
            flat = keypoints[row].flatten().tolist()
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": 1,
                    "bbox": boxes[row].tolist(),
                }
                | {"area": areas[row].item(), "iscrowd": crowd[row].item(), "keypoints": flat}
                | {"num_keypoints": int((keypoints[row, :, 2] > 0).sum())}
            )
            detected = (keypoints + noise)[row].flatten().tolist()
            results.append(
                {"image_id": image, "category_id": 1, "keypoints": detected}
                | {"score": scores[row].item()}
            )
    instances = {
        "images": [{"id": image} for image in range(6)],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": annotations,
    }
    return preds, target, instances, results


def pycocotools_keypoints(
    instances: dict[str, Any], results: list[dict[str, Any]]
) -> dict[str, float]:
    """Return pycocotools' metrics by name, NaN for -1."""
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = instances
        coco.createIndex()
        evaluator = COCOeval(coco, coco.loadRes(results), "keypoints")
        evaluator.evaluate()
        evaluator.accumulate()
        evaluator.summarize()
    names = "AP", "AP50", "AP75", "APm", "APl", "AR20"
    stats = [float("nan") if value == -1 else float(value) for value in evaluator.stats]
    return dict(zip(names, stats, strict=False))


@pytest.mark.parametrize("seed", range(4))
def test_keypoints_have_the_values_of_pycocotools(seed: int) -> None:
    preds, target, instances, results = people(seed)
    ours = metric(box_format="xywh", iou_type="keypoints")
    ours.update(preds[:2], target[:2])
    ours.update(preds[2:], target[2:])
    theirs = pycocotools_keypoints(instances, results)
    assert theirs["AP"] > 0.01
    summary = ours.result().summary
    assert_same_bits([summary[name] for name in theirs], [*theirs.values()], "summary")
    values = ours.compute()
    assert values["map"] == torch.tensor(theirs["AP"], dtype=torch.float32)
    assert values["mar_20"] == torch.tensor(theirs["AR20"], dtype=torch.float32)
    assert values["map_small"] == -1


def test_keypoints_need_the_boxes_of_the_targets() -> None:
    preds, target, *_ = people(0)
    del target[0]["boxes"]
    message = "target 0 has no tensor 'boxes'; give boxes, keypoints, labels"
    with pytest.raises(UsageError, match=message):
        metric(iou_type="keypoints").update(preds, target)


def test_sigmas_of_other_skeletons() -> None:
    """A keypoint off by d has OKS exp(-d^2 / (2 area (2 sigma)^2)): 0.607 with these numbers."""
    ours = metric(iou_type="keypoints", sigmas=[0.5], iou_thresholds=[0.6, 0.61])
    target = {
        "keypoints": torch.tensor([[[5.0, 5.0, 2.0]]]),
        "boxes": torch.tensor([[0.0, 0.0, 10.0, 10.0]]),
        "area": torch.tensor([25.0]),
        "labels": torch.tensor([0]),
    }
    shifted = target["keypoints"] + torch.tensor([5.0, 0.0, 0.0])
    pred = {"keypoints": shifted, "scores": torch.tensor([0.9]), "labels": torch.tensor([0])}
    ours.update([pred], [target])
    assert ours.compute()["map"].item() == pytest.approx(0.5)


# --- as a metric of torchmetrics


def batches(seed: int, count: int = 3) -> list[tuple[Any, Any]]:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    images = [
        [random_image(generator, "xyxy", 3, extras=True) for _ in range(4)] for _ in range(count)
    ]
    return [([p for p, _ in batch], [t for _, t in batch]) for batch in images]


def test_the_base_class() -> None:
    torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics is absent")
    assert isinstance(metric(), torchmetrics.Metric)


@pytest.mark.parametrize("iou_type", ["bbox", "segm"])
def test_saved_states_restore_the_metric(iou_type: str, tmp_path: Path) -> None:
    """Tensors only: torch.load needs no pickled classes."""
    generator = torch.Generator().manual_seed(3)
    torch.manual_seed(3)
    images = [masked(generator, empty=True) for _ in range(4)]
    (preds, target), half = zip(*images, strict=True), 2
    ours, again = metric(iou_type=iou_type), metric(iou_type=iou_type)
    assert ours.state_dict() == {}
    ours.persistent(True)
    ours.update(preds[:half], target[:half])
    torch.save(ours.state_dict(), tmp_path / "state.pt")
    again.persistent(True)
    again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for one in (ours, again):
        one.update(preds[half:], target[half:])
    assert ours.compute()["map"] > 0
    assert_same(again.compute(), ours.compute())


def test_a_pickled_metric_goes_on() -> None:
    import pickle

    (first, second, _), ours = batches(4), metric()
    ours.update(*first)
    again = pickle.loads(pickle.dumps(ours))
    for one in (ours, again):
        one.update(*second)
    assert_same(again.compute(), ours.compute())


def test_a_collection_has_the_values_of_its_metrics() -> None:
    """Two of detap and torchmetrics' own, in compute groups."""
    torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics is absent")
    made = {
        "ours": metric(),
        "loose": metric(iou_thresholds=[0.3]),
        "theirs": torchmetrics_map()(),
    }
    together = torchmetrics.MetricCollection(
        {name: one.clone() for name, one in made.items()}, prefix="val_"
    )
    for preds, target in batches(6):
        of_batch = together(preds, target)
        for one in made.values():
            one.update(preds, target)
        assert of_batch["val_ours_map"] == of_batch["val_theirs_map"]
    values = together.compute()
    for name, one in made.items():
        assert values[f"val_{name}_map"] == one.compute()["map"], name
    together.reset()
    assert together["ours"].image_names == []


def test_states_of_two_metrics_are_merged() -> None:
    pytest.importorskip("torchmetrics", reason="torchmetrics is absent")
    first, second, whole = metric(), metric(), metric()
    one, two, _ = batches(7)
    for each, batch in ((first, one), (second, two), (whole, two), (whole, one)):
        each.update(*batch)
    first.merge_state(second)
    assert_same(first.compute(), whole.compute())


def test_the_plot_has_a_line_per_metric() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is absent")
    pyplot.switch_backend("agg")
    ours = metric()
    steps = [ours(*batch) for batch in batches(8)]
    figure, axes = ours.plot(steps)
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
    assert lines["map"] == [float(step["map"]) for step in steps]
    assert "classes" not in lines
    assert ours.plot(ax=axes) == (figure, axes)
    pyplot.close(figure)
