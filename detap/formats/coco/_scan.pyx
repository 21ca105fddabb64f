"""Fast reader of COCO JSON and JSON Lines, without a Python object per record.

The scanners read a file in blocks, one record at a time, without the GIL and numpy. They check the
syntax of unused values (mostly polygons), and fall back to the Python reader for anything
irregular. They must not accept what it rejects, or give other values.

`_records.pxd` reads a record, `formats/json/_grammar.pxd` skips values, `formats/reading/_numbers`
parses numbers, and `formats/reading/_id_tables` indexes ids.
"""

from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from detap.formats.coco._keypoints cimport Poses
from detap.formats.coco._segmentation cimport Shapes
from detap.formats.reading._bytes cimport Bytes, is_word
from detap.formats.reading._id_tables cimport IdTable, are_distinct, ascend, listed, renumber
from detap.formats.json._grammar cimport Cursor, hash_of, skip_space, skip_string, skip_value
from detap.formats.coco._records cimport (
    ANNOTATION, AREA, BBOX, CATEGORY, CATEGORY_ID, HEIGHT, ID, IGNORE, IMAGE, IMAGE_ID, ISCROWD,
    ATTRIBUTES, DIFFICULT, Field, ISGROUPOF, KEYPOINTS, Kind, LINE, NAME, NEGATIVE, NUM_KEYPOINTS,
    OBJECT, OBJECTS, OTHER, RESULT, Row, SCORE, SEGMENTATION, SKIPPED, Shape, Text, WIDTH, field_of,
    put_corners, read_record, read_value,
)
from detap.formats.reading._names cimport Names, names_close, names_find, names_open
from detap.formats.reading._numbers cimport read_integer
from detap.tables._columns cimport Column, grow, take

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detap.tables.columns import Name


cdef extern from *:
    """
    #ifdef _WIN32
    #include <io.h>
    #define detap_read(fd, to, count, at) _read(fd, to, (unsigned)(count))
    #define DETAP_AT_ONCE 0
    #else
    #include <unistd.h>
    #define detap_read(fd, to, count, at) pread(fd, to, count, (off_t)(at))
    #define DETAP_AT_ONCE 1
    #endif
    """
    Py_ssize_t _read "detap_read"(int, void *, size_t, uint64_t) noexcept nogil
    bint AT_ONCE "DETAP_AT_ONCE"


cdef enum:
    BLOCK = 262144
    PADDING = 128       # zero bytes after the buffer
    PAUSED = 2          # the array continues where another scan began
    NEARBY = 64         # a step failing this close to the end is retried


cdef enum Part:
    NO_PART, OTHER_PART, IMAGES, ANNOTATIONS, CATEGORIES, PREDICTIONS


cdef Part _part(Bytes key, Py_ssize_t length) noexcept nogil:
    if is_word(key, length, b"images", 6):
        return IMAGES
    if is_word(key, length, b"annotations", 11):
        return ANNOTATIONS
    if is_word(key, length, b"categories", 10):
        return CATEGORIES
    return PREDICTIONS if is_word(key, length, b"predictions", 11) else OTHER_PART


cdef struct Kept:
    # A section of the file, parsed by Python.
    char *bytes
    size_t length


cdef bint _identify(const Text *text, Names *names, Py_ssize_t *named, int64_t *to) noexcept nogil:
    """Replace a string id by its index, and count such ids."""
    cdef int32_t number
    if text.at == NULL:
        return True
    number = names_find(names, <const char *>text.at, text.length, True)
    to[0] = number
    named[0] += 1
    return number >= 0


cdef list _strings(const Names *names):
    """Decode JSON strings; raise UnicodeError for an unpaired surrogate."""
    cdef list strings = []
    cdef bytes text
    cdef int32_t i
    for i in range(names.count):
        text = names.text[names.start[i] : names.start[i + 1]]
        if b"\\" in text:
            from json import loads

            strings.append(loads(b'"%b"' % text))
            strings[i].encode()
        else:
            strings.append(text.decode())
    return strings


cdef IdTable _numbering(const Names *names, Py_ssize_t named, Py_ssize_t count, known):
    """Return the table from `count` ids, or their strings, to indices of a sequence."""
    cdef dict index
    if named == 0:
        return IdTable(known if count else ())
    if named != count:
        raise TypeError("ids mix numbers and strings")
    index = {name: i for i, name in enumerate(known)}
    return listed([index.get(name, -1) for name in _strings(names)])


cdef struct Outlines:
    # Segmentations of the rows that have one.
    int32_t *sizes
    int64_t *run_start
    int64_t *ring_start
    uint8_t *has                # of all rows
    Py_ssize_t count, room, has_room


cdef class _Scan:
    """Base class of the scanners: the buffer, and the steps through a document.

    A step that fails close to the end of the buffer is retried with more bytes.

    Parameters
    ----------
    descriptor : int
        File descriptor, or -1.
    reader : callable or None
        Without a descriptor: returns the next bytes, at most the given number.
    most_bytes, most_records, nesting : int
        Limits.
    masks, keypoints : bool
        If True, read `segmentation`, or `keypoints`; otherwise check only its syntax.
    xyxy : bool
        If True, `bbox` is x1, y1, x2, y2.

    Attributes
    ----------
    regular : bool
        True if the file was read; otherwise the fallback reader must read it.
    count : int
        Number of records.
    repeated : int
        Bytes scanned again because their block ended too early.
    images, categories : bytes
        The lists under these keys of the outermost object, if kept.
    listed : int
        Number of rows with polygons or uncompressed RLE.
    without_number : int
        Number of annotations without num_keypoints.
    """

    cdef int descriptor
    cdef object reader
    cdef object error           # raised by the reader
    cdef uint8_t *bytes
    cdef size_t capacity, have, at, start
    cdef uint64_t given_bytes, most_bytes
    cdef uint64_t start_offset  # file offset of the scan
    cdef uint64_t stop_offset   # offset to pause at if a record begins there; or 0
    cdef bint cancelled
    cdef bint ended
    cdef Cursor cursor
    cdef Shape shape
    cdef Row row
    cdef uint64_t hashed        # of the last key
    cdef Py_ssize_t rows, room, most_records
    cdef uint64_t[64] top       # the keys of the outermost object
    cdef int top_count
    cdef Kept kept_images, kept_categories
    cdef Names image_names, category_names      # of string ids
    cdef Py_ssize_t named_images, named_categories
    cdef Outlines outlines
    cdef readonly bint regular
    cdef readonly uint64_t repeated
    cdef readonly Py_ssize_t listed, without_number

    def __cinit__(
        self, int descriptor, reader: Callable[[int], bytes] | None, most_bytes: int,
        most_records: int, nesting: int, masks: bool = False, keypoints: bool = False,
        xyxy: bool = False,
    ):
        self.descriptor = descriptor
        self.reader = reader
        self.most_bytes = most_bytes
        self.most_records = most_records
        self.cursor.deepest = min(nesting, 64)
        self.row.shapes.enabled = masks
        self.row.poses.enabled = keypoints
        self.row.xyxy = xyxy
        names_open(&self.image_names)
        names_open(&self.category_names)

    def __dealloc__(self):
        free(self.bytes)
        free(self.kept_images.bytes)
        free(self.kept_categories.bytes)
        free(self.row.shapes.runs.at)
        free(self.row.shapes.points)
        free(self.row.shapes.rings)
        free(self.row.poses.values)
        free(self.row.poses.sides)
        free(self.row.poses.without)
        free(self.outlines.sizes)
        free(self.outlines.run_start)
        free(self.outlines.ring_start)
        free(self.outlines.has)
        names_close(&self.image_names)
        names_close(&self.category_names)

    @property
    def count(self) -> int:
        return self.rows

    @property
    def keypoints(self) -> int:
        """Keypoints per row; 0 if none were read."""
        return self.row.poses.each // 3

    @property
    def given(self) -> int:
        """Bytes read so far; safe to call from another thread."""
        return self.given_bytes

    @property
    def xyxy(self) -> bool:
        return self.row.xyxy

    @property
    def images(self) -> bytes:
        return self.kept_images.bytes[: self.kept_images.length]

    @property
    def categories(self) -> bytes:
        return self.kept_categories.bytes[: self.kept_categories.length]

    cdef check(self):
        """Raise the error of the reader."""
        if self.error is not None:
            raise self.error

    cdef Py_ssize_t read_into(self, uint8_t *to, size_t count) noexcept nogil:
        if self.descriptor >= 0:
            return _read(self.descriptor, to, count, self.start_offset + self.given_bytes)
        return self.ask_reader(to, count)

    # Separate, because a function with Python objects acquires the GIL when it returns, and an
    # importing thread holds it for 5 ms each time.
    cdef Py_ssize_t ask_reader(self, uint8_t *to, size_t count) noexcept with gil:
        try:
            block = self.reader(count)
            memcpy(to, <const char *>(<bytes>block), min(<size_t>len(block), count))
            return len(block) if <size_t>len(block) <= count else -1
        except BaseException as error:
            self.error = error
            return -1

    cdef bint more(self) noexcept nogil:
        """Read another block after the unprocessed bytes; False on failure."""
        cdef Py_ssize_t got
        cdef size_t larger
        cdef uint8_t *grown
        if self.at:
            memmove(self.bytes, self.bytes + self.at, self.have - self.at)
            self.have -= self.at
            self.at = 0
        if self.have + BLOCK > self.capacity:
            larger = max(2 * self.capacity, <size_t>(2 * BLOCK))
            grown = <uint8_t *>realloc(self.bytes, larger + PADDING)
            if grown == NULL:
                return False
            self.bytes = grown
            self.capacity = larger
        got = self.read_into(self.bytes + self.have, BLOCK)
        if got < 0 or self.cancelled:
            return False
        self.ended = got == 0
        self.have += got
        self.given_bytes += got
        memset(self.bytes + self.have, 0, PADDING)
        self.cursor.end = self.bytes + self.have
        return self.given_bytes <= self.most_bytes

    cdef bint again(self) noexcept nogil:
        """Read more bytes after a step that may have failed for lack of them.

        Reads at least as many bytes as the step consumed, so that a long string is not scanned
        again for each block.
        """
        cdef uint64_t seen = self.have - self.at
        cdef uint64_t goal = self.given_bytes + seen
        if self.ended or self.cursor.failed + NEARBY < self.cursor.end:
            return False
        self.repeated += seen
        while True:
            if not self.more():
                return False
            if self.ended or self.given_bytes >= goal:
                return True

    cdef bint begin(self) noexcept nogil:
        """Read the first block and step over a byte order mark."""
        while self.have < 4 and not self.ended:
            if not self.more():
                return False
        if memcmp(self.bytes, b"\xef\xbb\xbf", 3) == 0:
            self.at = 3
        return True

    cdef uint8_t next(self) noexcept nogil:
        """Skip white space and return the next byte; 0 at the end."""
        cdef Bytes p
        while True:
            p = skip_space(self.bytes + self.at)
            self.at = p - self.bytes
            if p < self.cursor.end or self.ended:
                return p[0]
            if not self.more():
                return 0

    cdef bint finish(self) noexcept nogil:
        """Return True if nothing follows."""
        return self.next() == 0 and self.ended and self.at == self.have

    cdef bint skip(self) noexcept nogil:
        """Skip a value at level 2, and set `start` and `at` to its bounds."""
        cdef Bytes p
        while True:
            self.cursor.keys = 0
            p = skip_value(&self.cursor, self.bytes + self.at, 2)
            # A number may continue beyond the buffer.
            if p != NULL and (p < self.cursor.end or self.ended):
                self.start = self.at
                self.at = p - self.bytes
                return True
            if p != NULL:
                self.cursor.failed = p
            if not self.again():
                return False

    cdef Part key(self) noexcept nogil:
        """Skip a key of the outermost object, its colon and white space."""
        cdef bint escapes
        cdef Bytes p, start
        cdef Part part
        while True:
            start = self.bytes + self.at
            p = start
            if p[0] == c'"':
                p = skip_string(&self.cursor, p, &escapes)
                if p != NULL:
                    self.hashed = hash_of(start, p - start)
                    part = _part(start + 1, p - start - 2)
                    p = skip_space(p)
                    if p[0] == c':':
                        self.at = p + 1 - self.bytes
                        return NO_PART if escapes or self.next() == 0 else part
                    self.cursor.failed = p
            else:
                self.cursor.failed = p
            if not self.again():
                return NO_PART

    cdef inline uint64_t offset(self, Bytes p) noexcept nogil:
        """Return the file offset of a buffered byte."""
        return self.start_offset + self.given_bytes - <uint64_t>(self.cursor.end - p)

    cdef int array(self, Kind kind, int depth) noexcept nogil:
        """Read an array of records; `at` is after its bracket. False if irregular."""
        cdef Bytes p
        cdef bint first = True
        self.shape.count = 0
        if self.cursor.deepest < depth + 2:
            return False
        while True:
            p = skip_space(self.bytes + self.at)
            if self.stop_offset and self.offset(p) == self.stop_offset and p < self.cursor.end:
                self.at = p - self.bytes
                return PAUSED
            if first and p[0] == c']':
                self.at = p + 1 - self.bytes
                return True
            self.cursor.keys = 0
            if kind == SKIPPED:
                p = skip_value(&self.cursor, p, depth + 1)
            else:
                p = read_record(&self.cursor, &self.shape, &self.row, kind, p, depth + 1)
            if p != NULL:
                p = skip_space(p)
                if p[0] == c',' or p[0] == c']':
                    if kind != SKIPPED and not self.commit(kind):
                        return False
                    first = False
                    self.at = p + 1 - self.bytes
                    if p[0] == c']':
                        return True
                    continue
                self.cursor.failed = p
            if not self.again():
                return False

    cdef bint commit(self, Kind kind) noexcept nogil:
        """Append `row` to the columns; False if irregular."""
        return True

    cdef bint members(self) noexcept nogil:
        """Read the outermost object; `at` is after its brace. False if irregular."""
        cdef uint8_t c
        cdef Part part
        self.next()
        self.cursor.keys = 0
        while True:
            part = self.key()
            if part == NO_PART or self.is_repeated():
                return False
            if not self.member(part, self.bytes[self.at] == c'['):
                return False
            c = self.next()
            self.at += 1
            if c == c'}':
                return True
            if c != c',':
                return False
            self.next()

    cdef bint member(self, Part part, bint array) noexcept nogil:
        """Read a value of the outermost object; here, keep the lists."""
        if part == IMAGES:
            return self.skip() and self.keep(&self.kept_images)
        if part == CATEGORIES:
            return self.skip() and self.keep(&self.kept_categories)
        if array:
            self.at += 1
            return self.array(SKIPPED, 2)
        return self.skip()

    cdef bint commit_shape(self) noexcept nogil:
        """Append the segmentation of `row`, if any, to the columns."""
        cdef Shapes *shapes = &self.row.shapes
        cdef Outlines *to = &self.outlines
        cdef Py_ssize_t i = to.count
        cdef bint has = self.row.seen & (1 << <int>SEGMENTATION) != 0
        if not shapes.enabled:
            return True
        if self.rows >= to.has_room:
            to.has_room = max(2 * to.has_room, <Py_ssize_t>8192)
            if not grow(<void **>&to.has, to.has_room, 1):
                return False
        to.has[self.rows] = has
        if not has:
            return True
        if i + 1 >= to.room:
            to.room = max(2 * to.room, <Py_ssize_t>8192)
            if not (grow(<void **>&to.sizes, to.room, 2 * sizeof(int32_t))
                    and grow(<void **>&to.run_start, to.room, sizeof(int64_t))
                    and grow(<void **>&to.ring_start, to.room, sizeof(int64_t))):
                return False
        if i == 0:
            to.run_start[0] = to.ring_start[0] = 0
        to.sizes[2 * i], to.sizes[2 * i + 1] = <int32_t>shapes.height, <int32_t>shapes.width
        to.run_start[i + 1] = shapes.runs.count
        to.ring_start[i + 1] = shapes.rings_count
        shapes.kept_runs = shapes.runs.count
        shapes.kept_points = shapes.points_count
        shapes.kept_rings = shapes.rings_count
        self.listed += shapes.listed
        to.count = i + 1
        return True

    def outlines_of(self, Py_ssize_t count) -> tuple[Column, ...] | None:
        """Return the segmentations of all `count` rows; None if they were not read.

        Returns
        -------
        tuple or None
            A flag of each row, and the columns of :class:`detap.tables.masks.Masks` of those with
            one: sizes (0 for polygons), run_start, runs, ring_start, ring_end, points.
        """
        cdef Outlines *of = &self.outlines
        cdef Shapes *shapes = &self.row.shapes
        if not shapes.enabled:
            return None
        if of.count == 0:
            if not (grow(<void **>&of.run_start, 1, sizeof(int64_t))
                    and grow(<void **>&of.ring_start, 1, sizeof(int64_t))):
                raise MemoryError
            of.run_start[0] = of.ring_start[0] = 0
        return (
            take(<void **>&of.has, count, 1, 1, b"?"),
            take(<void **>&of.sizes, of.count, 2, 4, b"i"),
            take(<void **>&of.run_start, of.count + 1, 1, 8, b"q"),
            take(<void **>&shapes.runs.at, shapes.kept_runs, 1, 4, b"I"),
            take(<void **>&of.ring_start, of.count + 1, 1, 8, b"q"),
            take(<void **>&shapes.rings, shapes.kept_rings, 1, 8, b"q"),
            take(<void **>&shapes.points, shapes.kept_points // 2, 2, 8, b"d"),
        )

    cdef bint commit_pose(self, bint truth) noexcept nogil:
        """Append the keypoints of `row`, if read, to the columns."""
        cdef Poses *poses = &self.row.poses
        cdef uint32_t seen = self.row.seen
        cdef Py_ssize_t i = self.rows
        if not poses.enabled:
            return True
        if not seen & (1 << <int>KEYPOINTS):
            return False
        poses.committed = poses.count
        if not truth:
            return True
        if i >= poses.rows_room:
            poses.rows_room = max(2 * poses.rows_room, <Py_ssize_t>8192)
            if not (grow(<void **>&poses.sides, poses.rows_room, 2 * sizeof(double))
                    and grow(<void **>&poses.without, poses.rows_room, 1)):
                return False
        poses.sides[2 * i], poses.sides[2 * i + 1] = self.row.box[2], self.row.box[3]
        if self.row.xyxy:
            poses.sides[2 * i] -= self.row.box[0]
            poses.sides[2 * i + 1] -= self.row.box[1]
        if seen & (1 << <int>NUM_KEYPOINTS):
            poses.without[i] = poses.num_keypoints == 0
        else:
            poses.without[i] = poses.labeled == 0
            self.without_number += 1
        return True

    def poses_of(self, Py_ssize_t count, bint truth) -> tuple[Column, ...] | None:
        """Return the keypoints of all `count` rows; None if they were not read.

        Returns
        -------
        tuple or None
            The values x, y (and v of ground truth); and for ground truth, the box sizes and the
            flag of rows without labeled keypoints.
        """
        cdef Poses *poses = &self.row.poses
        if not poses.enabled:
            return None
        values = take(<void **>&poses.values, poses.committed, 1, 8, b"d")
        if not truth:
            return (values,)
        return (
            values,
            take(<void **>&poses.sides, count, 2, 8, b"d"),
            take(<void **>&poses.without, count, 1, 1, b"?"),
        )

    cdef bint is_repeated(self) noexcept nogil:
        cdef int i
        for i in range(self.top_count):
            if self.top[i] == self.hashed:
                return True
        if self.top_count == 64:
            return True
        self.top[self.top_count] = self.hashed
        self.top_count += 1
        return False

    cdef bint keep(self, Kept *to) noexcept nogil:
        """Copy the value just skipped."""
        to.length = self.at - self.start
        to.bytes = <char *>malloc(to.length + 1)
        if to.bytes == NULL:
            return False
        memcpy(to.bytes, self.bytes + self.start, to.length)
        return True


cdef class ListsScan(_Scan):
    """Scanner of `images` and `categories` only; parameters as in `_Scan`."""

    def run(self) -> bool:
        """Scan the file; return True if it is regular."""
        with nogil:
            self.regular = self.begin() and self.next() == c'{'
            self.at += 1
            self.regular = self.regular and self.members() and self.finish()
        self.check()
        return self.regular


cdef class ResultsScan(_Scan):
    """Scanner of a results file; parameters as in `_Scan`.

    Attributes
    ----------
    paused : bool
        True if the scan stopped where another began; see `split_at`.
    boxless : bool
        True if it ended at a row without a box, whose mask was not read.
    """

    cdef int64_t *images
    cdef int64_t *categories
    cdef double *corners
    cdef double *areas
    cdef double *scores
    cdef bint has_list
    cdef ResultsScan rest
    cdef bint for_boxes         # read masks only of rows without a box
    cdef readonly bint paused, boxless

    def __dealloc__(self):
        free(self.images)
        free(self.categories)
        free(self.corners)
        free(self.areas)
        free(self.scores)

    def run(self) -> bool:
        """Scan the file; return True if it is regular and the scan did not pause."""
        cdef int state
        with nogil:
            state = self.document()
            self.end(state)
        self.check()
        return self.regular

    def run_for_boxes(self) -> bool:
        """Scan the file with masks, keeping only those of rows without a box."""
        self.for_boxes = True
        return self.run()

    def run_rest(self, uint64_t start) -> bool:
        """Scan the file from an offset where a record of the outermost array may begin.

        Only the scan of the bytes before can confirm that: see `split_at`.
        """
        cdef int state
        self.start_offset = start
        with nogil:
            state = self.more() and self.array(RESULT, 1) and self.finish()
            self.end(state)
        self.check()
        return self.regular

    def split_at(self, uint64_t stop) -> None:
        """Make `run` pause at a record that begins at this offset."""
        self.stop_offset = stop

    def resume(self) -> bool:
        """Continue after a pause; return True if the file is regular."""
        cdef int state
        self.stop_offset = 0
        self.paused = False
        with nogil:
            state = self.array(RESULT, 1) and self.finish()
            self.end(state)
        self.check()
        return self.regular

    def append(self, ResultsScan rest) -> bool:
        """Append the rows of a scan that began where this one paused.

        Returns True if the file is regular.
        """
        self.rest = rest
        self.paused = False
        self.regular = rest.regular and self.rows + rest.rows <= self.most_records
        return self.regular

    @property
    def texts(self) -> int:
        """Number of detections with a string as image_id."""
        return self.named_images + (self.rest.named_images if self.rest is not None else 0)

    def cancel(self) -> None:
        """Stop a scan in another thread; its result is invalid."""
        self.cancelled = True

    @property
    def count(self) -> int:
        return self.rows + (self.rest.rows if self.rest is not None else 0)

    cdef void end(self, int state) noexcept nogil:
        self.regular = state == True
        self.paused = state == PAUSED
        if not self.paused:
            free(self.bytes)
            self.bytes = NULL

    cdef int document(self) noexcept nogil:
        cdef uint8_t first
        cdef int state
        if not self.begin():
            return False
        first = self.next()
        self.at += 1
        if first == c'[':
            state = self.array(RESULT, 1)
            return self.finish() if state == True else state
        self.stop_offset = 0
        return first == c'{' and self.members() and self.has_list and self.finish()

    cdef bint member(self, Part part, bint array) noexcept nogil:
        """Read the list of detections; keep the lists of images and categories."""
        if not array or (part != ANNOTATIONS and part != PREDICTIONS):
            return _Scan.member(self, part, array)
        if self.has_list:
            return False
        self.has_list = True
        self.at += 1
        return self.array(RESULT, 2) != False

    cdef bint commit(self, Kind kind) noexcept nogil:
        cdef Py_ssize_t i = self.rows
        cdef Row *row = &self.row
        cdef uint32_t required = 1 << <int>IMAGE_ID | 1 << <int>CATEGORY_ID | 1 << <int>SCORE
        cdef bint boxless = not row.seen & (1 << <int>BBOX), posed
        if row.seen & required != required or i == self.most_records:
            return False
        posed = boxless and not row.seen & (1 << <int>SEGMENTATION)
        if posed and not row.seen & (1 << <int>KEYPOINTS):
            self.boxless = not (row.shapes.enabled or row.poses.enabled)
            return False
        if self.for_boxes and not boxless:
            row.seen &= ~(<uint32_t>1 << <int>SEGMENTATION)
        if i == self.room and not self.enlarge():
            return False
        if not (self.commit_shape() and self.commit_pose(False)):
            return False
        if posed:
            row.box = row.poses.extent
            if row.xyxy:
                row.box[2] += row.box[0]
                row.box[3] += row.box[1]
        elif boxless:   # the box comes from the mask
            row.box = [0.0, 0.0, NAN, NAN]
        self.areas[i] = put_corners(row, self.corners + 4 * i)
        self.images[i] = row.image
        self.categories[i] = row.category
        self.scores[i] = row.score
        self.rows = i + 1
        return (
            _identify(&row.image_text, &self.image_names, &self.named_images, &self.images[i])
            and _identify(
                &row.category_text, &self.category_names, &self.named_categories,
                &self.categories[i])
        )

    cdef bint enlarge(self) noexcept nogil:
        cdef Py_ssize_t room = max(2 * self.room, <Py_ssize_t>8192)
        self.room = room
        return (
            grow(<void **>&self.images, room, sizeof(int64_t))
            and grow(<void **>&self.categories, room, sizeof(int64_t))
            and grow(<void **>&self.corners, room, 4 * sizeof(double))
            and grow(<void **>&self.areas, room, sizeof(double))
            and grow(<void **>&self.scores, room, sizeof(double))
        )

    def columns(
        self, images: Sequence[Name], list categories: list[Name],
    ) -> tuple[Column, Column, Column, Column, Column, dict[Name, int]] | None:
        """Return the columns with the indices of the ground truth.

        Parameters
        ----------
        images : sequence of int or str
        categories : list of int or str

        Returns
        -------
        tuple or None
            image, label, corners, box_area, score, and the counts of unknown categories, whose
            labels follow the known ones in this order. None if an image is unknown. The scan is
            empty afterwards.

        Raises
        ------
        TypeError, OverflowError, UnicodeError
            If ids have mixed types, exceed 64 bits, or are invalid text.
        """
        cdef dict counted = {}
        cdef Py_ssize_t count
        if not self.number_images(images):
            return None
        self.count_unknown(categories, counted)
        self.number_categories(categories + list(counted))
        if self.rest is not None and not self.join():
            raise MemoryError
        count = self.rows
        self.rows = self.room = 0
        return (
            take(<void **>&self.images, count, 1, 4, b"i"),
            take(<void **>&self.categories, count, 1, 4, b"i"),
            take(<void **>&self.corners, count, 4, 8, b"d"),
            take(<void **>&self.areas, count, 1, 8, b"d"),
            take(<void **>&self.scores, count, 1, 8, b"d"),
            counted,
        )

    cdef bint number_images(self, known) except -1:
        """Replace image ids by indices; return False if one is unknown."""
        cdef IdTable table = _numbering(&self.image_names, self.named_images, self.rows, known)
        cdef Py_ssize_t unknown
        with nogil:
            unknown = renumber(self.images, self.rows, table)
        return not unknown and (self.rest is None or self.rest.number_images(known))

    cdef IdTable category_table(self, list known):
        return _numbering(&self.category_names, self.named_categories, self.rows, known)

    cdef number_categories(self, list known):
        cdef IdTable table = self.category_table(known)
        with nogil:
            renumber(self.categories, self.rows, table)
        if self.rest is not None:
            self.rest.number_categories(known)

    cdef count_unknown(self, list categories, dict counted):
        """Count the detections of unknown categories."""
        cdef IdTable known = self.category_table(categories)
        cdef list names = _strings(&self.category_names)
        cdef Py_ssize_t i, unknown = 0
        if names and categories and type(categories[0]) is not str:
            raise TypeError("ids have mixed types")
        with nogil:
            for i in range(self.rows):
                unknown += known.number(self.categories[i]) < 0
        if unknown:
            for i in range(self.rows):
                if known.number(self.categories[i]) < 0:
                    name = names[self.categories[i]] if names else self.categories[i]
                    counted[name] = counted.get(name, 0) + 1
        if self.rest is not None:
            self.rest.count_unknown(categories, counted)

    cdef bint join(self):
        """Append the columns of the second scan."""
        cdef ResultsScan rest = self.rest
        cdef Py_ssize_t a = self.rows, b = rest.rows
        cdef bint done
        with nogil:
            done = (
                _move(<void **>&self.images, a * 4, <void **>&rest.images, b * 4)
                and _move(<void **>&self.categories, a * 4, <void **>&rest.categories, b * 4)
                and _move(<void **>&self.corners, a * 32, <void **>&rest.corners, b * 32)
                and _move(<void **>&self.areas, a * 8, <void **>&rest.areas, b * 8)
                and _move(<void **>&self.scores, a * 8, <void **>&rest.scores, b * 8)
            )
        self.rows = a + b
        rest.rows = rest.room = 0
        self.rest = None
        return done


cdef bint _move(void **to, Py_ssize_t before, void **rest, Py_ssize_t count) noexcept nogil:
    """Append one buffer to another and free it."""
    cdef void *grown = realloc(to[0], max(before + count, 1))
    if grown == NULL:
        return False
    to[0] = grown
    memcpy(<char *>grown + before, rest[0], count)
    free(rest[0])
    rest[0] = NULL
    return True


cdef struct Line:
    # An image, and the end of its rows.
    int64_t id
    int32_t text, file_name     # indices of words, or -1
    bint has_id
    int32_t number
    Py_ssize_t end


cdef struct Objects:
    int32_t *labels
    double *boxes
    double *areas
    double *scores
    uint8_t *flags              # four per row


cdef class LinesScan(_Scan):
    """Scanner of JSON Lines; parameters as in `_Scan`."""

    cdef Objects objects
    cdef Line *lines
    cdef Py_ssize_t line_count, line_room
    cdef double *sizes
    cdef bint scored
    cdef Shape line_shape, object_shape

    def __dealloc__(self):
        free(self.objects.labels)
        free(self.objects.boxes)
        free(self.objects.areas)
        free(self.objects.scores)
        free(self.objects.flags)
        free(self.lines)
        free(self.sizes)

    def run(self, bint scored) -> bool:
        """Scan the file; return True if it is regular."""
        self.scored = scored
        with nogil:
            self.regular = self.document() and self.line_count > 0
            self.regular = self.regular and self.named_categories in (0, self.rows)
        self.check()
        return self.regular

    cdef bint document(self) noexcept nogil:
        cdef size_t searched
        cdef const uint8_t *end
        cdef Bytes p
        cdef int32_t number = 0
        if not self.begin():
            return False
        while True:
            searched = self.at
            end = NULL
            while True:
                if searched < self.have:
                    end = <const uint8_t *>memchr(
                        self.bytes + searched, c'\n', self.have - searched)
                if end != NULL or self.ended:
                    break
                searched = self.have - self.at
                if not self.more():
                    return False
            if end == NULL:
                end = self.bytes + self.have
            number += 1
            p = skip_space(self.bytes + self.at)
            if p < end:
                p = self.line(p, number)
                # A value may not continue on the next line.
                if p == NULL or p > end or skip_space(p) < end:
                    return False
            self.at = end + 1 - self.bytes
            if self.at > self.have:
                return True

    cdef Bytes record(self, Shape *shape, Kind kind, Bytes p, int depth) noexcept nogil:
        self.cursor.keys = 0
        return read_record(&self.cursor, shape, &self.row, kind, p, depth)

    cdef Bytes line(self, Bytes p, int32_t number) noexcept nogil:
        """Read a line; return the end of its value, or NULL."""
        cdef Py_ssize_t i = self.line_count
        cdef Bytes end = self.record(&self.line_shape, LINE, p, 1)
        cdef Bytes objects
        if end == NULL or not self.row.seen & (1 << <int>OBJECTS):
            return NULL
        if i == self.line_room:
            self.line_room = max(2 * i, <Py_ssize_t>1024)
            if not (grow(<void **>&self.lines, self.line_room, sizeof(Line))
                    and grow(<void **>&self.sizes, self.line_room, 2 * sizeof(double))):
                return NULL
        if i == self.most_records or not self.commit_line(&self.lines[i], number):
            return NULL
        self.line_count = i + 1
        objects = self.row.listed[<int>OBJECTS - <int>NEGATIVE]
        if not (self.list_of_objects(objects) if objects[0] == c'[' else self.lists(objects)):
            return NULL
        self.lines[i].end = self.rows
        return end

    cdef bint commit_line(self, Line *line, int32_t number) noexcept nogil:
        cdef Row *row = &self.row
        cdef double *size = self.sizes + 2 * self.line_count
        size[0] = row.width if row.seen & (1 << <int>WIDTH) else NAN
        size[1] = row.height if row.seen & (1 << <int>HEIGHT) else NAN
        line.number = number
        line.has_id = row.seen & (1 << <int>IMAGE_ID) != 0
        line.id = row.image
        line.text = line.file_name = -1
        if line.has_id and row.image_text.at != NULL:
            line.text = names_find(
                &self.image_names, <const char *>row.image_text.at, row.image_text.length, True)
            if line.text < 0:
                return False
        if row.seen & (1 << <int>NAME):
            line.file_name = names_find(
                &self.image_names, <const char *>row.name.at, row.name.length, True)
        return line.has_id or line.file_name >= 0

    cdef bint reserve(self, Py_ssize_t i) noexcept nogil:
        """Make room for row `i`."""
        cdef Objects *to = &self.objects
        if i >= self.most_records:
            return False
        if i >= self.room:
            self.room = max(2 * i, <Py_ssize_t>8192)
            return (
                grow(<void **>&to.labels, self.room, sizeof(int32_t))
                and grow(<void **>&to.boxes, self.room, 4 * sizeof(double))
                and grow(<void **>&to.areas, self.room, sizeof(double))
                and grow(<void **>&to.scores, self.room, sizeof(double))
                and grow(<void **>&to.flags, self.room, 4)
            )
        return True

    cdef bint list_of_objects(self, Bytes p) noexcept nogil:
        """Read a list whose syntax was checked."""
        p = skip_space(p + 1)
        while p[0] != c']':
            p = self.record(&self.object_shape, OBJECT, p, 3)
            if p == NULL or not self.reserve(self.rows):
                return False
            if not self.put(self.rows, self.row.seen) or not self.fill(1, self.row.seen):
                return False
            p = skip_space(p)
            if p[0] == c',':
                p = skip_space(p + 1)
        return True

    cdef bint lists(self, Bytes p) noexcept nogil:
        """Read an object of lists whose syntax was checked."""
        cdef Py_ssize_t count = -1, n
        cdef uint32_t seen = 0
        cdef Field field
        cdef Bytes key
        cdef bint escapes
        if p[0] != c'{':
            return False
        p = skip_space(p + 1)
        while p[0] != c'}':
            key = p
            p = skip_string(&self.cursor, p, &escapes)
            field = field_of(OBJECT, &self.row, key + 1, p - key - 2)
            p = skip_space(skip_space(p) + 1)
            if p[0] == c'[':
                if field != OTHER and seen & (1 << <int>field):     # two keys with a class
                    return False
                seen |= 1 << <int>field
                p = self.values(field, p, &n)
                if p == NULL or count >= 0 and n != count:
                    return False
                count = n
            elif field == OTHER:
                p = skip_value(&self.cursor, p, 3)
            else:
                return False
            p = skip_space(p)
            if p[0] == c',':
                p = skip_space(p + 1)
        return seen & (1 << <int>BBOX) and (count == 0 or self.fill(count, seen))

    cdef Bytes values(self, Field field, Bytes p, Py_ssize_t *count) noexcept nogil:
        """Read the values of one field, of the rows from the next."""
        cdef Py_ssize_t i = self.rows
        p = skip_space(p + 1)
        while p[0] != c']':
            self.row.seen = 0
            p = read_value(&self.cursor, &self.row, OBJECT, field, p, 4)
            if p == NULL or not self.reserve(i) or not self.put(i, 1 << <int>field):
                return NULL
            i += 1
            p = skip_space(p)
            if p[0] == c',':
                p = skip_space(p + 1)
        count[0] = i - self.rows
        return p + 1

    cdef bint put(self, Py_ssize_t i, uint32_t seen) noexcept nogil:
        """Write these fields of `row` to row `i`."""
        cdef Objects *to = &self.objects
        cdef Row *row = &self.row
        if seen & (1 << <int>BBOX):
            memcpy(to.boxes + 4 * i, row.box, sizeof(row.box))
        if seen & (1 << <int>CATEGORY_ID) and not self.put_label(i):
            return False
        if seen & (1 << <int>SCORE):
            to.scores[i] = row.score
        if seen & (1 << <int>AREA):
            to.areas[i] = row.area
            if row.area < 0:
                return False
        if seen & (1 << <int>ISCROWD):
            to.flags[4 * i] = row.crowd
        if seen & (1 << <int>IGNORE):
            to.flags[4 * i + 1] = row.ignore
        if seen & (1 << <int>ISGROUPOF):
            to.flags[4 * i + 2] = row.group_of
        if seen & (1 << <int>DIFFICULT):
            to.flags[4 * i + 3] = row.difficult
        return True

    cdef bint put_label(self, Py_ssize_t i) noexcept nogil:
        """Number the category of `row`; integers are words of eight bytes."""
        cdef Text *text = &self.row.category_text
        cdef const char *word = <const char *>&self.row.category
        if text.at != NULL:
            self.named_categories += 1
            word = <const char *>text.at
        self.objects.labels[i] = names_find(
            &self.category_names, word, text.length if text.at != NULL else 8, True)
        return self.objects.labels[i] >= 0

    cdef bint fill(self, Py_ssize_t count, uint32_t seen) noexcept nogil:
        """Complete new rows by fields that are not required; False if others are missing."""
        cdef Objects *to = &self.objects
        cdef uint32_t required = 1 << <int>BBOX | 1 << <int>CATEGORY_ID
        cdef Py_ssize_t i
        if self.scored:
            required |= 1 << <int>SCORE
        if seen & required != required or not self.scored and seen & (1 << <int>SCORE):
            return False
        for i in range(self.rows, self.rows + count):
            if not self.scored:
                to.scores[i] = 0.0
            if not seen & (1 << <int>AREA):
                to.areas[i] = NAN
            if not seen & (1 << <int>ISCROWD):
                to.flags[4 * i] = 0
            if not seen & (1 << <int>IGNORE):
                to.flags[4 * i + 1] = 0
            if not seen & (1 << <int>ISGROUPOF):
                to.flags[4 * i + 2] = 0
            if not seen & (1 << <int>DIFFICULT):
                to.flags[4 * i + 3] = 0
        self.rows += count
        return True

    def image_lines(self) -> list[tuple[Name | None, str | None, int, int]]:
        """Return the id and file name of each line's image, its line, and the end of its rows.

        Raises
        ------
        UnicodeError
            If a name is invalid text.
        """
        cdef list words = _strings(&self.image_names), images = []
        cdef Line *line
        cdef Py_ssize_t i
        for i in range(self.line_count):
            line = &self.lines[i]
            identifier = line.id if line.has_id else None
            if line.text >= 0:
                identifier = words[line.text]
            file_name = words[line.file_name] if line.file_name >= 0 else None
            images.append((identifier, file_name, line.number, line.end))
        return images

    def classes(self) -> list[Name]:
        """Return the classes in the order of their numbers; equal strings may repeat.

        Raises
        ------
        UnicodeError
            If a name is invalid text.
        """
        cdef Names *names = &self.category_names
        cdef list numbers = []
        cdef int64_t number
        cdef int32_t i
        if self.named_categories:
            return _strings(names)
        for i in range(names.count):
            memcpy(&number, names.text + names.start[i], 8)
            numbers.append(number)
        return numbers

    def columns(self) -> tuple[Column, Column, Column, Column, Column, Column]:
        """Return the image sizes, label, box as written, area, score and four flags.

        The area is NaN if there is none. The scan is empty afterwards.
        """
        cdef Objects *to = &self.objects
        cdef Py_ssize_t count = self.rows
        self.rows = self.room = 0
        return (
            take(<void **>&self.sizes, self.line_count, 2, 8, b"d"),
            take(<void **>&to.labels, count, 1, 4, b"i"),
            take(<void **>&to.boxes, count, 4, 8, b"d"),
            take(<void **>&to.areas, count, 1, 8, b"d"),
            take(<void **>&to.scores, count, 1, 8, b"d"),
            take(<void **>&to.flags, count, 4, 1, b"?"),
        )


def find_record(bytes block) -> int:
    """Return a likely start of an object in the middle of a list; -1 if there is none.

    It is the first brace after a closing brace and a comma. It may be in a string or a nested
    list, which only a scan of the bytes before reveals.
    """
    cdef Bytes begin = block
    cdef Bytes end = begin + len(block), p = skip_space(begin)
    while p < end:
        if p[0] == c'}':
            p = skip_space(p + 1)
            if p[0] != c',':
                continue
            p = skip_space(p + 1)
            if p[0] == c'{':
                return p - begin
        else:
            p = skip_space(p + 1)
    return -1


def class_names(bytes categories) -> dict[Name, str | None] | None:
    """Return the category names by ascending id; None if any is irregular.

    Parameters
    ----------
    categories : bytes
        A valid list, from a `TruthScan`.

    Returns
    -------
    dict of int to str or None
        None for a category without a name.
    """
    cdef bytes padded = categories + bytes(PADDING)
    cdef Bytes p = padded
    cdef Cursor cursor
    cdef Shape shape
    cdef Row row
    cdef dict names = {}
    cursor.end = p + len(categories)
    cursor.deepest = 64
    cursor.keys = 0
    shape.count = 0
    memset(&row.shapes, 0, sizeof(Shapes))
    memset(&row.poses, 0, sizeof(Poses))
    p = skip_space(p + 1)
    while p[0] != c']':
        p = read_record(&cursor, &shape, &row, CATEGORY, p, 3)
        if p == NULL or not row.seen & (1 << <int>ID) or row.id in names:
            return None
        if row.id_text.at != NULL or row.seen & (1 << <int>NAME) and row.name.escapes:
            return None
        names[row.id] = (
            row.name.at[: row.name.length].decode() if row.seen & (1 << <int>NAME) else None
        )
        p = skip_space(p)
        if p[0] == c',':
            p = skip_space(p + 1)
    return dict(sorted(names.items()))


def nesting(bytes text) -> int:
    """Return the maximum nesting depth of JSON text.

    Brackets in strings do not count. For invalid JSON, the result is arbitrary.
    """
    cdef Bytes p = text
    cdef Bytes end = p + len(text)
    cdef Py_ssize_t depth = 0, deepest = 0
    cdef bint inside = False
    with nogil:
        while p < end:
            if inside:
                if p[0] == c'\\':
                    p += 1
                elif p[0] == c'"':
                    inside = False
            elif p[0] == c'"':
                inside = True
            elif p[0] == c'[' or p[0] == c'{':
                depth += 1
                deepest = max(deepest, depth)
            elif p[0] == c']' or p[0] == c'}':
                depth -= 1
            p += 1
    return deepest


CAN_SPLIT: bool = bool(AT_ONCE)
"""True if two threads can read one file at different offsets."""


cdef struct Ordered:
    int64_t id
    Py_ssize_t row


cdef int _compare(const void *a, const void *b) noexcept nogil:
    cdef int64_t x = (<const Ordered *>a).id, y = (<const Ordered *>b).id
    return (x > y) - (x < y)


cdef struct Truth:
    int64_t *ids
    int64_t *images
    int64_t *categories
    double *corners
    double *box_areas
    double *areas
    uint8_t *crowd
    uint8_t *ignore
    uint8_t *group_of


cdef struct Listed:
    # P pairs of image id and category id.
    int64_t *images
    int64_t *categories
    Py_ssize_t count, room, lists


cdef class TruthScan(_Scan):
    """Scanner of an instances file; parameters as in `_Scan`.

    Attributes
    ----------
    without_id, id_zero, without_area, without_crowd : int
        Number of such annotations.
    zero_row : int
        Row of the annotation with id 0, if `id_zero` is not 0.
    other_ids : int
        Number of ids of annotations that are not written as an integer; and of their images and
        categories, neither as an integer nor a string.
    keeps_ids : bool
        If True, keep the annotation ids for `ids`.
    begin_offset, end_offset : int
        File offsets of the list of annotations.
    """

    cdef Truth truth
    cdef Listed[2] listed       # negative, not exhaustive
    cdef int64_t *image_ids
    cdef double *sizes
    cdef Py_ssize_t image_count, image_room
    cdef bint found_images, found_annotations, found_categories
    cdef IdTable numbers        # of the images
    cdef list names             # sorted image ids, if they are strings
    cdef readonly Py_ssize_t without_id, id_zero, zero_row, without_area, without_crowd
    cdef readonly Py_ssize_t other_ids, with_attributes
    cdef readonly uint64_t begin_offset, end_offset
    cdef public bint keeps_ids

    def __dealloc__(self):
        cdef int i
        free(self.image_ids)
        free(self.sizes)
        free(self.truth.ids)
        free(self.truth.images)
        free(self.truth.categories)
        free(self.truth.corners)
        free(self.truth.box_areas)
        free(self.truth.areas)
        free(self.truth.crowd)
        free(self.truth.ignore)
        free(self.truth.group_of)
        for i in range(2):
            free(self.listed[i].images)
            free(self.listed[i].categories)

    def run(self) -> bool:
        """Scan the file; return True if it is regular."""
        cdef bint regular
        self.numbers = IdTable.__new__(IdTable)
        with nogil:
            regular = self.document()
            free(self.bytes)
            self.bytes = NULL
        self.check()
        regular = regular and (self.named_images == 0 or self.rank_images())
        with nogil:
            self.regular = regular and self.sort_images() and self.check_ids()
        return self.regular

    cdef bint document(self) noexcept nogil:
        if not self.begin() or self.next() != c'{':
            return False
        self.at += 1
        return (
            self.members() and self.found_images and self.found_annotations
            and self.found_categories and self.rows > 0 and self.finish()
        )

    cdef bint member(self, Part part, bint array) noexcept nogil:
        if part == IMAGES:
            self.found_images = True
            self.at += 1
            return array and self.array(IMAGE, 2) != False
        if part == ANNOTATIONS:
            self.found_annotations = True
            self.begin_offset = self.offset(self.bytes + self.at)
            self.at += 1
            if not array or self.array(ANNOTATION, 2) == False:
                return False
            self.end_offset = self.offset(self.bytes + self.at)
            return True
        if part == CATEGORIES:
            self.found_categories = True
            if not array:
                return False
        return _Scan.member(self, part, array)

    cdef bint rank_images(self):
        """Replace string ids by their index among the sorted image ids."""
        cdef Py_ssize_t count = self.rows + self.image_count, i
        cdef IdTable ranks
        cdef list names
        if self.named_images != count or self.listed[0].count or self.listed[1].count:
            return False
        try:
            names = _strings(&self.image_names)
        except UnicodeError:
            return False
        self.names = sorted({names[self.image_ids[i]] for i in range(self.image_count)})
        ranks = _numbering(&self.image_names, count, count, self.names)
        for i in range(self.image_count):
            self.image_ids[i] = ranks.number(self.image_ids[i])
        for i in range(self.rows):
            self.truth.images[i] = ranks.number(self.truth.images[i])
        return True

    cdef bint commit(self, Kind kind) noexcept nogil:
        if kind == ANNOTATION:
            return self.commit_annotation()
        if kind == IMAGE:
            return self.commit_image()
        return True

    cdef bint commit_image(self) noexcept nogil:
        cdef Py_ssize_t i = self.image_count
        cdef uint32_t seen = self.row.seen
        if not seen & (1 << <int>ID) or i == self.most_records:
            return False
        if i == self.image_room:
            self.image_room = max(2 * i, <Py_ssize_t>1024)
            if not (grow(<void **>&self.image_ids, self.image_room, sizeof(int64_t))
                    and grow(<void **>&self.sizes, self.image_room, 2 * sizeof(double))):
                return False
        self.image_ids[i] = self.row.id
        self.sizes[2 * i] = self.row.width if seen & (1 << <int>WIDTH) else NAN
        self.sizes[2 * i + 1] = self.row.height if seen & (1 << <int>HEIGHT) else NAN
        # As in the fallback reader, an invalid size is unknown.
        if self.sizes[2 * i] <= 0 or self.sizes[2 * i] >= 2.0**53:
            self.sizes[2 * i] = NAN
        if self.sizes[2 * i + 1] <= 0 or self.sizes[2 * i + 1] >= 2.0**53:
            self.sizes[2 * i + 1] = NAN
        self.image_count = i + 1
        if seen >> <int>NEGATIVE and not self.commit_lists(seen):
            return False
        return _identify(
            &self.row.id_text, &self.image_names, &self.named_images, &self.image_ids[i])

    cdef bint commit_lists(self, uint32_t seen) noexcept nogil:
        """Append the category lists of the image; False if an id is not an integer."""
        cdef int i
        cdef Listed *to
        cdef Bytes p
        cdef Bytes failed
        for i in range(2):
            if not seen & (1 << (<int>NEGATIVE + i)):
                continue
            to = &self.listed[i]
            to.lists += 1
            p = self.row.listed[i]
            if p[0] != c'[' or self.row.id_text.at != NULL:
                return False
            p = skip_space(p + 1)
            while p[0] != c']':
                if to.count == to.room:
                    to.room = max(2 * to.room, <Py_ssize_t>1024)
                    if not (grow(<void **>&to.images, to.room, sizeof(int64_t))
                            and grow(<void **>&to.categories, to.room, sizeof(int64_t))):
                        return False
                p = read_integer(p, &failed, &to.categories[to.count])
                if p == NULL or to.count == self.most_records:
                    return False
                to.images[to.count] = self.row.id
                to.count += 1
                p = skip_space(p)
                if p[0] == c',':
                    p = skip_space(p + 1)
        return True

    cdef bint commit_annotation(self) noexcept nogil:
        cdef Py_ssize_t i = self.rows
        cdef Row *row = &self.row
        cdef Truth *to = &self.truth
        cdef uint32_t seen = row.seen
        cdef uint32_t required = 1 << <int>IMAGE_ID | 1 << <int>CATEGORY_ID
        required |= 1 << <int>(SEGMENTATION if row.shapes.enabled else BBOX)
        if seen & required != required or i == self.most_records:
            return False
        if i == self.room and not self.enlarge():
            return False
        if not (self.commit_shape() and self.commit_pose(True)):
            return False
        if not seen & (1 << <int>BBOX):     # the box comes from the mask
            row.box = [0.0, 0.0, NAN, NAN]
        to.box_areas[i] = put_corners(row, to.corners + 4 * i)
        to.areas[i] = to.box_areas[i]
        if seen & (1 << <int>AREA):
            if row.area < 0 and row.area != to.box_areas[i]:    # of a negative width or height
                return False
            to.areas[i] = row.area
        else:
            self.without_area += 1
        to.crowd[i] = row.crowd if seen & (1 << <int>ISCROWD) else 0
        self.without_crowd += not seen & (1 << <int>ISCROWD)
        to.ignore[i] = row.ignore if seen & (1 << <int>IGNORE) else 0
        to.group_of[i] = row.group_of if seen & (1 << <int>ISGROUPOF) else 0
        self.with_attributes += seen >> <int>ATTRIBUTES & 1
        to.images[i] = row.image
        to.categories[i] = row.category
        self.other_ids += not (row.image_text.whole or row.image_text.at != NULL)
        self.other_ids += not (row.category_text.whole or row.category_text.at != NULL)
        if seen & (1 << <int>ID):
            to.ids[i - self.without_id] = row.id
            self.other_ids += not row.id_text.whole
            if row.id_text.at != NULL:
                # Ids are only compared: on equal hashes, the fallback reader decides.
                to.ids[i - self.without_id] = <int64_t>hash_of(row.id_text.at, row.id_text.length)
                if row.id_text.escapes:
                    return False
            elif row.id == 0:
                self.id_zero += 1
                self.zero_row = i
        else:
            self.without_id += 1
        self.rows = i + 1
        return (
            _identify(&row.image_text, &self.image_names, &self.named_images, &to.images[i])
            and _identify(
                &row.category_text, &self.category_names, &self.named_categories,
                &to.categories[i])
        )

    cdef bint enlarge(self) noexcept nogil:
        cdef Py_ssize_t room = max(2 * self.room, <Py_ssize_t>8192)
        cdef Truth *to = &self.truth
        self.room = room
        return (
            grow(<void **>&to.ids, room, sizeof(int64_t))
            and grow(<void **>&to.images, room, sizeof(int64_t))
            and grow(<void **>&to.categories, room, sizeof(int64_t))
            and grow(<void **>&to.corners, room, 4 * sizeof(double))
            and grow(<void **>&to.box_areas, room, sizeof(double))
            and grow(<void **>&to.areas, room, sizeof(double))
            and grow(<void **>&to.crowd, room, 1)
            and grow(<void **>&to.ignore, room, 1)
            and grow(<void **>&to.group_of, room, 1)
        )

    cdef bint sort_images(self) noexcept nogil:
        """Sort the images by id, and replace the ids of annotations by indices."""
        cdef Py_ssize_t count = self.image_count, i
        cdef Ordered *order
        cdef double *sizes
        if not ascend(self.image_ids, count):
            order = <Ordered *>malloc(max(count, 1) * sizeof(Ordered))
            sizes = <double *>malloc(max(count, 1) * 2 * sizeof(double))
            if order == NULL or sizes == NULL:
                free(order)
                free(sizes)
                return False
            for i in range(count):
                order[i].id = self.image_ids[i]
                order[i].row = i
            qsort(order, count, sizeof(Ordered), _compare)
            for i in range(count):
                self.image_ids[i] = order[i].id
                sizes[2 * i] = self.sizes[2 * order[i].row]
                sizes[2 * i + 1] = self.sizes[2 * order[i].row + 1]
            free(order)
            free(self.sizes)
            self.sizes = sizes
            # Equal ids are now adjacent.
            if not ascend(self.image_ids, count):
                return False
        if not self.numbers.build(self.image_ids, count):
            return False
        return renumber(self.truth.images, self.rows, self.numbers) == 0

    cdef bint check_ids(self) noexcept nogil:
        """Return True if all annotation ids are distinct; free them unless kept."""
        cdef Py_ssize_t count = self.rows - self.without_id
        cdef int64_t *copy = NULL
        cdef bint distinct
        if self.keeps_ids:
            copy = <int64_t *>malloc(max(count, 1) * sizeof(int64_t))
            if copy == NULL:
                return False
            memcpy(copy, self.truth.ids, count * sizeof(int64_t))
        distinct = ascend(self.truth.ids, count) or are_distinct(self.truth.ids, count)
        free(self.truth.ids)
        self.truth.ids = copy
        return distinct

    def ids(self) -> Column:
        """Return the annotation ids, all integers; call before `columns`, and once."""
        return take(<void **>&self.truth.ids, self.rows, 1, 8, b"q")

    def lists(self, list categories: list[Name]) -> tuple[tuple[int, Column, Column], ...]:
        """Return the category lists of the images, as indices of these category ids.

        Returns
        -------
        tuple of tuples
            For the negative and the not exhaustive list: the number of images with one, and the
            columns image and category, -1 if unknown. They are empty afterwards.
        """
        cdef IdTable table = IdTable(categories if not self.named_categories else ())
        cdef list columns = []
        cdef Listed *of
        cdef int i
        for i in range(2):
            of = &self.listed[i]
            with nogil:
                renumber(of.images, of.count, self.numbers)
                renumber(of.categories, of.count, table)
            columns.append((
                of.lists,
                take(<void **>&of.images, of.count, 1, 4, b"i"),
                take(<void **>&of.categories, of.count, 1, 4, b"i"),
            ))
            of.count = of.room = 0
        return tuple(columns)

    def columns(self, list categories: list[Name]) -> "tuple[list[Name], *tuple[Column, ...]] | None":
        """Return the columns, with categories as indices of these ids.

        Returns
        -------
        tuple or None
            A list of the image ids, ascending; image_sizes, image, label, corners, box_area,
            area, crowd, ignore, group_of; None if a category is unknown. The scan is empty
            afterwards.

        Raises
        ------
        TypeError, OverflowError, UnicodeError
            If ids have mixed types, exceed 64 bits, or are invalid text.
        """
        cdef Py_ssize_t count = self.rows, i
        cdef Truth *to = &self.truth
        cdef Py_ssize_t unknown
        cdef IdTable table = _numbering(
            &self.category_names, self.named_categories, count, categories)
        with nogil:
            unknown = renumber(to.categories, count, table)
        if unknown:
            return None
        self.rows = self.room = 0
        return (
            self.names or [self.image_ids[i] for i in range(self.image_count)],
            take(<void **>&self.sizes, self.image_count, 2, 8, b"d"),
            take(<void **>&to.images, count, 1, 4, b"i"),
            take(<void **>&to.categories, count, 1, 4, b"i"),
            take(<void **>&to.corners, count, 4, 8, b"d"),
            take(<void **>&to.box_areas, count, 1, 8, b"d"),
            take(<void **>&to.areas, count, 1, 8, b"d"),
            take(<void **>&to.crowd, count, 1, 1, b"?"),
            take(<void **>&to.ignore, count, 1, 1, b"?"),
            take(<void **>&to.group_of, count, 1, 1, b"?"),
        )
