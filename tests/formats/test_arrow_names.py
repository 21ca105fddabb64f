"""Columns of names of any type are converted to indices without loss."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.arrow_files import pa

# Imports pyarrow, which the line above skips without.
from detap.formats.arrow.columns import Codes  # isort: skip

KINDS = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64())


def named(codes: Codes) -> list[Any]:
    """Return the name of each row."""
    names = list(codes.number)
    assert list(codes.number.values()) == list(range(len(names)))
    return [names[number] for number in codes.rows.tolist()]


@st.composite
def batches(draw: st.DrawFn) -> tuple[Any, list[list[int | None]]]:
    kind = draw(st.sampled_from((*KINDS, pa.uint64())))
    signed = pa.types.is_signed_integer(kind)
    low, high = (
        (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
        if signed
        else (0, 2**kind.bit_width - 1)
    )
    middle = draw(st.integers(low, high))
    close = st.integers(max(low, middle - 5), min(high, middle + 5))
    value = st.none() | close | st.integers(low, high)
    return kind, draw(st.lists(st.lists(value, max_size=12), max_size=5))


@given(batches())
def test_whole_numbers_of_any_type(case: tuple[Any, list[list[int | None]]]) -> None:
    kind, parts = case
    codes = Codes()
    without = [codes.add(pa.array(part, kind)).tolist() for part in parts]
    codes.finish()
    assert without == [[k for k, value in enumerate(part) if value is None] for part in parts]
    rows = [value for part in parts for value in part]
    if not any(value is not None for value in rows):
        assert not codes.number
        return
    assert set(codes.number) == {value for value in rows if value is not None}
    for name, value in zip(named(codes), rows, strict=True):
        assert value in (None, name)


def test_dense_and_sparse_integers() -> None:
    codes = Codes()
    parts = [[7, 8, 7], [2**40, 8, 6], [5, None, 2**40]]
    for part in parts:
        codes.add(pa.array(part, pa.int64()))
    codes.finish()
    assert named(codes)[:7] == [7, 8, 7, 2**40, 8, 6, 5]
    assert named(codes)[8] == 2**40


@pytest.mark.parametrize("offset", [1, 3])
def test_unaligned_integers(offset: int) -> None:
    """As they occur in files."""
    values = np.array([40, 41, 40, -3], np.int64)
    data = pa.py_buffer(bytes(offset) + values.tobytes()).slice(offset)
    codes = Codes()
    codes.add(pa.Array.from_buffers(pa.int64(), 4, [None, data]))
    codes.finish()
    assert named(codes) == values.tolist()
