"""Class names: a data.yaml, or a list for files with class numbers from 0."""

import os
from collections import Counter
from collections.abc import Mapping
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
_KEYS = ("names", "nc", "path", "kpt_shape", "kpt_oks_sigmas", *SPLITS)

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
    problems.raise_any()
    nodes: dict[str, Any] = {}
    with problems.collected():
        nodes = _top_level(data.decode("utf-8-sig"))
    fields: dict[str, Any] = {}
    for key in filter(_KEYS.__contains__, nodes):
        with problems.collected(_line(nodes[key])):
            fields[key] = _value(key, nodes[key])
    names, keypoints = fields.get("names", ()), fields.get("kpt_shape")
    sigmas = fields.get("kpt_oks_sigmas", ())
    splits = {key: fields[key] for key in nodes if key in SPLITS and fields.get(key)}
    count = fields.get("nc", "")
    if names and count not in ("", str(len(names))):
        message = f"nc is {quote(count)}, expected the number of names: {len(names)}"
        problems.add_here(_line(nodes["nc"]), message, "correct one of them")
    if sigmas and keypoints and len(sigmas) != keypoints[0]:
        message = f"kpt_oks_sigmas has {len(sigmas)} numbers for {keypoints[0]} keypoints"
        hint = "give one per keypoint of kpt_shape"
        problems.add_here(_line(nodes["kpt_oks_sigmas"]), message, hint)
    problems.raise_any()
    return ClassNames(file, names, fields.get("path", ""), splits, keypoints, sigmas)


def _line(node: Any) -> str:
    return f"line {node.start_mark.line + 1}"


def _top_level(text: str) -> dict[str, Any]:
    """Return the node of each key of the top level."""
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
        raise FaultError("is not `key: value`", "list the classes under `names:`", _line(root))
    nodes: dict[str, Any] = {}
    for key, node in root.value:
        if nodes.setdefault(str(key.value), node) is not node:
            message = f"duplicate key {quote(str(key.value))}"
            raise FaultError(message, "keep one of them", _line(key))
    return nodes


def _value(key: str, node: Any) -> Any:
    """Return the value of a key: a word, words, or what they mean."""
    words = _words(node)
    if key == "names":
        return _names(node.id, words)
    if key in ("nc", "path") and node.id != "scalar":
        raise FaultError(f"{key} is a list or mapping", "write one word on the line of the key")
    if node.id == "mapping":
        raise FaultError(f"{key} is a mapping", "write a word or a list of words")
    if key in ("nc", "path"):
        return "".join(words)
    if key == "kpt_shape" and words:
        if len(words) == 2 and all(is_whole(word) and len(word) < 6 for word in words):
            count, size = map(int, words)
            if count > 0 and size in (2, 3):
                return count, size
        message = f"kpt_shape {quote(' '.join(words))} is not [K, 2] or [K, 3]"
        raise FaultError(message, "write the number of keypoints, and of numbers per keypoint")
    if key == "kpt_oks_sigmas":
        for word in words:
            if number_fault(word) or float(word) <= 0:
                message = f"kpt_oks_sigmas has {quote(word)}, which is not a number above 0"
                raise FaultError(message, "give one number per keypoint")
        return tuple(map(float, words))
    return tuple(words) or None


def _words(node: Any) -> list[str]:
    """Return the words of a node, of a mapping each key and its value; all stay text."""
    if node.id == "scalar":
        return [] if node.value in _NOTHING else [node.value]
    is_list = node.id == "sequence"
    parts = node.value if is_list else [part for pair in node.value for part in pair]
    for part in parts:
        if part.id != "scalar":
            kind = "a mapping" if part.id == "mapping" else "a list"
            raise FaultError(f"{kind} is not a word", "put the name in quotes", _line(part))
    return [part.value for part in parts]


def _names(kind: str, words: list[str]) -> tuple[str, ...]:
    """Return the names of a list, or of a mapping from the numbers 0, 1, ... without gaps."""
    if kind == "scalar" and words:
        raise FaultError(f"{quote(words[0][:_SHOWN])} is not a list or mapping", _HINT)
    if kind == "mapping":
        pairs = [*zip(words[::2], words[1::2], strict=True)]
        numbers = {int(word): name for word, name in pairs if is_whole(word) and len(word) < 10}
        if sorted(numbers) != [*range(len(pairs))]:
            raise FaultError("names are not numbered from 0 without gaps", _HINT)
        words = [numbers[number] for number in range(len(pairs))]
    if not words or not all(words):
        raise FaultError("empty name" if words else "no class names", _HINT)
    for word, count in Counter(words).items():
        if count > 1:
            raise FaultError(f"duplicate class {quote(word)}", "list each class once")
    return tuple(words)
