"""Decode the `segmentation` and `keypoints` of COCO records, kept as JSON by `Fields`.

Values of an unusual type, or that are invalid, go to Python: see `masks.py` and `keypoints.py`.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free

from detap.formats.json._fields cimport Fields
from detap.formats.json._grammar cimport Cursor, skip_space, skip_string
from detap.formats.reading._bytes cimport Bytes, is_digit, is_word
from detap.formats.reading._numbers cimport read_integer, read_number
from detap.tables._columns cimport Column, grow, take
from detap.tables._runs cimport SOUND, Runs, decode, put_run

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


cdef enum:
    FARTHEST = 100000000        # as `tables.columns.FARTHEST`


cdef class Outlines:
    """Segmentations of rows, one after the other.

    Attributes
    ----------
    listed : int
        Number of polygons and uncompressed RLE.
    """

    cdef Runs runs
    cdef double *points
    cdef int64_t *rings         # after the last point of each polygon
    cdef Py_ssize_t points_count, points_room, rings_count, rings_room
    cdef int32_t *sizes
    cdef int64_t *run_start
    cdef int64_t *ring_start
    cdef uint8_t *has           # of all rows
    cdef Py_ssize_t rows, count, room, has_room
    cdef int64_t height, width  # of the current row; 0 for polygons
    cdef bint is_listed         # polygons or uncompressed RLE
    cdef readonly Py_ssize_t listed

    def __dealloc__(self):
        free(self.runs.at)
        free(self.points)
        free(self.rings)
        free(self.sizes)
        free(self.run_start)
        free(self.ring_start)
        free(self.has)

    def read(self, Fields fields, str name) -> int:
        """Decode the spans of the next rows; return the row of an odd one, or -1.

        The caller appends the odd one.
        """
        cdef int field = fields.field(name)
        cdef Py_ssize_t length, odd = -1
        cdef Cursor cursor
        cdef Bytes p
        with nogil:
            while self.rows < fields.rows:
                length = fields.span(field, self.rows, &p)
                cursor.end = p + length + 1
                if length and not self.decode(&cursor, p):
                    odd = self.rows
                    break
                if not self.end_row(length > 0):
                    with gil:
                        raise MemoryError
        return odd

    def append(
        self, int height, int width, rings: Sequence[Sequence[float]],
        runs: Sequence[int] | NDArray[np.uint32] | None, bint is_listed
    ) -> None:
        """Append a segmentation."""
        self.forget()
        self.height, self.width, self.is_listed = height, width, is_listed
        for ring in rings:
            for value in ring:
                self.put_point(value)
            self.put_ring()
        for length in () if runs is None else runs:
            put_run(&self.runs, length)
        self.end_row(True)

    def skip(self) -> None:
        """Append a row without a segmentation."""
        self.forget()
        self.end_row(False)

    cdef void forget(self) noexcept nogil:
        """Drop the values of a row that was not ended."""
        self.runs.count = self.run_start[self.count] if self.count else 0
        self.rings_count = self.ring_start[self.count] if self.count else 0
        self.points_count = 2 * self.rings[self.rings_count - 1] if self.rings_count else 0

    cdef bint end_row(self, bint has) noexcept nogil:
        cdef Py_ssize_t i = self.count
        if self.rows >= self.has_room:
            self.has_room = max(2 * self.has_room, <Py_ssize_t>8192)
            if not grow(<void **>&self.has, self.has_room, 1):
                return False
        self.has[self.rows] = has
        self.rows += 1
        if not has:
            return True
        if not self.reserve():
            return False
        self.sizes[2 * i], self.sizes[2 * i + 1] = <int32_t>self.height, <int32_t>self.width
        self.run_start[i + 1] = self.runs.count
        self.ring_start[i + 1] = self.rings_count
        self.listed += self.is_listed
        self.count = i + 1
        return True

    cdef bint reserve(self) noexcept nogil:
        cdef Py_ssize_t i = self.count
        if i + 1 >= self.room:
            self.room = max(2 * self.room, <Py_ssize_t>8192)
            if not (grow(<void **>&self.sizes, self.room, 2 * sizeof(int32_t))
                    and grow(<void **>&self.run_start, self.room, sizeof(int64_t))
                    and grow(<void **>&self.ring_start, self.room, sizeof(int64_t))):
                return False
        if i == 0:
            self.run_start[0] = self.ring_start[0] = 0
        return True

    def columns(self) -> tuple[Column, ...]:
        """Return the columns, which are empty afterwards.

        Returns
        -------
        tuple
            A flag of each row, and the columns of :class:`detap.tables.masks.Masks` of those with
            one: sizes (0 for polygons), run_start, runs, ring_start, ring_end, points.
        """
        if not self.reserve() or not grow(<void **>&self.has, self.rows + 1, 1):
            raise MemoryError
        self.forget()
        return (
            take(<void **>&self.has, self.rows, 1, 1, b"?"),
            take(<void **>&self.sizes, self.count, 2, 4, b"i"),
            take(<void **>&self.run_start, self.count + 1, 1, 8, b"q"),
            take(<void **>&self.runs.at, self.runs.count, 1, 4, b"I"),
            take(<void **>&self.ring_start, self.count + 1, 1, 8, b"q"),
            take(<void **>&self.rings, self.rings_count, 1, 8, b"q"),
            take(<void **>&self.points, self.points_count // 2, 2, 8, b"d"),
        )

    # --- one segmentation; its syntax was checked

    cdef bint decode(self, Cursor *cursor, Bytes p) noexcept nogil:
        self.forget()
        self.height = self.width = 0
        self.is_listed = p[0] == c'['
        if self.is_listed:
            return self.read_polygons(cursor, p + 1)
        return p[0] == c'{' and self.read_rle(cursor, p)

    cdef bint put_point(self, double value) noexcept nogil:
        if self.points_count == self.points_room:
            self.points_room = max(2 * self.points_room, <Py_ssize_t>4096)
            if not grow(<void **>&self.points, self.points_room, sizeof(double)):
                return False
        self.points[self.points_count] = value
        self.points_count += 1
        return True

    cdef bint put_ring(self) noexcept nogil:
        if self.rings_count == self.rings_room:
            self.rings_room = max(2 * self.rings_room, <Py_ssize_t>512)
            if not grow(<void **>&self.rings, self.rings_room, sizeof(int64_t)):
                return False
        self.rings[self.rings_count] = self.points_count // 2
        self.rings_count += 1
        return True

    cdef bint read_polygons(self, Cursor *cursor, Bytes p) noexcept nogil:
        """Read [[x, y, x, y, x, y, ...], ...]; `p` is after the first bracket."""
        cdef Py_ssize_t before = self.rings_count, first, count
        cdef double value
        while True:
            p = skip_space(p)
            if p[0] != c'[':
                return False
            first = self.points_count
            while True:
                p = skip_space(p + 1)
                p = read_number(p, cursor.end, &cursor.failed, &value)
                if p == NULL or not fabs(value) <= FARTHEST or not self.put_point(value):
                    return False
                p = skip_space(p)
                if p[0] == c']':
                    break
            count = self.points_count - first
            if count & 1 or count < 6 and self.rings_count == before:
                return False
            if count < 6:
                self.points_count = first   # two points have no area
            elif not self.put_ring():
                return False
            p = skip_space(p + 1)
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


cdef class Numbers:
    """Lists of pixels of rows, one after the other."""

    cdef double *values
    cdef int64_t *ends
    cdef Py_ssize_t count, room, rows, rows_room

    def __dealloc__(self):
        free(self.values)
        free(self.ends)

    def read(self, Fields fields, str name) -> int:
        """Decode the spans of the next rows; return the row of an odd one, or -1.

        Without a span, the list is empty. The caller appends or skips the odd one.
        """
        cdef int field = fields.field(name)
        cdef Py_ssize_t length, before, odd = -1
        cdef Cursor cursor
        cdef Bytes p
        with nogil:
            while self.rows < fields.rows:
                length = fields.span(field, self.rows, &p)
                cursor.end = p + length + 1
                before = self.count
                if length and not self.read_list(&cursor, p):
                    self.count = before
                    odd = self.rows
                    break
                self.end_row()
        return odd

    cdef bint read_list(self, Cursor *cursor, Bytes p) noexcept nogil:
        """Read triplets of pixels; v is mostly a digit, which needs no number parser."""
        cdef Py_ssize_t start = self.count
        cdef double value
        if p[0] != c'[':
            return False
        while True:
            p = skip_space(p + 1)
            if is_digit(p[0]) and (p[1] == c',' or p[1] == c']'):
                value = p[0] - 48
                p += 1
            else:
                p = read_number(p, cursor.end, &cursor.failed, &value)
                if p == NULL or not fabs(value) <= FARTHEST:
                    return False
            if not self.put(value):
                return False
            p = skip_space(p)
            if p[0] == c']':
                return (self.count - start) % 3 == 0

    cdef bint put(self, double value) noexcept nogil:
        if self.count == self.room:
            self.room = max(2 * self.room, <Py_ssize_t>32768)
            if not grow(<void **>&self.values, self.room, sizeof(double)):
                return False
        self.values[self.count] = value
        self.count += 1
        return True

    cdef bint end_row(self) noexcept nogil:
        if self.rows == self.rows_room:
            self.rows_room = max(2 * self.rows_room, <Py_ssize_t>8192)
            if not grow(<void **>&self.ends, self.rows_room, sizeof(int64_t)):
                return False
        self.ends[self.rows] = self.count
        self.rows += 1
        return True

    def append(self, values: Sequence[float] = ()) -> None:
        """Append a row."""
        for value in values:
            if not self.put(value):
                raise MemoryError
        if not self.end_row():
            raise MemoryError

    def columns(self) -> tuple[Column, Column]:
        """Return the values and the end of each row's; empty afterwards."""
        if not self.room and not grow(<void **>&self.values, 1, 8):
            raise MemoryError
        if not self.rows and not grow(<void **>&self.ends, 1, 8):
            raise MemoryError
        return (
            take(<void **>&self.values, self.count, 1, 8, b"d"),
            take(<void **>&self.ends, self.rows, 1, 8, b"q"),
        )
