"""The number reader equals Python's float() to the last bit."""

import math
import os
import re
import struct
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from detap.formats.json._fields import Fields
from detap.formats.openimages._scan import Scanner
from detap.formats.text.lines import NUMBER
from fuzz.mutate import Mutator
from tests.formats.test_fields import walk


def bits(value: float) -> bytes:
    return struct.pack("d", value)


def parse(text: str) -> float | None:
    """Return the finite number of a text as the scanners of text read it; None if they do not."""
    scanner = Scanner(lambda *_: None, -math.inf, math.inf)
    scanner.expect([-2, -3, 0], 1)
    scanner.read(b"image,label," + text.encode())
    numbers = scanner.columns()[5].tolist()
    return numbers[0] if numbers else None


def parse_json(text: str) -> float | None:
    """Return the finite number of a text as the scanner of JSON reads it; None if it does not."""
    fields = Fields([("bbox", "box")])
    if not walk(fields, f'[{{"bbox": [0, 0, 0, {text}]}}]'.encode()):
        return None
    last: float = fields.take("bbox").ravel()[3]
    return last


def assert_parsed(text: str) -> None:
    """Compare one number's text with Python's float, and with int if it is a JSON integer."""
    value = float(text)
    zero = 0.0 if text.lstrip("-").isdigit() and value == 0 else value
    for parsed, expected in ((parse(text), value), (parse_json(text), zero)):
        if math.isinf(value):
            assert parsed is None, text
        else:
            assert parsed is not None, text
            assert bits(parsed) == bits(expected), text


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(2.2250738585072011e-308)
@example(1.7976931348623157e308)
@example(-0.0)
def test_every_float_is_read_as_python_reads_it(value: float) -> None:
    assert_parsed(repr(value))
    assert_parsed(f"{value:.25e}")
    assert_parsed(f"{value:.16g}")


@given(st.integers(0, 10**40), st.integers(-400, 310))
def test_any_mantissa_and_exponent_is_read_as_python_reads_it(mantissa: int, power: int) -> None:
    assert_parsed(f"{mantissa}e{power}")
    assert_parsed(f"-{mantissa}.{abs(power)}")


@given(st.integers(0, 2**63 - 2**52 - 2), st.integers(-2, 2), st.integers(17, 800))
def test_numbers_between_two_floats_are_read_as_python_reads_them(
    number: int, off: int, places: int
) -> None:
    """Numbers halfway between two adjacent floats, and very close to them."""
    low, high = (struct.unpack("d", struct.pack("q", n))[0] for n in (number, number + 1))
    middle = (Fraction(low) + Fraction(high)) / 2
    power = 0 if middle >= 1 else len(str(middle.denominator // middle.numerator))
    digits = int(middle * 10 ** (power + places)) + off
    if digits >= 0:
        assert_parsed(f"{digits}e{-power - places}")


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", "01", "-01", "1.", ".5", "1e", "1e+", "+1", "--1", "1.e5", "1_0", "0x1"),
        *("1e999", "-1e999", "9" * 400, "nan", "inf", "NaN", "1,", "1.5.5", "1ee5"),
    ],
)
def test_invalid_json_numbers_are_refused(text: str) -> None:
    assert parse_json(text) is None


JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def check(text: str) -> None:
    """Assert that each grammar accepts its own numbers, with the value of Python's float."""
    number, json = parse(text), parse_json(text)
    finite = NUMBER.fullmatch(text) is not None and math.isfinite(float(text))
    assert (number is not None) == finite
    if number is not None:
        assert bits(number) == bits(float(text))
    assert (json is not None) == (finite and JSON_NUMBER.fullmatch(text) is not None)
    if json is not None and number is not None:
        assert bits(json) == bits(0.0 if text == "-0" else number)


@given(st.text("0123456789.eE+-", max_size=30))
@example(".")
@example("+.e1")
@example("0" * 30 + ".")
def test_each_grammar_accepts_its_own_numbers(text: str) -> None:
    check(text)


def test_hard_numbers_by_the_thousand() -> None:
    mutator = Mutator("coco-truth", seed=5)
    for _ in range(int(os.environ.get("DETAP_NUMBERS", "50000"))):
        text = mutator.number().decode("latin-1")
        if text.isascii():
            check(text)


@pytest.mark.parametrize(
    "text",
    ["+1", "1.", ".5", "-.5e-3", "00012.50", "+0", "1.e5", "-0.", "0" * 400 + ".5", "5.e-324"],
)
def test_numbers_invalid_in_json(text: str) -> None:
    number = parse(text)
    assert number is not None
    assert bits(number) == bits(float(text))
    assert parse_json(text) is None


@given(st.integers(0, 2**32 - 1))
def test_every_float32_is_read_as_python_reads_it(number: int) -> None:
    value = struct.unpack("f", struct.pack("I", number))[0]
    if math.isfinite(value):
        assert_parsed(repr(value))
        assert_parsed(f"{value:.8e}")


# At the limits of each algorithm: quotients end at 10**22; Python reads the others.
POWERS = (-400, -343, -71, -70, -28, -27, 0, 22, 23, 55, 56, 290, 309)
MANTISSAS = (1, 2**53, 2**53 + 1, 10**19 - 1, 2**64 - 1, 10**30 + 1, 0)
EDGES = [f"{start}{n}e{power}" for n in MANTISSAS for power in POWERS for start in ("", "-0.")]
# An odd number of 54 bits, halved, in the fewest digits: exactly halfway, which rounds to even.
HALVED = [(n, power) for n in (2**53 + 1, 2**53 + 3, 2**53 + 5, 2**54 - 1) for power in range(1, 5)]
EDGES += [f"{n * 5**power}e-{power}" for n, power in HALVED if n * 5**power < 10**19]
# Mantissas of 64 bits close to the middle between two doubles.
ABOVE = (1022, 2048 + 1022, 4096 + 1022, 2048 + 1024, 2048 + 1026)
EDGES += [f"{2**63 + above}{point}" for above in ABOVE for point in ("", ".0")]
EDGES += [f"0.{'0' * 140}12345e1150", f"12345{'0' * 140}e-1150", "-0", "0"]
for _count in (18, 19, 20, 400, 100_000):
    _zeros = "0" * _count
    EDGES += [f"0.{_zeros}1e{_count}", f"1{_zeros}e-{_count}", f"1.5{_zeros}"]
    EDGES += [f"1{_zeros}1e-{_count}", f"0.{_zeros}"]


@pytest.mark.parametrize("text", EDGES, ids=lambda text: text[:30])
def test_numbers_at_the_limits_of_each_algorithm(text: str) -> None:
    assert_parsed(text)
