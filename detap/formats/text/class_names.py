"""Lists of class names: for files that number their classes from 0."""

import os
from dataclasses import dataclass

from detap.errors import InputError, Problem
from detap.formats.by_name.problems import Problems
from detap.formats.text.lines import plain_lines
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.problems import FaultError
from detap.io.stream import read_bytes
from detap.tables.detection import SourceFile
from detap.text_input import is_whole, quote

DATA_YAML = (".yaml", ".yml")
"""The suffixes of a `data.yaml`."""


@dataclass(frozen=True, slots=True)
class ClassNames:
    """The classes that a file lists, for those that number them."""

    file: str = ""
    names: tuple[str, ...] = ()
    keypoints: tuple[int, int] | None = None
    """``kpt_shape`` of a `data.yaml`."""

    @classmethod
    def read(cls, path: Path | None, problems: Problems, limits: Limits) -> "ClassNames":
        """Read one class a line, or the ``names`` of a `data.yaml`; problems are added."""
        if path is None:
            return cls()
        file = os.fspath(path)
        if file.lower().endswith(DATA_YAML):
            return cls(file, *_names_of_yaml(file, problems, limits))
        lines = plain_lines(read_bytes(file, limits), file, problems)
        if not lines and not problems.count:
            problems.add(file, "", "names no class", "list one class a line")
        first: dict[str, int] = {}
        for at, (number, name) in enumerate(lines, 1):
            if number != at:
                problems.add(file, f"line {at}", "is blank", "numbers would shift: remove it")
                break
            if name in first:
                message = f"{quote(name)} stands on line {first[name]} already"
                problems.add(file, f"line {number}", message, "name each class once")
            first.setdefault(name, number)
        return cls(file, tuple(name for _, name in lines))

    @classmethod
    def given(cls, path: Path | None, limits: Limits) -> "ClassNames":
        """Read a list likewise; raise InputError with every problem."""
        problems = Problems(limits.problems)
        names = cls.read(path, problems, limits)
        problems.raise_any()
        return names

    def resolve(self, word: str) -> str:
        """Return the class that the first column of a line stands for."""
        if not self.names or not is_whole(word):
            return word
        number = int(word.lstrip("0")[:18] or "0")
        if number >= len(self.names):
            raise FaultError(
                f"class {quote(word)} is beyond the {len(self.names)} of {self.file}",
                "classes are numbered from 0; check the list",
            )
        return self.names[number]

    def source(self) -> tuple[SourceFile, ...]:
        """Return the file as an input, if there is one."""
        return (SourceFile(self.file, len(self.names)),) if self.file else ()

    def check_same(self, other: "ClassNames") -> None:
        """Refuse another list that names a class otherwise: one of them would name them wrongly.

        Raises
        ------
        InputError
        """
        if not self.names or not other.names or self.names == other.names:
            return
        how = "another order" if set(self.names) == set(other.names) else "other names"
        pairs = zip(self.names, other.names, strict=False)
        number = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
        example = f"{len(other.names)} names, not {len(self.names)}"
        if number is not None:
            here, there = quote(self.names[number]), quote(other.names[number])
            example = f"class {number} is {there}, not {here}"
        message = f"lists the classes in {how} than {self.file}: {example}"
        hint = (
            "give the list that the labels are numbered by, and take the other away (predictions "
            "that are numbered by another list than the labels have --dt-class-names)"
        )
        raise InputError(Problem(other.file, "", message, hint))


def _names_of_yaml(
    file: str, problems: Problems, limits: Limits
) -> tuple[tuple[str, ...], tuple[int, int] | None]:
    from detap.formats.text.data_yaml import read_data_yaml  # most lists have one class a line

    try:
        data = read_data_yaml(file, limits)
    except InputError as error:
        problems.note(*error.problems)
        return (), None
    if not data.names:
        problems.add(file, "", "has no `names:`", "list the classes there")
    return data.names, data.keypoints
