"""Answers of vision-language models: JSON Lines of an image and the text of a model."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from detap.errors import Note, UsageError
from detap.formats.catalogue import FORMATS
from detap.formats.image_sizes import sizes_of
from detap.formats.options import DIALECT_OPTIONS
from detap.formats.reading.sniffing import json_paths
from detap.formats.responses.answer import Answer, collapse
from detap.formats.responses.dialects import DIALECTS, Size, dialect_of
from detap.formats.shapes.document import Image, Item, LinesDocument, ModelFormat
from detap.formats.shapes.values import object_of, required, side_of
from detap.formats.stem_matching import ImageNames
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.detection import Detections, GroundTruth, Name, ResponseCounts
from detap.tables.notes import SAME_IMAGES, extra_images_note, extra_images_problem
from detap.text_input import nearest, quote

_SHAPE = 'expected {"image": "a.jpg", "response": "..."}'
_SMALL, _BORDER, _ENOUGH, _MOST = 0.7, 1.05, 30, 0.9
"""Answers look like pixels if, on images whose sides are below 0.7 of the unit, 90 % of at least 30
boxes end within the image, or up to 5 % beyond."""
_NOTES = (
    Note("truncated", "answers are broken off; their complete boxes count"),
    Note("malformed", "answers are malformed JSON; boxes before and after the fault count"),
    Note("lenient-json", "answers have single quotes, a trailing comma, or True, False, None"),
    Note("several-blocks", "answers have several JSON values with boxes; all count"),
    Note("repeated-boxes", "answers repeat a box with its label; all count"),
    Note("unfinished-thinking", "answers end within <think>"),
    Note("responses-per-image", "images have several answers; all count"),
)
"""Notes on answers, to which their counts are added."""


class Line(NamedTuple):
    """An answer with its image."""

    location: str
    image: Name  # as the file names it
    response: str
    answer: Answer
    input_size: Size | None


class Answers(LinesDocument):
    """The answers of a file, with the options of a dialect; an image may have several."""

    expected = _SHAPE
    content = "answers"
    score_names = ("score",)
    in_file_order = True
    sizes_of_detections = True
    refuses_negative_sizes = False  # what a model answers is evaluated, not corrected

    def __init__(
        self,
        *arguments: Any,
        truth: GroundTruth | None = None,
        missing_responses: str | None = None,  # an error unless "empty"
        **options: Any,
    ) -> None:
        if truth is None:
            raise UsageError("answers of models require --gt")
        self.missing_responses = missing_responses
        of_dialect = {one.name: options.pop(one.name, None) for one in DIALECT_OPTIONS}
        name = of_dialect.pop("dialect")
        self.dialect_name, self.dialect = str(name), dialect_of(name, **of_dialect)
        super().__init__(*arguments, truth=truth, **options)
        self.without_scores = not getattr(self.dialect.form, "score_key", None)
        source = FORMATS.get(truth.format)
        files = source.file_names(truth) if source is not None and source.by_ids else {}
        self.names = ImageNames(truth.images, files)
        sizes = sizes_of(self.names.names, self.size_table)
        if truth.image_sizes is not None:
            sizes = np.where(np.isnan(truth.image_sizes), sizes, truth.image_sizes)
        self.sizes: list[Any] = sizes.tolist()
        self.known = truth.images
        self.known_classes = frozenset(truth.classes)
        self.class_by_word = {collapse(n).casefold(): n for n in reversed(truth.classes)}
        self.lines: list[Line] = []
        self.by_image: dict[int, list[Line]] = {}
        self._on_small = self._in_pixels = 0  # boxes, as counted by `item_of`

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield each image with its answers."""
        for location, record in content:
            with self.problems.collected(location):
                self.lines.append(self._line(location, record))
                self.counts.update(self.lines[-1].answer.all_notes())
        if not self.lines and not self.problems.count:
            raise FaultError("has no answers", _SHAPE)
        if not self.problems.count:
            self._find_images()
            self._check()
            yield from (("", row) for row in self.by_image)

    def _line(self, location: str, record: Any) -> Line:
        """Return the line of a record; raise FaultError if a key is missing or wrong."""
        image = required(object_of(record, _SHAPE), "image", str | int, _SHAPE)
        if isinstance(image, bool) or not str(image).strip():
            message = f"image is {short_json(image)}"
            raise FaultError(message, "expected a file name or an id")
        empty = 'expected text; write "" where the model gave no answer'
        response = required(record, "response", str, empty)
        label = required({"label": "", **record}, "label", str | None, "write a class name")
        if not (label or self.dialect.has_labels):
            raise FaultError("label is missing", "write the class that was asked for")
        sides = ("input_width", "input_height")
        width, height = (side_of(name, record.get(name)) for name in sides)
        if isnan(width) != isnan(height):
            raise FaultError("has one of input_width and input_height", "write both or neither")
        size = None if isnan(width) else (width, height)
        answer = self.dialect.read(response, collapse(label or ""))
        return Line(location, image, response, answer, size)

    def _find_images(self) -> None:
        """Group the lines by image; leave out those of unknown images, or raise FaultError."""
        for line in self.lines:
            self.by_image.setdefault(self.names.find(line.image), []).append(line)
        unknown = self.by_image.pop(-1, [])
        boxes = sum(len(line.answer.boxes) for line in unknown)
        images = len({line.image for line in unknown})
        if self.limits.refuses_images(len(unknown), len(self.lines)):
            first = unknown[0]
            message = f"image {quote(first.image)} is not in the ground truth"
            similar = " or ".join(map(quote, nearest(str(first.image), self.names.names)))
            hint = f"did you mean {similar}?" if similar else SAME_IMAGES
            problem = extra_images_problem(("", first.location), message, boxes, images, hint)
            raise FaultError(problem.message, problem.hint, first.location)
        if unknown:
            self.extra_images = (extra_images_note(boxes, images),)

    def _check(self) -> None:
        """Raise FaultError for another dialect, and missing answers and image sizes."""
        answers, names = [line.answer for line in self.lines], self.names.names
        others = [a.other_keys for a in answers if a.other_keys and not a.boxes]
        if not self.as_is and 2 * len(others) > len(answers):
            key = Counter(key for keys in others for key in sorted(keys)).most_common(1)[0][0]
            of_key = [name for name, one in DIALECTS.items() if one.form.box_key == key]
            known = [name for name in of_key if name != "json"] or [f"json --box-key {key}"]
            box_key = self.dialect.form.box_key
            message = f"{len(others)} of {len(answers)} answers have no box under {box_key}"
            raise FaultError(f"{message}, but under {key}", f"try --dialect {' or '.join(known)}")
        absent = self._absent()
        if absent and self.missing_responses != "empty":
            have = "has" if len(absent) == 1 else "have"
            message = f"{len(absent)} of {len(names)} images {have} no answer, first {absent[0]}"
            raise FaultError(message, "--missing-responses empty counts them as empty")
        for row, lines in () if self.dialect.has_pixels else self.by_image.items():
            if any(line.answer.boxes for line in lines) and not min(self.sizes[row]) > 0:
                message = f"the size of image {quote(names[row])} is unknown"
                hint = "pass --image-sizes FILE, a CSV of image,width,height"
                raise FaultError(message, hint)

    def _absent(self) -> list[str]:
        """Return the names of the images without an answer, sorted."""
        names = enumerate(self.names.names)
        return sorted(name for row, name in names if row not in self.by_image)

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of answers."""
        size = self.sizes[record]
        objects = (
            (f"{line.location}: box {number}", {"line": line, "box": box, "size": size})
            for line in self.by_image[record]
            for number, box in enumerate(line.answer.boxes, 1)
        )
        name: Any = self.known[record]
        return Image(self.names.names[record], objects, stem=name, file="")

    def item_of(self, record: Any) -> Item:
        """Return a box in pixels; labels differ in more than case and space."""
        line, box, size = record["line"], record["box"], record["size"]
        corners, label = self.dialect.corners(box.numbers, size, line.input_size), box.label
        seen, scale = line.input_size or size, self.dialect.divisor
        if max(seen) < _SMALL * scale:
            self._on_small += 1
            ends = zip(corners[2:], size, seen, strict=True)
            self._in_pixels += all(end / side * scale <= _BORDER * most for end, side, most in ends)
        if label not in self.known_classes:
            label = self.class_by_word.setdefault(label.casefold(), label)
        return Item(label, corners, {} if isnan(box.score) else {"score": box.score})

    def detections(self, truth: GroundTruth) -> Detections:
        """Return the boxes as detections, with the counts of answers for reports."""
        failed = (str(line.image) for line in self.lines if line.answer.failed)
        responses = ResponseCounts(
            dialect=self.dialect_name,
            lines=len(self.lines),
            images_without_response=self._absent(),
            failed=list(dict.fromkeys(failed)),
            bad_boxes=sum(len(line.answer.bad) for line in self.lines),
            notes=dict(self.counts),
        )
        return replace(super().detections(truth), responses=responses)

    def notes(self) -> tuple[Note, ...]:
        """Return notes on the answers."""
        repeated = sum(len(lines) > 1 for lines in self.by_image.values())
        counts = {**self.counts, "responses-per-image": repeated}
        notes = (replace(note, count=counts.get(note.code, 0), severity="info") for note in _NOTES)
        failed = [line for line in self.lines if line.answer.failed]
        bad = [f"{line.image}: {text}" for line in self.lines for text in line.answer.bad]
        have = "has" if len(failed) == 1 else "have"
        message = f"{len(failed)} of {len(self.lines)} answers {have} no boxes that could be read"
        first = "".join(f"{line.image}: {short_json(line.response)}" for line in failed[:1])
        in_pixels = self._in_pixels if self._on_small >= _ENOUGH else 0
        in_pixels *= self._in_pixels >= _MOST * self._on_small
        left_out = "boxes without four finite numbers and a label are left out"
        like_pixels = (
            "boxes end within the width and height of their image as if written in pixels, but "
            f"--dialect {self.dialect_name} has 1/{self.dialect.divisor:g} of them"
        )
        return (
            Note("responses-failed", f"{message} (failed); first: {first}", min(len(failed), 1)),
            Note("bad-boxes", f"{left_out}; first: {''.join(bad[:1])}", len(bad)),
            Note("answers-in-pixels", like_pixels, in_pixels),
            *notes,
        )


class Responses(ModelFormat):
    """The text of a model for each image; it has boxes in the dialect of the model."""

    document = Answers
    same_names = True
    coordinates = "see --dialect"
    boxes = ()

    def fits(self, path: str) -> bool:
        """Return True if the first records have an image and a response, and no objects."""
        paths = json_paths(path)
        return any(
            {f"{record}image", f"{record}response"} <= paths and f"{record}objects" not in paths
            for record in (".", "[].")
        )
