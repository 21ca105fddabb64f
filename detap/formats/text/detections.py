"""Detections from folders of text files, one per class or one per image."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

import numpy as np

from detap.formats.by_name.notes import classes_without_file, files_skipped, images_without_file
from detap.formats.by_name.objects import check_images
from detap.formats.reading.sniffing import head
from detap.formats.text.class_names import ClassNames
from detap.formats.text.folder import Folder, detections_folder, named_as_images
from detap.formats.text.lines import NUMBER, LineForm, looks_like
from detap.formats.text.reader import FolderReader
from detap.io import stream as files
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, check_choice
from detap.tables.columns import indices_in, reindexed
from detap.tables.detection import BOX_FORMATS, Detections, Floats, GroundTruth, Integers
from detap.tables.notes import INSIST
from detap.text_input import quote

_KIT_NAME = re.compile(r"(?:.*_)?det_[^_]+_(.+)", re.DOTALL)


class ClassOfFile(NamedTuple):
    """The class in the name of a detections file: the best guess, and all known ones that fit."""

    name: str
    known: tuple[str, ...] = ()


def class_of_stem(stem: str, classes: Collection[str]) -> ClassOfFile:
    """Return the class at the end of a file name, as in ``comp4_det_test_traffic_light``.

    The class follows the last ``det_<set>_``, where the set has no underscore. If that is not a
    class of the ground truth, or the name has another form, it is the one class of the ground truth
    that follows an underscore at the end.
    """
    after_set = _after_set(stem)
    tails = [stem[at + 1 :] for at, letter in enumerate(stem) if letter == "_"]
    whole = [name for name in (stem, after_set) if name in classes]
    known = tuple(whole[:1] or [tail for tail in tails if tail in classes])
    guess = after_set or stem.rpartition("_")[2] or stem
    return ClassOfFile(next(iter(known), guess), known)


def _after_set(stem: str) -> str:
    """Return the text after the last ``det_<set>_``, or ""."""
    match = _KIT_NAME.fullmatch(stem)
    return match[1] if match else ""


def classes_of_stems(stems: Iterable[str], classes: Collection[str]) -> dict[str, ClassOfFile]:
    """Return the class of each file; known classes show the prefix of the others.

    Next to ``results_cat`` with a known ``cat``, ``results_hot_dog`` has the class ``hot_dog``.
    """
    classes_of_files = {stem: class_of_stem(stem, classes) for stem in stems}
    guesses = classes_of_files.items()
    prefixes = {stem[: -len(name)] for stem, (name, known) in guesses if len(known) == 1}
    for stem, guess in guesses:
        rests = [stem[len(prefix) :] for prefix in prefixes if prefix and stem.startswith(prefix)]
        if len(guess.known) > 1:
            agreed = [rest for rest in rests if rest in guess.known]
            if len(agreed) == 1:
                classes_of_files[stem] = ClassOfFile(agreed[0], tuple(agreed))
        elif not guess.known and not _after_set(stem):
            name = min(filter(None, rests), key=len, default=guess.name)
            classes_of_files[stem] = ClassOfFile(name)
    return classes_of_files


def detect_layout(
    stems: Collection[str],
    words: Collection[str],
    images: Collection[str],
    classes: Collection[str],
) -> str | None:
    """Return the layout of a folder of detections, or None if it is unclear.

    File names and first words decide: the first word of a file is an image in class files, and a
    class or its number in image files. `images` and `classes` are those of the ground truth.
    """
    by_image = sum(stem in images for stem in stems)
    by_class = sum(bool(class_of_stem(stem, classes).known) for stem in stems)
    image_words = sum(word in images for word in words)
    class_words = sum(word in classes for word in words)
    # Names and words must agree, or only one of them decides.
    for class_files, image_files in (
        (by_class + image_words, by_image + class_words),
        (by_class, by_image),
        (image_words, class_words),
    ):
        if bool(class_files) != bool(image_files):
            return "class-files" if class_files else "image-files"
    if by_class or class_words:
        return None  # and images as well: only one of them would have decided
    # No image or class is known, as for the wrong split.
    if any(map(_after_set, stems)):
        return "class-files"
    return "image-files" if words and all(map(NUMBER.fullmatch, [*words, *stems])) else None


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    class_names: Path | None = None,
    dt_class_names: Path | None = None,
    boxes: str = "xyxy",
    layout: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections, one text file per class or one per image; `layout` is detected by default.

    A line is ``image score x1 y1 x2 y2`` in the file of a class, else ``class score x1 y1 x2 y2``,
    or all lines lack the score.
    """
    check_choice("boxes", boxes, BOX_FORMATS)
    folder = detections_folder(os.fspath(path))
    names = ClassNames.load(dt_class_names or class_names, limits)
    if not all(isinstance(name, str) for name in ground_truth.images):
        message = "has image names, but the ground truth has image numbers"
        hint = "use detections in the format of the ground truth"
        files.refuse(folder.given, message, hint)
    folder = named_as_images(folder, ground_truth.images)
    layout = layout or _layout_of(folder, ground_truth)
    reader = FolderReader(folder, as_is, limits)
    if layout == "class-files":
        class_by_stem = classes_of_stems(folder.members, frozenset(ground_truth.classes))
        form = LineForm("image", True, boxes, str)
        image, classes = read_class_files(reader, ground_truth, class_by_stem, form, names.resolve)
        label, note = reader.rows.file, classes_without_file(ground_truth, classes)
    else:
        rows = reader.read(LineForm("class", True, boxes, names.resolve))
        image_by_file = indices_in(folder.members, ground_truth.images)
        image = image_by_file[rows.file]
        check_images(reader, image, (reader.images, rows.file), ground_truth, reader.problems)
        missing = len(ground_truth.images) - int(np.count_nonzero(image_by_file >= 0))
        note = images_without_file(missing)
        label, classes = rows.name, list(rows.names)
    values = reader.scored_values()
    if not as_is:
        _check_score_column(reader, values)
    return reader.detections(
        ground_truth,
        label,
        classes,
        sources=names.source(),
        notes=(note, files_skipped(folder.skipped, "detections")),
        images=ground_truth.images,
        image=image,
        boxes=values[:, 1:],
        box_format=boxes,
        score=values[:, 0].copy(),
    )


def _layout_of(folder: Folder, truth: GroundTruth) -> str:
    """Return the layout by the first words of the first 64 files; raise InputError if unclear."""
    images = {name for name in truth.images if isinstance(name, str)}
    heads = map(head, map(folder.file, islice(folder.members.values(), 64)))
    texts = [data.removeprefix(BYTE_ORDER_MARK).decode(errors="replace") for data in heads]
    words = [text.split(None, 1)[0] for text in texts if text.strip()]
    if layout := detect_layout(folder.members, words, images, frozenset(truth.classes)):
        return layout
    file = folder.file(next(iter(folder.members.values())))
    if appearance := looks_like(head(file)):
        files.refuse(file, f"looks like {appearance}", "expected text with one box per line")
    message = (
        "cannot detect the layout: file names and first words match neither only classes nor only "
        "images of the ground truth"
    )
    return files.refuse(folder.given, message, "use --layout class-files or --layout image-files")


def read_class_files(
    reader: FolderReader,
    ground_truth: GroundTruth,
    class_by_stem: Mapping[str, ClassOfFile],
    form: LineForm,
    resolve: Callable[[str], str],
) -> tuple[Integers, list[str]]:
    """Read one file per class; return the image index (N,) of each row, and the classes.

    `resolve` returns the class of a name.
    """
    folder, problems = reader.folder, reader.problems
    first: dict[str, str] = {}
    for stem, class_of_file in class_by_stem.items():
        file = folder.file(folder.members[stem])
        with problems.collected(file=file):
            if len(class_of_file.known) > 1:
                message = f"the class may be {' or '.join(map(quote, class_of_file.known))}"
                raise FaultError(message, "rename it to ..._det_<set>_<class>.txt")
            name = resolve(class_of_file.name)
            if (other := first.setdefault(name, file)) != file:
                message = f"duplicate file of class {quote(name)} (also {other})"
                raise FaultError(message, "use one file per class")
    rows = reader.read(form)
    image = reindexed(rows.name, rows.names, ground_truth.images)
    check_images(reader, image, (rows.names, rows.name), ground_truth, problems)
    return image, list(first)


def _check_score_column(reader: FolderReader, values: Floats) -> None:
    """Raise InputError if the scores look like the last column.

    No real box ends in the first pixel.
    """
    score, box, last = np.split(values, (1, 4), axis=1)
    half = len(last) / 2
    fractions = ((last >= 0) & (last <= 1)).all() and (last != np.floor(last)).any()
    if fractions and np.count_nonzero(score > 1) > half < np.count_nonzero((box > 1).any(axis=1)):
        key, _, *coordinates = reader.form.columns
        message = (
            f"the last column looks like the score: its values are within 0 and 1, e.g. "
            f"{last[0, 0]:g}; the column after the {key} has {score[0, 0]:g}"
        )
        usage = f"write `{key} score {' '.join(coordinates)}`, or pass {INSIST}"
        files.refuse(reader.folder.given, message, f"{usage} if that is the order")
