"""Annotations in XML: regular ones by a compiled scanner, all others with care, by lxml.

This is the only module that imports it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from detap.formats.by_name.problems import Problems
from detap.formats.text.folder import Folder
from detap.formats.text.lines import Lines, box_fault, looks_like, number_fault
from detap.formats.text.rows import Rows, met, scannable, with_care
from detap.formats.voc import _scan as _voc_xml
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.tables.detection import Floats
from detap.text_input import quote

_BLANK = " \t\r\n"
_MAX_SCANNED_BYTES = 4 << 20
"""A larger annotation is for lxml, which has limits of its own."""

_FLAGS = ("difficult", "truncated", "occluded")
"""Of these only the first means anything here."""

CORNERS = ("xmin", "ymin", "xmax", "ymax")


@dataclass(slots=True)
class _Annotation:
    """What one XML says.

    `width` and `height` are the image's, NaN where unknown; `nested` counts the ``object``
    elements that lie deeper than under the root.
    """

    objects: Lines = field(default_factory=Lines)
    width: float = math.nan
    height: float = math.nan
    nested: int = 0


def read_annotations(
    folder: Folder, members: Sequence[str], problems: Problems, limits: Limits
) -> tuple[Rows, Floats, int]:
    """Read the annotations of a folder; what the scanner declines is read with care.

    Returns
    -------
    rows : Rows
        The objects of all files.
    sizes : (I, 2) float64
        Width and height of the images, NaN where unknown.
    nested : int
        How many objects lie inside others.
    """
    with scannable(folder, members) as (descriptor, paths):
        declined, file, name, difficult, corners, words, sizes = _voc_xml.scan_files(
            descriptor,
            paths,
            file_bytes=min(limits.file_bytes, _MAX_SCANNED_BYTES),
            records=limits.records,
            nesting=limits.nesting,
            digests=folder.digests if limits.digests else None,
        )
    names, name = met(name, words, str)
    scanned = Rows(file, name, names, corners, difficult)
    if not declined:
        return scanned, sizes, 0
    nested = 0

    def read(data: bytes, file: str, number: int) -> Lines:
        nonlocal nested
        annotation = read_annotation(data, file, problems, limits)
        sizes[number] = annotation.width, annotation.height
        nested += annotation.nested
        return annotation.objects

    rows = with_care(
        folder, members, declined, read, scanned=scanned, problems=problems, limits=limits
    )
    return rows, sizes, nested


@cache
def _parser() -> Any:
    from lxml import etree  # regular files do without it

    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        remove_comments=True,
        remove_pis=True,
        huge_tree=False,
        recover=False,
    )


def read_annotation(data: bytes, file: str, problems: Problems, limits: Limits) -> _Annotation:
    """Read one XML with care, adding to `problems` whatever is wrong with it."""
    root = _parsed(data, file, problems, limits)
    annotation = _Annotation()
    if root is None:
        return annotation
    objects = [child for child in root if child.tag == "object"]
    if not objects and root.tag != "annotation":
        kind = " (an HTML page?)" if str(root.tag).lower().endswith("html") else ""
        problems.add(
            file, "", f"is no VOC annotation: its root is <{root.tag}>{kind}", "<annotation> is due"
        )
    for child in root:
        local = str(child.tag).rpartition("}")[2]
        if child.tag != "object" and local.lower() == "object":
            message = f"has an element <{child.tag}> under its root"
            problems.add(file, f"line {child.sourceline}", message, "VOC calls it <object>")
    for number, element in enumerate(objects, 1):
        _read_object(element, file, f"object {number}", problems, annotation.objects)
    annotation.nested = sum(1 for _ in root.iter("object")) - len(objects)
    annotation.nested -= root.tag == "object"
    size = root.find("size")
    if size is not None:
        annotation.width = _length(size.find("width"))
        annotation.height = _length(size.find("height"))
    return annotation


def _parsed(data: bytes, file: str, problems: Problems, limits: Limits) -> Any:
    """Return the root of an XML that is safe to walk, or None after adding a problem."""
    from lxml import etree  # regular files do without it

    if not data.strip():
        problems.add(file, "", "is empty", "an XML annotation is due")
        return None
    try:
        root = etree.fromstring(data, _parser())
    except etree.XMLSyntaxError as error:
        appearance = looks_like(data)
        if appearance and appearance != "XML":
            problems.add(file, "", f"looks like {appearance}", "an XML annotation is due")
        else:
            problems.add(file, f"line {error.lineno}", f"is no XML: {error.msg}", "correct it")
        return None
    except (ValueError, LookupError) as error:
        problems.add(file, "", f"is no XML: {error}", "correct it")
        return None
    fault = _unsafe(root, limits)
    if fault:
        problems.add(file, "", *fault)
    return None if fault else root


def _unsafe(root: Any, limits: Limits) -> tuple[str, str] | None:
    """Return why a parsed XML is not to be read, and what to do; None where it may be."""
    from lxml import etree  # regular files do without it

    if root.getroottree().docinfo.internalDTD is not None:
        return "has a DOCTYPE, which is not read", "remove it"
    if next(root.iter(etree.Entity), None) is not None:
        return "refers to an entity, which is not expanded", "write it out"
    depth = deepest = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        deepest = max(deepest, depth)
    if deepest > limits.nesting:
        return f"nests elements {deepest} deep", "an annotation needs four levels"
    return None


def element_text(data: bytes, file: str, path: str) -> str | None:
    """Return the text of an element of an annotation; None where there is none.

    Parameters
    ----------
    data : bytes
        The XML.
    file : str
        What messages call it.
    path : str
        Names from the root on, as ``source/database``.

    Raises
    ------
    InputError
        Where the XML is not to be read.
    """
    problems = Problems(DEFAULT_LIMITS.problems)
    root = _parsed(data, file, problems, DEFAULT_LIMITS)
    problems.raise_any()
    for name in path.split("/"):
        root = next((child for child in root if child.tag == name), None)
        if root is None:
            return None
    return (root.text or "").strip() or None


def _length(element: Any) -> float:
    """Return a side of the image in pixels, NaN where the file does not really say."""
    text = (element.text or "").strip(_BLANK) if element is not None else ""
    if number_fault(text) or not float(text) > 0:
        return math.nan
    return float(text)


class _Fault(NamedTuple):
    """What is wrong with an object: which element, how, and what to do."""

    element: Any
    message: str
    hint: str


def _read_object(
    element: Any, file: str, location: str, problems: Problems, objects: Lines
) -> None:
    faults: list[_Fault] = []
    name = _own_text(element, "name", "a name", faults)
    if name == "":
        faults.append(_Fault(element, "has an empty name", "name its class"))
    flags = {flag: _own_text(element, flag, "", faults) for flag in _FLAGS}
    for flag, text in flags.items():
        if text not in {None, "0", "1"}:
            fault = f"{flag} is {quote(str(text))}"
            faults.append(_Fault(element.find(flag), fault, "it must be 0 or 1"))
    values = _own_box(element, faults)
    if values is not None and (fault := box_fault(values, "xyxy")):
        faults.append(_Fault(element, fault, "correct the box"))
    for at, message, hint in faults:
        problems.add(file, f"{location}, line {at.sourceline}", message, hint)
    if not faults and name is not None and values is not None:
        objects.names.append(name)
        objects.values.append(values)
        objects.flags.append(flags["difficult"] == "1")


def _own(element: Any, tag: str, due: str, faults: list[_Fault]) -> Any:
    """Return the one child with that tag, or None; `due` names what may not be missing."""
    found = [child for child in element if child.tag == tag]
    if len(found) > 1:
        faults.append(_Fault(found[1], f"has {len(found)} elements <{tag}>", "keep one"))
    elif not found and due:
        faults.append(_Fault(element, f"has no {due}", f"add <{tag}>"))
    return found[0] if len(found) == 1 else None


def _own_text(element: Any, tag: str, due: str, faults: list[_Fault]) -> str | None:
    child = _own(element, tag, due.removeprefix("a "), faults)
    if child is None:
        return None
    if len(child):
        faults.append(_Fault(child, f"has elements inside <{tag}>", "write text alone there"))
        return None
    return str(child.text or "").strip(_BLANK)


def _own_box(element: Any, faults: list[_Fault]) -> list[float] | None:
    box = _own(element, "bndbox", "bndbox", faults)
    if box is None:
        return None
    values = []
    for corner in CORNERS:
        text = _own_text(box, corner, corner, faults)
        if text is None:
            continue
        if fault := number_fault(text):
            message = f"{corner} {quote(text)} {fault}"
            faults.append(_Fault(box.find(corner), message, "give a decimal number"))
        else:
            values.append(float(text))
    return values if len(values) == len(CORNERS) else None
