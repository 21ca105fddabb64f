"""Read Darknet's ``obj.data``: the image lists and class names of CVAT's "YOLO 1.1" exports."""

import os

from detap.formats.by_name.problems import Problems
from detap.formats.text.class_names import ClassNames
from detap.formats.text.data_yaml import DataYaml
from detap.formats.text.lines import plain_lines
from detap.io.limits import Limits
from detap.io.stream import read_bytes
from detap.text_input import is_whole, quote

OBJ_DATA = "obj.data"
PREFIX = "data/"
"""CVAT writes paths below this folder, which its archives do not have."""
_OTHER_KEYS = frozenset({"classes", "names", "backup", "eval", "results"})


def read_obj_data(file: str, limits: Limits) -> DataYaml:
    """Read an ``obj.data`` as if it were a `data.yaml`."""
    problems = Problems(limits.problems)
    values: dict[str, str] = {}
    for number, text in plain_lines(read_bytes(file, limits), file, problems):
        key, separator, value = (part.strip() for part in text.partition("="))
        if text.startswith("#"):
            continue
        if not separator or not key or not value:
            problems.add(
                file, f"line {number}", f"{quote(text)} is not `key = value`", "correct it"
            )
        elif key in values:
            message = f"duplicate key {quote(key)}"
            problems.add(file, f"line {number}", message, "keep one of them")
        values.setdefault(key, value)
    problems.raise_any()
    if "names" not in values:
        problems.add(file, "", "has no `names =`", "add the file with one class name per line")
    problems.raise_any()
    folder = os.path.dirname(file) or "."
    path = below(folder, values["names"])
    # Otherwise any file of the machine could be shown as names.
    if os.path.relpath(path, folder).startswith(os.pardir):
        problems.add(file, "", f"names = {quote(values['names'])} is outside its folder", "move it")
        problems.raise_any()
    names = ClassNames.load(path, limits)
    count = values.get("classes")
    if count is not None and (not is_whole(count) or int(count[:9]) != len(names.names)):
        message = f"classes is {quote(count)}, but {names.file} has {len(names.names)} names"
        problems.add(file, "", message, "correct one of them")
    if not {*values} - _OTHER_KEYS:
        problems.add(file, "", "no list of images", "add one, such as `train = train.txt`")
    problems.raise_any()
    splits: dict[str, tuple[str, ...]] = {
        key: (value,) for key, value in values.items() if key not in _OTHER_KEYS
    }
    return DataYaml(file, names.names, "", splits)


def below(folder: str, path: str) -> str:
    """Return a path relative to a folder, without :data:`PREFIX` if nothing has it."""
    full = os.path.join(folder, path)
    stripped = os.path.join(folder, path.removeprefix(PREFIX))
    if "\0" in path:
        return full
    return stripped if os.path.exists(stripped) and not os.path.exists(full) else full
