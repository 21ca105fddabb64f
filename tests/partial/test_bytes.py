"""The bytes of partials: everything in them is validated."""

import json
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detap
from detap.analysis.bootstrap import draw_weights, resampled
from detap.core.match_table import empty_bits
from detap.errors import DetapError, InputError, UsageError
from detap.evaluation.partial import Partial
from detap.evaluation.run import match_params
from detap.evaluation.tie_range import tie_range
from detap.io.limits import Limits
from detap.protocols import Protocol
from tests.cases import Case, Detection, Truth

BOX = (0.0, 0.0, 10.0, 10.0)
CASE = Case(
    truths=(Truth(1, 7, BOX), Truth(2, 7, BOX, crowd=True), Truth(3, 9, BOX)),
    dt=(
        Detection(1, 7, BOX, 0.9),
        Detection(1, 7, BOX, 0.8),
        Detection(3, 9, (50.0, 50.0, 9.0, 9.0), 0.5),
    ),
    images=(1, 2, 3, 4),
    classes=(7, 9),
)


# Two of one score on one ground truth: a TP and a duplicate, the better IoU in either position.
TIED = Case(
    truths=(Truth(1, 7, BOX),),
    dt=(Detection(1, 7, BOX, 0.5), Detection(1, 7, (0.0, 0.0, 10.0, 8.0), 0.5)),
    images=(1,),
    classes=(7,),
)


def partial_of(case: Case = CASE, protocol: Protocol | str = "coco", **more: Any) -> Partial:
    return Partial.of(detap.evaluate(*case.tables(), protocol), **more)


def sealed(body: bytes) -> bytes:
    """Return bytes with a valid checksum."""
    return body + blake2b(body, digest_size=32).digest()


def opened(data: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(data[8:16], "little")
    return json.loads(data[16 : 16 + size]), data[16 + size : -32]


def closed(record: dict[str, Any], columns: bytes) -> bytes:
    heading = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    heading += b" " * (-len(heading) % 8)
    return sealed(b"detapPT\x02" + len(heading).to_bytes(8, "little") + heading + columns)


def columns_of(record: dict[str, Any], columns: bytes) -> dict[str, np.ndarray[Any, Any]]:
    arrays, begin = {}, 0
    for name, kind, count in record["columns"]:
        arrays[name] = np.frombuffer(columns, kind, count, begin)
        begin += arrays[name].nbytes + -arrays[name].nbytes % 8
    return arrays


def changed(data: bytes, name: str, value: Any) -> bytes:
    """Return a partial with one column replaced."""
    record, columns = opened(data)
    arrays = columns_of(record, columns) | {name: np.asarray(value)}
    record["columns"] = [
        [key, f"<{a.dtype.kind}{a.dtype.itemsize}", len(a)] for key, a in arrays.items()
    ]
    return closed(record, b"".join(a.tobytes() + bytes(-a.nbytes % 8) for a in arrays.values()))


def reheaded(data: bytes, **fields: Any) -> bytes:
    record, columns = opened(data)
    return closed(record | fields, columns)


def refusal(data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        Partial.from_bytes(data, name="a.part")
    return str(caught.value)


# --- what the layout is


def test_columns_of_a_detection_and_a_ground_truth() -> None:
    """By hand: a TP, its duplicate, and an FP of another class outside all area ranges."""
    record, columns = opened(partial_of().to_bytes())
    there = columns_of(record, columns)
    assert there["detections"].tolist() == [2, 1]
    assert there["ground_truths"].tolist() == [2, 1]
    assert there["score"].tolist() == [0.9, 0.8, 0.5]
    assert there["image"].tolist() == [0, 0, 2]
    assert there["truth_image"].tolist() == [0, 1, 2]
    words = there["match_true_positive"].reshape(4, -1)[:, there["match_code"]]
    every = (1 << 10) - 1
    # 100 square pixels are small: a TP for areas all and small, at every threshold.
    assert words[:, 0].tolist() == [every, every, 0, 0]
    assert words[:, 1:].any() == False  # noqa: E712 - of numpy
    ignored = there["match_ignored"].reshape(4, -1)[:, there["match_code"]]
    assert ignored.tolist() == [[0, 0, 0], [0, 0, 0], [every, every, every], [every, every, every]]
    assert there["match_duplicate"][there["match_code"]].tolist() == [0, 1, 0]
    assert there["match_max_dets_index"][there["match_code"]].tolist() == [0, 1, 0]
    positive = there["kind_positive"].reshape(4, -1)[:, there["truth_kind"]]
    assert positive.tolist() == [[1, 0, 1], [1, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_bytes_per_detection() -> None:
    """8 for the score and 1 each for the image and the match, if these have few values."""
    case = replace(CASE, dt=CASE.dt * 1000)
    some, more = len(partial_of().to_bytes()), len(partial_of(case).to_bytes())
    assert (more - some) / (len(case.dt) - len(CASE.dt)) < 10.1


def test_writable_bytes_are_copied() -> None:
    data = bytearray(partial_of().to_bytes())
    read = Partial.from_bytes(data)
    data[:] = bytes(len(data))
    assert read.to_bytes() == partial_of().to_bytes()
    odd = memoryview(b"x" + partial_of().to_bytes())[1:]
    assert Partial.from_bytes(odd).to_bytes() == odd


# --- what is refused


def test_invalid_partials() -> None:
    data = partial_of().to_bytes()
    assert refusal(b"") == ("a.part: is not a partial, or is truncated; recreate it")
    assert "is not a partial" in refusal(b'{"images": []}' + bytes(80))
    assert refusal(data[:7] + b"\x01" + data[8:]) == (
        "a.part: has format version 1, expected 2; recreate it with this version of detap"
    )
    for cut in (16, len(data) // 2, len(data) - 1):
        assert "a.part: is" in refusal(data[:cut])
    flipped = bytearray(data)
    flipped[-40] ^= 1
    assert refusal(bytes(flipped)) == (
        "a.part: is damaged: checksum mismatch; recreate it or copy it again"
    )
    with pytest.raises(UsageError, match="expected a Partial or its bytes, got str"):
        Partial.from_bytes("text")  # type: ignore[arg-type]


def test_limits() -> None:
    data = partial_of().to_bytes()
    with pytest.raises(InputError, match=f"has {len(data)} bytes, above the limit of 100; raise"):
        Partial.from_bytes(data, limits=Limits(file_bytes=100))
    with pytest.raises(InputError, match="has 4 names, above the limit of 3; raise the limit"):
        Partial.from_bytes(data, limits=Limits(records=3))
    more = replace(CASE, dt=CASE.dt * 2)
    with pytest.raises(InputError, match="has 6 detections, above the limit of 5; raise the limit"):
        Partial.from_bytes(partial_of(more).to_bytes(), limits=Limits(records=5))


U1 = np.dtype("u1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("score", np.array([np.nan, 0.8, 0.5])),
        ("score", np.array([np.inf, 0.8, 0.5])),
        ("score", np.array([0.8, 0.5])),
        ("image", np.array([0, 0, 4], U1)),
        ("image", np.array([0, 0, 2**63], "u8")),
        ("match_code", np.array([0, 0, 9], U1)),
        ("detections", np.array([2, 2], U1)),
        ("detections", np.array([2**64 - 1, 4], "u8")),
        ("detections", np.array([3], U1)),
        ("ground_truths", np.array([1, 1], U1)),
        ("truth_image", np.array([0, 1, 4], U1)),
        ("truth_kind", np.array([0, 1, 2], U1)),
        ("match_max_dets_index", np.array([0, 4, 0], U1)),
        ("match_max_dets_index", np.array([0, 1], U1)),
        ("match_duplicate", np.array([0, 2, 0], U1)),
        ("match_true_positive", np.full(12, 1 << 10, "u2")),
        ("match_true_positive", np.full(12, 1, "u4")),
        ("match_true_positive", np.full(11, 1, "u2")),
        ("match_ignored", np.full(12, (1 << 10) - 1, "u2")),
        ("kind_positive", np.full(8, 2, U1)),
        ("kind_covered", np.full(8, 1, "u2")),
        ("position", np.array([0], U1)),
        ("source", np.array([0, 0, 0, 0], U1)),
        ("proposals", np.array([1, 1, 1, 1], U1)),
        ("unknown", np.array([1], U1)),
    ],
)
def test_columns_are_checked(name: str, value: Any) -> None:
    assert refusal(changed(partial_of().to_bytes(), name, value)).startswith("a.part: is damaged: ")


@pytest.mark.parametrize(
    "fields",
    [
        {"images": [1, 2, 3, 3]},
        {"images": [1, 2, 3, "4"]},
        {"images": [1, 2, 3, True]},
        {"images": [1, 2]},
        {"images": {"a": 1}},
        {"images": None},
        {"classes": [[7, "7"], [7, "9"]]},
        {"classes": [[7, 7], [9, "9"]]},
        {"classes": [[7, "7", 1], [9, "9"]]},
        {"classes": [[7, "7"]]},
        {"ground_truth_classes": 3},
        {"ground_truth_classes": -1},
        {"ground_truth_classes": True},
        {"requires_all_images": 1},
        {"sources": []},
        {"sources": ["b", "a"]},
        {"sources": [1]},
        {"ground_truth": ["abc", 3]},
        {"ground_truth": ["abc", 4]},
        {"ground_truth": [1, 4]},
        {"ground_truth": 5},
        {"inputs": [["detections", "a", "", 1]]},
        {"inputs": [["elsewhere", "a", "", 1, 1]]},
        {"inputs": [["detections", "a", "", -1, 1]]},
        {"notes": [["code", "text", 1, 1]]},
        {"notes": [["code", "text", 1 << 70, True]]},
        {"shared_notes": ["text"]},
        {"protocol": {}},
        {"protocol": []},
        {"protocol": None},
        {"columns": []},
        {"columns": [["score", "<f8", 1 << 60]]},
        {"columns": [["score", "<f8", -1]]},
        {"columns": [["score", "<f2", 3]]},
        {"columns": [["image", "|O8", 3]]},
        {"columns": 3},
        {"boxes": [0, 0, 3, 0]},
        {"boxes": [0, 0, 3, 4, 1]},
        {"boxes": [0, 0, 3, 0, 2]},
        {"boxes": [0, -1, 3, 0, 1]},
        {"boxes": None},
        {"categories": [[2, []], [1, []]]},
        {"categories": [[1, [[0, 1, 2]]]]},
        {"categories": [[1, [[0, 1, 2, 0]]]]},
        {"categories": [[1, [[0, 1, "2", 1]]]]},
        {"categories": [[k, []] for k in range(33)]},
        {"categories": {}},
    ],
)
def test_headers_are_checked(fields: dict[str, Any]) -> None:
    assert refusal(reheaded(partial_of().to_bytes(), **fields)).startswith("a.part: is damaged: ")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "coco2"),
        ("name", ["coco"]),
        ("iou_thresholds", []),
        ("iou_thresholds", [2.0]),
        ("iou_thresholds", "0.5"),
        ("area_ranges", [{"name": "all"}]),
        ("area_ranges", [{"name": "all", "low": 5, "high": 1, "suffix": "", "more": 1}]),
        ("area_ranges", [3]),
        ("area_ranges", [{"name": "all", "low": 5, "high": 1, "suffix": ""}]),
        ("max_dets", [1, 0]),
        ("interpolation", "12-point"),
        ("recall_grid", "matlab"),
        ("ties", {}),
        ("matching", "by-iou"),
        ("strict_iou", "no"),
    ],
)
def test_protocols_are_checked(field: str, value: Any) -> None:
    record, _ = opened(partial_of().to_bytes())
    protocol = record["protocol"] | {field: value}
    said = refusal(reheaded(partial_of().to_bytes(), protocol=protocol))
    assert said.startswith("a.part: is damaged: ")


def test_another_json_text_of_the_header_is_refused() -> None:
    record, columns = opened(partial_of().to_bytes())
    text = json.dumps(record).encode()
    text += b" " * (-len(text) % 8)
    body = b"detapPT\x02" + len(text).to_bytes(8, "little") + text + columns
    assert refusal(sealed(body)) == "a.part: is damaged: heading; recreate it"
    deep = b"[" * 100_000
    body = b"detapPT\x02" + len(deep).to_bytes(8, "little") + deep + columns
    assert "is damaged: heading" in refusal(sealed(body))


def test_more_true_positives_than_ground_truths_are_refused() -> None:
    data = changed(partial_of().to_bytes(), "match_code", np.array([2, 2, 2], U1))
    record, columns = opened(data)
    true_positive = columns_of(record, columns)["match_true_positive"].reshape(4, -1)[0]
    data = changed(data, "match_code", np.full(3, int(true_positive.argmax()), U1))
    with pytest.raises(InputError, match="more true positives than ground truths; recreate it"):
        Partial.from_bytes(data).compute()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tie_label", np.array([1], U1)),
        ("tie_image", np.array([1], U1)),
        ("tie_bounds", np.array([1], U1)),
        ("tie_bounds", np.array([], U1)),
        ("tie_score", np.array([np.nan])),
        ("tie_score", np.array([0.5, 0.25])),
        ("bounds_ties", np.array([0], U1)),
        ("bounds_ties", np.array([2**63], "u8")),
        ("bounds_count", np.array([0], U1)),
        ("bounds_count", np.array([200], U1)),
        ("bounds_index", np.array([1], U1)),
        ("bounds_index", np.full(120, 9, U1)),
        ("bounds_values", np.array([1, 1, 1, 1], U1)),
        ("bounds_values", np.full(5, 2**63, "u8")),
    ],
)
def test_ties_are_checked(name: str, value: Any) -> None:
    data = partial_of(TIED, tie_range=True).to_bytes()
    said = refusal(changed(data, name, value))
    assert said.startswith("a.part: is damaged: ")


def test_impossible_ties_are_refused() -> None:
    data = partial_of(TIED, tie_range=True).to_bytes()
    strange = Partial.from_bytes(changed(data, "tie_score", np.array([0.25]))).compute()
    with pytest.raises(InputError, match="a tied score that no detection has"):
        tie_range(strange)
    record, columns = opened(data)
    spans = columns_of(record, columns)["bounds_values"]
    many = Partial.from_bytes(changed(data, "bounds_values", np.full(len(spans), 9, U1))).compute()
    with pytest.raises(InputError, match="more true positives than ground truths"):
        tie_range(many)


# --- anything at all


def some_partials() -> Iterator[Partial]:
    yield partial_of()
    yield partial_of(protocol="voc2007", input="a.json")
    yield partial_of(ground_truth=CASE.ground_truth())
    yield partial_of(replace(CASE, truths=(), dt=()))
    agnostic = replace(CASE, truths=CASE.truths[:1], dt=CASE.dt[:1], classes=(7,))
    yield partial_of(agnostic, protocol="proposals")
    yield partial_of(TIED, tie_range=True)
    tied = replace(
        agnostic, dt=(Detection(1, 7, BOX, 0.5), Detection(1, 7, (0.0, 0.0, 9.0, 9.0), 0.5))
    )
    few = replace(detap.protocol("proposals"), max_dets=(1,))
    yield partial_of(tied, protocol=few, tie_range=True)


WHOLE = [partial.to_bytes() for partial in some_partials()]


def assert_refused_or_usable(data: bytes) -> None:
    """Assert that it is refused as input, or is a usable partial."""
    try:
        partial = Partial.from_bytes(data)
        assert Partial.from_bytes(partial.to_bytes()).to_bytes() == partial.to_bytes()
        result = partial.compute(threads=1)
        assert result.to_dict()
        if partial.has_ties:
            assert tie_range(result)
        if result.protocol.matching == "by-score":
            result.curves()
            names = list(result.summary)
            resampled(result, draw_weights(max(len(result.images), 1), 3, 1), names)
            assert detap.merge([partial, partial], repeats="identical").to_bytes()
    except InputError:
        pass


@given(st.sampled_from(WHOLE), st.data())
def test_any_change_is_refused_or_harmless(data: bytes, draw: st.DataObject) -> None:
    body = bytearray(data[:-32])
    for _ in range(draw.draw(st.integers(1, 4))):
        offset = draw.draw(st.integers(0, len(body) - 1))
        body[offset] = draw.draw(st.integers(0, 255))
    assert_refused_or_usable(bytes(body) + data[-32:])
    assert_refused_or_usable(sealed(bytes(body)))


@given(st.sampled_from(WHOLE), st.data())
def test_any_bytes_of_columns_are_refused_or_harmless(data: bytes, draw: st.DataObject) -> None:
    size = int.from_bytes(data[8:16], "little")
    body = bytearray(data[:-32])
    for _ in range(draw.draw(st.integers(1, 6))):
        offset = draw.draw(st.integers(16 + size, len(body) - 1))
        body[offset] = draw.draw(st.sampled_from((0, 1, 2, 3, 127, 128, 255)))
    assert_refused_or_usable(sealed(bytes(body)))


@given(st.sampled_from(WHOLE), st.data())
def test_any_cut_is_refused(data: bytes, draw: st.DataObject) -> None:
    cut = draw.draw(st.integers(0, len(data) - 1))
    with pytest.raises(InputError):
        Partial.from_bytes(data[:cut])
    with pytest.raises(InputError):
        Partial.from_bytes(sealed(data[:cut]))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(WHOLE), st.data(), json_values)
def test_any_value_in_the_header_is_refused_or_harmless(
    data: bytes, draw: st.DataObject, value: Any
) -> None:
    record, columns = opened(data)
    target: Any = record
    key: Any = draw.draw(st.sampled_from(sorted(record)))
    while isinstance(target[key], list | dict) and target[key] and draw.draw(st.booleans()):
        target = target[key]
        places = sorted(target) if isinstance(target, dict) else range(len(target))
        key = draw.draw(st.sampled_from(places))
    target[key] = value
    assert_refused_or_usable(closed(record, columns))


@given(st.binary(max_size=200))
def test_random_bytes_raise_no_other_error(data: bytes) -> None:
    for text in (data, sealed(b"detapPT\x02" + data)):
        with pytest.raises(DetapError):
            Partial.from_bytes(text)


def test_bitmask_width_follows_from_the_header() -> None:
    """The width follows from the protocol, and is never taken from the bytes."""
    assert empty_bits(match_params(detap.protocol("coco")), 0).dtype == np.dtype("u2")
