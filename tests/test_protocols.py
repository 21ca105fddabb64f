"""Protocols: presets, signatures, metrics and validation."""

import re
from dataclasses import replace

import numpy as np
import pytest

from detap import metrics
from detap.errors import UsageError
from detap.metrics.average_precision import AveragePrecision
from detap.protocols import PRESETS, AreaRange, Protocol, protocol
from detap.protocols.fields import Number, protocol_fields
from detap.protocols.steps import steps
from detap.protocols.summary import percent

COCO, VOC = protocol("coco"), protocol("voc2012")


def test_an_unknown_preset_gets_suggestions() -> None:
    with pytest.raises(UsageError, match="unknown protocol 'coc'; did you mean coco"):
        protocol("coc")
    with pytest.raises(UsageError, match="choose from voc2007, voc2012"):
        protocol("zzz")


def test_every_preset_has_a_source_and_no_changed_fields() -> None:
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert preset.source
        assert preset.signature("1.0") == f"protocol:{name}|detap:1.0"


def test_the_signature_lists_every_changed_field() -> None:
    changed = replace(VOC, iou_thresholds=(0.3,), inclusive_pixels=False, max_dets=(100,))
    assert changed.signature("1.0") == (
        "protocol:voc2012|iou-thresholds:0.3|inclusive-pixels:no|max-dets:100|detap:1.0"
    )
    areas = replace(VOC, area_ranges=(AreaRange("all", 0, 9),))
    assert "area-ranges:all=0-9" in areas.signature("1.0")
    assert "ignore-flags:none" in replace(VOC, ignore_flags=()).signature("1.0")


def test_a_signature_distinguishes_close_numbers() -> None:
    """Area limits used to be rounded to six digits: 1048576 and 1048580 shared a signature."""

    def signature(high: float) -> str:
        return replace(VOC, area_ranges=(AreaRange("all", 0, high),)).signature("1.0")

    assert "area-ranges:all=0-1048576|" in signature(1048576)
    assert "area-ranges:all=0-1048580|" in signature(1048580)
    assert "area-ranges:all=0-0.30000000000000004|" in signature(0.1 + 0.2)
    # The same number is written alike, whatever its type.
    assert signature(np.float64(9.0)) == signature(9) == signature(9.0)
    assert "iou-thresholds:0.3|" in replace(VOC, iou_thresholds=(np.float64(0.3),)).signature("1")
    assert "area-ranges:all=0-10000000000|" in signature(1e10)


def test_metric_names_distinguish_thresholds() -> None:
    protocol = replace(COCO, iou_thresholds=(0.5, 0.50000001))
    assert metrics.named(protocol, "AP50").threshold == 0
    assert metrics.named(protocol, "AP50.000001").threshold == 1
    with pytest.raises(UsageError, match=r"0\.5 and 0\.5000000001 differ by less than"):
        replace(COCO, iou_thresholds=(0.5, 0.5000000001))


def test_metrics_outside_the_summary_are_accepted() -> None:
    # linspace(.5, .95, 10)[8] is 0.8999999999999999.
    assert metrics.named(COCO, "AP90").threshold == 8
    assert metrics.named(COCO, "AP75s") == metrics.named(COCO, "AP75s")._replace(
        threshold=5, area=1
    )
    assert (metrics.named(COCO, "ARm").area, metrics.named(COCO, "ARm").max_dets_index) == (2, 2)
    assert (metrics.named(COCO, "AR10m").area, metrics.named(COCO, "AR10m").max_dets_index) == (
        2,
        1,
    )
    with pytest.raises(KeyError, match="AP42"):
        metrics.named(COCO, "AP42")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("R10m", "did you mean AR10 or AR100?"),  # of those that are shown, if any is near
        ("60m", "did you mean AP60m?"),
        ("xyz", "available: AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl"),
    ],
)
def test_an_unknown_metric_gets_suggestions(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        metrics.named(COCO, name)
    assert str(caught.value) == f"protocol coco has no metric {name!r}; {hint}"


def test_metrics_have_bounds() -> None:
    assert Number(0, 1).values == "0 to 1"
    assert Number(0, 1, above=True).values == "above 0 to 1"
    assert Number(0.5).values == "0.5"
    assert (Number(0).metavar, Number(0, metavar="Y").metavar) == ("X", "Y")
    assert Number(0, 1).schema() == {"type": "number", "minimum": 0, "maximum": 1}
    assert Number(0, above=True).schema() == {"type": "number", "exclusiveMinimum": 0}
    assert [Number(0, 1).parse(text) for text in ("0", "1", "0.5")] == [0, 1, 0.5]
    for kind, text, message in (
        (Number(0, 1), "1.5", "1.5 is outside [0, 1]"),
        (Number(0, 1, above=True), "0", "0.0 is outside (0, 1]"),
        (Number(0, above=True), "-1", "-1.0 is outside (0, inf)"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            kind.accept(kind.parse(text))


def test_interpolation_selects_its_recall_grid() -> None:
    assert VOC.with_changes(interpolation="101-point").recall_grid == "linspace"
    assert VOC.with_changes(interpolation="11-point").recall_grid == "matlab"
    assert protocol("voc2012-py").with_changes(interpolation="11-point") == replace(
        protocol("voc2007-py"), name="voc2012-py"
    )
    assert COCO.with_changes(interpolation="101-point") == COCO
    assert VOC.with_changes(interpolation="trapezoid-101").recall_grid == "linspace"
    # The levels of a mean serve a trapezoid too, where there are as many.
    single = replace(COCO, recall_grid="float32").with_changes(interpolation="trapezoid-101")
    assert single.recall_grid == "float32"
    assert len(single.recall_levels) == 101


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidate": "worst"}, "candidate: 'worst' is unknown; choose from best, best-unmatched"),
        ({"iou_thresholds": ()}, "iou_thresholds: at least one value"),
        ({"iou_thresholds": (0.0,)}, "iou_thresholds: 0.0 is outside"),
        ({"iou_thresholds": (float("nan"),)}, "iou_thresholds: nan is outside"),
        ({"iou_thresholds": (0.7, 0.5)}, "must be in ascending order"),
        ({"iou_thresholds": tuple(k / 100 for k in range(1, 66))}, "the maximum is 64"),
        ({"max_dets": tuple(range(1, 256))}, "max_dets: 255 values; the maximum is 254"),
        ({"max_dets": ()}, "max_dets: at least one value"),
        ({"max_dets": (0,)}, "at least 1"),
        ({"max_dets": (1.5, 10)}, "max_dets: 1.5 is not None or an integer"),
        ({"max_dets": (True,)}, "max_dets: True is not None or an integer"),
        ({"max_dets": (2**63,)}, "max_dets: 9223372036854775808 is not None or an integer"),
        ({"max_dets": 100}, "max_dets: 100 is not a tuple"),
        ({"iou_thresholds": ("0.5",)}, "iou_thresholds: '0.5' is not a number"),
        ({"iou_thresholds": 0.5}, "iou_thresholds: 0.5 is not a tuple"),
        ({"strict_iou": "no"}, "strict_iou: 'no' is not True or False"),
        ({"inclusive_pixels": 1}, "inclusive_pixels: 1 is not True or False"),
        ({"class_agnostic": None}, "class_agnostic: None is not True or False"),
        ({"precision_eps": -1}, "precision_eps: -1.0 is outside"),
        ({"precision_eps": float("nan")}, "precision_eps: nan is outside"),
        ({"precision_eps": "0"}, "precision_eps: '0' is not a number"),
        ({"max_iou_threshold": 0}, "max_iou_threshold: 0.0 is outside"),
        ({"max_iou_threshold": 1.5}, "max_iou_threshold: 1.5 is outside"),
        ({"max_iou_threshold": float("nan")}, "max_iou_threshold: nan is outside"),
        ({"iou_dtype": "float16"}, "iou_dtype: 'float16' is unknown; choose from float64, float32"),
        ({"min_score": "0"}, "min_score: '0' is not a number"),
        ({"min_score": float("nan")}, "min_score: nan is outside"),
        ({"min_score": float("-inf")}, r"min_score: -inf is outside \(-inf, inf\)"),
        ({"score_decimals": 1.5}, "score_decimals: 1.5 is not None or an integer from 0 to 99"),
        ({"box_decimals": -1}, "box_decimals: -1 is not None or an integer from 0 to 99"),
        ({"area_ranges": ((0, 1),)}, r"area range \(0, 1\) is not an AreaRange"),
        ({"area_ranges": (AreaRange("all", "0", 1),)}, "area_ranges: '0' is not a number"),  # type: ignore[arg-type]
        ({"ignore_flags": "crowd"}, "ignore_flags: 'crowd' is not a tuple"),
        ({"candidate": ("best",)}, r"candidate: \('best',\) is unknown"),
        ({"max_dets": (None, 10)}, "must be in ascending order"),
        ({"area_ranges": ()}, "at least one area range"),
        ({"area_ranges": (AreaRange("all", 9, 1),)}, "'all' goes from 9 to 1"),
        (
            {"area_ranges": (AreaRange("all", 0, 1), AreaRange("all", 0, 2, "x"))},
            "two area ranges have the same name",
        ),
        ({"crowd_flags": ("crowd",)}, "crowd_flags must be among ignore_flags"),
        ({"ignore_flags": ("hard",)}, "ignore_flags: 'hard' is unknown"),
    ],
)
def test_contradictory_fields_are_rejected(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(VOC, **changes)  # type: ignore[arg-type]


def test_a_recall_grid_must_fit_the_interpolation() -> None:
    with pytest.raises(UsageError, match="has 101 levels, 11-point interpolation needs 11"):
        _ = replace(VOC, interpolation="11-point", recall_grid="linspace").recall_levels


def test_thresholds_are_rounded_before_they_are_lowered() -> None:
    single = replace(
        VOC, iou_thresholds=(0.6, 1.0), iou_dtype="float32", max_iou_threshold=1 - 1e-10
    )
    assert single.search_thresholds == (float(np.float32(0.6)), 1 - 1e-10)
    assert single.signature("1.0") == (
        "protocol:voc2012|iou-thresholds:0.6,1|iou-dtype:float32|max-iou-threshold:0.9999999999|detap:1.0"
    )
    assert protocol("torchmetrics").search_thresholds == tuple(
        float(threshold) for threshold in np.linspace(0.5, 0.95, 10).astype(np.float32)
    )


def test_the_documentation_of_a_preset_does_not_affect_equality() -> None:
    rules = protocol("ultralytics")
    assert (rules.tolerance, bool(rules.residue)) == (1e-6, True)
    assert replace(rules, tolerance=0.5, residue="") == rules
    assert not {"tolerance", "residue"} & set(rules.as_dict())
    assert Protocol.from_dict(rules.as_dict()) == rules


def test_numpy_numbers_are_plain_numbers_in_a_signature() -> None:
    """Values of numpy.linspace may be passed directly."""
    changed = replace(VOC, iou_thresholds=np.array([0.25, 0.5]), max_iou_threshold=np.float32(1))  # type: ignore[arg-type]
    assert changed.signature("1.0") == "protocol:voc2012|iou-thresholds:0.25,0.5|detap:1.0"
    assert changed == replace(VOC, iou_thresholds=(0.25, 0.5))


def test_a_protocol_needs_the_name_of_a_preset() -> None:
    with pytest.raises(UsageError, match="unknown protocol 'voc2021'; did you mean voc2012"):
        replace(VOC, name="voc2021").signature("1.0")


def test_repr_is_what_parse_reads() -> None:
    changed = replace(VOC, iou_thresholds=(0.25,))
    assert repr(changed) == "Protocol('voc2012|iou-thresholds:0.25')"
    assert Protocol.parse("voc2012|iou-thresholds:0.25") == changed
    assert repr(replace(VOC, name="voc2021")) == "Protocol('voc2021')"


@pytest.mark.parametrize("name", PRESETS)
def test_protocol_text_is_parsed_back(name: str) -> None:
    """Every value of every preset can be set in every other preset, and is parsed back."""
    preset = PRESETS[name]
    assert Protocol.parse(name) == Protocol.parse(preset.signature("1.2.3")) == preset
    for other in PRESETS.values():
        changed = replace(preset, name=other.name)
        assert Protocol.parse(changed.text) == changed


def test_protocol_text_may_use_option_names() -> None:
    parsed = Protocol.parse(
        "coco|max-dets:none|iou:0.5|inclusive-pixels:yes|interpolation:11-point"
    )
    changes = {"max_dets": (None,), "iou_thresholds": (0.5,), "inclusive_pixels": True}
    assert parsed == COCO.with_changes(**changes, interpolation="11-point")
    areas = Protocol.parse("coco|area-ranges:all=0-10000000000,tiny=0-16").area_ranges
    assert areas == Protocol.parse("coco|area-ranges:tiny=0:16").area_ranges


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("coko", "unknown protocol 'coko'; did you mean coco"),
        ("bbox", "unknown protocol 'bbox'; did you mean coco?"),
        ("segm", "unknown protocol 'segm'; did you mean coco-segm?"),
        (
            "coco|ignor-flags:none",
            "protocol 'coco|ignor-flags:none': unknown field 'ignor-flags'; did you mean ignore",
        ),
        ("coco|zzz", "unknown field 'zzz'; the syntax is preset|field:value"),
        ("coco|candidate:worst", "candidate: 'worst' is unknown; choose from best, best-unmatched"),
        ("coco|inclusive-pixels:on", "inclusive_pixels: 'on' is not True or False"),
        ("coco|area-ranges:all=0-9", "'all' means all areas"),
        ("coco|crowd-flags:ignore", "crowd_flags must be among ignore_flags"),
    ],
)
def test_invalid_protocol_text(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Protocol.parse(text)


def test_steps_are_in_order_of_application() -> None:
    walk = steps(
        VOC.only_metric(metrics.named(VOC, "mAP")), COCO.only_metric(metrics.named(COCO, "AP50"))
    )
    assert [step.name for step in walk] == [
        "inclusive pixels",
        "ignore flags, crowd flags",
        "candidate, equal iou",
        "interpolation, precision eps",
        "max dets",
        "area ranges",
        "max iou threshold",
        "tie break",
    ]
    assert walk[1].values(COCO) == {"ignore_flags": ("crowd",), "crowd_flags": ("crowd",)}
    assert steps(COCO, COCO) == ()


def test_fields_that_depend_on_each_other_form_one_step() -> None:
    names = [axis.name for axis in protocol_fields(Protocol)]
    together = [name for group in Protocol.together for name in group]
    assert len(together) == len(set(together))
    assert set(together) | metrics.after_matching() <= set(names)


@pytest.mark.parametrize(
    ("name", "before", "after", "message"),
    [
        ("inclusive_pixels", True, False, "that inclusive pixels is off"),
        ("candidate", "best", "best-unmatched", "candidate best-unmatched instead of best"),
        ("ignore_flags", ("difficult",), (), "that difficult objects count"),
        (
            "ignore_flags",
            ("difficult",),
            ("crowd", "group_of"),
            "that difficult objects count and crowd objects are ignored and group of objects "
            "are ignored",
        ),
        ("crowd_flags", (), ("crowd",), "that crowd objects match any number of detections"),
        ("crowd_flags", ("crowd",), (), "that crowd objects match one detection each"),
        ("max_dets", (None,), (100,), "max dets 100 instead of none"),
        (
            "iou_thresholds",
            (0.5, 0.75, 0.9),
            (0.5, 0.6, 0.7, 0.8),
            "iou thresholds 0.5,0.6,...,0.8 instead of 0.5,0.75,0.9",
        ),
    ],
)
def test_text_of_a_change(name: str, before: object, after: object, message: str) -> None:
    kind = next(axis.kind for axis in protocol_fields(Protocol) if axis.name == name)
    assert kind.describe_change(name, before, after) == message


def test_only_one_metric() -> None:
    alone = COCO.only_metric(metrics.named(COCO, "AP75s"))
    assert alone.iou_thresholds == (0.75,)
    assert [band.name for band in alone.area_ranges] == ["small"]
    assert alone.max_dets == (100,)
    assert metrics.summary(alone)[0].name == "APs"
    recall = COCO.only_metric(metrics.named(COCO, "AR10"))
    assert metrics.summary(recall)[0].name == "AR10"
    kitti = protocol("kitti")
    easy = kitti.only_metric(metrics.named(kitti, "mAP-easy"))
    assert (easy.min_height, easy.max_occlusion, easy.max_truncation) == ((40,), (0,), (0.15,))


def test_a_protocol_recorded_by_an_earlier_version() -> None:
    """Fields added since then have the value that the earlier version implied."""
    old = COCO.with_changes(ignore_flags=()).as_dict()
    for axis in ("annotation_id_zero", "matching", "class_iou"):
        del old[axis]
    assert Protocol.from_report(old) == COCO.with_changes(ignore_flags=())
    for wrong, message in (
        ({"colour": "blue"}, "protocol field 'colour' is unknown"),
        ({"area_ranges": 3}, "area_ranges: 3 is not a tuple"),
        ({"name": ["coco"]}, "invalid protocol"),
    ):
        with pytest.raises(UsageError, match=message):
            Protocol.from_report({**old, **wrong})


def test_thresholds_in_percent_have_the_digits_that_distinguish_them() -> None:
    """Thresholds that differ by less than 1e-9 are the same."""
    assert [percent(t) for t in (0.5, 0.5 + 1e-10, 0.5 + 1e-8, 0.125)] == [
        *("50", "50", "50.000001", "12.5")
    ]


def test_thresholds_have_two_decimals_or_up_to_six_digits() -> None:
    changed = replace(COCO, iou_thresholds=(0.00001, 0.123456, 0.5))
    ious = [spec.params.iou for spec in AveragePrecision().others(changed)][:4]
    assert ious == ["1e-05:0.50", "1e-05", "0.123456", "0.50"]


def test_numbers_may_be_fractions() -> None:
    assert Protocol.parse("coco|froc-points:1/8,0.25").froc_points == (0.125, 0.25)
    with pytest.raises(UsageError, match="nan is outside"):
        Protocol.parse("coco|froc-points:1/0")


def test_presets_are_shown_as_a_mapping() -> None:
    assert repr(PRESETS).startswith("{'voc2007': Protocol('voc2007'")
