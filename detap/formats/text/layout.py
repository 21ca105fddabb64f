"""Detect the layout of a detections folder: one file per class or per image."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from detap.formats.text.lines import NUMBER

LAYOUTS = ("class-files", "image-files")

_KIT_NAME = re.compile(r"(?:^|_)det_[^_]+_")


@dataclass(frozen=True, slots=True)
class ClassOfFile:
    """The class in the name of a detections file.

    `known` is True for a class of the ground truth; `name` is else the best guess. `candidates` are
    all known classes that fit, empty unless ambiguous.
    """

    name: str
    known: bool
    candidates: tuple[str, ...] = ()


def class_of_stem(stem: str, classes: Collection[str]) -> ClassOfFile:
    """Return the class at the end of a file name, as in ``comp4_det_test_traffic_light``.

    The class follows the last ``det_<set>_``, where the set has no underscore. If that is not a
    class of the ground truth, or the name has another form, it is the one class of the ground truth
    that follows an underscore at the end.
    """
    after_set = _after_set(stem)
    for name in (stem, after_set):
        if name in classes:
            return ClassOfFile(name, True)
    tails = [stem[at + 1 :] for at, letter in enumerate(stem) if letter == "_"]
    matching = [tail for tail in tails if tail in classes]
    if len(matching) > 1:
        return ClassOfFile(matching[0], True, tuple(matching))
    if matching:
        return ClassOfFile(matching[0], True)
    return ClassOfFile(after_set or stem.rpartition("_")[2] or stem, False)


def _after_set(stem: str) -> str:
    """Return the text after the last ``det_<set>_``, or ""."""
    # From the right, because a class name may contain "det_".
    for at in range(len(stem) - 1, -1, -1):
        match = _KIT_NAME.match(stem, at)
        if match and match.end() < len(stem):
            return stem[match.end() :]
    return ""


def classes_of_stems(stems: Iterable[str], classes: Collection[str]) -> dict[str, ClassOfFile]:
    """Return the class of each file; known classes show the prefix of the others.

    Next to ``results_cat`` with a known ``cat``, ``results_hot_dog`` has the class ``hot_dog``.
    """
    classes_of_files = {stem: class_of_stem(stem, classes) for stem in stems}
    prefixes = {
        stem[: -len(guess.name)]
        for stem, guess in classes_of_files.items()
        if guess.known and not guess.candidates
    }
    for stem, guess in classes_of_files.items():
        rests = [stem[len(prefix) :] for prefix in prefixes if prefix and stem.startswith(prefix)]
        if guess.candidates:
            agreed = [rest for rest in rests if rest in guess.candidates]
            if len(agreed) == 1:
                classes_of_files[stem] = ClassOfFile(agreed[0], True)
        elif not guess.known and not _after_set(stem):
            rest = min((rest for rest in rests if rest), key=len, default="")
            if rest:
                classes_of_files[stem] = ClassOfFile(rest, False)
    return classes_of_files


def detect_layout(
    stems: Collection[str],
    first_words: Mapping[str, str],
    images: Collection[str],
    classes: Collection[str],
) -> str | None:
    """Return the layout of a folder of detections, or None if it is unclear.

    File names and first words (by stem) decide: the first word is an image in class files, and a
    class or its number in image files. `images` and `classes` are those of the ground truth.
    """
    words = first_words.values()
    by_image = sum(stem in images for stem in stems)
    by_class = sum(class_of_stem(stem, classes).known for stem in stems)
    image_words = sum(word in images for word in words)
    class_words = sum(word in classes for word in words)
    # Names and words must agree, or only one of them decides.
    for names, words_ in (
        ((by_class, by_image), (image_words, class_words)),
        ((by_class, by_image), (0, 0)),
        ((0, 0), (image_words, class_words)),
    ):
        class_files = names[0] + words_[0]
        image_files = names[1] + words_[1]
        if class_files and not image_files:
            return "class-files"
        if image_files and not class_files:
            return "image-files"
    if by_class or class_words:
        return None  # and images as well: only one of them would have decided
    return _layout_without_known_names(stems, first_words)


def _layout_without_known_names(
    stems: Collection[str], first_words: Mapping[str, str]
) -> str | None:
    """Return the layout if no image or class is known, as for the wrong split."""
    if any(_after_set(stem) for stem in stems):
        return "class-files"
    if first_words and all(NUMBER.fullmatch(word) for word in first_words.values()):
        numbered = [stem for stem in stems if NUMBER.fullmatch(stem)]
        return "image-files" if len(numbered) == len(stems) else None
    return None
