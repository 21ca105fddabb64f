"""Merging partials: what is refused with which message, and what is kept."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import InputError, Note, UsageError
from detap.evaluation.partial import Partial
from detap.evaluation.partial.provenance import GroundTruthDigest, merge_notes
from detap.evaluation.partial.shards import partial_of_images
from detap.evaluation.results import Result
from detap.evaluation.tie_range import tie_range
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth, SourceFile
from detap.tables.notes import INTERLEAVED
from tests.cases import Case, Detection, Truth

BOX, AWAY = (0.0, 0.0, 10.0, 10.0), (50.0, 50.0, 9.0, 9.0)
WHOLE = Case(
    truths=tuple(Truth(image, label, BOX) for image in (1, 2, 3) for label in (7, 9)),
    dt=tuple(
        Detection(image, label, BOX if image != 2 else AWAY, 0.5)
        for image in (1, 2, 3)
        for label in (7, 9)
    ),
    images=(1, 2, 3),
    classes=(7, 9),
)


def result_of(*images: int, case: Case = WHOLE, protocol: Protocol | str = "coco") -> Result:
    return detap.evaluate(*detap.select(*case.tables(), images=images), protocol, match_table=True)


def part(*images: int, **more: Any) -> Partial:
    rules, case = more.pop("rules", "coco"), more.pop("case", WHOLE)
    return Partial.of(result_of(*images, case=case, protocol=rules), **more)


def refusal(*parts: Partial | bytes, **how: Any) -> str:
    with pytest.raises(InputError) as caught:
        detap.merge(parts, **how)
    return str(caught.value)


def test_box_formats_are_not_checked_for_a_part() -> None:
    """They are checked once for all parts."""
    at = np.arange(40) * 10.0
    boxes = np.stack([at, at, at + 50, at + 50], axis=1)
    rows: dict[str, Any] = {"image": np.repeat(np.arange(10), 4), "label": np.full(40, 1)}
    truth = GroundTruth.from_arrays(boxes=boxes, **rows)
    other = Detections.from_arrays(boxes=boxes / 640, score=np.full(40, 0.5), **rows)
    with pytest.raises(InputError, match="look normalized"):
        detap.evaluate(truth, other)
    partial = partial_of_images(truth, other.reindex_like(truth), Protocol.of("coco"))
    assert len(detap.merge([partial]).images) == 10


# --- repeats


def test_an_image_in_two_partials_is_named_with_both() -> None:
    assert refusal(part(1, 2), part(2, 3)) == (
        "partial 1: image 2 is in two partials: partial 1 and partial 2; list only its own "
        'images in each part (eval --images seen, or FILE), or use repeats="identical" (--repeats '
        "identical) to drop duplicates"
    )
    a = part(1, 2, 3, input="a.json").to_bytes()
    b = part(2, 3, input="b.json").to_bytes()
    assert refusal(a, Partial.from_bytes(b, name="b.part")) == (
        "partial 1: image 2 is in two partials (and 1 others): partial 1 (a.json) and b.part "
        "(b.json); list only its own images in each part (eval --images seen, or FILE), or "
        'use repeats="identical" (--repeats identical) to drop duplicates'
    )


def test_equal_repeats_are_dropped() -> None:
    whole = part(1, 2, 3).to_bytes()
    assert detap.merge([part(1, 2), part(2, 3)], repeats="identical").to_bytes() == whole
    thrice = [part(1), part(3, 2), part(1, 2), part(1, 2, 3)]
    assert detap.merge(thrice, repeats="identical").to_bytes() == whole


def test_which_repeat_is_kept_depends_only_on_names() -> None:
    parts = [part(1, 2, input="b"), part(2, 3, input="a")]
    one = detap.merge(parts, repeats="identical")
    two = detap.merge(parts[::-1], repeats="identical")
    assert one.to_bytes() == two.to_bytes()
    assert [one.sources[n] for n in one.source] == ["b", "a", "a"]


def test_images_of_equal_hash_are_not_repeats() -> None:
    """-1 and -2 have the hash -2 in CPython, and 2^61 - 1 that of 0."""
    names = -1, -2, 0, 2**61 - 1
    case = replace(
        WHOLE,
        truths=tuple(Truth(image, 7, BOX) for image in names),
        dt=tuple(Detection(image, 7, BOX, 0.5) for image in names),
        images=names,
    )
    merged = detap.merge([part(-1, 0, case=case), part(-2, 2**61 - 1, case=case)])
    assert merged.images == tuple(sorted(names))
    assert "image 0 is in two partials" in refusal(part(-1, 0, case=case), part(0, -2, case=case))


@pytest.mark.parametrize(
    "change",
    [
        {"dt": tuple(replace(f, score=0.25) for f in WHOLE.dt)},
        {"dt": tuple(f for f in WHOLE.dt if (f.image, f.label) != (2, 9))},
        {"dt": tuple(replace(f, box=BOX) for f in WHOLE.dt)},
        {"truths": (*WHOLE.truths, Truth(2, 7, AWAY))},
        {"truths": tuple(replace(t, crowd=True) for t in WHOLE.truths)},
    ],
)
def test_repeats_that_differ_are_refused(change: dict[str, Any]) -> None:
    other = part(2, 3, case=replace(WHOLE, **change))
    assert refusal(part(1, 2), other, repeats="identical") == (
        "partial 1: image 2 is in two partials with different rows: partial 1 and partial 2; "
        "evaluate all detections of an image in one run"
    )


def test_repeats_under_another_order_of_classes_are_equal() -> None:
    turned = replace(WHOLE, classes=(9, 7))
    merged = detap.merge([part(1, 2), part(2, 3, case=turned)], repeats="identical")
    assert merged.class_ids == (7, 9)
    assert merged.compute().summary == pytest.approx(result_of(1, 2, 3).summary, nan_ok=True)


def test_an_unknown_value_of_repeats() -> None:
    with pytest.raises(UsageError, match="repeats 'last' is unknown; choose from error, identical"):
        detap.merge([part(1)], repeats="last")  # type: ignore[arg-type]


# --- what must be alike


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ("voc2012", "protocol: name is 'voc2012', but 'coco' in partial 1"),
        (
            replace(detap.protocol("coco"), iou_thresholds=(0.5,)),
            "protocol: iou_thresholds is (0.5,), but (0.5, 0.55, 0.6, 0.65, 0.7, "
            "0.75, 0.8, 0.85, 0.8999999999999999, 0.95) in partial 1",
        ),
        (
            replace(detap.protocol("coco"), class_agnostic=True),
            "protocol: class_agnostic is True, but False in partial 1",
        ),
    ],
)
def test_another_protocol(protocol: Protocol | str, message: str) -> None:
    assert refusal(part(1), part(2, rules=protocol)) == (
        f"partial 2: {message}; evaluate both with the same protocol"
    )


def test_another_ground_truth() -> None:
    truth = WHOLE.ground_truth()
    moved = replace(WHOLE, truths=(*WHOLE.truths, Truth(1, 7, AWAY))).ground_truth()
    one, two = part(1, ground_truth=truth), part(2, ground_truth=moved)
    assert one.ground_truth is not None
    assert two.ground_truth is not None
    digests = one.ground_truth.digest[:12], two.ground_truth.digest[:12]
    assert digests[0] != digests[1]
    assert refusal(one, two) == (
        f"partial 2: ground truth: {digests[1]} of 3 images, but {digests[0]} of 3 "
        "images in partial 1; evaluate both with the same ground truth"
    )
    assert "ground truth: its own, but" in refusal(one, part(2))
    assert refusal(one, part(2, 3, ground_truth=truth), ground_truth=moved) == (
        f"partial 1: ground truth: {digests[0]} of 3 images, but {digests[1]} of 3 images is "
        "given; pass the ground truth that the partials were created with"
    )
    assert refusal(part(1), ground_truth=truth) == (
        "partial 1: ground truth: each partial has its own; merge without ground_truth, or "
        "create partials with Partial.of(result, ground_truth=...)"
    )


def test_the_digest_covers_every_column_and_name() -> None:
    truth = WHOLE.ground_truth()
    digests = {part(1, ground_truth=truth).ground_truth}
    changes: tuple[dict[str, Any], ...] = (
        {"area": truth.area + 1},
        {"corners": truth.corners + 1},
        {"crowd": ~truth.crowd},
        {"label": truth.label[::-1].copy()},
        {"images": (1, 2, 4)},
        {"classes": ("7", "8")},
        {"class_ids": (7, 8)},
    )
    for change in changes:
        digests.add(GroundTruthDigest.of(replace(truth, **change)))
    assert len(digests) == 8


def test_a_class_with_another_name() -> None:
    truth, detections = detap.select(*WHOLE.tables(), images=[2])
    names = ("7", "nine")
    tables = replace(truth, classes=names), replace(detections, classes=names)
    other = Partial.of(detap.evaluate(*tables, "coco"))
    assert refusal(part(1), other) == (
        "partial 2: class 9 is 'nine', but '9' in another partial; evaluate both with the "
        "same classes"
    )


def test_class_agnostic_requires_one_order_of_classes() -> None:
    """With class_agnostic, ties in an image rank class by class."""
    protocol = replace(detap.protocol("coco"), class_agnostic=True)
    turned = part(2, case=replace(WHOLE, classes=(9, 7)), rules=protocol)
    assert refusal(part(1, rules=protocol), turned) == (
        "partial 2: classes: the ground truth has (9, 7), but (7, 9) in partial 1; evaluate "
        "both with the same classes"
    )


def text_names(*images: str) -> Partial:
    truth = GroundTruth.from_arrays(
        image=list(images), label=["a"] * len(images), boxes=[[0, 0, 9, 9]] * len(images)
    )
    detections = Detections.from_arrays(image=[], label=[], boxes=np.zeros((0, 4)), score=[])
    return Partial.of(detap.evaluate(truth, detections, "coco"))


def test_names_as_text_and_numbers() -> None:
    message = refusal(part(1), text_names("x"))
    assert message.startswith(
        "partial 2: class names are text in one partial and numbers in another"
    )


def test_one_input_in_two_partials_with_ties_by_file() -> None:
    voc = {"rules": "voc2012", "input": "dt.json"}
    assert refusal(part(1, **voc), part(2, **voc)) == (
        "dt.json: input: images of 'dt.json' are in two partials, and ties break by file order; "
        "evaluate each input in one run, or give each its own name: "
        "Partial.of(result, input=...)"
    )
    named = [part(1, rules="voc2012", input="a"), part(2, 3, rules="voc2012", input="b")]
    assert detap.merge(named).compute().images == (1, 2, 3)
    assert detap.merge([part(1, input="dt.json"), part(2, input="dt.json")]).sources == ("dt.json",)


def test_rows_without_a_file_must_be_grouped_by_image() -> None:
    turned = WHOLE.with_dt(WHOLE.dt[::-1])
    with pytest.raises(UsageError) as caught:
        part(1, 2, case=turned, rules="voc2012")
    assert str(caught.value) == (
        "protocol voc2012 breaks ties by file order, and these detections have no file; "
        "sort them by image, in the order of the ground truth, or name the input: "
        "Partial.of(result, input=...)"
    )
    assert part(1, 2, case=turned, rules="voc2012", input="a").compute()
    assert part(1, 2, case=turned).compute()


def test_interleaved_inputs_rank_ties_by_image() -> None:
    """By hand: of two equal scores that of the first image ranks first, whatever its input."""
    case = Case(
        truths=(Truth(1, 7, BOX), Truth(2, 7, BOX)),
        dt=(Detection(1, 7, BOX, 0.5), Detection(2, 7, AWAY, 0.5)),
        images=(1, 2),
        classes=(7,),
    )
    for first, second, noted in (("a", "b", False), ("b", "a", True)):
        parts = [
            part(1, case=case, rules="voc2012", input=first),
            part(2, case=case, rules="voc2012", input=second),
        ]
        for order in (parts, parts[::-1]):
            result = detap.merge(order).compute()
            # One of two ground truths matched, by the first of the ranking.
            assert result.summary["mAP"] == 0.5
            assert (INTERLEAVED in result.notes) == noted
    # Within one input the file order counts: the detection of image 2 is first.
    turned = case.with_dt(case.dt[::-1])
    result = part(1, 2, case=turned, rules="voc2012", input="a").compute()
    assert result.summary["mAP"] == 0.25
    assert INTERLEAVED not in result.notes


def test_an_image_without_detections_belongs_to_no_input() -> None:
    case = WHOLE.with_dt(tuple(f for f in WHOLE.dt if f.image != 2))
    merged = [
        detap.merge([part(*a, case=case, rules=rules, input="a"), part(*b, case=case, rules=rules)])
        for rules in ("voc2012", "coco")
        for a, b in (((1, 2), (3,)), ((1,), (2, 3)))
    ]
    assert [[union.sources[n] for n in union.source] for union in merged] == [["a", "", ""]] * 4
    assert merged[0].to_bytes() == merged[1].to_bytes()
    assert merged[2].to_bytes() == merged[3].to_bytes()


def test_zero_scores_of_either_sign_are_equal_repeats() -> None:
    zeros = [
        part(2, case=WHOLE.with_dt(tuple(replace(f, score=score) for f in WHOLE.dt)))
        for score in (0.0, -0.0)
    ]
    merged = [detap.merge(parts, repeats="identical").to_bytes() for parts in (zeros, zeros[::-1])]
    assert merged == [zeros[0].to_bytes()] * 2


def test_the_first_record_of_a_note_does_not_depend_on_the_order() -> None:
    texts = [f"boxes (the first: image {n}, row 0)" for n in ("10", "2", "2" + 5000 * "0")]
    notes = [(Note("boxes", text, 3),) for text in texts]
    for several in (notes, notes[::-1]):
        assert merge_notes(several, add=True) == (Note("boxes", texts[1], 9),)


# --- required images


def test_ground_truth_images_in_no_partial() -> None:
    truth = WHOLE.ground_truth()
    some = detap.merge([part(1, ground_truth=truth)])
    with pytest.raises(InputError) as caught:
        some.compute()
    assert str(caught.value) == (
        "partial 1: 2 of the 3 images of the ground truth are in no partial; evaluate them "
        'too (eval --images FILE), also without detections; images="seen" (--images seen) '
        "excludes them and their ground truths"
    )
    assert refusal(some, ground_truth=truth) == (
        "partial 1: image 2 is required but in no partial (nor 1 others); evaluate it too "
        '(eval --images FILE), also without detections; images="seen" excludes it and its '
        "ground truths"
    )
    assert detap.merge([some], truth, images="seen").compute().images == (1,)
    # What is left out once is left out in the bytes too.
    seen = detap.merge([some], images="seen").to_bytes()
    assert detap.merge([seen]).compute().images == (1,)
    whole = detap.merge([some, part(2, 3, ground_truth=truth)], truth).compute()
    assert whole.summary == pytest.approx(result_of(1, 2, 3).summary, nan_ok=True)


def test_images_that_are_listed() -> None:
    parts = [part(1, 2), part(3)]
    assert detap.merge(parts, images=[3, 1]).compute().images == (1, 3)
    assert refusal(*parts, images=[3, 4]).startswith(
        "merged partials: image 4 is required but in no partial; evaluate it too"
    )
    with pytest.raises(UsageError, match="images 'all' is neither 'seen' nor a list of names"):
        detap.merge(parts, images="all")


def test_the_order_of_images_is_that_of_the_ground_truth() -> None:
    turned = replace(WHOLE, images=(3, 1, 2))
    truth = turned.ground_truth()
    parts = [part(n, case=turned, ground_truth=truth) for n in (1, 2, 3)]
    assert detap.merge(parts).images == (3, 1, 2)
    own = [part(n, case=turned) for n in (3, 1, 2)]
    assert detap.merge(own).images == (1, 2, 3)
    four = detap.evaluate(*replace(WHOLE, images=(4,), truths=(), dt=()).tables(), "coco")
    with pytest.raises(UsageError, match="image 4 of the result is not in ground_truth"):
        Partial.of(four, ground_truth=truth)
    with pytest.raises(
        UsageError, match="the classes of the result differ from those of ground_truth"
    ):
        part(1, case=replace(WHOLE, classes=(7, 9, 11)), ground_truth=truth)


def test_nothing_to_merge() -> None:
    with pytest.raises(UsageError, match="no partial to merge"):
        detap.merge([])
    with pytest.raises(UsageError, match="images is empty"):
        detap.merge([part(1)], images=[])


def test_a_class_with_more_rows_than_int32_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row numbers within a class are int32; those of all classes together are not."""
    module = import_module("detap.evaluation.partial.partial")
    monkeypatch.setattr(module, "CHUNK", 1)
    monkeypatch.setattr(module, "MAX_ROWS", 3)
    assert int(detap.merge([part(1, 2), part(3)]).compute().detections_count.sum()) == 6
    monkeypatch.setattr(module, "MAX_ROWS", 2)
    with pytest.raises(UsageError, match=r"3 detections of class '7'; at most 2 can be ranked at"):
        detap.merge([part(1, 2), part(3)]).compute()


merge: Any = detap.merge
of: Any = Partial.of


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: merge(part(1)),
            "merge expects an iterable of partials; wrap a single one in a list",
        ),
        (
            lambda: merge(b"text"),
            "merge expects an iterable of partials; wrap a single one in a list",
        ),
        (lambda: merge(5), "blobs: expected Iterable, got int"),
        (lambda: merge([5]), "expected a Partial or its bytes, got int"),
        (lambda: merge([part(1)], "gt.json"), "ground_truth: expected GroundTruth, got str"),
        (lambda: merge([part(1)], images=5), "images: expected Iterable, got int"),
        (lambda: of(part(1)), "result: expected Result, got Partial"),
        (lambda: part(1, ground_truth=3), "ground_truth: expected GroundTruth, got int"),
        (lambda: part(1, input=3), "input: expected str, got int"),
        (lambda: part(1, tie_range="no"), "tie_range: expected bool, got str"),
        (lambda: part(1).compute(threads=-1), "threads"),
    ],
)
def test_invalid_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


# --- classes and notes of a union


def test_classes_are_the_union_if_each_partial_has_its_own() -> None:
    def alone(image: int, truth: int, detections: int) -> Partial:
        case = Case(
            (Truth(image, truth, BOX),),
            (Detection(image, detections, BOX, 0.5),),
            (image,),
            (truth,),
        )
        return Partial.of(detap.evaluate(*case.tables(), "coco"))

    merged = detap.merge([alone(1, 9, 20), alone(2, 7, 9), alone(3, 30, 3)])
    assert merged.class_ids == (7, 9, 30, 3, 20)
    assert merged.ground_truth_classes == 3
    result = merged.compute()
    assert result.ground_truths.tolist() == [1, 1, 1, 0, 0]
    assert result.detections_count.tolist() == [0, 1, 0, 1, 1]
    assert [note.count for note in result.notes if note.code == "classes-only-in-detections"] == [2]


def test_notes_are_summed_and_ground_truth_notes_appear_once() -> None:
    shared, own = Note("of-truth", "said of the whole", 5), Note("of-rows", "said of row 9", 2)
    truth = replace(WHOLE.ground_truth(), notes=(shared,))

    def noted(image: int, note: Note) -> Partial:
        tables = detap.select(truth, WHOLE.detections(), images=[image])
        result = detap.evaluate(tables[0], replace(tables[1], notes=(note,)), "coco")
        return Partial.of(result, ground_truth=truth)

    parts = [noted(1, own), noted(2, replace(own, message="said of row 4")), noted(3, own)]
    assert detap.merge(parts).compute().notes == (
        shared,
        Note("of-rows", "said of row 4", 6),
    )


def test_files_are_kept_with_their_digests() -> None:
    def read(image: int, path: str) -> Partial:
        truth, detections = detap.select(*WHOLE.tables(), images=[image])
        truth = replace(truth, files=(SourceFile("gt.json", 6, sha256="ab"),))
        how = (("boxes", "xywh"),)
        detections = replace(detections, files=(SourceFile(path, 2, ("x", "y"), "cd", how),))
        return Partial.of(detap.evaluate(truth, detections, "coco"))

    merged = Partial.from_bytes(detap.merge([read(2, "b"), read(1, "a")]).to_bytes())
    assert [tuple(entry) for entry in merged.inputs] == [
        ("ground_truth", "gt.json", "ab", 1, 6, ()),
        ("detections", "a", "cd", 2, 2, (("boxes", "xywh"),)),
        ("detections", "b", "cd", 2, 2, (("boxes", "xywh"),)),
    ]
    assert merged.sources == ("a", "b")


# --- what needs boxes


def test_analyses_that_need_boxes_give_a_hint() -> None:
    result = detap.merge([part(1), part(2, 3)]).compute()
    asked: list[Any] = [
        lambda: result.ground_truth,
        lambda: result.detections,
        result.errors,
        result.confusion,
        result.with_matches,
        lambda: Partial.of(result),
    ]
    for ask in asked:
        with pytest.raises(UsageError) as caught:
            ask()
        assert str(caught.value) == (
            "a result merged from partials has no boxes; evaluate all detections in one run"
        )
    # The hint: the same numbers, and what was asked for.
    whole = result_of(1, 2, 3)
    assert whole.summary == pytest.approx(result.summary, nan_ok=True)
    assert whole.errors()


def test_tie_bounds_are_kept_if_requested() -> None:
    whole = tie_range(result_of(1, 2, 3))
    kept = [part(1, tie_range=True), part(2, 3, tie_range=True)]
    assert repr(tie_range(detap.merge(kept).compute())) == repr(whole)
    for parts in ([part(1), part(2, 3)], [kept[0], part(2, 3)]):
        with pytest.raises(UsageError) as caught:
            tie_range(detap.merge(parts).compute())
        assert str(caught.value) == (
            "the partials have no tie groups; create them with Partial.of(result, tie_range=True) "
            "(eval --tie-range --partial)"
        )
    # Of two that keep different things, what both keep is left.
    assert detap.merge([kept[0], part(2, 3)]).to_bytes() == part(1, 2, 3).to_bytes()


def test_the_repr_of_a_partial_gives_its_counts() -> None:
    assert repr(part(1, 2)) == "Partial('coco', 2 images, 4 detections)"
    assert len(part(1, 2)) == 4


def test_an_empty_partial() -> None:
    """No image, no class, no box: a rank that received nothing."""
    none: Any = {"image": [], "label": [], "boxes": np.zeros((0, 4))}
    tables = GroundTruth.from_arrays(**none), Detections.from_arrays(**none, score=[])
    nothing = Partial.of(detap.evaluate(*tables, "coco"), tie_range=True).to_bytes()
    assert Partial.from_bytes(nothing).compute().images == ()
    whole = part(1, 2, 3)
    assert detap.merge([nothing, whole, nothing]).to_bytes() == whole.to_bytes()
