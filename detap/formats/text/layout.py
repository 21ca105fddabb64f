"""Which files of a detections folder say what: of a class each, or of an image each."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from detap.formats.text.lines import NUMBER

LAYOUTS = ("class-files", "image-files")

_KIT_NAME = re.compile(r"(?:^|_)det_[^_]+_")


@dataclass(frozen=True, slots=True)
class ClassOfFile:
    """What the name of a detections file says of its class.

    Attributes
    ----------
    name : str
        The class; the best guess where none of those known fits.
    known : bool
        Whether it is one of those known.
    rivals : tuple of str
        The known classes that the name could mean as well; empty unless it is ambiguous.
    """

    name: str
    known: bool
    rivals: tuple[str, ...] = ()


def class_of_stem(stem: str, classes: Collection[str]) -> ClassOfFile:
    """Return the class that a file's name ends with, ``comp4_det_test_traffic_light``, say.

    The class is what follows the last ``det_<set>_``, a set's name having no underscore. Where
    that is no class of the ground truth, or the name is not of the kit's form, it is the one class
    of the ground truth that stands at the end behind an underscore.

    Parameters
    ----------
    stem : str
        The file's name without ``.txt``.
    classes : collection of str
        The classes of the ground truth.
    """
    after_set = _after_set(stem)
    for whole in (stem, after_set):
        if whole in classes:
            return ClassOfFile(whole, True)
    tails = [stem[at + 1 :] for at, letter in enumerate(stem) if letter == "_"]
    found = [tail for tail in tails if tail in classes]
    if len(found) > 1:
        return ClassOfFile(found[0], True, tuple(found))
    if found:
        return ClassOfFile(found[0], True)
    return ClassOfFile(after_set or stem.rpartition("_")[2] or stem, False)


def _after_set(stem: str) -> str:
    """Return what follows the last ``det_<set>_``; empty where there is none."""
    # Each possible beginning is tried from the right: a class, too, may contain "det_".
    for at in range(len(stem) - 1, -1, -1):
        found = _KIT_NAME.match(stem, at)
        if found and found.end() < len(stem):
            return stem[found.end() :]
    return ""


def classes_of_stems(stems: Iterable[str], classes: Collection[str]) -> dict[str, ClassOfFile]:
    """Return the class of each file, the doubtful ones cut where the clear ones are.

    ``results_hot_dog`` beside ``results_cat`` with a known ``cat`` is of the class ``hot_dog``.
    """
    answer = {stem: class_of_stem(stem, classes) for stem in stems}
    prefixes = {
        stem[: -len(found.name)]
        for stem, found in answer.items()
        if found.known and not found.rivals
    }
    for stem, found in answer.items():
        rests = [stem[len(prefix) :] for prefix in prefixes if prefix and stem.startswith(prefix)]
        if found.rivals:
            agreed = [rest for rest in rests if rest in found.rivals]
            if len(agreed) == 1:
                answer[stem] = ClassOfFile(agreed[0], True)
        elif not found.known and not _after_set(stem):
            rest = min((rest for rest in rests if rest), key=len, default="")
            if rest:
                answer[stem] = ClassOfFile(rest, False)
    return answer


def tell_layout(
    stems: Collection[str],
    first_words: Mapping[str, str],
    images: Collection[str],
    classes: Collection[str],
) -> str | None:
    """Return the layout of a folder of detections, or None where it cannot be told safely.

    Both the names of the files and the first word of each are looked at: in a file of a class
    that word is an image; in a file of an image, a class or its number.

    Parameters
    ----------
    stems : collection of str
        The names of the files, without ``.txt``.
    first_words : mapping of str to str
        The first word of each file that is not empty, by stem.
    images, classes : collection of str
        Those of the ground truth.
    """
    words = first_words.values()
    by_image = sum(stem in images for stem in stems)
    by_class = sum(class_of_stem(stem, classes).known for stem in stems)
    image_words = sum(word in images for word in words)
    class_words = sum(word in classes for word in words)
    # Where names and words agree, or one of them is silent, that is the answer.
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
    if by_class or by_image or image_words or class_words:
        return None
    return _tell_among_strangers(stems, first_words)


def _tell_among_strangers(stems: Collection[str], first_words: Mapping[str, str]) -> str | None:
    """Tell the layout where neither an image nor a class is known: the wrong split, say."""
    if any(_after_set(stem) for stem in stems):
        return "class-files"
    if first_words and all(NUMBER.fullmatch(word) for word in first_words.values()):
        numbered = [stem for stem in stems if NUMBER.fullmatch(stem)]
        return "image-files" if len(numbered) == len(stems) else None
    return None
