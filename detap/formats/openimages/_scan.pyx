"""Scan the lines of a CSV of boxes into columns, block by block.

Only regular lines are read: ASCII fields without quotes, and plain decimal numbers with points. For a
block with anything else, or with a possible fault, the reader falls back to `rows.py`. Both readers
give the same bits.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr

from detap.formats.reading._names cimport (
    Names, names_close, names_find, names_open, names_texts
)
from detap.formats.text._ragged cimport RowColumns, scan_number
from detap.tables._columns cimport put_number


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


cdef class Scanner(RowColumns):
    """The rows of a file so far: the word is the label, and the file the index of the image.

    The flag is 0, 1, or 2 for an unknown group flag.

    Parameters
    ----------
    columns : list of int
        The role of each column: the index of a number, of which the last four are the box; -1 for
        unused, -2 for the image, -3 for the label, -4 for the group flag.
    numbers : int
        Numbers per row.
    low, high : float
        Bounds of the numbers of a box.

    Attributes
    ----------
    has_points : bool
        True if a scanned number has a decimal point.
    """

    cdef Names names    # of images
    cdef int[MOST_COLUMNS] roles
    cdef int columns_used, width
    cdef double low, high
    cdef readonly bint has_points

    def __cinit__(self, list columns: list[int], int numbers, double low, double high):
        cdef int at
        names_open(&self.names)
        self.width, self.low, self.high = numbers, low, high
        self.columns_used = len(columns) if len(columns) <= MOST_COLUMNS else 0
        for at in range(self.columns_used):
            self.roles[at] = columns[at]

    def __dealloc__(self):
        names_close(&self.names)

    def scan(self, bytes lines, int32_t line) -> bool:
        """Append the rows of complete lines, the first of which is `line`; False if one is irregular."""
        cdef const char *at = lines
        cdef const char *end = at + len(lines)
        cdef Py_ssize_t rows = self.rows.count
        cdef bint fine
        with nogil:
            fine = self.read_lines(at, end, line)
        if not fine:
            self.cut(rows)
        return fine

    cdef bint read_lines(self, const char *at, const char *end, int32_t line) noexcept nogil:
        cdef double *values
        cdef const char *behind = at
        cdef int column, role
        cdef int32_t[3] words   # image, label and flag
        if self.columns_used == 0:
            return False
        while at < end:
            for column in range(self.width):
                if not put_number(&self.numbers, 0):
                    return False
            values = <double *>self.numbers.at + self.numbers.count - self.width
            words[2] = 0
            for column in range(self.columns_used):
                role = self.roles[column]
                if role >= 0:
                    if not scan_number(at, end, &behind, &values[role]):
                        return False
                    if role >= self.width - 4 and not self.low <= values[role] <= self.high:
                        return False
                    self.has_points = self.has_points or memchr(at, c'.', behind - at) != NULL
                else:
                    behind = _field(at, end)
                    if role != UNUSED and not self.take_word(role, at, behind - at, words):
                        return False
                if behind == end:
                    return False
                if column + 1 < self.columns_used:
                    if behind[0] != c',':
                        return False
                    at = behind + 1
            if behind[0] == c'\r' and behind + 1 < end:
                behind += 1
            if behind[0] != c'\n' or not self.end_row(words[0], line, words[1], words[2]):
                return False
            at = behind + 1
            line += 1
        return True

    cdef bint take_word(
        self, int role, const char *word, size_t length, int32_t *words
    ) noexcept nogil:
        """Store a word of the current row; False if it is irregular."""
        if role == GROUP:
            if length == 2 and word[0] == c'-' and word[1] == c'1':
                words[2] = 2
            elif length == 1 and (word[0] == c'0' or word[0] == c'1'):
                words[2] = word[0] == c'1'
            else:
                return length == 0
            return True
        if length == 0 or word[0] == c' ':
            return False
        if role == IMAGE:
            words[0] = names_find(&self.names, word, length, True)
            return words[0] >= 0
        words[1] = names_find(&self.words, word, length, True)
        return words[1] >= 0

    def image(self, bytes name) -> int:
        """Return the index of an image."""
        cdef int32_t number = names_find(&self.names, name, len(name), True)
        if number < 0:
            raise MemoryError
        return number

    def images(self) -> list[bytes]:
        """Return the names of the images, of which some may have no row."""
        return names_texts(&self.names)
