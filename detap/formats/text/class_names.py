"""Class names: a data.yaml, or a list for files with class numbers from 0."""

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from detap.formats.text.lines import decoded_lines, looks_like, number_fault, plain_lines
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile
from detap.io.problems import FaultError, Problems
from detap.io.stream import read_bytes, refuse
from detap.text_input import is_whole, quote

DATA_YAML = (".yaml", ".yml")
"""The suffixes of a `data.yaml`."""
SPLITS = ("val", "test", "train")

_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
_HINT = "write `names:` as a list, or as a mapping from 0, 1, ... to names"
_SHOWN = 60


def is_data_yaml(path: str) -> bool:
    """Return True for the path of a `data.yaml`."""
    return path.lower().endswith(DATA_YAML)


class ClassNames(NamedTuple):
    """The class names of a file, in the order of their numbers; the content of a `data.yaml`.

    `path` is the base folder of `splits`, empty for that of the file; `splits` has the folders or
    image lists by ``train``, ``val`` and ``test``, as far as given. `keypoints` is ``kpt_shape``,
    `sigmas` are ``kpt_oks_sigmas``.
    """

    file: str = ""
    names: tuple[str, ...] = ()
    path: str = ""
    splits: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    keypoints: tuple[int, int] | None = None
    sigmas: tuple[float, ...] = ()

    @classmethod
    def read(cls, path: Path | None, problems: Problems, limits: Limits) -> "ClassNames":
        """Read one class per line, or ``names`` of a `data.yaml`; collect problems."""
        if path is None:
            return cls()
        file = os.fspath(path)
        if is_data_yaml(file):
            data = cls(file)
            with problems.collected(file=file):
                data = read_data_yaml(file, limits)
                if not data.names:
                    raise FaultError("has no `names:`", "list the classes under `names:`")
            return data
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
            listed = f"is not in {self.file}, which has {len(self.names)} classes"
            hint = "check the list; classes are numbered from 0"
            raise FaultError(f"class {quote(word)} {listed}", hint)
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
        refuse(other.file, message, hint)


def read_data_yaml(path: Path, limits: Limits = DEFAULT_LIMITS) -> ClassNames:
    """Read the image folders and class names of a `data.yaml`.

    PyYAML parses it; words stay text, so that a class ``no`` is no boolean. Keys other than those
    of Ultralytics' data sets are skipped.
    """
    file = os.fspath(path)
    problems = Problems(limits.problems, file)
    data = read_bytes(path, limits)
    appearance = looks_like(data)
    if appearance and not data.lstrip().startswith(b"{"):
        refuse(file, f"looks like {appearance}", "expected a data.yaml")
    for _ in decoded_lines(data, file, problems):
        pass
    values: dict[str, Any] = {}
    if not problems.count:
        with problems.collected():
            values = _values(data.decode("utf-8-sig"))
    fields: dict[str, Any] = {}
    for key in filter(_READERS.__contains__, values):
        with problems.collected():
            fields[key] = _READERS[key](values[key])
    names, keypoints = fields.get("names", ()), fields.get("kpt_shape")
    sigmas = fields.get("kpt_oks_sigmas", ())
    splits = {key: fields[key] for key in values if key in SPLITS and fields.get(key)}
    if "nc" in values and names and not problems.count:
        with problems.collected():
            _check_count(values["nc"], names)
    if sigmas and keypoints and len(sigmas) != keypoints[0]:
        with problems.collected():
            message = f"kpt_oks_sigmas has {len(sigmas)} numbers for {keypoints[0]} keypoints"
            raise _fault(values["kpt_oks_sigmas"], message, "give one per keypoint of kpt_shape")
    problems.raise_any()
    return ClassNames(file, names, fields.get("path", ""), splits, keypoints, sigmas)


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _fault(node: Any, message: str, hint: str) -> FaultError:
    """Return a fault at the line of a node."""
    return FaultError(message, hint, f"line {_line(node)}")


def _values(text: str) -> dict[str, Any]:
    """Return the node of each key of the top-level mapping."""
    import yaml  # takes 0.02 s

    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        position = getattr(error, "position", 0)
        line = text.count("\n", 0, position) if mark is None else mark.line
        reason = getattr(error, "problem", None) or getattr(error, "reason", "")
        raise FaultError(f"invalid YAML: {reason}", "correct it", f"line {line + 1}") from None
    except RecursionError:
        raise FaultError("invalid YAML: nested too deeply", "correct it", "line 1") from None
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        shown = root.value if isinstance(root.value, str) else "a list"
        message = f"{quote(shown[:_SHOWN])} is not `key: value`"
        raise _fault(root, message, "indent lines that belong to the key above")
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for key, value in root.value:
        name = _word(key)
        if name in values:
            message = f"duplicate key {quote(name)} (also at line {lines[name]})"
            raise _fault(key, message, "keep one of them")
        values[name], lines[name] = value, _line(key)
    return values


def _word(node: Any) -> str:
    """Return the text of a scalar."""
    if not isinstance(node.value, str):
        kind = "a mapping" if node.id == "mapping" else "a list"
        raise _fault(node, f"{kind} is not a word", "put the name in quotes")
    return node.value


def _single(node: Any) -> str:
    """Return a value that is a single word; empty if it is null."""
    if not isinstance(node.value, str):
        kind = "a mapping" if node.id == "mapping" else "a list"
        raise _fault(node, f"is {kind}, expected one word", "write it on the line of the key")
    return "" if not node.style and node.value in _NOTHING else node.value


def _entries(node: Any) -> tuple[str, ...]:
    """Return a value that is a word or a list of words."""
    if node.id == "sequence":
        return tuple(map(_word, node.value))
    if node.id == "mapping":
        raise _fault(node, "is a mapping", "use a folder, an image list, or a list of them")
    word = _single(node)
    return (word,) if word else ()


def _keypoints(node: Any) -> tuple[int, int] | None:
    words = _entries(node)
    if not words:
        return None
    if len(words) == 2 and all(is_whole(word) and len(word) < 6 for word in words):
        count, size = map(int, words)
        if count > 0 and size in (2, 3):
            return count, size
    message = f"kpt_shape {quote(' '.join(words))} is not [K, 2] or [K, 3]"
    raise _fault(node, message, "write the number of keypoints, and of numbers per keypoint")


def _sigmas(node: Any) -> tuple[float, ...]:
    words = _entries(node)
    for word in words:
        if number_fault(word) or float(word) <= 0:
            message = f"kpt_oks_sigmas has {quote(word)}, which is not a number above 0"
            raise _fault(node, message, "give one number per keypoint")
    return tuple(map(float, words))


def _names(node: Any) -> tuple[str, ...]:
    if node.id == "scalar" and _single(node):
        raise _fault(node, f"{quote(node.value[:_SHOWN])} is not a list or mapping", _HINT)
    nodes = node.value if node.id == "sequence" else []
    if node.id == "mapping":
        nodes = _ordered(node.value)
    first: dict[str, int] = {}
    for one in nodes:
        word = _word(one)
        if not word:
            raise _fault(one, "empty name", _HINT)
        if word in first:
            message = f"duplicate class {quote(word)} (also at line {first[word]})"
            raise _fault(one, message, "list each class once")
        first[word] = _line(one)
    if not nodes:
        raise _fault(node, "no class names", _HINT)
    return tuple(first)


def _ordered(pairs: list[tuple[Any, Any]]) -> list[Any]:
    """Return the values of a mapping sorted by their keys, which must be 0, 1, ..."""
    by_number: dict[int, tuple[Any, Any]] = {}
    for key, value in pairs:
        word = _word(key)
        if not is_whole(word) or int(word[:9]) >= len(pairs) or len(word) > 9:
            message = f"class {quote(word)} is not a number from 0 to {len(pairs) - 1}"
            raise _fault(key, message, "number the classes from 0 without gaps")
        if int(word) in by_number:
            message = f"duplicate class {word} (also at line {_line(by_number[int(word)][0])})"
            raise _fault(key, message, "list each class once")
        by_number[int(word)] = key, value
    return [by_number[number][1] for number in range(len(by_number))]


def _check_count(node: Any, names: tuple[str, ...]) -> None:
    count = _single(node)
    if count and count != str(len(names)):
        are = "is 1 name" if len(names) == 1 else f"are {len(names)} names"
        message = f"nc is {quote(count)}, but there {are}"
        raise _fault(node, message, "correct one of them")


_READERS: dict[str, Callable[[Any], Any]] = {
    "names": _names,
    "path": _single,
    "kpt_shape": _keypoints,
    "kpt_oks_sigmas": _sigmas,
    **dict.fromkeys(SPLITS, _entries),
}
"""The function that reads the value of a key."""
