"""Indices of image and class names in a training loop."""

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from detap.errors import InputError, Problem, UsageError
from detap.tables.columns import Columns, Name
from detap.tables.detection import GroundTruth, Integers
from detap.text_input import join_names, suggest


class NameIndex:
    """Index of names: of a fixed list, or of the names in order of arrival.

    Parameters
    ----------
    subject : str
        ``"image"`` or ``"label"``, for messages.
    index_by_name : mapping of int or str to int, or None
        The fixed index; None to add names as they arrive.
    unknown_message, hint : str
        The message and hint for unknown names.
    titles : mapping, optional
        Class names by identifier.
    """

    def __init__(
        self,
        subject: str,
        index_by_name: Mapping[Name, int] | None,
        unknown_message: str = "",
        hint: str = "",
        titles: Mapping[Name, str] | None = None,
    ) -> None:
        self._subject = subject
        self._known = index_by_name
        self._unknown_message = unknown_message
        self._hint = hint
        self.titles = titles or {}
        self.reset()

    def reset(self) -> None:
        """Remove the names that were added."""
        self._indices = dict(self._known or {})

    def check(self, names: Sequence[Name]) -> None:
        """Raise InputError if a name is unknown, or if numbers and text are mixed."""
        if self._known is None:
            first = next(iter(self._indices), names[0] if names else "")
            for name in names:
                if isinstance(name, str) != isinstance(first, str):
                    hint = "use only numbers, or only text"
                    refuse(f"{self._subject}s {first!r} and {name!r} mix numbers and text", hint)
            return
        for name in names:
            if name not in self._known:
                nearest = suggest(name, map(str, self._known)) if isinstance(name, str) else ""
                hint = "; ".join(filter(None, (nearest, self._hint)))
                refuse(f"{self._subject} {name!r} {self._unknown_message}", hint)

    def indices(self, names: Sequence[Name]) -> Integers:
        """Return the indices of checked names, (n,) int32; without a fixed index add new names."""
        if self._known is None:
            for name in names:
                self._indices.setdefault(name, len(self._indices))
        return np.array([self._indices[name] for name in names], np.int32)

    def __len__(self) -> int:
        return 1 + max(self._indices.values(), default=-1)

    def names_at(self, indices: Sequence[int]) -> list[Name]:
        """Return a name of each index."""
        name_by_index = {index: name for name, index in self._indices.items()}
        return [name_by_index[index] for index in indices]

    def key(self, name: Name) -> Name:
        """Return a key that is equal for all names of the same image or class."""
        return name if self._known is None else self._known[name]

    def ordered_names(self) -> tuple[Name, ...]:
        """Return the names in the order of the fixed index, or sorted without one."""
        if self._known is None:
            return tuple(sorted(self._indices))
        return tuple(self._known)

    def ranks(self) -> Integers:
        """Return the rank of each index in :meth:`ordered_names`, (n,) int32."""
        ranks = np.zeros(len(self._indices), np.int32)
        for rank, name in enumerate(self.ordered_names()):
            ranks[self._indices[name]] = rank
        return ranks


def image_index(ground_truth: GroundTruth | None, listed: tuple[Name, ...] | None) -> NameIndex:
    """Return the index of the images."""
    if ground_truth is None:
        if listed is None:
            return NameIndex("image", None)
        names = Columns("detections").index_names("images", list(listed)).distinct
        return NameIndex("image", _index_by_name(names), "is not in images=")
    index_by_name = _index_by_name(ground_truth.images)
    if listed is None:
        hint = (
            "name every image of the test set in images= of GroundTruth.from_arrays, also those "
            "without ground truth"
        )
        return NameIndex("image", index_by_name, "is not in the ground truth", hint)
    unknown = [name for name in listed if name not in index_by_name]
    if unknown:
        raise UsageError(f"images: {join_names(unknown)} not in the ground truth")
    return NameIndex("image", {name: index_by_name[name] for name in listed}, "is not in images=")


def class_index(
    ground_truth: GroundTruth | None, classes: Sequence[Name] | Mapping[Name, str] | None
) -> NameIndex:
    """Return the index of the classes, by id or name."""
    if ground_truth is not None:
        ids = _index_by_name(ground_truth.class_ids)
        hint = (
            f"labels are class names or category ids, such as {join_names(ground_truth.class_ids)}"
        )
        # Class ids take precedence over equal names.
        return NameIndex(
            "label", _index_by_name(ground_truth.classes) | ids, "is not in the ground truth", hint
        )
    if classes is None:
        return NameIndex("label", None)
    names = Columns("ground truth").names("classes", list(classes))
    titles = dict(classes) if isinstance(classes, Mapping) else {}
    return NameIndex("label", _index_by_name(names), "is not in classes=", titles=titles)


def _index_by_name(names: Sequence[Name]) -> dict[Name, int]:
    return {name: index for index, name in enumerate(names)}


def refuse(message: str, hint: str, location: str = "") -> NoReturn:
    """Raise an InputError about detections of the loop."""
    raise InputError(Problem("detections", location, message, hint))
