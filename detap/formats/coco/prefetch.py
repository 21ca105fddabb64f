"""Prefetch of COCO files in threads, during the imports of the command line.

The compiled scanners need neither numpy nor the GIL. :mod:`detap.formats.coco.tables` accepts the
handles instead of paths.
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
"""Minimum bytes of results to scan in two threads; joining costs more below."""

SPLIT_CORES = 3
"""Minimum number of cores for that.

Ground truth and imports already use two, where one thread was measured 5 % faster."""

_SEARCH_BYTES = 1 << 16

Scan = TypeVar("Scan", TruthScan, ResultsScan, ListsScan)


class Handle(Generic[Scan]):
    """A file being scanned; other options of the reader are ignored.

    Attributes
    ----------
    path : str
    limits : Limits
    masks, keypoints : bool
        If True, read segmentations, or keypoints.
    boxes : {"xywh", "xyxy"}
        Format of the bbox.
    attributes : tuple of str
        Attributes of annotations, which only the fallback reader reads.
    sha256 : str or BackgroundText
        Digest of standard input, which cannot be read again, or of a file if `limits` requires
        it, computed in the background; else empty.
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
        attributes: tuple[str, ...] = (),
        **_: Any,
    ) -> None:
        self.path = os.fspath(path)
        self.limits = limits
        self.masks = masks
        self.keypoints = keypoints
        self.boxes = boxes
        self.attributes = attributes
        self.sha256: str | BackgroundText = ""
        self._scanner: type[Scan] = scanner
        self._scan: Scan | None = None
        self._running: tuple[Scan, int] | None = None
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
                    from detap.formats.reading.background import BackgroundText

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

        is_stdin = self.path == STDIN
        read = keep if is_stdin else stream.read
        geometries = self.masks, self.keypoints
        scan = new_scan(self._scanner, stream, read, *geometries, xyxy=self.boxes == "xyxy")
        self._running = scan, stream.size
        large = stream.size >= SPLIT_FROM and not any(geometries)
        if not self.attributes and (run(scan, stream) if large else scan.run()):
            self._scan = scan
        elif is_stdin:
            self._blocks.append(stream.read_all())
        elif isinstance(scan, ResultsScan) and scan.boxless:
            self._read_for_boxes()
        if is_stdin:
            from detap.io.digest import new

            digest = new()
            for block in self._blocks:
                digest.update(block)
            self.sha256 = digest.hexdigest()

    def _read_for_boxes(self) -> None:
        """Scan results without boxes again, with masks, to compute the boxes."""
        with Stream(self.path, self.limits) as stream:
            scan = new_scan(
                self._scanner, stream, stream.read, masks=True, xyxy=self.boxes == "xyxy"
            )
            self._running = scan, stream.size
            if isinstance(scan, ResultsScan) and scan.run_for_boxes():
                self._scan = scan

    def result(self) -> Scan | None:
        """Wait for the scan and return it; None if the file requires the fallback reader.

        Raises
        ------
        InputError
            If the file cannot be opened, is too large, or changed.
        """
        if self._thread is not None:
            self._thread.join()
        elif self._scan is None and self._error is None:
            self._run()
        if self._error is not None:
            raise self._error
        return self._scan

    def fraction(self) -> float:
        """Return the fraction of the file read so far, where known."""
        if self._scan is not None or self._running is None:
            return float(self._scan is not None)
        scan, size = self._running
        return min(scan.given / size, 1.0) if size else 0.0

    def content(self) -> bytes:
        """Return the whole decompressed file, after the scan.

        Raises
        ------
        InputError
            If it cannot be read, is too large, or changed.
        """
        if self.path == STDIN:
            return b"".join(self._blocks)
        with Stream(self.path, self.limits) as stream:
            return stream.read_all()


def _sha256_of(stream: Stream) -> str:
    from detap.io.digest import sha256_of_stream

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
    """Create a scan of a stream, by its file descriptor if it has one."""
    limits = stream.limits
    reader = None if stream.descriptor >= 0 else read
    maxima = limits.file_bytes, limits.records, limits.nesting
    return scanner(stream.descriptor, reader, *maxima, masks, keypoints, xyxy)


def run(scan: TruthScan | ResultsScan | ListsScan, stream: Stream) -> bool:
    """Scan a large file, in two threads if faster; return True if the file is regular."""
    can_split = (os.cpu_count() or 1) >= SPLIT_CORES and not memory_is_tight()
    if can_split and isinstance(scan, ResultsScan) and stream.descriptor >= 0:
        start = _middle(stream)
        if start:
            return _run_split(scan, stream, start)
    return scan.run()


def _middle(stream: Stream) -> int:
    """Return a likely start of a record near the middle of the file; 0 if none."""
    if not CAN_SPLIT:
        return 0
    middle = stream.size // 2
    offset = find_record(os.pread(stream.descriptor, _SEARCH_BYTES, middle))
    return middle + offset if offset >= 0 else 0


def _run_split(scan: ResultsScan, stream: Stream, start: int) -> bool:
    return run_split(scan, new_scan(ResultsScan, stream, xyxy=scan.xyxy), start)


def run_split(scan: ResultsScan, second: ResultsScan, start: int) -> bool:
    """Scan both halves in parallel; return True if the file is regular.

    The second half counts only if the first ends exactly at `start`.
    """
    thread = threading.Thread(target=second.run_rest, args=(start,), daemon=True)
    thread.start()
    scan.split_at(start)
    regular = scan.run()
    if not scan.paused:
        second.cancel()
    thread.join()
    if scan.paused:
        return scan.append(second) if second.regular else scan.resume()
    return regular


ground_truth: Callable[..., Handle[TruthScan]] = partial(Handle, scanner=TruthScan)
"""Start to scan an instances file, for `coco.read_ground_truth`."""

detections: Callable[..., Handle[ResultsScan]] = partial(Handle, scanner=ResultsScan)
"""Start to scan a results file, for `coco.read_detections`."""
