"""COCO files read in threads, during the imports of the command line.

:mod:`detap.formats.coco.tables` accepts the handles instead of paths.
"""

import os
import threading
from functools import partial
from typing import Any, Generic, TypeVar

from detap.core.threads import memory_is_tight
from detap.formats.coco.read import ResultsFile, TruthFile
from detap.formats.json._fields import Reader
from detap.formats.json.document import Document
from detap.formats.reading.background import BackgroundText
from detap.io.digest import new, sha256_of_stream
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path, is_url, shown
from detap.io.stream import Stream

File = TypeVar("File", bound=TruthFile | ResultsFile)


class Handle(Generic[File]):
    """A file being read; other options of the reader are ignored.

    Parameters
    ----------
    path : str or path
    file : TruthFile or ResultsFile
        Reads the document.
    limits : Limits

    Attributes
    ----------
    path : str
    limits : Limits
    sha256 : str or BackgroundText
        Digest of standard input, which cannot be read again, or of a file if `limits` requires
        it, computed in the background; else empty.
    """

    def __init__(self, path: Path, file: File, limits: Limits = DEFAULT_LIMITS) -> None:
        self.path = os.fspath(path)
        self.limits = limits
        self.sha256: str | BackgroundText = ""
        self._file: File = file
        self._reader: Reader | None = None
        self._size = 0
        self._is_read = False
        self._blocks: list[bytes] = []
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        if self.path != STDIN and not memory_is_tight():
            # Standard input may block, so result() reads it.
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            with Stream(self.path, self.limits) as stream:
                if self.limits.digests and stream.status is not None:
                    self.sha256 = BackgroundText(partial(sha256_of_stream, stream))
                self._read(stream)
                if self.limits.digests and is_url(self.path):
                    self.sha256 = stream.sha256() or sha256_of_stream(stream)
                stream.check_unchanged()
        except BaseException as error:
            self._error = error
        self._is_read = True

    def _read(self, stream: Stream) -> None:
        def keep(count: int) -> bytes:
            block = stream.read(count)
            self._blocks.append(block)
            return block

        read = keep if self.path == STDIN else stream.read
        limits = self.limits
        self._reader = Reader(
            stream.descriptor,
            None if stream.descriptor >= 0 else read,
            limits.file_bytes,
            limits.nesting,
        )
        self._size = stream.size

        def content() -> bytes:
            if self.path == STDIN:
                self._blocks.append(stream.read_all())
            return self.content()

        document = Document(self._reader, content, shown(self.path), limits)
        self._file.read(document)
        document.content = self.content
        if self.path == STDIN:
            digest = new()
            for block in self._blocks:
                digest.update(block)
            self.sha256 = digest.hexdigest()

    def result(self) -> File:
        """Wait for the file and return it.

        Raises
        ------
        InputError
            If the file cannot be opened, is too large, is not JSON, or changed.
        """
        if self._thread is not None:
            self._thread.join()
        elif not self._is_read:
            self._run()
        if self._error is not None:
            raise self._error
        return self._file

    def fraction(self) -> float:
        """Return the fraction of the file read so far, where known."""
        if self._is_read or self._reader is None or not self._size:
            return float(self._is_read)
        return min(self._reader.given / self._size, 1.0)

    def content(self) -> bytes:
        """Return the whole decompressed file.

        Raises
        ------
        InputError
            If it cannot be read, is too large, or changed.
        """
        if self.path == STDIN:
            return b"".join(self._blocks)
        with Stream(self.path, self.limits) as stream:
            return stream.read_all()


def ground_truth(
    path: Path,
    limits: Limits = DEFAULT_LIMITS,
    *,
    masks: bool = False,
    keypoints: bool = False,
    boxes: str = "xywh",
    attributes: tuple[str, ...] = (),
    **_: Any,
) -> Handle[TruthFile]:
    """Start to read an instances file, for `coco.read_ground_truth`."""
    file = TruthFile(boxes=boxes, masks=masks, keypoints=keypoints, attributes=attributes)
    return Handle(path, file, limits)


def detections(
    path: Path,
    limits: Limits = DEFAULT_LIMITS,
    *,
    masks: bool = False,
    keypoints: bool = False,
    boxes: str = "xywh",
    **_: Any,
) -> Handle[ResultsFile]:
    """Start to read a results file, for `coco.read_detections`."""
    return Handle(path, ResultsFile(boxes=boxes, masks=masks, keypoints=keypoints), limits)
