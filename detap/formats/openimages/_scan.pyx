"""Scan the lines of a CSV of boxes into columns, block by block.

Only regular lines are read: ASCII fields without quotes, and plain decimal numbers with points. For a
block with anything else, or with a possible fault, the reader falls back to `rows.py`. Both readers
give the same bits.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memchr

from detap.formats.reading._names cimport Names, names_close, names_find, names_open
from detap.formats.text._rows cimport (
    Rows, rows_close, rows_open, rows_reserve, scan_number,
)
from detap.tables._columns cimport take

import numpy as np


cdef enum:
    MOST_COLUMNS = 256
    # Roles of columns; values from 0 on are indices of a row's numbers.
    UNUSED = -1
    IMAGE = -2
    LABEL = -3
    GROUP = -4


cdef inline const char *_field(const char *at, const char *end) noexcept nogil:
    """Return the end of a field of plain characters."""
    while at < end and at[0] != c',' and 31 < <uint8_t>at[0] < 127 and at[0] != c'"':
        at += 1
    return at


cdef class Scanner:
    """The rows of a file so far.

    Parameters
    ----------
    columns : list of int
        The role of each column: the index of a number, of which the last four are the box; -1 for
        unused, -2 for the image, -3 for the label, -4 for the group flag.
    numbers : int
        Numbers per row.
    low, high : float
        Bounds of the numbers of a box.
    """

    cdef Names images, labels
    cdef Rows rows
    cdef int[MOST_COLUMNS] roles
    cdef int columns
    cdef double low, high
    cdef bint points

    def __cinit__(self, list columns: list[int], int numbers, double low, double high):
        cdef int at
        names_open(&self.images)
        names_open(&self.labels)
        rows_open(&self.rows, numbers)
        self.low, self.high = low, high
        self.columns = len(columns) if len(columns) <= MOST_COLUMNS else 0
        for at in range(self.columns):
            self.roles[at] = columns[at]

    def __dealloc__(self):
        names_close(&self.images)
        names_close(&self.labels)
        rows_close(&self.rows)

    def scan(self, bytes lines) -> bool:
        """Append the rows of complete lines; False if one is irregular."""
        cdef const char *at = lines
        cdef const char *end = at + len(lines)
        cdef size_t count = self.rows.count
        cdef bint fine
        with nogil:
            fine = self._lines(at, end)
        if not fine:
            self.rows.count = count
        return fine

    cdef bint _lines(self, const char *at, const char *end) noexcept nogil:
        cdef Rows *rows = &self.rows
        cdef double *values
        cdef const char *behind = at
        cdef int column, role
        if self.columns == 0:
            return False
        while at < end:
            if not rows_reserve(rows):
                return False
            values = rows.values + rows.count * rows.width
            rows.flag[rows.count] = 0
            for column in range(self.columns):
                role = self.roles[column]
                if role >= 0:
                    if not scan_number(at, end, &behind, &values[role]):
                        return False
                    if role >= rows.width - 4 and not self.low <= values[role] <= self.high:
                        return False
                    self.points = self.points or memchr(at, c'.', behind - at) != NULL
                else:
                    behind = _field(at, end)
                    if role != UNUSED and not self._take(role, at, behind - at):
                        return False
                if behind == end:
                    return False
                if column + 1 < self.columns:
                    if behind[0] != c',':
                        return False
                    at = behind + 1
            if behind[0] == c'\r' and behind + 1 < end:
                behind += 1
            if behind[0] != c'\n':
                return False
            at = behind + 1
            rows.count += 1
        return True

    cdef inline bint _take(self, int role, const char *word, size_t length) noexcept nogil:
        """Store a word of the current row; False if it is irregular."""
        cdef Rows *rows = &self.rows
        cdef int32_t number
        if role == GROUP:
            if length == 2 and word[0] == c'-' and word[1] == c'1':
                rows.flag[rows.count] = 2
            elif length == 1 and (word[0] == c'0' or word[0] == c'1'):
                rows.flag[rows.count] = word[0] == c'1'
            else:
                return length == 0
            return True
        if length == 0 or word[0] == c' ':
            return False
        if role == IMAGE:
            number = names_find(&self.images, word, length, True)
            rows.file[rows.count] = number
        else:
            number = names_find(&self.labels, word, length, True)
            rows.name[rows.count] = number
        return number >= 0

    def add(self, bytes image, bytes label, list numbers: list[float], int group) -> None:
        """Append a row of the fallback reader; `group` is 0, 1, or 2 for unknown."""
        cdef Rows *rows = &self.rows
        cdef int32_t image_index = names_find(&self.images, image, len(image), True)
        cdef int32_t label_index = names_find(&self.labels, label, len(label), True)
        cdef int at
        if image_index < 0 or label_index < 0 or not rows_reserve(rows):
            raise MemoryError
        rows.file[rows.count] = image_index
        rows.name[rows.count] = label_index
        rows.flag[rows.count] = group
        for at in range(rows.width):
            rows.values[rows.count * rows.width + at] = numbers[at]
        rows.count += 1

    def __len__(self) -> int:
        return self.rows.count

    @property
    def has_points(self) -> bool:
        """True if a scanned number has a decimal point."""
        return self.points

    def columns_of_rows(self) -> tuple[
        NDArray[np.int32], NDArray[np.int32], list[bytes], list[bytes], NDArray[np.uint8],
        NDArray[np.float64],
    ]:
        """Return all rows and clear them.

        Returns
        -------
        image, label : (N,) int32 array
            Index into the words; words of an irregular block may have no rows.
        images, labels : list of bytes
        group : (N,) uint8 array
            0, 1, or 2 for unknown.
        numbers : (N, width) float64 array
        """
        cdef Rows *rows = &self.rows
        cdef size_t count = rows.count
        rows.count = rows.capacity = 0
        return (
            np.asarray(take(<void **>&rows.file, count, 1, sizeof(int32_t), b"i")),
            np.asarray(take(<void **>&rows.name, count, 1, sizeof(int32_t), b"i")),
            _words(&self.images),
            _words(&self.labels),
            np.asarray(take(<void **>&rows.flag, count, 1, 1, b"B")),
            np.asarray(take(<void **>&rows.values, count, rows.width, sizeof(double), b"d")),
        )


cdef list _words(const Names *names):
    cdef int64_t at
    return [names.text[names.start[at] : names.start[at + 1]] for at in range(names.count)]
