"""Reading COCO files in threads while the rest of the program is still being imported.

The compiled scanners need neither numpy nor the GIL. So the command line begins both files
first, imports what it needs meanwhile, and hands the handles to :mod:`detap.formats.coco.tables` in
place of their paths.
"""

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from detap.core.threads import memory_is_tight
from detap.formats.coco._scan import CAN_SPLIT, ListsScan, ResultsScan, TruthScan, find_record
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path, is_url
from detap.io.stream import Stream

if TYPE_CHECKING:
    from detap.formats.reading.background import BackgroundText

SPLIT_FROM = 96 << 20
"""Bytes from which on a results file is read by two threads; below, joining costs what is won."""

SPLIT_CORES = 3
"""Cores from which on it is: with two, the ground truth and the imports already keep both at work,
and one thread was measured to be 5 % faster."""

_SEARCHED = 1 << 16

Scan = TypeVar("Scan", TruthScan, ResultsScan, ListsScan)


class Handle(Generic[Scan]):
    """A file being scanned. Of the reader's options those that a scan does not need are ignored.

    Attributes
    ----------
    path : str
        As it was given.
    limits : Limits
        What is accepted at most.
    masks, keypoints : bool
        Whether segmentations, or keypoints, are read.
    boxes : {"xywh", "xyxy"}
        What the four numbers of a bbox are.
    sha256 : str or BackgroundText
        Of standard input, which cannot be read again, and of a file where `limits` ask for it,
        taken beside all else until somebody looks at it; else empty.
    """

    def __init__(
        self,
        path: Path,
        limits: Limits = DEFAULT_LIMITS,
        *,
        scanner: type[Scan],
        masks: bool = False,
        keypoints: bool = False,
        boxes: str = "xywh",
        **_: Any,
    ) -> None:
        self.path = os.fspath(path)
        self.limits = limits
        self.masks = masks
        self.keypoints = keypoints
        self.boxes = boxes
        self.sha256: str | BackgroundText = ""
        self._scanner: type[Scan] = scanner
        self._scan: Scan | None = None
        self._at_work: tuple[Scan, int] | None = None
        self._blocks: list[bytes] = []
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._alone = memory_is_tight()
        if self.path != STDIN and not self._alone:
            # Standard input may wait for a person: it is read by who asks for it.
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            with Stream(self.path, self.limits) as stream:
                if self.limits.digests and stream.status is not None:
                    from detap.formats.reading.background import (
                        BackgroundText,  # most runs want none
                    )

                    self.sha256 = BackgroundText(partial(_sha256_of, stream))
                self._read(stream)
                if self.limits.digests and is_url(self.path):
                    self.sha256 = stream.sha256() or _sha256_of(stream)
                stream.check_unchanged()
        except BaseException as error:
            self._error = error

    def _read(self, stream: Stream) -> None:
        def keep(count: int) -> bytes:
            block = stream.read(count)
            self._blocks.append(block)
            return block

        once = self.path == STDIN
        read = keep if once else stream.read
        shapes = self.masks, self.keypoints
        scan = new_scan(self._scanner, stream, read, *shapes, xyxy=self.boxes == "xyxy")
        self._at_work = scan, stream.size
        large = stream.size >= SPLIT_FROM and not any(shapes)
        if run(scan, stream) if large else scan.run():
            self._scan = scan
        elif once:
            self._blocks.append(stream.read_all())
        elif isinstance(scan, ResultsScan) and scan.boxless:
            self._read_for_boxes()
        if once:
            from detap.io.digest import new  # most runs read files

            digest = new()
            for block in self._blocks:
                digest.update(block)
            self.sha256 = digest.hexdigest()

    def _read_for_boxes(self) -> None:
        """Scan results again whose rows have masks and no boxes, which their masks then give."""
        with Stream(self.path, self.limits) as stream:
            scan = new_scan(
                self._scanner, stream, stream.read, masks=True, xyxy=self.boxes == "xyxy"
            )
            self._at_work = scan, stream.size
            if isinstance(scan, ResultsScan) and scan.run_for_boxes():
                self._scan = scan

    def result(self) -> Scan | None:
        """Wait for the scan and return it; None where the file is for the careful reader.

        Raises
        ------
        InputError
            Where the file cannot be opened, is too large, or changed.
        """
        if self._thread is not None:
            self._thread.join()
        elif self._scan is None and self._error is None:
            self._run()
        if self._error is not None:
            raise self._error
        return self._scan

    def fraction(self) -> float:
        """Return which share of the file has been read, as far as that can be known."""
        if self._scan is not None or self._at_work is None:
            return float(self._scan is not None)
        scan, size = self._at_work
        return min(scan.given / size, 1.0) if size else 0.0

    def content(self) -> bytes:
        """Return the whole file, expanded, after a scan that came to nothing, or was of no use.

        Raises
        ------
        InputError
            Where it cannot be read, is too large, or changed.
        """
        if self.path == STDIN:
            return b"".join(self._blocks)
        with Stream(self.path, self.limits) as stream:
            return stream.read_all()


def _sha256_of(stream: Stream) -> str:
    from detap.io.digest import sha256_of_stream  # most runs want none

    return sha256_of_stream(stream)


def new_scan(
    scanner: type[Scan],
    stream: Stream,
    read: Callable[[int], bytes] | None = None,
    masks: bool = False,
    keypoints: bool = False,
    *,
    xyxy: bool = False,
) -> Scan:
    """Return a scan of a stream, by its descriptor if it has one."""
    limits = stream.limits
    reader = None if stream.descriptor >= 0 else read
    most = limits.file_bytes, limits.records, limits.nesting
    return scanner(stream.descriptor, reader, *most, masks, keypoints, xyxy)


def run(scan: TruthScan | ResultsScan | ListsScan, stream: Stream) -> bool:
    """Run a scan of a large file, in two threads where that pays; return whether it was regular."""
    pays = (os.cpu_count() or 1) >= SPLIT_CORES and not memory_is_tight()
    if pays and isinstance(scan, ResultsScan) and stream.descriptor >= 0:
        start = _middle(stream)
        if start:
            return _run_split(scan, stream, start)
    return scan.run()


def _middle(stream: Stream) -> int:
    """Return where a record seems to begin, near the middle of the file; 0 if it is not found."""
    if not CAN_SPLIT:
        return 0
    middle = stream.size // 2
    found = find_record(os.pread(stream.descriptor, _SEARCHED, middle))
    return middle + found if found >= 0 else 0


def _run_split(scan: ResultsScan, stream: Stream, start: int) -> bool:
    return run_split(scan, new_scan(ResultsScan, stream, xyxy=scan.xyxy), start)


def run_split(scan: ResultsScan, rest: ResultsScan, start: int) -> bool:
    """Scan both halves at once; return whether the file was regular.

    The second counts only if the first ends where it began, which is where a record seems to begin.
    """
    thread = threading.Thread(target=rest.run_rest, args=(start,), daemon=True)
    thread.start()
    scan.split_at(start)
    regular = scan.run()
    if not scan.paused:
        rest.cancel()
    thread.join()
    if scan.paused:
        return scan.append(rest) if rest.regular else scan.resume()
    return regular


ground_truth: Callable[..., Handle[TruthScan]] = partial(Handle, scanner=TruthScan)
"""Begin to read an instances file; give the handle to `coco.read_ground_truth`."""

detections: Callable[..., Handle[ResultsScan]] = partial(Handle, scanner=ResultsScan)
"""Begin to read a results file; give the handle to `coco.read_detections`."""
