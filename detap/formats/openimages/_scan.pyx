"""Scan the lines of a CSV of boxes into columns, block by block.

Only regular lines are read: ASCII fields without quotes, and plain decimal numbers with points. A
Python function reads every other line, and so defines what is valid. Both give the same bits.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr

from detap.formats.reading._bytes cimport is_word
from detap.formats.reading._names cimport names_find
from detap.formats.text._ragged cimport RowColumns, scan_number
from detap.tables._columns cimport put_number

import numpy as np


cdef enum:
    # Roles of columns; values from 0 on are indices of a row's numbers.
    UNUSED = -1
    IMAGE = -2
    LABEL = -3
    GROUP = -4


cdef inline const char *_field(const char *at, const char *end) noexcept:
    """Return the end of a field of plain characters."""
    while at < end and at[0] != c',' and 31 < <uint8_t>at[0] < 127 and at[0] != c'"':
        at += 1
    return at


cdef class Scanner(RowColumns):
    """The rows of a file so far: the word is the label, and the file that of the image.

    The flag is 0, 1, or 2 for an unknown group flag. Until the columns are known, no line is
    regular.

    Parameters
    ----------
    odd : callable
        Returns the image, the label, the numbers and the flag of a line that is not regular, or
        None to skip it, from its number and the line. It may raise an exception.
    low, high : float
        Bounds of the numbers of a box.

    Attributes
    ----------
    line : int
        The number of the last line read.
    points, commas : bool
        True if a number has a decimal point, or a decimal comma; then no number has the other.
    """

    cdef object odd
    cdef const int32_t[::1] roles
    cdef int columns, width
    cdef double low, high
    cdef readonly int32_t line
    cdef public bint points, commas

    def __cinit__(
        self, object odd: Callable[[int, bytes], tuple[bytes, bytes, list[float], int] | None],
        double low, double high,
    ):
        self.odd, self.low, self.high = odd, low, high

    def expect(self, list columns: list[int], int numbers) -> None:
        """Set the role of each column, and the number of numbers per row.

        A role is the index of a number, of which the last four are the box; -1 for unused, -2 for
        the image, -3 for the label, -4 for the group flag.
        """
        self.roles, self.columns, self.width = np.array(columns, np.int32), len(columns), numbers

    def read(self, bytes lines) -> None:
        """Append the rows of complete lines."""
        cdef const char *at = lines
        cdef const char *end = at + len(lines)
        cdef const char *stop
        cdef int32_t image
        while at < end:
            self.line += 1
            stop = <const char *>memchr(at, c'\n', end - at)
            stop = end if stop == NULL else stop
            if not self.add_regular(at, stop):
                self.cut(self.rows.count)
                row = self.odd(self.line, at[:stop - at])
                if row is not None:
                    image = names_find(&self.words, row[0], len(row[0]), True)
                    if image < 0:
                        raise MemoryError
                    self.add(image, self.line, *row[1:])
            at = stop + 1

    cdef bint add_regular(self, const char *at, const char *end) noexcept:
        """Append a line; False if it is irregular, and perhaps partly appended."""
        cdef double *values
        cdef const char *behind
        cdef int column, role
        cdef int32_t[3] words   # image, label and flag
        cdef bint points = False
        if self.columns == 0:
            return False
        if end > at and (end - 1)[0] == c'\r':
            end -= 1
        for column in range(self.width):
            if not put_number(&self.numbers, 0):
                return False
        values = <double *>self.numbers.at + self.numbers.count - self.width
        words[2] = 0
        for column in range(self.columns):
            if column > 0:
                if at == end or at[0] != c',':
                    return False
                at += 1
            role = self.roles[column]
            if role >= 0:
                if not scan_number(at, end, &behind, &values[role]):
                    return False
                if role >= self.width - 4 and not self.low <= values[role] <= self.high:
                    return False
                points = points or memchr(at, c'.', behind - at) != NULL
            else:
                behind = _field(at, end)
                if role != UNUSED and not self.take_word(role, at, behind - at, words):
                    return False
            at = behind
        if at != end or (points and self.commas):
            return False
        self.points = self.points or points
        return self.end_row(words[0], self.line, words[1], words[2])

    cdef bint take_word(
        self, int role, const char *word, size_t length, int32_t *words
    ) noexcept:
        """Store a word of the current row; False if it is irregular."""
        cdef int32_t number
        if role == GROUP:
            words[2] = 2 if is_word(word, length, b"-1", 2) else is_word(word, length, b"1", 1)
            return length == 0 or words[2] > 0 or is_word(word, length, b"0", 1)
        if length == 0 or word[0] == c' ':
            return False
        number = names_find(&self.words, word, length, True)
        words[role == LABEL] = number
        return number >= 0
