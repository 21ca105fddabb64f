"""Scan lines of a CSV of boxes straight into columns, a block after the other.

Only regular lines are read: fields without quotes, in ASCII, numbers in plain decimal with points.
A block with anything else, or with what could be a fault, is declined as a whole, and `rows.py`
reads it with care. What is read here is what is read there, to the last bit.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memchr

from detap.formats.reading._names cimport Names, names_close, names_find, names_open
from detap.formats.text._folder_scan cimport (
    Rows, rows_close, rows_open, rows_reserve, scan_number,
)
from detap.tables._columns cimport take

import numpy as np


cdef enum:
    MOST_COLUMNS = 256
    # What a column holds; numbers from 0 on are places among the numbers of a row.
    LEFT_ALONE = -1
    IMAGE = -2
    LABEL = -3
    GROUP = -4


cdef inline const char *_field(const char *at, const char *end) noexcept nogil:
    """Return what is behind a field of plain characters: a comma, or the line's end."""
    while at < end and at[0] != c',' and 31 < <uint8_t>at[0] < 127 and at[0] != c'"':
        at += 1
    return at


cdef class Scanner:
    """The rows of a file so far.

    Parameters
    ----------
    columns : list of int
        What each column holds: the place of a number among those of a row, of which the last four
        are a box; -1 for nothing that counts, -2 for the image, -3 for the label, -4 for whether
        the box is of a group.
    numbers : int
        How many numbers a row has.
    low, high : float
        Between which the numbers of a box lie.
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
        """Append the rows of whole lines, each with its end; False declines them all."""
        cdef const char *at = lines
        cdef const char *end = at + len(lines)
        cdef size_t before = self.rows.count
        cdef bint fine
        with nogil:
            fine = self._lines(at, end)
        if not fine:
            self.rows.count = before
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
                    if role != LEFT_ALONE and not self._take(role, at, behind - at):
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
        """Keep a word of the row that is being read; False where it is not regular."""
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
        """Append a row that was read with care; its group is 0, 1, or 2 where it is unknown."""
        cdef Rows *rows = &self.rows
        cdef int32_t of_image = names_find(&self.images, image, len(image), True)
        cdef int32_t of_label = names_find(&self.labels, label, len(label), True)
        cdef int at
        if of_image < 0 or of_label < 0 or not rows_reserve(rows):
            raise MemoryError
        rows.file[rows.count] = of_image
        rows.name[rows.count] = of_label
        rows.flag[rows.count] = group
        for at in range(rows.width):
            rows.values[rows.count * rows.width + at] = numbers[at]
        rows.count += 1

    def __len__(self) -> int:
        return self.rows.count

    @property
    def has_points(self) -> bool:
        """Whether any number that was scanned has a decimal point."""
        return self.points

    def columns_of_rows(self) -> tuple[
        NDArray[np.int32], NDArray[np.int32], list[bytes], list[bytes], NDArray[np.uint8],
        NDArray[np.float64],
    ]:
        """Return all rows, which are gone afterwards.

        Returns
        -------
        image, label : (N,) int32 array
            Index into the words; of a block that was declined some may have no row.
        images, labels : list of bytes
        group : (N,) uint8 array
            0, 1, or 2 where it is unknown.
        numbers : (N, width) float64 array
        """
        cdef Rows *rows = &self.rows
        cdef size_t count = rows.count
        rows.count = rows.room = 0
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
