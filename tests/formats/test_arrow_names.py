"""Columns of names of any type are converted to indices without loss."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.formats.arrow_files import pa

# Imports pyarrow, which the line above skips without.
from detap.formats.arrow.columns import NULL, encode  # isort: skip

KINDS = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64())


@st.composite
def columns(draw: st.DrawFn) -> tuple[Any, list[list[int | None]]]:
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


@given(columns())
@example((pa.int64(), [[7, 8, 7], [2**40, 8, 6], [5, None, 2**40]]))
def test_whole_numbers_of_any_type(case: tuple[Any, list[list[int | None]]]) -> None:
    kind, parts = case
    codes = encode(pa.chunked_array(parts, kind))
    rows = [value for part in parts for value in part]
    assert (codes.rows == NULL).tolist() == [value is None for value in rows]
    assert set(codes.number) == {value for value in rows if value is not None}
    for value, code in zip(rows, codes.rows.tolist(), strict=True):
        assert value is None or code == codes.number[value]


@pytest.mark.parametrize("offset", [1, 3])
def test_unaligned_integers(offset: int) -> None:
    """As they occur in files."""
    values = np.array([40, 41, 40, -3], np.int64)
    data = pa.py_buffer(bytes(offset) + values.tobytes()).slice(offset)
    column = pa.Array.from_buffers(pa.int64(), 4, [None, data])
    codes = encode(pa.chunked_array([column]))
    assert [[*codes.number][code] for code in codes.rows.tolist()] == values.tolist()
