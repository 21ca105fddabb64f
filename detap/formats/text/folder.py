"""The files of a VOC data set: which of a folder's are read, image sets, lists of class names."""

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from detap.formats.by_name.problems import Problems
from detap.formats.text.lines import plain_lines
from detap.io import stream as files
from detap.io.limits import Limits
from detap.io.paths import STDIN, Path
from detap.tables.detection import SourceFile
from detap.text_input import quote


@dataclass(frozen=True, slots=True)
class Folder:
    """Files of one kind in a folder.

    `given` is the path that the user gave, `inside` the folder below it ("" for itself), `members`
    the name of each file by its stem, sorted by stem, `aside` how many entries were left aside,
    `odd` the members that are no regular files, `digests` the sha256 of those that
    were hashed while being read, by number.
    """

    given: str
    inside: str
    suffix: str
    members: dict[str, str]
    aside: int = 0
    odd: frozenset[str] = frozenset()
    digests: dict[int, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The folder that holds the files."""
        return os.path.join(self.given, self.inside) if self.inside else self.given

    def file(self, member: str) -> str:
        """Return the path of a member."""
        return os.path.join(self.path, member) if member else self.given

    def columns(self, limits: Limits) -> list[list[list[str]]]:
        """Return, of each file, the columns of every line that has one: a lenient look."""
        texts = (files.read_bytes(self.file(m), limits) for m in self.members.values())
        lines = (text.decode("utf-8-sig", "replace").split("\n") for text in texts)
        return [[columns for line in one if (columns := line.split())] for one in lines]

    def source(self, members: Iterable[str], records: int) -> SourceFile:
        """Return the members that were read, in the order of their numbers, as an input."""
        start = f"{self.inside}/" if self.inside else ""
        names = [start + member for member in members]
        read = tuple(sorted(filter(None, names)))
        digest = ""
        if self.digests:
            from detap.io.digest import sha256  # most runs want none

            known = {names[number]: digest for number, digest in self.digests.items()}
            digest = sha256(self.given, read, known)
        return SourceFile(self.given, records, read, digest)


def _list_folder(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except NotADirectoryError:
        files.refuse(path, "is no folder", "give the folder that holds the files")
    except OSError as error:
        files.refuse_os_error(path, error)
    except ValueError:
        files.refuse(repr(path), "invalid path: contains a NUL character")


def is_regular(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry of a folder is a regular file, or a link to one."""
    with suppress(OSError):  # a loop of links, say
        return entry.is_file()
    return False


def files_of(given: str, inside: str, suffix: str) -> Folder:
    """Return the files of a folder with that suffix.

    Hidden files, which systems and editors leave, and sub-folders are left aside.
    """
    path = os.path.join(given, inside) if inside else given
    cut = -len(suffix)
    members: dict[str, str] = {}
    odd = set()
    entries = _list_folder(path)
    for entry in entries:
        name = entry.name
        if name[cut:].lower() != suffix or name[0] == ".":
            continue
        if not is_regular(entry):
            if os.path.isdir(entry):
                continue
            odd.add(name)
        other = members.setdefault(name[:cut], name)
        if other != name:
            message = f"{quote(name)} and {quote(other)} are of the same image"
            files.refuse(path, message, "keep one of them")
    ordered = {stem: members[stem] for stem in sorted(members)}
    return Folder(given, inside, suffix, ordered, len(entries) - len(ordered), frozenset(odd))


def one_file(path: str) -> Folder | None:
    """Return the one file that a path is; None where it is a folder."""
    if "\0" not in path and os.path.isdir(path):
        return None
    os.close(files.open_regular(path))
    stem, suffix = os.path.splitext(os.path.basename(path))
    return Folder(path, "", suffix, {stem: ""})


def ground_truth_folder(path: str) -> Folder:
    """Return the annotation files of a VOC root, or of the folder that holds them itself."""
    inside = ""
    if any(entry.name == "Annotations" and entry.is_dir() for entry in _list_folder(path)):
        inside = "Annotations"
    folder = files_of(path, inside, ".xml")
    if not folder.members and not inside:
        folder = files_of(path, inside, ".txt")
    if not folder.members:
        files.refuse(
            folder.path,
            "has no annotation: no file ends with .xml" + ("" if inside else " or .txt"),
            "give a folder with Annotations, or one that holds the files itself",
        )
    return folder


def first_folder(path: str, inside: Sequence[str], whose: str, what: str) -> Folder:
    """Return the text files of the first of some folders below a path that has any."""
    if path == STDIN:
        files.refuse(path, f"cannot hold {whose} {what}: they are files", "give their folder")
    there = [name for name in inside if not name or os.path.isdir(os.path.join(path, name))]
    folders = (files_of(path, name, ".txt") for name in there)
    found = next((folder for folder in folders if folder.members), None)
    if found is None:
        below = " or ".join(filter(None, inside))
        message = f"has no {what}: no file ends with .txt"
        files.refuse(path, message, f"give the folder of the {what}, or that of {below}")
    return found


def detections_folder(path: str) -> Folder:
    """Return the text files of a folder of detections, or the one file that is given."""
    if path == STDIN:
        files.refuse(path, "cannot hold VOC detections: the files' names count", "give a folder")
    folder = one_file(path) or files_of(path, "", ".txt")
    if not folder.members:
        has_xml = any(entry.name.lower().endswith(".xml") for entry in _list_folder(path))
        looks = ", but some with .xml, as ground truth has" if has_xml else ""
        message = f"has no detections: no file ends with .txt{looks}"
        files.refuse(path, message, "give the folder of the detections")
    return folder


@dataclass(frozen=True, slots=True)
class Selection:
    """The images to be read, their files, and where the choice came from."""

    images: tuple[str, ...]
    members: tuple[str, ...]
    file: str = ""
    records: int = 0
    repeated: tuple[str, ...] = ()


def select_images(
    folder: Folder, image_set: Path | None, problems: Problems, limits: Limits
) -> Selection:
    """Return the images that an image set names, or all of the folder."""
    if image_set is None:
        return Selection(tuple(folder.members), tuple(folder.members.values()))
    file = _image_set_file(folder, os.fspath(image_set))
    lines = plain_lines(files.read_bytes(file, limits), file, problems)
    chosen: dict[str, str] = {}
    repeated = []
    for number, text in lines:
        name = _image_of_line(text, folder.members)
        if name is None:
            problems.add(
                file,
                f"line {number}",
                f"{quote(text)} is no image name, or one and -1, 0 or 1",
                "write one image a line",
            )
        elif name not in folder.members:
            problems.add(
                file,
                f"line {number}",
                f"image {quote(name)} has no {folder.suffix} file in {folder.path}",
                remedy_of(name, folder.members, "take it off the list, or add the file"),
            )
        elif name in chosen:
            repeated.append(name)
        else:
            chosen[name] = folder.members[name]
    if not lines and not problems.count:
        problems.add(file, "", "names no image", "list one image a line")
    return Selection(tuple(chosen), tuple(chosen.values()), file, len(lines), tuple(repeated))


def _image_of_line(text: str, members: Mapping[str, str]) -> str | None:
    if text in members:
        return text
    columns = text.split()
    if len(columns) == 1 or (len(columns) == 2 and columns[1] in {"1", "-1", "0"}):
        return columns[0]
    return None


def remedy_of(name: str, known: Container[Any], hint: str) -> str:
    """Return what to do about the name of an image that is none of those known."""
    stem = os.path.splitext(os.path.basename(name))[0]
    return "write it without folder and suffix" if stem in known else hint


def _image_set_file(folder: Folder, image_set: str) -> str:
    """Return the file of an image set that is given by its name or by its path."""
    root = folder.given if folder.inside else os.path.join(folder.given, os.pardir)
    named = os.path.join(root, "ImageSets", "Main", f"{image_set}.txt")
    is_name = os.path.basename(image_set) == image_set and not image_set.endswith(".txt")
    if is_name and "\0" not in image_set and os.path.lexists(named):
        return named
    if is_name and not os.path.lexists(image_set):
        files.refuse(
            image_set,
            f"is no image set: neither it nor {named} exists",
            "name a file, or a set under ImageSets/Main",
        )
    return image_set
