"""Seeded mutations of a valid input: of its bytes, of its numbers, of its structure."""

import json
import re
from random import Random
from typing import Any

from fuzz.seeds import SEEDS, TOKENS, TOKENS_OF

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_LONGEST = 4096


class Mutator:
    """Makes inputs for one target; the same seed makes the same inputs.

    Parameters
    ----------
    target : str
        A key of :data:`fuzz.seeds.SEEDS`.
    seed : int
    """

    def __init__(self, target: str, seed: int) -> None:
        self.random = Random(f"{target}-{seed}")
        self.seeds = SEEDS[target]
        self.tokens = TOKENS[TOKENS_OF[target]]
        self.structured = TOKENS_OF[target] in ("json", "masks")

    def next(self) -> bytes:
        """Return another input."""
        pick = self.random.random()
        data = self.random.choice(self.seeds)
        if self.structured and pick < 0.35:
            data = self._restructured(data)
            if pick < 0.25:
                return data
        for _ in range(self.random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
            data = self._step(data)
        return data[:_LONGEST]

    def _step(self, data: bytes) -> bytes:  # noqa: PLR0911 - one for each kind
        random = self.random
        at = random.randrange(len(data) + 1)
        end = min(len(data), at + random.choice((1, 1, 2, 3, 8, 30, 100)))
        kind = random.randrange(9)
        if kind == 0:
            return data[:at] + data[end:]
        if kind == 1:
            return data[:end] + data[at:]
        if kind == 2:
            return data[:at] + random.choice(self.tokens) + data[at:]
        if kind == 3:
            return data[:at] + random.choice(self.tokens) + data[end:]
        if kind == 4:
            return data[:at] + bytes((random.randrange(256),)) + data[at + 1 :]
        if kind == 5:
            other = random.choice(self.seeds)
            start = random.randrange(len(other) + 1)
            return data[:at] + other[start : start + random.choice((5, 50, 500))] + data[end:]
        if kind == 6:
            return data[:at]
        return self._other_number(data)

    def _other_number(self, data: bytes) -> bytes:
        numbers = list(_NUMBER.finditer(data))
        if not numbers:
            return data
        chosen = self.random.choice(numbers)
        return data[: chosen.start()] + self.number() + data[chosen.end() :]

    def number(self) -> bytes:
        """Return a number as text: a plain one, or one that is often converted wrongly."""
        random = self.random
        kind = random.randrange(6)
        if kind == 0:
            return random.choice(self.tokens)
        if kind == 1:
            return str(random.randrange(-5, 100)).encode()
        if kind == 2:
            return repr(random.uniform(-1000, 1000)).encode()
        if kind == 3:
            return repr(random.random() * 10.0 ** random.randrange(-320, 308)).encode()
        digits = "".join(random.choices("0123456789", k=random.randrange(1, 40)))
        if kind == 4:
            return digits.encode()
        cut = random.randrange(len(digits) + 1)
        sign = random.choice(("", "-", "+"))
        return f"{sign}{digits[:cut]}.{digits[cut:]}e{random.randrange(-345, 330)}".encode()

    # --- structure

    def _restructured(self, data: bytes) -> bytes:
        value = json.loads(data)
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            value = self._changed(value)
        indent = self.random.choice((None, None, None, 1))
        spaced = self.random.choice(((",", ":"), (", ", ": ")))
        ascii_ = self.random.random() < 0.7
        text = json.dumps(value, indent=indent, separators=spaced, ensure_ascii=ascii_)
        return text.encode("utf-8", "surrogatepass")

    def _changed(self, value: Any) -> Any:  # noqa: PLR0911 - as above
        """Return the value with one part changed, at any depth."""
        random = self.random
        if isinstance(value, list) and value and random.random() < 0.85:
            at = random.randrange(len(value))
            action = random.random()
            if action < 0.75:
                return [*value[:at], self._changed(value[at]), *value[at + 1 :]]
            if action < 0.85:
                return value[:at] + value[at + 1 :]
            if action < 0.95:
                return [*value, value[at]]
            return random.sample(value, len(value))
        if isinstance(value, dict) and value and random.random() < 0.9:
            key = random.choice(list(value))
            action = random.random()
            if action < 0.8:
                return value | {key: self._changed(value[key])}
            if action < 0.9:
                return {name: entry for name, entry in value.items() if name != key}
            return {random.choice(("id", "x", key + "s", "score")): value[key]} | value
        return self._instead(value)

    def _instead(self, value: Any) -> Any:
        random = self.random
        if isinstance(value, int | float) and random.random() < 0.5:
            number = value + random.choice((1, -1, 0.5, 1e-9, 2**53, 2**64, -value, value))
            return int(number) if random.random() < 0.4 and number == number // 1 else number
        return random.choice(_ODD)


_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1.0, 1.5, -0.0, 1e300, 2**53, 2**63, 2**70, "", "1", "a"),
    *("\ud800", "\x00", "caf\u00e9", [], {}, [[]], [1, 2, 3, 4], [0, 0, 1, 1], {"id": 1}),
)
"""Replacements for a value."""
