"""Detections from folders of text files: a class each, or an image each."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import NoReturn

import numpy as np

from detap.errors import Note, Problem
from detap.formats.by_name.notes import images_without_file, left_aside, without_file
from detap.formats.by_name.objects import nothing_in_common
from detap.formats.by_name.problems import Problems
from detap.formats.text.class_names import ClassNames
from detap.formats.text.folder import Folder, detections_folder, remedy_of
from detap.formats.text.layout import LAYOUTS, ClassOfFile, classes_of_stems, tell_layout
from detap.formats.text.lines import LineForm, looks_like
from detap.formats.text.reader import FolderReader
from detap.io import stream as files
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, check_choice
from detap.tables.columns import places, renumbered
from detap.tables.detection import BOX_ENCODINGS, Detections, GroundTruth, Integers
from detap.tables.notes import INSIST
from detap.text_input import quote


def read_detections(
    path: Path,
    truth: GroundTruth,
    *,
    class_names: Path | None = None,
    dt_class_names: Path | None = None,
    boxes: str = "xyxy",
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
    dt_class_names : str or path, optional
        The same, before `class_names`, where that is the list of the ground truth alone.
    boxes : {"xyxy", "xywh"}
        What the four numbers are, in pixels.
    layout : {"class-files", "image-files"}, optional
        Which of the two it is; told from the files by default.
    as_is : bool
        As :func:`detap.formats.voc.tables.read_ground_truth` has it.
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
    check_choice("boxes", boxes, BOX_ENCODINGS)
    if layout is not None:
        check_choice("layout", layout, LAYOUTS)
    folder = detections_folder(os.fspath(path))
    names = ClassNames.given(dt_class_names or class_names, limits)
    if not all(isinstance(name, str) for name in truth.images):
        message = "names images by words, but the ground truth numbers them"
        hint = "give detections of the ground truth's own format"
        files.refuse(folder.given, message, hint)
    layout = layout or _layout_of(folder, truth, limits) or _refuse_layout(folder, limits)
    reader = FolderReader(folder, as_is, limits)
    reader.problems.cause = partial(_other_layout, folder, truth, limits, layout)
    if layout == "class-files":
        of_stem = classes_of_stems(folder.members, frozenset(truth.classes))
        form = partial(LineForm, "image", True, boxes)
        image = read_class_files(reader, truth, of_stem, form, names)
        label, classes = reader.rows.file, [names.resolve(c.name) for c in of_stem.values()]
        note = without_file(truth, classes)
    else:
        rows = reader.read(LineForm("class", True, boxes, names.resolve))
        image, note = _images_of_files(reader, truth)
        label, classes = rows.name, list(rows.names)
    if not as_is:
        _check_score_column(reader)
    values = reader.rows.values
    return reader.detections(
        truth,
        label,
        classes,
        sources=names.source(),
        notes=(note, left_aside(folder.aside, "detections")),
        images=truth.images,
        image=image,
        boxes=values[:, 1:],
        encoding=boxes,
        score=values[:, 0].copy(),
    )


def _layout_of(folder: Folder, truth: GroundTruth, limits: Limits) -> str | None:
    """Return the layout of a folder, by the first words of its first 64 files; None in doubt."""
    images = {name for name in truth.images if isinstance(name, str)}
    words = {}
    for stem, member in list(folder.members.items())[:64]:
        columns = _head(folder.file(member), limits).decode(errors="replace").split(None, 1)
        if columns:
            words[stem] = columns[0]
    return tell_layout(folder.members, words, images, frozenset(truth.classes))


def _refuse_layout(folder: Folder, limits: Limits) -> NoReturn:
    """Refuse files of no layout: no text with columns (JSON, a pickle, a page), or in doubt."""
    file = folder.file(next(iter(folder.members.values())))
    if appearance := looks_like(_head(file, limits)):
        files.refuse(file, f"looks like {appearance}", "text with a box a line is due")
    files.refuse(
        folder.given,
        "may hold a file a class or a file an image: neither their names nor their first "
        "words fit the ground truth's classes and images alone",
        "give layout='class-files' or 'image-files' (--layout)",
    )


def _head(file: str, limits: Limits) -> bytes:
    if not os.path.isfile(file):
        return b""
    with files.Stream(file, limits) as stream:
        return stream.read(4096).removeprefix(b"\xef\xbb\xbf")


def read_class_files(
    reader: FolderReader,
    truth: GroundTruth,
    of_stem: Mapping[str, ClassOfFile],
    form: Callable[[Callable[[str], str], list[str]], LineForm],
    names: ClassNames,
) -> Integers:
    """Read files of a class each; return the image of each row (N,), as `truth` numbers it.

    Parameters
    ----------
    reader : FolderReader
    truth : GroundTruth
    of_stem : mapping of str to ClassOfFile
        The class of each file.
    form : callable
        Returns what a line is by its `resolve` and `known`.
    names : ClassNames
        What classes are called that files number.
    """
    problems = reader.problems
    _check_classes(reader.folder, of_stem, problems, names)
    images = [str(name) for name in truth.images]
    rows = reader.read(form(image_resolver(truth, problems), images))
    if not len(rows):
        _lead_with_images(reader, truth)
    problems.raise_any()
    return renumbered(rows.name, rows.names, images)


def _check_classes(
    folder: Folder, of_stem: Mapping[str, ClassOfFile], problems: Problems, names: ClassNames
) -> None:
    """Add to the problems the files of a folder whose class is in doubt, or another's too."""
    first: dict[str, str] = {}
    for stem, found in of_stem.items():
        file = folder.file(folder.members[stem])
        if found.rivals:
            rivals = " or ".join(map(quote, found.rivals))
            hint = "call it ..._det_<set>_<class>.txt"
            problems.add(file, "", f"may be of the class {rivals}", hint)
            continue
        try:
            name = names.resolve(found.name)
        except FaultError as fault:
            problems.add(file, "", fault.message, fault.hint)
            continue
        if name in first:
            other = folder.file(folder.members[first[name]])
            message = f"is of the class {quote(name)}, as {other} is"
            problems.add(file, "", message, "give one detections file a class")
        first.setdefault(name, stem)


def _images_of_files(reader: FolderReader, truth: GroundTruth) -> tuple[Integers, Note]:
    """Return the image of each row (N,), by the name of its file; note the images without one."""
    folder, problems, rows = reader.folder, reader.problems, reader.rows
    of_file = places(folder.members, truth.images)
    image = of_file[rows.file]
    resolve_image = image_resolver(truth, problems)
    stems = list(folder.members.items())
    for at in np.unique(rows.file[image < 0]).tolist():
        stem, member = stems[at]
        try:
            resolve_image(stem)
        except FaultError as unknown:
            problems.add(folder.file(member), "", unknown.message, unknown.hint)
    if not (image >= 0).any():
        _lead_with_images(reader, truth)
    problems.raise_any()
    return image, images_without_file(len(truth.images) - int(np.count_nonzero(of_file >= 0)))


def _other_layout(
    folder: Folder, truth: GroundTruth, limits: Limits, layout: str
) -> Problem | None:
    """Return that files have another layout than they are read as; None if they have not."""
    other = _layout_of(folder, truth, limits)
    if other in (None, layout):
        return None
    read, looks = (f"a file per {name.partition('-')[0]}" for name in (layout, other))
    message = f"is read as {read}, but its names and first words are those of {looks}"
    return Problem(folder.given, "", message, f"give --layout {other}, or leave it out")


def _lead_with_images(reader: FolderReader, truth: GroundTruth) -> None:
    """Begin with what explains all problems: that the two have no image in common."""
    problems = reader.problems
    if problems.strangers:
        problems.lead = nothing_in_common(reader.folder.given, problems.strangers, truth)


def image_resolver(truth: GroundTruth, problems: Problems) -> Callable[[str], str]:
    """Return what turns the first column of a line into an image of the ground truth."""
    images = frozenset(truth.images)

    def resolve(word: str) -> str:
        if word in images:
            return word
        problems.strangers.setdefault(word)
        location = _outside(truth, word)
        if location:
            raise FaultError(
                f"image {quote(word)} is not in the image set, though {location} exists",
                "give the image set that the detector was run on",
            )
        hint = "score the detections of the images that the ground truth has"
        message = f"image {quote(word)} is not in the ground truth"
        raise FaultError(message, remedy_of(word, images, hint))

    return resolve


def _outside(truth: GroundTruth, image: str) -> str:
    """Return the annotation file of an image that the image set leaves out, or nothing."""
    if not truth.files or len(truth.files) < 2 or not truth.files[0].members or "/" in image:
        return ""
    member = truth.files[0].members[0]
    inside, suffix = os.path.dirname(member), os.path.splitext(member)[1]
    location = os.path.join(truth.files[0].path, inside, image + suffix)
    return location if "\0" not in location and os.path.isfile(location) else ""


def _check_score_column(reader: FolderReader) -> None:
    """Refuse lines whose score looks like the last column: no box ends in the first pixel.

    Read as they stand, they would give a number near 0; as other sides, as well.
    """
    score, box, last = np.split(reader.rows.values, (1, 4), axis=1)
    half = len(last) / 2
    fractions = ((last >= 0) & (last <= 1)).all() and (last != np.floor(last)).any()
    if fractions and np.count_nonzero(score > 1) > half < np.count_nonzero((box > 1).any(axis=1)):
        assert reader.form is not None
        key, _, *sides = reader.form.columns
        files.refuse(
            reader.folder.given,
            f"the score looks like the last column: all there lie within 0 and 1, as {last[0, 0]:g}"
            f" does, and behind the {key} stands {score[0, 0]:g}",
            f"write `{key} score {' '.join(sides)}`; or, if so they are, give {INSIST}",
        )
