"""Write valid COCO files of any form: the same seed gives the same files."""

import json
import random
import struct
from collections.abc import Callable

from detap.tables.detection import GroundTruth, Name


class Writer:
    """Writes a document as JSON with random formatting; if `plain`, nothing that is odd."""

    def __init__(self, chance: random.Random, plain: bool = False) -> None:
        self.chance = chance
        self.plain = plain
        self.shuffled = chance.random() < 0.5
        self.spaced = chance.choice([0.0, 0.05, 0.5])
        self.form = chance.choice(FORMS)

    def space(self, usual: str = "") -> str:
        if self.chance.random() >= self.spaced:
            return usual
        return "".join(self.chance.choices(" \n\r\t", k=self.chance.randrange(4)))

    def pairs(self, pairs: list[tuple[str, str]]) -> str:
        if self.shuffled:
            self.chance.shuffle(pairs)
        body = ",".join(
            f"{self.space()}{self.key(key)}{self.space()}:{self.space(' ')}{value}{self.space()}"
            for key, value in pairs
        )
        return f"{{{body}}}"

    def key(self, name: str) -> str:
        if not self.plain and self.chance.random() < 0.01:
            return f'"\\u{ord(name[0]):04x}{name[1:]}"'
        return json.dumps(name, ensure_ascii=not self.plain)

    def array(self, items: list[str]) -> str:
        return f"[{','.join(f'{self.space(chr(32))}{item}{self.space()}' for item in items)}]"

    def number(self, value: float) -> str:
        """Write a number so that its value stays the same, or nearly."""
        ways = [
            f"{value:.20f}",
            f"{value:.17e}",
            f"{value:.3E}",
            repr(struct.unpack("f", struct.pack("f", value))[0]),
            str(round(value)),
            f"{round(value)}.{'0' * self.chance.randrange(1, 30)}",
            f"{value:.2f}e{self.chance.choice(['', '+', '-'])}{self.chance.randrange(3)}",
            *[repr(round(value, self.chance.randrange(18)))] * 5,
        ]
        return self.chance.choice(ways)

    def any_number(self) -> str:
        """Write any finite number."""
        way = self.chance.randrange(5)
        if way == 0:
            bits = self.chance.getrandbits(64)
            text = repr(struct.unpack("d", struct.pack("Q", bits))[0])
            return text if text[-1].isdigit() else "-0.0"
        if way == 1:
            return f"{self.chance.getrandbits(80)}e{self.chance.randrange(-330, 250)}"
        if way == 2:
            return self.chance.choice(["0", "-0", "0.0", "-0.0", "0e5", "1E0", "-1e-400", "5e-324"])
        if way == 3:
            return f"{self.chance.getrandbits(70)}.{self.chance.getrandbits(100)}"
        return self.number(self.chance.uniform(-1000, 1000))

    def anything(self, depth: int = 0) -> str:
        """Write a value that no reader uses."""
        simple = [self.word, self.any_number, self.string, self.string, self.numbers]
        if depth < 4 and self.chance.random() < 0.4:
            return self.nested(depth)
        return self.chance.choice(simple)()

    def word(self) -> str:
        return self.chance.choice(["null", "true", "false"])

    def numbers(self) -> str:
        if self.chance.random() < 0.5:
            return "[[" + ", ".join(str(self.chance.randrange(999) / 8) for _ in range(40)) + "]]"
        count = self.chance.randrange(30)
        return self.array([self.number(self.chance.uniform(0, 640)) for _ in range(count)])

    def nested(self, depth: int) -> str:
        if self.chance.random() < 0.5:
            return self.array([self.anything(depth + 1) for _ in range(self.chance.randrange(4))])
        keys = self.chance.sample(["a", "b", "counts", "size", "\u00e9", "x" * 30], k=2)
        return self.pairs([(key, self.anything(depth + 1)) for key in keys])

    def string(self) -> str:
        letters = self.chance.choices('abc/\\"\u00e9\u20ac\U0001f600 \n\x7f', k=12)
        return json.dumps("".join(letters), ensure_ascii=self.chance.random() < 0.5)

    def extras(self, names: list[str]) -> list[tuple[str, str]]:
        chosen = self.chance.sample(names, k=self.chance.choice([0, 0, 1, len(names)]))
        return [(name, self.anything()) for name in chosen]

    def box(self) -> str:
        x, y = self.chance.uniform(-5, 600), self.chance.uniform(-5, 400)
        w, h = self.chance.choice([(0, 5), (30.25, 40), (self.chance.uniform(0, 300), 7)])
        return self.array([self.number(x), self.number(y), self.number(w), self.number(h)])

    def flag(self) -> str:
        return self.chance.choice(["0", "1", "true", "false", "0.0", "1e0", "1.0"])

    def identifier(self, value: int) -> str:
        """Write the id of `value` in the file's form: see `named`."""
        if self.form == "whole":
            return self.chance.choice([f"{value}.0", f"{value}e0", f"{value}.000", str(value)])
        return json.dumps(named(value, self.form), ensure_ascii=self.chance.random() < 0.5)

    def own_identifier(self, value: int) -> str:
        """Write the id of an annotation, which nothing refers to."""
        if self.form == "string":
            usual = self.plain or self.chance.random() < 0.9
            return f'"{value:x}"' if usual else f'"\\u002d{value:x}"'
        return self.identifier(value)


IMAGES = [0, 3, 17, 100_000_000_000, -4]
CATEGORIES = [1, 2, 90]
FORMS = ["integer", "integer", "whole", "large", "string"]
"""Forms of ids in files of real tools."""


def named(value: int, form: str) -> Name:
    """Return the id for a number: itself, one near 2**60, or a string."""
    if form == "string":
        return f"\u00e9/{value}.jpg"
    return value + 2**60 if form == "large" else value


def write_truth(write: Writer) -> str:
    chance = write.chance
    images = [
        write.pairs(
            [("id", write.identifier(number)), *write.extras(["file_name", "license", "url"])]
            + [(side, write.number(chance.uniform(1, 900))) for side in ("width", "height")]
        )
        for number in chance.sample(IMAGES, k=len(IMAGES))
    ]
    ids = chance.sample(range(10**12), k=chance.randrange(1, 8))
    annotations = [
        write.pairs(
            [("id", write.own_identifier(number))] * (chance.random() < 0.9)
            + [("image_id", write.identifier(chance.choice(IMAGES)))]
            + [("category_id", write.identifier(chance.choice(CATEGORIES)))]
            + [("bbox", write.box())]
            + [("area", write.number(chance.uniform(0, 5000)))] * (chance.random() < 0.9)
            + [("iscrowd", write.flag())] * (chance.random() < 0.9)
            + [("ignore", write.flag())] * (chance.random() < 0.1)
            + [("isgroupof", write.flag())] * (chance.random() < 0.1)
            + write.extras(["segmentation", "attributes"])
        )
        for number in ids
    ]
    categories = [
        write.pairs(
            [("id", write.identifier(number)), ("name", write.string()), *write.extras(["def"])]
        )
        for number in chance.sample(CATEGORIES, k=3)
    ]
    parts = [
        ("images", write.array(images)),
        ("annotations", write.array(annotations)),
        ("categories", write.array(categories)),
    ]
    mark = "\ufeff" if chance.random() < 0.05 else ""
    return mark + write.space() + write.pairs(parts + write.extras(["info", "x"])) + write.space()


def write_results(write: Writer) -> str:
    chance = write.chance
    records = [
        write.pairs(
            [
                ("image_id", write.identifier(chance.choice(IMAGES))),
                ("category_id", write.identifier(chance.choice([*CATEGORIES, 7]))),
                ("bbox", write.box()),
                ("score", write.any_number()),
                *write.extras(["segmentation", "id", "area"]),
            ]
        )
        for _ in range(chance.randrange(8))
    ]
    array = write.array(records)
    if chance.random() < 0.3:
        array = write.pairs(
            [(chance.choice(["annotations", "predictions"]), array), *write_lists(write)]
        )
    return write.space() + array + write.space()


def write_lists(write: Writer) -> list[tuple[str, str]]:
    """Return the further fields of a results document."""
    chance = write.chance
    images = [
        write.pairs([("id", write.identifier(number)), ("file_name", write.string())])
        for number in IMAGES
    ]
    names = zip(CATEGORIES, some_truth(write.form).classes, strict=True)
    categories = [
        write.pairs([("id", write.identifier(number)), ("name", json.dumps(name))])
        for number, name in names
    ]
    lists = [
        ("images", chance.choice([write.array(images), write.anything()])),
        ("categories", write.array(categories)),
    ]
    return [*chance.sample(lists, k=chance.randrange(3)), *write.extras(["info", "licenses"])]


def feeder(chance: random.Random, data: bytes) -> Callable[[int], bytes]:
    """Return a reader that returns the bytes in pieces of random size."""
    at = 0
    largest = chance.choice([1, 3, 50, 1000, 1 << 20])

    def read(count: int) -> bytes:
        nonlocal at
        piece = data[at : at + min(count, chance.randint(1, largest))]
        at += len(piece)
        return piece

    return read


def some_truth(form: str = "integer") -> GroundTruth:
    """Return the ground truth for results with ids of this form."""
    images = sorted((named(n, form) for n in IMAGES), key=str if form == "string" else None)
    classes = [named(n, form) for n in CATEGORIES]
    return GroundTruth.from_arrays(
        image=images[:1], label=classes[:1], boxes=[[0, 0, 1, 1]], images=images, classes=classes
    )
