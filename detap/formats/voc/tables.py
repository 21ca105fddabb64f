"""PASCAL VOC: a folder of XML, or of text files with a box a line, to tables.

What is regular is read by compiled scanners; whatever they decline is read again with care, by
lxml (this is the only module that imports it) or by `_voc_lines`, which know what to say of it.
Both give the same rows: tests hold them to it.

References: the VOC 2012 development kit, "Annotation file format" and "Detection results file
format"; for text files of an image each, the formats of Cartucho/mAP and of Padilla et al. 2021,
Electronics 10(3):279.
"""

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Note, Problem, UsageError
from detap.formats.reading import stream as files
from detap.formats.reading.stream import DEFAULT_LIMITS, Limits
from detap.formats.text.folder import (
    ClassNames,
    Folder,
    Path,
    Selection,
    detections_folder,
    ground_truth_folder,
    select_images,
)
from detap.formats.text.lines import (
    SWAPPED,
    LineForm,
    Lines,
    Problems,
    UnknownNameError,
    box_fault,
    looks_like,
    number_fault,
    read_lines,
    shown,
    side_fault,
)
from detap.formats.text.rows import (
    Budget,
    Rows,
    content,
    merge,
    met,
    read_text,
    renumbered,
    rows_of,
    scannable,
)
from detap.formats.voc import _scan as _voc_xml
from detap.formats.voc.layout import LAYOUTS, ClassOfFile, classes_of_stems, tell_layout
from detap.formats.voc.notes import (
    class_notes,
    detection_notes,
    folder_notes,
    ground_truth_notes,
    told,
)
from detap.tables.detection import (
    BOX_ENCODINGS,
    Detections,
    Floats,
    GroundTruth,
    Integers,
    SourceFile,
    encode_boxes,
)
from detap.tables.doubts import (
    AS_IS,
    backward,
    backward_note,
    fractions_problem,
    in_fractions,
    too_many,
    too_many_backward,
)

_BLANK = " \t\r\n"
_MAX_SCANNED_BYTES = 4 << 20
"""A larger annotation is for lxml, which has limits of its own."""

_CORNER_NAMES = ("xmin", "ymin", "xmax", "ymax")


def read_ground_truth(
    path: Path,
    *,
    image_set: Path | None = None,
    class_names: Path | None = None,
    boxes: str = "corners",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of a VOC tree, of a folder of XML, or of a folder of text files.

    An image is called by its file's name without the suffix. Only the ``object`` elements directly
    under an XML's root are objects, and of them only their own ``name``, ``difficult`` and
    ``bndbox`` are read; corners go by name. A line of a text file is ``class x1 y1 x2 y2``, or
    ``class x y width height``, and may end with the word ``difficult``; a class has no spaces.

    Parameters
    ----------
    path : str or path
        The folder that holds ``Annotations``, that folder itself, or any folder of XML; or a
        folder with one ``.txt`` an image.
    image_set : str or path, optional
        The name of a set under ``ImageSets/Main``, or a file: one image a line, of which the first
        column counts. Every file of the folder without it.
    class_names : str or path, optional
        A file with one class a line, for text files that number their classes from 0.
    boxes : {"corners", "xywh"}
        What the numbers of a text file are, in pixels. XML names its corners.
    as_is : bool
        Whether boxes that end before they begin count however many there are: as boxes that
        overlap nothing. By default one in twenty is an error.
    limits : Limits
        What is accepted at most.

    Returns
    -------
    GroundTruth
        Images in the order of the image set, else sorted by name; classes sorted by name; rows in
        the order of the images, and of the file within each.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    _check_encoding(boxes)
    path = os.fspath(path)
    folder = ground_truth_folder(path)
    problems = Problems(limits.problems)
    selection = select_images(folder, image_set, problems, limits)
    names = ClassNames.read(class_names, problems, limits)
    problems.raise_any(path)
    form = None
    if folder.suffix == ".xml":
        read = _read_annotations(folder, selection.members, problems, limits)
    else:
        form = LineForm("class", False, boxes, names.resolve)
        read = _ReadObjects(read_text(folder, form, selection.members, problems, limits))
    problems.raise_any(path)
    if not len(read.rows):
        files.refuse(
            path,
            f"has no object in its {len(selection.images)} annotation files",
            "give the annotations that belong to these detections",
        )
    stand = _Stand(folder, selection.members, form, limits, as_is)
    return _ground_truth(stand, selection, read, names.source())


def read_detections(
    path: Path,
    truth: GroundTruth,
    *,
    class_names: Path | None = None,
    boxes: str = "corners",
    layout: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from the development kit's text files, or from one text file an image.

    A line is ``image score x1 y1 x2 y2`` in a class's file, which the kit calls
    ``<anything>_<class>.txt``, and ``class score x1 y1 x2 y2`` in an image's, which is called
    ``<image>.txt``. Columns are separated by spaces or tabs, so that neither has spaces in its
    name (a class's file may).

    Parameters
    ----------
    path : str or path
        A folder of such files, or one of them.
    truth : GroundTruth
        What they are about: its images and classes.
    class_names : str or path, optional
        A file with one class a line, for files that number their classes from 0.
    boxes : {"corners", "xywh"}
        What the four numbers are, in pixels.
    layout : {"class-files", "image-files"}, optional
        Which of the two it is; told from the files by default.
    as_is : bool
        As :func:`read_ground_truth` has it.
    limits : Limits
        What is accepted at most.

    Returns
    -------
    Detections
        Numbered as `truth`; classes that it lacks are behind its own, sorted by name. Rows are in
        the order of the files' names, and of the lines within each.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    _check_encoding(boxes)
    if layout is not None and layout not in LAYOUTS:
        raise UsageError(f"layout {layout!r} is unknown; use one of {', '.join(LAYOUTS)}")
    path = os.fspath(path)
    folder = detections_folder(path)
    problems = Problems(limits.problems)
    names = ClassNames.read(class_names, problems, limits)
    problems.raise_any(path)
    _check_truth(path, truth)
    chosen = layout or _told_layout(folder, truth, limits)
    job = _Job(folder, truth, names, boxes, problems, limits, as_is)
    return _read_class_files(job) if chosen == "class-files" else _read_image_files(job)


def _check_encoding(boxes: str) -> None:
    if boxes not in BOX_ENCODINGS:
        raise UsageError(f"boxes {boxes!r} is unknown; use one of {', '.join(BOX_ENCODINGS)}")


def _check_truth(path: str, truth: GroundTruth) -> None:
    if not all(isinstance(name, str) for name in truth.images):
        files.refuse(
            path,
            "names images by words, but the ground truth numbers them",
            "give detections of the ground truth's own format",
        )


# --- XML ----------------------------------------------------------------------------------------


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


def _read_annotations(
    folder: Folder, members: Sequence[str], problems: Problems, limits: Limits
) -> "_ReadObjects":
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
    careful: dict[int, Lines] = {}
    budget = Budget(folder.given, limits, len(scanned))
    nested = 0
    for number in declined:
        path = folder.file(members[number])
        data = content(path, problems, limits)
        if data is None:
            continue
        annotation = read_annotation(data, path, problems, limits)
        careful[number] = annotation.objects
        budget.spend(len(annotation.objects.names))
        sizes[number] = annotation.width, annotation.height
        nested += annotation.nested
    return _ReadObjects(merge(scanned, careful), sizes, nested)


@dataclass(frozen=True, slots=True)
class _ReadObjects:
    """The objects of all files, the sizes (I, 2) of the images, the count of nested objects."""

    rows: Rows
    sizes: Floats | None = None
    nested: int = 0


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


def element_text(data: bytes, file: str, path: str, limits: Limits = DEFAULT_LIMITS) -> str | None:
    """Return the text of an element of an annotation; None where there is none.

    Parameters
    ----------
    data : bytes
        The XML.
    file : str
        What messages call it.
    path : str
        Names from the root on, as ``source/database``.
    limits : Limits
        What is accepted.

    Raises
    ------
    InputError
        Where the XML is not to be read.
    """
    problems = Problems(limits.problems)
    root = _parsed(data, file, problems, limits)
    problems.raise_any(file)
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


def _read_object(element: Any, file: str, place: str, problems: Problems, objects: Lines) -> None:
    faults: list[tuple[str, str]] = []
    name = _own_text(element, "name", "a name", faults)
    if name == "":
        faults.append(("has an empty name", "name its class"))
    difficult = _own_text(element, "difficult", "", faults)
    if difficult not in {None, "0", "1"}:
        faults.append((f"difficult is {shown(str(difficult))}", "it must be 0 or 1"))
    values = _own_box(element, faults)
    if values is not None and (fault := box_fault(values, "corners")):
        faults.append((fault, "correct the box"))
    for message, remedy in faults:
        problems.add(file, place, message, remedy)
    if not faults and name is not None and values is not None:
        objects.names.append(name)
        objects.values.append(values)
        objects.difficult.append(difficult == "1")


def _own(element: Any, tag: str, due: str, faults: list[tuple[str, str]]) -> Any:
    """Return the one child with that tag, or None; `due` names what may not be missing."""
    found = [child for child in element if child.tag == tag]
    if len(found) > 1:
        faults.append((f"has {len(found)} elements <{tag}>", "keep one"))
    elif not found and due:
        faults.append((f"has no {due}", f"add <{tag}>"))
    return found[0] if len(found) == 1 else None


def _own_text(element: Any, tag: str, due: str, faults: list[tuple[str, str]]) -> str | None:
    child = _own(element, tag, due.removeprefix("a "), faults)
    if child is None:
        return None
    if len(child):
        faults.append((f"has elements inside <{tag}>", "write text alone there"))
        return None
    return str(child.text or "").strip(_BLANK)


def _own_box(element: Any, faults: list[tuple[str, str]]) -> list[float] | None:
    box = _own(element, "bndbox", "bndbox", faults)
    if box is None:
        return None
    values = []
    for corner in _CORNER_NAMES:
        text = _own_text(box, corner, corner, faults)
        if text is None:
            continue
        fault = number_fault(text)
        if fault:
            faults.append((f"{corner} {shown(text)} {fault}", "give a decimal number"))
        else:
            values.append(float(text))
    return values if len(values) == len(_CORNER_NAMES) else None


# --- ground truth: the table --------------------------------------------------------------------


def _ground_truth(
    stand: "_Stand", selection: Selection, read: "_ReadObjects", extra: tuple[SourceFile, ...]
) -> GroundTruth:
    rows, folder, encoding = read.rows, stand.folder, stand.encoding
    corners, areas = encode_boxes(rows.values, encoding)
    negative = _negative_sides("ground-truth", stand, rows, backward(corners, areas))
    classes = tuple(sorted(set(rows.names)))
    label = renumbered(rows.name, rows.names, classes)
    return GroundTruth(
        image=rows.file,
        label=label,
        corners=corners,
        box_area=areas,
        images=selection.images,
        classes=classes,
        class_ids=classes,
        area=areas.copy(),
        crowd=np.zeros(len(rows), np.bool_),
        difficult=rows.difficult,
        ignore=np.zeros(len(rows), np.bool_),
        group_of=np.zeros(len(rows), np.bool_),
        image_sizes=read.sizes,
        files=(*_sources(folder, selection, len(rows)), *extra),
        notes=(
            *((AS_IS,) if stand.as_is else ()),
            *folder_notes(folder, selection, rows.file, read.nested),
            *class_notes(classes),
            *negative,
            *ground_truth_notes(rows.file, label, corners, read.sizes, encoding),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Stand:
    """Where boxes stand: in lines of a form, or (None) in XML."""

    folder: Folder
    members: Sequence[str]
    form: LineForm | None
    limits: Limits
    as_is: bool

    @property
    def encoding(self) -> str:
        """What the four numbers of a box are."""
        return "corners" if self.form is None else self.form.encoding

    def faults(self, rows: Rows, at: NDArray[np.intp]) -> Iterator[Problem]:
        """Give a problem for each of the rows `at`, whose box ends before it begins."""
        fine = encode_boxes(rows.values[at, -4:], "xywh")
        swapped = self.encoding == "corners" and not len(backward(*fine))
        remedy = SWAPPED if swapped and self.form is not None else "correct the boxes"
        for row in at.tolist():
            number = int(rows.file[row])
            file = self.folder.file(self.members[number])
            fault = side_fault(rows.values[row, -4:].tolist(), self.encoding)
            yield Problem(
                file, *self._place(file, row - int(rows_of(rows, number)[0]), fault), remedy
            )

    def _place(self, file: str, record: int, fault: str) -> tuple[str, str]:
        if self.form is None:
            for line, element in (("2", "max"), ("1", "min")):
                fault = fault.replace(f"x{line}", f"x{element}").replace(f"y{line}", f"y{element}")
            return f"object {record + 1}", fault
        problems = Problems(1)
        lines = read_lines(content(file, problems, self.limits) or b"", file, self.form, problems)
        return f"line {lines.place[record]}" if record < len(lines.place) else "", fault


def _negative_sides(kind: str, stand: _Stand, rows: Rows, at: NDArray[np.intp]) -> tuple[Note, ...]:
    """Warn of the rows `at`, whose boxes end before they begin; refuse them where they are many."""
    if not len(at):
        return ()
    if stand.as_is or not too_many(len(at), len(rows)):
        first = next(stand.faults(rows, at[:1]))
        where = ": ".join(part for part in (first.file, first.place, first.message) if part)
        return (backward_note(kind, len(at), where),)
    boxes = rows.values[:, -4:]
    if in_fractions(boxes):
        example = " ".join(f"{value:.6g}" for value in boxes[0].tolist())
        what = "the detections" if kind == "detections" else "the ground truth"
        raise InputError(fractions_problem(stand.folder.given, what, example))
    listed = list(stand.faults(rows, at[: stand.limits.problems]))
    looks = ": they look like x, y, width and height" if listed[0].remedy == SWAPPED else ""
    raise too_many_backward(stand.folder.given, len(at), len(rows), listed, looks)


def _sources(folder: Folder, selection: Selection, records: int) -> tuple[SourceFile, ...]:
    source = folder.source(selection.members, records)
    if not selection.file:
        return (source,)
    return source, SourceFile(selection.file, selection.records)


# --- detections: the table ----------------------------------------------------------------------


def _told_layout(folder: Folder, truth: GroundTruth, limits: Limits) -> str:
    images = {name for name in truth.images if isinstance(name, str)}
    told = tell_layout(
        folder.members, _first_words(folder, limits), images, frozenset(truth.classes)
    )
    if told is None:
        files.refuse(
            folder.given,
            "may hold a file a class or a file an image: neither their names nor their first "
            "words fit the ground truth's classes and images alone",
            "give layout='class-files' or 'image-files' (--layout)",
        )
    return told


def _first_words(folder: Folder, limits: Limits) -> dict[str, str]:
    """Return the first word of each file that has one, of the first 64 files."""
    words = {}
    for stem, member in list(folder.members.items())[:64]:
        file = folder.file(member)
        if os.path.isfile(file):
            with files.Stream(file, limits) as stream:
                head = stream.read(4096).removeprefix(b"\xef\xbb\xbf")
            columns = head.decode(errors="replace").split(None, 1)
            if columns:
                words[stem] = columns[0]
    return words


@dataclass(frozen=True, slots=True)
class _Job:
    """What is to be read, and how."""

    folder: Folder
    truth: GroundTruth
    names: ClassNames
    boxes: str
    problems: Problems
    limits: Limits
    as_is: bool

    def rows(self, form: LineForm) -> Rows:
        """Return the rows of all files."""
        return read_text(self.folder, form, self.members, self.problems, self.limits)

    def stand(self, form: LineForm) -> "_Stand":
        """Return where the boxes stand."""
        return _Stand(self.folder, self.members, form, self.limits, self.as_is)

    @property
    def members(self) -> tuple[str, ...]:
        """The files to be read."""
        return tuple(self.folder.members.values())


def _read_class_files(job: _Job) -> Detections:
    folder, truth = job.folder, job.truth
    of_stem = classes_of_stems(folder.members, frozenset(truth.classes))
    _check_classes(folder, of_stem, job.names, job.problems)
    job.problems.raise_any(folder.given)
    images = [str(name) for name in truth.images]
    form = LineForm("image", True, job.boxes, _image_resolver(truth, job.problems), images)
    rows = job.rows(form)
    if job.problems.count and not len(rows):
        _lead_with_images(job)
    job.problems.raise_any(folder.given)
    called = [job.names.resolve(of_stem[stem].name) for stem in folder.members]
    image = renumbered(rows.name, rows.names, images)
    notes = (
        Note(
            "classes-without-file",
            "classes of the ground truth have no detections file: their AP is 0",
            len(set(truth.classes) - set(called)),
        ),
    )
    return _detections(job, _Found(form, rows, image, rows.file, called), told(*notes))


def _check_classes(
    folder: Folder, of_stem: Mapping[str, ClassOfFile], names: ClassNames, problems: Problems
) -> None:
    first: dict[str, str] = {}
    for stem, found in of_stem.items():
        file = folder.file(folder.members[stem])
        if found.rivals:
            rivals = " or ".join(map(shown, found.rivals))
            remedy = "call it ..._det_<set>_<class>.txt"
            problems.add(file, "", f"may be of the class {rivals}", remedy)
            continue
        name = names.resolve(found.name)
        if name in first:
            other = folder.file(folder.members[first[name]])
            message = f"is of the class {shown(name)}, as {other} is"
            problems.add(file, "", message, "give one detections file a class")
        first.setdefault(name, stem)


def _read_image_files(job: _Job) -> Detections:
    folder, truth = job.folder, job.truth
    form = LineForm("class", True, job.boxes, job.names.resolve)
    rows = job.rows(form)
    number = {name: at for at, name in enumerate(truth.images)}
    of_file = np.array([number.get(stem, -1) for stem in folder.members], np.int32)
    image = of_file[rows.file]
    resolve_image = _image_resolver(truth, job.problems)
    stems = list(folder.members.items())
    for at in np.unique(rows.file[image < 0]).tolist():
        stem, member = stems[at]
        try:
            resolve_image(stem)
        except UnknownNameError as unknown:
            job.problems.add(folder.file(member), "", unknown.message, unknown.remedy)
    if job.problems.count and not (image >= 0).any():
        _lead_with_images(job)
    job.problems.raise_any(folder.given)
    notes = (
        Note(
            "images-without-file",
            "images of the ground truth have no detections file",
            len(number) - int(np.count_nonzero(of_file >= 0)),
            warning=False,
        ),
    )
    return _detections(job, _Found(form, rows, image, rows.name, rows.names), told(*notes))


def _lead_with_images(job: _Job) -> None:
    """Begin with what explains all problems: that the two have no image in common."""
    strangers = job.problems.strangers
    if strangers:
        theirs, ours = _few(list(strangers)), _few([str(name) for name in job.truth.images])
        job.problems.lead = Problem(
            job.folder.given,
            "",
            f"has no image in common with the ground truth: its images are {theirs}, the ground "
            f"truth's {ours}",
            "check that both are of the same data",
        )


def _image_resolver(truth: GroundTruth, problems: Problems) -> Callable[[str], str]:
    """Return what turns the first column of a line into an image of the ground truth."""
    images = frozenset(truth.images)

    def resolve(word: str) -> str:
        if word in images:
            return word
        problems.strangers.setdefault(word)
        place = _outside(truth, word)
        if place:
            raise UnknownNameError(
                f"image {shown(word)} is not in the image set, though {place} exists",
                "give the image set that the detector was run on",
            )
        raise UnknownNameError(
            f"image {shown(word)} is not in the ground truth", _image_remedy(word, images)
        )

    return resolve


def _image_remedy(word: str, images: Collection[Any]) -> str:
    if os.path.splitext(os.path.basename(word))[0] in images:
        return "write it without folder and suffix"
    return "score the detections of the images that the ground truth has"


def _outside(truth: GroundTruth, image: str) -> str:
    """Return the annotation file of an image that the image set leaves out, or nothing."""
    if not truth.files or len(truth.files) < 2 or not truth.files[0].members or "/" in image:
        return ""
    member = truth.files[0].members[0]
    inside, suffix = os.path.dirname(member), os.path.splitext(member)[1]
    place = os.path.join(truth.files[0].path, inside, image + suffix)
    return place if "\0" not in place and os.path.isfile(place) else ""


@dataclass(frozen=True, slots=True)
class _Found:
    """The rows of all lines, with the image of each (N,), and its class: `number` in `names`."""

    form: LineForm
    rows: Rows
    image: Integers
    number: Integers
    names: Sequence[str]


def _detections(job: _Job, found: _Found, notes: tuple[Note, ...]) -> Detections:
    folder, truth, rows, image = job.folder, job.truth, found.rows, found.image
    strangers = sorted(set(found.names) - set(truth.classes))
    classes = truth.classes + tuple(strangers)
    label = renumbered(found.number, found.names, classes)
    stray = int(np.count_nonzero(label >= len(truth.classes)))
    if len(rows) and stray == len(rows):
        _refuse_strangers(folder, truth, strangers)
    corners, areas = encode_boxes(rows.values[:, 1:], job.boxes)
    negative = _negative_sides("detections", job.stand(found.form), rows, backward(corners, areas))
    score = rows.values[:, 0].copy()
    return Detections(
        image=image,
        label=label,
        corners=corners,
        box_area=areas,
        images=truth.images,
        classes=classes,
        class_ids=truth.class_ids + tuple(strangers),
        score=score,
        files=(
            folder.source(folder.members.values(), len(rows)),
            *job.names.source(),
        ),
        notes=(
            *((AS_IS,) if job.as_is else ()),
            *notes,
            *told(
                Note(
                    "left-aside",
                    "entries of the folder are no detections",
                    folder.aside,
                    warning=False,
                ),
                Note(
                    "unknown-classes",
                    f"detections are of classes that the ground truth lacks: {_few(strangers)}",
                    stray,
                ),
            ),
            *(class_notes(classes) if strangers else ()),
            *negative,
            *detection_notes(truth, image, corners, score, job.boxes),
        ),
    )


def _few(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:3])) + (", ..." if len(names) > 3 else "")


def _refuse_strangers(folder: Folder, truth: GroundTruth, strangers: Sequence[str]) -> None:
    numbered = all(name.isascii() and name.isdigit() for name in strangers)
    files.refuse(
        folder.given,
        f"has no detection of a class of the ground truth: its classes are {_few(strangers)}, "
        f"the ground truth's {_few(truth.classes)}",
        "give the file that names the classes, one a line (class_names, --class-names)"
        if numbered
        else "check that both are of the same data",
    )
