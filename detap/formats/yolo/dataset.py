"""Find the images of a YOLO data set, their label files and sizes.

As in Ultralytics, the label file of an image has its path with the last ``/images/`` replaced by
``/labels/`` and the suffix ``.txt``. Without such a folder it is next to the image.

Reference: Ultralytics 8.3, ``data/utils.py`` (`img2label_paths`, `check_det_dataset`) and
``data/base.py`` (`get_img_files`).
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from glob import iglob
from typing import NamedTuple

import numpy as np

from detap.errors import InputError, Problem, UsageError
from detap.formats.image_sizes import GivenSizes, refuse_unknown
from detap.formats.reading.image_headers import IMAGE_SUFFIXES, image_size
from detap.formats.subsets import chosen_subset
from detap.formats.text.class_names import SPLITS, ClassNames, is_data_yaml, read_data_yaml
from detap.formats.text.folder import (
    Folder,
    is_folder,
    list_folder,
    name_of_member,
    nested_names,
    without_copies,
)
from detap.formats.text.lines import plain_lines
from detap.formats.yolo.names import NAME_LISTS, OBJ_DATA, PREFIX, read_obj_data
from detap.io import stream as files
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.problems import Problems
from detap.tables.detection import Floats, GroundTruth, Integers
from detap.tables.notes import INSIST
from detap.text_input import quote

_HIDDEN = "is invalid; details are hidden because it is outside the data set"
_MOST_OTHERS = 10_000
"""A folder with more other files than this and than images is rejected."""
_SAMPLED = 16


class _Image(NamedTuple):
    """An image: its folder and name (empty if only labels are known), and its label folder."""

    folder: str
    name: str
    labels: str


class DataSet:
    """The images of a `data.yaml` or ``obj.data``, or of a folder of label files.

    The `split` of a `data.yaml` is by default ``val``. If nothing names its images, the `listed`
    ones are added.

    `images` are sorted by name; those with a label file in `folder` have the indices `labeled`.
    `data` describes the data set; its paths `outside` its own folder are in the order of the
    search. `repeated` counts list lines that repeat an image. `named` is True if files or lists
    name images, not only label files.
    """

    def __init__(
        self, path: str, split: str | None, limits: Limits, listed: Iterable[str] = ()
    ) -> None:
        self.limits = limits
        self.problems = Problems(limits.problems)
        self.data = ClassNames()
        self.repeated = 0
        self.outside: dict[str, None] = {}
        self._images: dict[tuple[str, str], _Image] = {}  # by label folder and stem
        self._skipped: list[str] = []
        self._entries = cache(_entries)
        if is_data_yaml(path):
            self.data = read_data_yaml(path, limits)
            self._find_split(split or SPLITS[0])
        elif os.path.basename(path) == OBJ_DATA:
            self.data = read_obj_data(path, limits)
            subsets = {name: name for name in self.data.splits}
            self._find_split(chosen_subset(path, subsets, split))
        elif split is not None:
            raise UsageError(f"--split requires a data.yaml or obj.data, got {path}")
        elif os.path.isfile(path):
            files.refuse(path, "not a data.yaml", "use one, or a folder of label files")
        else:
            labels = labels_folder(path)
            list_folder(labels)  # which must exist
            names, below = self._entries(labels)
            if not any(name.endswith(".txt") for name in names):
                hint = "use the folder with the files, or a data.yaml"
                if below:
                    hint = f"use one of its folders: {', '.join(map(quote, below[:3]))}"
                files.refuse(path, "no label files: no file ends with .txt", hint)
            self._find_in(label_folder_of(labels, "labels", "images"), labels)
        self.problems.raise_any()
        self._arrange(listed)

    def _arrange(self, listed: Iterable[str]) -> None:
        """Sort the images, and find their files."""
        self.named = any(image.name for image in self._images.values())
        folders = sorted({labels for labels, _ in self._images})
        root = folders[0] if len(folders) == 1 else common_folder(folders)
        inside = {f: "" if f == root else f"{os.path.relpath(f, root)}/" for f in folders}
        keys = {f"{inside[labels]}{stem}.txt": (labels, stem) for labels, stem in self._images}
        names = nested_names(keys)
        self._image_by_name = {name: self._images[keys[file]] for name, file in names.items()}
        if self.data.file and not self.named:
            unlabeled = (stem for stem in listed if stem not in names)
            self._image_by_name |= dict.fromkeys(unlabeled, _Image("", "", ""))
        self.images = tuple(sorted(self._image_by_name))
        labeled = {f for f, (labels, stem) in keys.items() if f"{stem}.txt" in self._files(labels)}
        members = {n: names[n] for n in self.images if n in names and names[n] in labeled}
        self.labeled = [number for number, name in enumerate(self.images) if name in members]
        folder = Folder(root, "", ".txt", members, tuple(sorted(self._skipped)))
        self.folder = folder if self.named else without_copies(folder, "remove it")

    @cached_property
    def image_files(self) -> list[str]:
        """The file of each image, empty if it is unknown or missing."""
        images = (self._image_by_name[name] for name in self.images)
        return [
            os.path.join(folder, name) if name in self._files(folder) else ""
            for folder, name, _ in images
        ]

    def hide_outside(self, error: InputError, given: Path | None) -> InputError:
        """Return an error without the content of files outside the data set.

        A `data.yaml` may name any folder, and so cause any text file to be read as labels. The list
        of names that the user gave is never hidden.
        """
        if not self.data.file:
            return error
        own_folder = os.path.dirname(self.data.file)
        known = {self.data.file, "" if given is None else os.fspath(given)}
        problems = dict.fromkeys(
            Problem(problem.file, "", _HIDDEN, "use its folder as input to see them")
            if problem.file not in known
            and problem.file.endswith((".txt", *NAME_LISTS))
            and not _is_below(problem.file, own_folder)
            else problem
            for problem in error.problems
        )
        return InputError(problems, error.omitted + len(error.problems) - len(problems))

    # --- a data.yaml

    def _find_split(self, split: str) -> None:
        """Find the images of a split."""
        data = self.data
        if not data.splits:
            message = "lists classes but no images: it has no `train:`, `val:` or `test:`"
            hint = f"use the folder of the labels, and this file as --class-names {data.file}"
            files.refuse(data.file, message, hint)
        if split not in data.splits:
            message = f"no `{split}:` (available: {', '.join(data.splits)})"
            files.refuse(data.file, message, "use another --split, or add its images")
        own_folder = os.path.dirname(data.file) or "."
        bases = (os.path.join(own_folder, data.path), data.path or own_folder)
        base = next((base for base in bases if "\0" not in base and os.path.isdir(base)), None)
        if base is None:
            hint = "correct it, or remove it to use the folder of this file"
            files.refuse(data.file, f"path: {quote(data.path)} is not a folder", hint)
        for entry in data.splits[split]:
            # Paths in Roboflow's files have one "../" too many.
            variants = [entry, entry.removeprefix("../"), entry.removeprefix(PREFIX)]
            paths = dict.fromkeys(os.path.join(base, variant) for variant in variants)
            path = next(filter(_exists, paths), None)
            if path is None:
                tried = " or ".join(map(os.path.normpath, paths))
                message = f"{split}: no such file or directory {quote(entry)} (tried {tried})"
                hint = "correct it, or `path:`, its base folder"
                self.problems.add(data.file, "", message, hint)
                continue
            path = os.path.normpath(path)
            self._note_outside(path)
            if os.path.isfile(path):
                self._find_listed(path, base)
            else:
                self._find_in(path, label_folder_of(path))

    def _note_outside(self, path: str) -> None:
        """Store a path that is not below the folder of the data.yaml."""
        if not _is_below(path, os.path.dirname(self.data.file)):
            self.outside.setdefault(os.path.abspath(path))

    def _find_listed(self, file: str, base: str) -> None:
        """Find the images that a text file lists, one path per line.

        Lines are quoted only if most are paths of images, because a data.yaml may name any file.
        """
        if not file.lower().endswith(".txt"):
            files.refuse(file, "not a list of images (.txt)", "use a folder or a list")
        problems = Problems(self.limits.problems)
        lines = plain_lines(files.read_bytes(file, self.limits), file, problems)
        images = sum(_is_image(os.path.basename(text)) for _, text in lines)
        if 2 * images < len(lines) or (problems.count and not images):
            message = f"not a list of images: {images} of {len(lines)} lines are paths of images"
            files.refuse(file, message, "list one image per line")
        self.problems.take(problems)
        own_folder = os.path.dirname(file) or "."
        root, prefix = _root_of_list((text for _, text in lines), own_folder, base)
        folders: dict[str, tuple[str, dict[str, None]]] = {}  # of labels, and existing images
        missing = []
        for number, line in lines:
            text = line.removeprefix(prefix)
            path = os.path.join(own_folder if text.startswith("./") else root, text)
            folder, name = os.path.split(os.path.normpath(path))
            if folder not in folders:
                self._note_outside(folder)
                # A folder with labels alone: the images are elsewhere.
                names = self._files(folder)
                existing = {} if all(name.endswith(".txt") for name in names) else names
                folders[folder] = label_folder_of(folder), existing
            labels, existing = folders[folder]
            if not _is_image(name):
                message = f"{quote(text)} is not an image name"
                self.problems.add(file, f"line {number}", message, "list one image per line")
            elif name not in existing and (existing or not self._files(labels)):
                missing.append((number, text, f"{folder}/{name}"))
            else:
                self._add(name.rpartition(".")[0], _Image(folder, name, labels), relisted=True)
        if missing:
            number, text, path = missing[0]
            count = f"; {len(missing)} of {len(lines)} images are missing" if missing[1:] else ""
            message = f"no such file or directory {quote(text)} (tried {path}{count})"
            hint = f"correct the list, or name the folder of the images in {self.data.file}"
            self.problems.add(file, f"line {number}", message, hint)
        if not lines and not self.problems.count:
            self.problems.add(file, "", "no images", "list one image per line")

    # --- folders

    def _find_in(self, images: str, labels: str) -> None:
        """Find the images of a folder and its sub-folders, and match their labels.

        A folder from a `data.yaml` that has mostly other files is an error.
        """
        count, others = len(self._images), 0
        for folder, names in self._walk(images):
            label_folder = os.path.normpath(os.path.join(labels, os.path.relpath(folder, images)))
            for name in names:
                if _is_image(name):
                    self._add(name.rpartition(".")[0], _Image(folder, name, label_folder))
                else:
                    others += 1
            if self.data.file and others > max(_MOST_OTHERS, len(self._images) - count):
                self._refuse_folder(images, f"has {others} files other than images")
        any_image = len(self._images) > count
        if self.outside and not any_image and images == labels:
            self._refuse_folder(images, "has no images, and is outside the data set")
        for folder, names in self._walk(labels):  # each has an image; without images, add one
            for name in names:
                if name.endswith((".TXT", ".Txt")):
                    message = "label files must end with .txt"
                    self.problems.add(os.path.join(folder, name), "", message, "rename it")
                elif not name.endswith(".txt") or name in NAME_LISTS:
                    self._skipped += [] if _is_image(name) else [name]
                elif not any_image:
                    self._add(name[:-4], _Image("", "", folder))
                elif (folder, name[:-4]) not in self._images:
                    message = f"no image {quote(name[:-4])} in {images}"
                    hint = "add the image, or remove the label file"
                    self.problems.add(os.path.join(folder, name), "", message, hint)

    def _refuse_folder(self, images: str, reason: str) -> None:
        message = f"folder {os.path.abspath(images)} {reason}"
        files.refuse(self.data.file, message, "use the folder of the images, or a list of them")

    def _walk(self, top: str) -> Iterator[tuple[str, dict[str, None]]]:
        """Yield a folder and its sub-folders with their files, each once."""
        folders, seen = [top], set()
        while folders:
            folder = folders.pop()
            real_path = os.path.realpath(folder)  # links may form a loop
            if real_path in seen:
                continue
            seen.add(real_path)
            files_, below = self._entries(folder)
            yield folder, files_
            folders += [os.path.join(folder, name) for name in reversed(below)]

    def _files(self, folder: str) -> dict[str, None]:
        """Return the files of a folder, sorted; empty if missing."""
        return self._entries(folder)[0]

    def _add(self, stem: str, image: _Image, *, relisted: bool = False) -> None:
        other = self._images.setdefault((image.labels, stem), image)
        if other is image:
            return
        if relisted and other == image:
            self.repeated += 1
            return
        path, other_path = (
            os.path.join(i.folder or i.labels, i.name or stem) for i in (image, other)
        )
        message = f"duplicate image name {quote(stem)} (also {other_path})"
        self.problems.add(path, "", message, "rename one of them")


def _entries(path: str) -> tuple[dict[str, None], list[str]]:
    """Return the files and sub-folders of a folder, sorted; empty if missing."""
    readable = os.path.isdir(path) and os.access(path, os.R_OK)
    entries = [e for e in list_folder(path) if e.name[0] != "."] if readable else []
    folders = sorted(entry.name for entry in entries if is_folder(entry))
    return dict.fromkeys(sorted({entry.name for entry in entries}.difference(folders))), folders


def _root_of_list(lines: Iterable[str], own_folder: str, base: str) -> tuple[str, str]:
    """Return the folder of the relative paths of a list, and the prefix that they have before."""
    roots = ((own_folder, ""), (base, ""), (base, PREFIX))
    for text in lines:
        for root, prefix in roots:
            folder = os.path.dirname(os.path.join(root, text.removeprefix(prefix)))
            if not os.path.isabs(text) and _exists(folder):
                return root, prefix
    return "", ""


def _exists(path: str) -> bool:
    """Return True if a path of images, or of their labels, exists."""
    return "\0" not in path and (os.path.exists(path) or os.path.isdir(label_folder_of(path)))


def _is_image(name: str) -> bool:
    stem, point, suffix = name.rpartition(".")
    return bool(stem) and (point + suffix).lower() in IMAGE_SUFFIXES


def _is_below(path: str, folder: str) -> bool:
    """Return True if a path is a folder or below it."""
    full, top = os.path.abspath(path), os.path.abspath(folder)
    return full == top or full.startswith(os.path.join(top, ""))


def resolve_data_yaml(path: str) -> str:
    """Return the `data.yaml` or ``obj.data`` of a data set's folder, or the path itself."""
    if os.path.isfile(darknet := os.path.join(path, OBJ_DATA)):
        return darknet
    file = os.path.join(path, "data.yaml")
    if os.path.isfile(file) and any(iglob("*/", root_dir=path, include_hidden=True)):
        return file
    return path


def labels_folder(path: str) -> str:
    """Return the folder with text files: the path, or its sub-folder ``labels``."""
    below = os.path.join(path, "labels")
    if os.path.isdir(below) and {*iglob("*.txt", root_dir=path)} <= {*NAME_LISTS}:
        return below
    return path


def label_folder_of(folder: str, images: str = "images", labels: str = "labels") -> str:
    """Return the label folder of an image folder, or the folder itself.

    With the two words swapped, return the image folder of a label folder.
    """
    full = "/" + os.path.abspath(folder).replace(os.sep, "/").strip("/") + "/"
    head, separator, tail = full.rpartition(f"/{images}/")
    if not separator:
        return folder
    other = os.path.normpath(f"{head}/{labels}/{tail}")
    return other if os.path.isabs(folder) else os.path.relpath(other)


def common_folder(folders: list[str]) -> str:
    """Return the common folder; relative if the first folder is relative."""
    if not folders:
        return "."
    common = os.path.commonpath([os.path.abspath(folder) for folder in folders])
    return common if os.path.isabs(folders[0]) else os.path.relpath(common)


def _flattened_stems(truth: GroundTruth) -> dict[str, set[str]]:
    """Return the names of images by their path below ``labels`` or ``images``, joined by ``_``.

    Ultralytics' ``val`` writes the predictions of ``a/1.jpg`` to ``a_1.txt``.
    """
    stems: dict[str, set[str]] = {}
    known = {*map(str, truth.images)}
    for source in truth.files:
        if not source.members:
            continue
        folder = os.path.abspath(source.path)
        images = label_folder_of(folder, "labels", "images")
        paths = [(folder, member) for member in source.members]
        for top, _, names in os.walk(images):
            relative = (os.path.relpath(os.path.join(top, name), images) for name in names)
            paths += [(images, path) for path in relative if _is_image(path)]
        for root, path in paths:
            name = name_of_member(path, known) or ""
            *above, flat = os.path.splitext(os.path.join(root, path))[0].split(os.sep)
            for part in reversed(above if name else []):
                if part in ("images", "labels"):
                    break
                flat = f"{part}_{flat}"
                stems.setdefault(flat, set()).add(name)
    return stems


def without_flattened_paths(folder: Folder, truth: GroundTruth) -> tuple[Folder, int]:
    """Rename prediction files whose stem is the flattened path of an image; return their number."""
    images = set(truth.images)
    unknown = [stem for stem in folder.members if stem not in images]
    if not unknown or truth.format != "yolo":
        return folder, 0
    stems = _flattened_stems(truth)
    members = {stem: member for stem, member in folder.members.items() if stem in images}
    count = 0
    for stem in unknown:
        member, names = folder.members[stem], sorted(stems.get(stem, ()))
        if len(names) > 1 or any(name in members for name in names):
            other = f"image {quote(names[-1])} too" if len(names) > 1 else members[names[0]]
            message = f"path of image {quote(names[0])}, as is {other}"
            files.refuse(folder.file(member), message, "keep one file per image")
        members[names[0] if names else stem] = member
        count += len(names)
    return replace(folder, members=dict(sorted(members.items()))), count


# --- sizes of images


def sizes_of_images(
    data_set: DataSet, given: GivenSizes, required: Integers, *, as_is: bool
) -> Floats:
    """Return the size (I, 2) of each image: as given, else from its header.

    Raise InputError if the size of a `required` image is unknown, or a table differs from the
    files.
    """
    sizes, files_ = given.of(data_set.images), data_set.image_files
    problems = _read_sizes(files_, np.flatnonzero(np.isnan(sizes[:, 0])).tolist(), sizes)
    if given.source and not as_is:  # compare the table with a sample
        existing = [image for image, path in enumerate(files_) if path]
        sampled = existing[:: max(1, len(existing) // _SAMPLED)]
        other = np.full(sizes.shape, np.nan)
        _read_sizes(files_, sampled, other)
        folder = os.path.dirname(files_[sampled[0]]) if sampled else ""
        source = f"in its file (if the table is right, pass {INSIST})"
        given.check_against(other, data_set.images, folder, source)
    if listed := [problem for image, problem in problems.items() if image in required]:
        raise InputError(listed)
    first_hint = "put images next to their labels (labels/x.txt, images/x.jpg), or "
    refuse_unknown(sizes, required, data_set.images, data_set.folder.given, first_hint)
    return sizes


def _read_sizes(paths: list[str], images: list[int], sizes: Floats) -> dict[int, Problem]:
    """Set the sizes (I, 2) of some images from their files; return the problem of each image."""
    problems: dict[int, Problem] = {}
    for image in images:
        if paths[image]:
            try:
                sizes[image] = image_size(paths[image])
            except InputError as error:
                problems[image] = error.problems[0]
    return problems
