"""Decode the `segmentation` and `keypoints` of COCO records, kept as JSON by `Fields.spans`.

Python checks values of an unusual type and invalid ones, and returns plain JSON to read instead: see
`outlines.py`.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free

from detap.formats.json._grammar cimport Cursor, skip_space, skip_string
from detap.formats.reading._bytes cimport Bytes, is_word
from detap.formats.reading._numbers cimport read_integer, read_number
from detap.tables._columns cimport Buffer, put, put_integer, put_number, take
from detap.tables._runs cimport SOUND, Runs, decode, put_run


cdef enum:
    FARTHEST = 100000000        # as `tables.columns.FARTHEST`


cdef struct Row:
    int64_t height, width       # of RLE; 0 for lists of numbers, -1 without a value
    int64_t runs, rings         # the ends of its runs and lists


cdef class Outlines:
    """Segmentations or keypoints of rows, one after the other.

    `listed` counts polygons and uncompressed RLE. `keypoints` are one list in a row.
    """

    cdef Runs runs
    cdef Buffer points, rings, rows     # float64 pixels; the end of each list; `Row`
    cdef int64_t height, width          # of the current row
    cdef bint is_listed, keypoints
    cdef readonly Py_ssize_t listed

    def __cinit__(self, bint keypoints=False):
        self.keypoints = keypoints

    def __dealloc__(self):
        free(self.runs.at)
        free(self.points.at)
        free(self.rings.at)
        free(self.rows.at)

    def read(self, Py_ssize_t first, bytes text, bytes ends) -> int:
        """Decode the spans of the rows from `first`, those that are left.

        `text` is the JSON of the spans, each with a comma behind, and padded.
        Return an odd one, of which the caller reads another span, or -1.
        """
        cdef const int64_t *stops = <const int64_t *><const char *>ends
        cdef Py_ssize_t row, begin, end, runs, rings, points, odd = -1, count = len(ends) // 8
        cdef Row *ended
        cdef Bytes spans = text
        cdef Cursor cursor
        with nogil:
            while self.rows.count < first + count:
                row = self.rows.count - first
                begin = stops[row - 1] if row > 0 else 0
                end = stops[row] if row >= 0 else 0
                self.height = self.width = self.is_listed = 0
                runs, rings, points = self.runs.count, self.rings.count, self.points.count
                cursor.end = spans + end
                if end <= begin:
                    self.height = -1
                elif not self.decode(&cursor, spans + begin):
                    self.runs.count, self.rings.count, self.points.count = runs, rings, points
                    odd = self.rows.count
                    break
                ended = <Row *>put(&self.rows, sizeof(Row))
                if ended == NULL:
                    with gil:
                        raise MemoryError
                ended[0] = Row(self.height, self.width, self.runs.count, self.rings.count)
                self.listed += self.is_listed
        return odd

    def columns(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return `Row` (N, 4), runs, ends of lists and their numbers; empty afterwards."""
        return (
            take(<void **>&self.rows.at, self.rows.count, 4, 8, b"q"),
            take(<void **>&self.runs.at, self.runs.count, 1, 4, b"I"),
            take(<void **>&self.rings.at, self.rings.count, 1, 8, b"q"),
            take(<void **>&self.points.at, self.points.count, 1, 8, b"d"),
        )

    # --- one value; its syntax was checked

    cdef bint decode(self, Cursor *cursor, Bytes p) noexcept nogil:
        if self.keypoints:
            return (
                self.read_numbers(cursor, p) != NULL
                and put_integer(&self.rings, self.points.count)
            )
        self.is_listed = p[0] == c'['
        if self.is_listed:
            return self.read_polygons(cursor, p + 1)
        return p[0] == c'{' and self.read_rle(cursor, p)

    cdef Bytes read_numbers(self, Cursor *cursor, Bytes p) noexcept nogil:
        """Read a list of pixels."""
        cdef double value
        if p[0] != c'[':
            return NULL
        while True:
            p = read_number(skip_space(p + 1), cursor.end, &cursor.failed, &value)
            if p == NULL or not fabs(value) <= FARTHEST or not put_number(&self.points, value):
                return NULL
            p = skip_space(p)
            if p[0] == c']':
                return p + 1

    cdef bint read_polygons(self, Cursor *cursor, Bytes p) noexcept nogil:
        """Read [[x, y, x, y, x, y, ...], ...]; `p` is after the first bracket."""
        cdef Py_ssize_t before = self.rings.count, first, count
        while True:
            first = self.points.count
            p = self.read_numbers(cursor, skip_space(p))
            if p == NULL:
                return False
            count = self.points.count - first
            if count & 1 or count < 6 and self.rings.count == before:
                return False
            if count < 6:
                self.points.count = first   # two points have no area
            elif not put_integer(&self.rings, self.points.count):
                return False
            p = skip_space(p)
            if p[0] == c']':
                return True
            p += 1

    cdef bint read_rle(self, Cursor *cursor, Bytes p) noexcept nogil:
        cdef int64_t total = 0
        cdef Py_ssize_t i, start = self.runs.count
        cdef Bytes key
        cdef bint escapes, is_size, has_size = False, has_counts = False
        while True:
            key = skip_space(p + 1)
            if key[0] != c'"':
                return False
            p = skip_string(cursor, key, &escapes)
            is_size = is_word(key + 1, p - key - 2, b"size", 4)
            if not is_size and not is_word(key + 1, p - key - 2, b"counts", 6):
                return False
            p = skip_space(skip_space(p) + 1)
            if is_size:
                has_size = True
                p = self.read_size(cursor, p)
            else:
                has_counts = True
                p = self.read_counts(cursor, p)
            if p == NULL:
                return False
            p = skip_space(p)
            if p[0] == c'}':
                break
        if not (has_size and has_counts):
            return False
        for i in range(start, self.runs.count):
            total += self.runs.at[i]
        return total == self.height * self.width and total <= <int64_t>0xFFFFFFFF

    cdef Bytes read_counts(self, Cursor *cursor, Bytes p) noexcept nogil:
        """Read run lengths: a string, or a list of integers."""
        cdef Bytes behind
        cdef bint escapes
        cdef int64_t value
        if p[0] == c'"':
            behind = skip_string(cursor, p, &escapes)
            if decode(
                p + 1, behind - p - 2, escapes, <int64_t>0xFFFFFFFF, &self.runs
            ) != SOUND:
                return NULL
            return behind
        if p[0] != c'[':
            return NULL
        self.is_listed = True
        while True:
            p = skip_space(p + 1)
            p = read_integer(p, &cursor.failed, &value)
            if p == NULL or value < 0 or value > <int64_t>0xFFFFFFFF:
                return NULL
            if not put_run(&self.runs, <uint32_t>value):
                return NULL
            p = skip_space(p)
            if p[0] == c']':
                return p + 1

    cdef Bytes read_size(self, Cursor *cursor, Bytes p) noexcept nogil:
        """Read [height, width]."""
        cdef int64_t[2] sides
        cdef int i
        if p[0] != c'[':
            return NULL
        for i in range(2):
            p = skip_space(p + 1)
            p = read_integer(p, &cursor.failed, &sides[i])
            if p == NULL:
                return NULL
            p = skip_space(p)
            if p[0] != (c']' if i else c',') or not 0 < sides[i] < <int64_t>1 << 31:
                return NULL
        self.height, self.width = sides[0], sides[1]
        return p + 1
