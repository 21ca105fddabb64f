"""Which images a YOLO data set has, and where their labels are.

The file of labels of an image is found as Ultralytics finds it: the last ``/images/`` in its path
is made ``/labels/``, and its suffix ``.txt``. Without such a folder it lies beside the image.

Reference: Ultralytics 8.3, ``data/utils.py`` (`img2label_paths`, `check_det_dataset`) and
``data/base.py`` (`get_img_files`).
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from detap.errors import InputError, Problem, UsageError
from detap.formats.by_name.problems import Problems
from detap.formats.reading.image_headers import IMAGE_SUFFIXES
from detap.formats.text.class_names import DATA_YAML
from detap.formats.text.data_yaml import SPLITS, DataYaml, read_data_yaml
from detap.formats.text.folder import Folder, is_regular
from detap.formats.text.lines import plain_lines
from detap.io import stream as files
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.text_input import quote

_UNQUOTED = "is malformed; it lies outside the data set, and nothing of it is quoted"

NAME_LISTS = ("classes.txt", "obj.names", "data.yaml")
"""Where classes are named, beside labels."""


_MOST_OTHERS = 10_000
"""A folder with more other files than this, and than images, is no folder of images."""


class DataSet(NamedTuple):
    """Images, sorted by name.

    Attributes
    ----------
    images : tuple of str
        Their stems.
    image_files : tuple of str
        Where each is; empty where that is not known, or it is not there.
    members : tuple of str
        The file of labels of each, below `folder`; empty where it has none.
    folder : Folder
        That holds the files of labels.
    data : DataYaml or None
        What describes it.
    repeated : int
        How many lines of lists repeat an image.
    skipped : int
        How many entries of the folders are neither.
    outside : tuple of str
        Folders and lists that the `data.yaml` names outside its own folder.
    """

    images: tuple[str, ...]
    image_files: tuple[str, ...]
    members: tuple[str, ...]
    folder: Folder
    data: DataYaml | None
    repeated: int
    skipped: int
    outside: tuple[str, ...] = ()

    @property
    def labelled(self) -> tuple[int, ...]:
        """The numbers of the images that have a file of labels."""
        return tuple(number for number, member in enumerate(self.members) if member)

    def unquoted(self, error: InputError, given: Path | None) -> InputError:
        """Return an error that says nothing of files outside the data set but their paths.

        A `data.yaml` may name any folder, and so have any text file read as labels.

        Parameters
        ----------
        error : InputError
        given : str, path or None
            A list of names that the user gave, which is quoted wherever it is.
        """
        if self.data is None:
            return error
        own = os.path.dirname(self.data.file)
        known = {self.data.file, "" if given is None else os.fspath(given)}
        problems = dict.fromkeys(
            Problem(problem.file, "", _UNQUOTED, "give its folder to see what is wrong")
            if problem.file not in known
            and problem.file.endswith((".txt", *NAME_LISTS))
            and not is_below(problem.file, own)
            else problem
            for problem in error.problems
        )
        return InputError(problems, error.omitted + len(error.problems) - len(problems))


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or lies below it."""
    full, top = os.path.abspath(path), os.path.abspath(folder)
    return full == top or full.startswith(os.path.join(top, ""))


def is_data_yaml(path: str) -> bool:
    """Return whether a path is one of a `data.yaml`."""
    return path.lower().endswith(DATA_YAML)


def described(path: str) -> str:
    """Return the `data.yaml` of a data set's folder; another path as it is."""
    file = os.path.join(path, "data.yaml")
    with suppress(OSError, ValueError):
        if os.path.isfile(file):
            with os.scandir(path) as entries:
                return file if any(entry.is_dir() for entry in entries) else path
    return path


def find_images(path: str, split: str | None, limits: Limits) -> DataSet:
    """Return the images of a `data.yaml`, or those of a folder of label files.

    Parameters
    ----------
    path : str
    split : str or None
        Of ``val``, which it is without, ``test`` and ``train``.
    limits : Limits

    Raises
    ------
    InputError
        Where folders are missing, labels have no image, or two images are called alike.
    """
    search = _Search(path, Problems(limits.problems), limits)
    data = None
    if is_data_yaml(path):
        data = read_data_yaml(path, limits)
        search.find_split(data, split or SPLITS[0])
    elif split is not None:
        raise UsageError(f"--split is for a data.yaml; {path} is none")
    elif os.path.isfile(path):
        files.refuse(path, "is no data.yaml", "give one, or a folder of label files")
    else:
        search.find_below(labels_folder(path))
    search.problems.raise_any()
    return search.data_set(data)


def labels_folder(path: str) -> str:
    """Return a folder that holds text files: this one, or its ``labels``, where tools put them."""
    if os.path.isdir(path) and not _text_files(path):
        below = os.path.join(path, "labels")
        if os.path.isdir(below):
            return below
    return path


def label_folder_of(folder: str, images: str = "images", labels: str = "labels") -> str:
    """Return the folder of the labels of the images in a folder: itself where it is not named so.

    Or, with the two words exchanged, the folder of the images of labels.
    """
    full = "/" + os.path.abspath(folder).replace(os.sep, "/").strip("/") + "/"
    head, found, tail = full.rpartition(f"/{images}/")
    if not found:
        return folder
    other = os.path.normpath(f"{head}/{labels}/{tail}")
    return other if os.path.isabs(folder) else os.path.relpath(other)


def _text_files(folder: str) -> bool:
    with suppress(OSError):  # which is for its reader to say
        return any(name.endswith(".txt") for name in os.listdir(folder))
    return False


class _Image(NamedTuple):
    """An image: its folder and its name, which is empty where only its labels are known."""

    folder: str
    name: str
    label: str


@dataclass(slots=True)
class _Search:
    """Images being found."""

    given: str
    problems: Problems
    limits: Limits
    found: dict[str, _Image] = field(default_factory=dict)
    repeated: int = 0
    skipped: int = 0
    outside: dict[str, None] = field(default_factory=dict)
    _listed: dict[str, tuple[dict[str, bool], list[str]]] = field(default_factory=dict)

    # --- a data.yaml

    def find_split(self, data: DataYaml, split: str) -> None:
        """Find the images of a part of a data set."""
        if split not in data.splits:
            there = ", ".join(data.splits) or "none"
            files.refuse(
                data.file,
                f"has no `{split}:`; of train, val and test it has: {there}",
                "name another (--split), or write where its images are",
            )
        base = self._base(data)
        own = os.path.abspath(os.path.dirname(data.file))
        for entry in data.splits[split]:
            ways = [entry, entry.removeprefix("../")]  # Roboflow's files are one folder too high
            places = dict.fromkeys(os.path.join(base, way) for way in ways)
            location = next(filter(_exists, places), None)
            if location is None:
                looked = " nor ".join(map(os.path.normpath, places))
                message = f"{split}: {quote(entry)} is not there: neither {looked}"
                if len(places) == 1:
                    message = f"{split}: {quote(entry)} is not there: no {looked}"
                hint = "correct it, or `path:`, which it is relative to"
                self.problems.add(data.file, "", message, hint)
            elif os.path.isfile(location):
                self._find_listed(os.path.normpath(location), base, own)
            else:
                images = os.path.normpath(location)
                self._report_outside(images, own)
                self._find_in(images, label_folder_of(images), data)

    def _report_outside(self, path: str, own: str) -> None:
        """Keep a path that is not below the folder of the data.yaml."""
        if not is_below(path, own):
            self.outside.setdefault(os.path.abspath(path))

    def _base(self, data: DataYaml) -> str:
        here = os.path.dirname(data.file) or "."
        for base in (os.path.join(here, data.path), data.path or here):
            if "\0" not in base and os.path.isdir(base):
                return base
        return files.refuse(
            data.file,
            f"path: {quote(data.path)} is no folder",
            "correct it, or take it out: the folder of this file counts then",
        )

    def _find_listed(self, file: str, base: str, own: str) -> None:
        """Find the images that a text file lists, a path a line.

        Lines are only quoted from a file most of whose lines are paths of images: a data.yaml may
        name any file.
        """
        self._report_outside(file, own)
        if not file.lower().endswith(".txt"):
            files.refuse(file, "is no list of images: no .txt file", "name a folder or a list")
        problems = Problems(self.limits.problems)
        lines = plain_lines(files.read_bytes(file, self.limits), file, problems)
        images = sum(_is_image(os.path.basename(text)) for _, text in lines)
        if 2 * images < len(lines) or (problems.count and not images):
            message = f"is no list of images: {images} of {len(lines)} lines are paths of images"
            files.refuse(file, message, "list one image a line")
        self.problems.note(*problems.listed)
        here = os.path.dirname(file) or "."
        root = next((r for r in (here, base) if lines and _exists(_folder_of(r, lines[0][1]))), "")
        labels: dict[str, str] = {}
        for number, text in lines:
            location = os.path.join(here if text.startswith("./") else root, text)
            folder, name = os.path.split(os.path.normpath(location))
            if folder not in labels:
                labels[folder] = label_folder_of(folder)
                self._report_outside(folder, own)
            if not _is_image(name):
                message = f"{quote(text)} is called as no image is"
                self.problems.add(file, f"line {number}", message, "list one image a line")
                continue
            there = self._files(folder)
            if there and name not in there:
                message = f"image {quote(text)} is not there: no {folder}/{name}"
                self.problems.add(file, f"line {number}", message, "correct the list")
                continue
            stem = name.rpartition(".")[0]
            self._add(stem, _Image(folder, name, labels[folder]), relisted=True)
        if not lines and not self.problems.count:
            self.problems.add(file, "", "lists no image", "list one image a line")

    # --- folders

    def find_below(self, labels: str) -> None:
        """Find the images that a folder of label files belongs to."""
        names, below = self._entries(labels, must=True)
        if not any(name.endswith(".txt") for name in names):
            hint = "give the folder of the label files, or a data.yaml"
            if below:
                hint = f"give one of its folders: {', '.join(map(quote, below[:3]))}"
            files.refuse(self.given, "has no label file: no file ends with .txt", hint)
        self._find_in(label_folder_of(labels, "labels", "images"), labels)

    def _find_in(self, images: str, labels: str, data: DataYaml | None = None) -> None:
        """Find the images of a folder and those below it, and see that no label is left over.

        A folder that a `data.yaml` names is refused if it holds next to nothing but other files.
        """
        before, others = len(self.found), 0
        for folder, names in self._walk(images):
            beside = os.path.normpath(os.path.join(labels, os.path.relpath(folder, images)))
            for name in names:
                if _is_image(name):
                    self._add(name.rpartition(".")[0], _Image(folder, name, beside))
                else:
                    others += 1
            if data is not None and others > max(_MOST_OTHERS, len(self.found) - before):
                self._refuse_folder(data, images, f"holds {others} files that are no images")
        any_image = len(self.found) > before
        if data is not None and not any_image and images == labels and self.outside:
            self._refuse_folder(data, images, "holds no image, and is outside the data set")
        self._match_labels(labels, images, any_image=any_image)

    def _match_labels(self, labels: str, images: str, *, any_image: bool) -> None:
        """See that each file of labels has an image; without any image, each stands for one."""
        for folder, names in self._walk(labels):
            for name in names:
                if name.endswith((".TXT", ".Txt")):
                    message = "is not read: files of labels end with .txt"
                    self.problems.add(os.path.join(folder, name), "", message, "call it so")
                elif not name.endswith(".txt") or name in NAME_LISTS:
                    self.skipped += not _is_image(name)
                elif any_image:
                    self._expect(name, folder, images)
                else:
                    self._add(name[:-4], _Image("", "", folder))

    def _refuse_folder(self, data: DataYaml, images: str, what: str) -> None:
        message = f"names {os.path.abspath(images)}, which {what}"
        files.refuse(data.file, message, "name the folder of the images, or a list of them")

    def _expect(self, name: str, folder: str, images: str) -> None:
        """See that a file of labels has an image."""
        image = self.found.get(name[:-4])
        if image is None or image.label != folder:
            message = f"has no image: none in {images} is called {quote(name[:-4])}"
            hint = "add the image, or take the labels away"
            self.problems.add(os.path.join(folder, name), "", message, hint)

    def _walk(self, top: str) -> Iterator[tuple[str, dict[str, bool]]]:
        """Give a folder and those below it, each with its files, and each but once."""
        folders, seen = [top], set()
        while folders:
            folder = folders.pop()
            location = os.path.realpath(folder)  # a link may lead to where it is
            if location in seen:
                continue
            seen.add(location)
            files_, below = self._entries(folder)
            yield folder, files_
            folders += [os.path.join(folder, name) for name in reversed(below)]

    def _files(self, folder: str) -> dict[str, bool]:
        """Return the files of a folder, and whether each is a regular one; none of no folder."""
        return self._entries(folder)[0]

    def _entries(self, path: str, *, must: bool = False) -> tuple[dict[str, bool], list[str]]:
        """Return the files of a folder, and its folders; none of no folder, unless it `must` be."""
        if path not in self._listed:
            names: dict[str, bool] = {}
            folders: list[str] = []
            try:
                with os.scandir(path) as entries:
                    for entry in entries:
                        if entry.name[0] == ".":
                            continue
                        regular = is_regular(entry)
                        if regular or not _is_folder(entry):
                            names[entry.name] = regular
                        else:
                            folders.append(entry.name)
            except OSError as error:
                if must:
                    files.refuse_os_error(path, error)
            except ValueError:
                files.refuse(repr(path), "invalid path: contains a NUL character")
            self._listed[path] = {name: names[name] for name in sorted(names)}, sorted(folders)
        return self._listed[path]

    def _add(self, stem: str, image: _Image, *, relisted: bool = False) -> None:
        other = self.found.setdefault(stem, image)
        if other is image:
            return
        if relisted and other == image:
            self.repeated += 1
            return
        here, there = (os.path.join(i.folder or i.label, i.name or stem) for i in (image, other))
        message = f"is called {quote(stem)}, as {there} is: predictions could mean either"
        self.problems.add(here, "", message, "give every image a name of its own")

    # --- together

    def data_set(self, data: DataYaml | None) -> DataSet:
        """Return what was found."""
        stems = sorted(self.found)
        images = [self.found[stem] for stem in stems]
        folders = sorted({image.label for image in images})
        root = folders[0] if len(folders) == 1 else _common(folders)
        inside = {folder: os.path.relpath(folder, root) for folder in folders}
        members, odd = [], set()
        for stem, image in zip(stems, images, strict=True):
            name = f"{stem}.txt"
            below = inside[image.label]
            member = name if below == "." else f"{below}/{name}"
            regular = self._files(image.label).get(name)
            members.append("" if regular is None else member)
            if regular is False:
                odd.add(member)
        image_files = tuple(
            os.path.join(image.folder, image.name)
            if image.name and image.name in self._files(image.folder)
            else ""
            for image in images
        )
        listed = {s: m for s, m in zip(stems, members, strict=True) if m}
        folder = Folder(root, "", ".txt", listed, self.skipped, frozenset(odd))
        return DataSet(
            tuple(stems),
            image_files,
            tuple(members),
            folder,
            data,
            self.repeated,
            self.skipped,
            tuple(self.outside),
        )


def _common(folders: list[str]) -> str:
    if not folders:
        return "."
    absolute = os.path.isabs(folders[0])
    common = os.path.commonpath([os.path.abspath(folder) for folder in folders])
    return common if absolute else os.path.relpath(common)


def _folder_of(root: str, text: str) -> str:
    return os.path.dirname(os.path.join(root, text))


def _exists(path: str) -> bool:
    """Return whether images are there; or where they were, their labels."""
    return "\0" not in path and (os.path.exists(path) or os.path.isdir(label_folder_of(path)))


def _is_image(name: str) -> bool:
    stem, point, suffix = name.rpartition(".")
    return bool(stem) and (point + suffix).lower() in IMAGE_SUFFIXES


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    with suppress(OSError):  # a loop of links, say
        return entry.is_dir()
    return False
