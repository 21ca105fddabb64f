"""Lists of class names, for files with class numbers from 0."""

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


def is_data_yaml(path: str) -> bool:
    """Return True for the path of a `data.yaml`."""
    return path.lower().endswith(DATA_YAML)


@dataclass(frozen=True, slots=True)
class ClassNames:
    """The class names of a file, in the order of their numbers."""

    file: str = ""
    names: tuple[str, ...] = ()
    keypoints: tuple[int, int] | None = None
    """``kpt_shape`` of a `data.yaml`."""
    sigmas: tuple[float, ...] = ()
    """``kpt_oks_sigmas`` of a `data.yaml`."""

    @classmethod
    def read(cls, path: Path | None, problems: Problems, limits: Limits) -> "ClassNames":
        """Read one class per line, or ``names`` of a `data.yaml`; collect problems."""
        if path is None:
            return cls()
        file = os.fspath(path)
        if file.lower().endswith(DATA_YAML):
            return cls(file, *_names_of_yaml(file, problems, limits))
        lines = plain_lines(read_bytes(file, limits), file, problems)
        if not lines and not problems.count:
            problems.add(file, "", "no class names", "list one class per line")
        first: dict[str, int] = {}
        for expected, (number, name) in enumerate(lines, 1):
            if number != expected:
                message = "is blank, which would shift the class numbers"
                problems.add(file, f"line {expected}", message, "remove it")
                break
            if name in first:
                message = f"duplicate class {quote(name)} (also at line {first[name]})"
                problems.add(file, f"line {number}", message, "list each class once")
            first.setdefault(name, number)
        return cls(file, tuple(name for _, name in lines))

    @classmethod
    def load(cls, path: Path | None, limits: Limits) -> "ClassNames":
        """Read a list; raise InputError with every problem."""
        problems = Problems(limits.problems)
        names = cls.read(path, problems, limits)
        problems.raise_any()
        return names

    def resolve(self, word: str) -> str:
        """Return the class name for the first column of a line."""
        if not self.names or not is_whole(word):
            return word
        number = int(word.lstrip("0")[:18] or "0")
        if number >= len(self.names):
            raise FaultError(
                f"class {quote(word)} is not in {self.file}, which has {len(self.names)} classes",
                "check the list; classes are numbered from 0",
            )
        return self.names[number]

    def source(self) -> tuple[SourceFile, ...]:
        """Return the file as an input source, if there is one."""
        return (SourceFile(self.file, len(self.names)),) if self.file else ()

    def check_same(self, other: "ClassNames") -> None:
        """Raise InputError if another list has other names or another order."""
        if not self.names or not other.names or self.names == other.names:
            return
        difference = "order differs" if set(self.names) == set(other.names) else "names differ"
        pairs = zip(self.names, other.names, strict=False)
        number = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
        example = f"{len(other.names)} names, expected {len(self.names)}"
        if number is not None:
            ours, theirs = quote(self.names[number]), quote(other.names[number])
            example = f"class {number} is {theirs}, expected {ours}"
        message = f"class {difference} from {self.file}: {example}"
        hint = (
            "keep the list that the labels use and remove the other; if predictions use another "
            "list, pass --dt-class-names"
        )
        raise InputError(Problem(other.file, "", message, hint))


def _names_of_yaml(
    file: str, problems: Problems, limits: Limits
) -> tuple[tuple[str, ...], tuple[int, int] | None, tuple[float, ...]]:
    from detap.formats.text.data_yaml import read_data_yaml

    try:
        data = read_data_yaml(file, limits)
    except InputError as error:
        problems.extend(*error.problems)
        return (), None, ()
    if not data.names:
        problems.add(file, "", "has no `names:`", "list the classes under `names:`")
    return data.names, data.keypoints, data.sigmas
