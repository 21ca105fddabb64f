"""The table of detections and missed ground truths has the counts of the class table."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from detap.evaluation.detection import evaluate
from detap.protocols import ANY_AREA, AreaRange, Protocol, protocol
from tests.cases import Case, cases
from tests.depth import examples
from tests.parity.test_core_is_oracle import any_protocol

PRESETS = st.builds(
    replace,
    st.sampled_from([protocol("coco"), protocol("voc2007"), protocol("voc2012")]),
    ignore_flags=st.sampled_from(((), ("difficult",), ("crowd", "difficult"))),
    crowd_flags=st.just(()),
    max_dets=st.sampled_from(((None,), (1, 2), (3,), (1, 10, 100))),
    max_dets_scope=st.sampled_from(("class", "image")),
    area_ranges=st.sampled_from(((ANY_AREA,), (AreaRange("x", 4.0, 800.0, "x"),))),
)


@given(cases(), st.one_of(PRESETS, any_protocol()))
@examples(200)
def test_counts_equal_those_of_the_class_table(case: Case, protocol: Protocol) -> None:
    result = evaluate(*case.tables(), protocol)
    table = result.matches_table(iou=protocol.iou_thresholds[0])
    counts = Counter(zip(table["class"].tolist(), table["result"].tolist(), strict=True))
    rows = Counter(table["class"].tolist())
    for label, name in enumerate(result.classes):
        right, wrong, missed = (
            counts[name, kind] for kind in ("true-positive", "false-positive", "false-negative")
        )
        assert right == result.true_positives[label]
        assert wrong == result.false_positives[label]
        assert right + missed == result.ground_truths[label]
        assert rows[name] - missed == result.detections_count[label]
    errors = Counter(zip(table["result"].tolist(), (table["error"] != "").tolist(), strict=True))
    assert not errors["false-positive", False]
    assert not errors["true-positive", True]
