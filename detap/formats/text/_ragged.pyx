"""Read lines of a word and numbers, such as ``dog .9 10 20 30 40``, into columns.

Regular lines are read here: an accepted word, an expected number of decimal numbers, and perhaps a
last word. A Python function reads every other line, and so defines what is valid.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp

from detap.formats.reading._bytes cimport is_digit
from detap.formats.reading._names cimport names_close, names_find, names_texts
from detap.tables._columns cimport Buffer, put, put_integer, put_number, take

import numpy as np

cdef double LARGE = 1e150   # of smaller numbers, neither a sum nor an area overflows


cdef inline const char *_skip_blanks(const char *at, const char *end) noexcept:
    while at < end and (at[0] == c' ' or at[0] == c'\t'):
        at += 1
    return at


cdef inline const char *_skip_word(const char *at, const char *end) noexcept:
    while at < end and <uint8_t>at[0] > 32 and at[0] != 127:
        at += 1
    return at


cdef class RowColumns:
    """Rows with a file, a line, a word, a flag and any number of numbers."""

    def __dealloc__(self):
        names_close(&self.words)
        free(self.rows.at)
        free(self.ends.at)
        free(self.numbers.at)

    def __len__(self) -> int:
        return self.rows.count

    def add(
        self, int32_t file, int32_t line, bytes word, object numbers: Iterable[float], int32_t flag
    ) -> None:
        """Append a row."""
        cdef int32_t name = names_find(&self.words, word, len(word), True)
        cdef double value
        cdef bint fine = name >= 0
        for value in numbers:
            fine = fine and put_number(&self.numbers, value)
        if not fine or not self.end_row(file, line, name, flag):
            raise MemoryError

    cdef bint end_row(self, int32_t file, int32_t line, int32_t word, int32_t flag) noexcept nogil:
        """Complete a row of the last numbers; False if out of memory."""
        cdef Row *row = <Row *>put(&self.rows, sizeof(Row))
        if row == NULL:
            return False
        row[0] = Row(file, line, word, flag)
        return put_integer(&self.ends, self.numbers.count)

    cdef void cut(self, Py_ssize_t rows) noexcept nogil:
        """Drop all but the first rows, and the numbers of a row that was not completed."""
        self.rows.count = self.ends.count = rows
        self.numbers.count = (<int64_t *>self.ends.at)[rows - 1] if rows else 0

    def columns(self) -> tuple[
        NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32],
        NDArray[np.int64], NDArray[np.float64], list[bytes],
    ]:
        """Return the file, line, word index, flag and end of each row, all numbers, and the words.

        The rows are cleared.
        """
        heads = np.asarray(take(<void **>&self.rows.at, self.rows.count, 4, 4, b"i"))
        ends = np.asarray(take(<void **>&self.ends.at, self.ends.count, 1, 8, b"q"))
        numbers = np.asarray(take(<void **>&self.numbers.at, self.numbers.count, 1, 8, b"d"))
        self.rows = self.ends = self.numbers = Buffer(NULL, 0, 0)
        return (*np.ascontiguousarray(heads.T), ends, numbers, names_texts(&self.words))


cdef class RaggedLines(RowColumns):
    """The rows of the files read so far.

    Parameters
    ----------
    odd : callable
        Returns the word, the numbers and the flag of a line that is not regular, or None to skip
        it, from the file, the line number and the line. It may raise an exception.
    accept : callable
        Returns True if regular lines may have a word; called once for each word that is accepted.
    counts : tuple of int
        One or two allowed numbers of numbers in a line. If empty, any number is allowed, and the
        flag is set if the last number is digits only.
    lead : int
        Numbers before the word.
    last : tuple of bytes
        Optional last words of a line: the one that clears the flag, and the one that sets it.
    """

    cdef object odd, accept
    cdef Py_ssize_t first, second, lead
    cdef bytes unflagged, flagged

    def __cinit__(
        self, object odd: Callable[[int, int, bytes], tuple[bytes, list[float], bool] | None],
        object accept: Callable[[bytes], bool], *, tuple counts: tuple[int, ...], Py_ssize_t lead=0,
        tuple last: tuple[bytes, ...] = (),
    ):
        self.odd = odd
        self.accept = accept
        self.first, self.second = (counts[0], counts[len(counts) - 1]) if counts else (0, 0)
        self.lead = lead
        if last:
            self.unflagged, self.flagged = last

    def read(self, bytes data, int32_t file, Py_ssize_t most) -> None:
        """Append the rows of a file, until there are more than `most`; none if `odd` raises."""
        cdef Py_ssize_t rows = self.rows.count
        cdef const char *at = data
        cdef const char *end = at + len(data)
        cdef const char *stop
        cdef const char *behind
        cdef int32_t line = 0
        try:
            while at < end and self.rows.count <= most:
                line += 1
                stop = <const char *>memchr(at, c'\n', end - at)
                stop = end if stop == NULL else stop
                behind = stop - 1 if stop > at and (stop - 1)[0] == c'\r' else stop
                if not self.add_regular(at, behind, file, line):
                    self.cut(self.rows.count)
                    row = self.odd(file, line, at[:behind - at])
                    if row is not None:
                        self.add(file, line, *row)
                at = stop + 1
        except BaseException:
            self.cut(rows)
            raise

    cdef int add_regular(
        self, const char *at, const char *end, int32_t file, int32_t line
    ) except -1:
        """Append a line if it is regular; return 1 if it is, or is blank, and else 0."""
        cdef const char *word
        cdef Py_ssize_t column = 0, first = self.numbers.count
        cdef int32_t name = -1
        cdef bint flag = False
        cdef double value
        at = _skip_blanks(at, end)
        if at == end:
            return True
        # The beginning of other kinds of files: merge markers, JSON, HTML, PDF.
        if at[0] in (c'<', c'=', c'>', c'[', c'{', c'%'):
            return False
        while at < end:
            if column == self.lead:
                word = at
                at = _skip_word(at, end)
                name = names_find(&self.words, word, at - word, False)
                if name < 0 and at > word and self.accept(word[:at - word]):
                    name = names_find(&self.words, word, at - word, True)
                if name < 0:
                    return False
            elif self.flagged is not None and column == self.first + 1:
                flag = _is(at, end, self.flagged)
                if not flag and not _is(at, end, self.unflagged):
                    return False
                at = _skip_word(at, end)
            else:
                word = at
                if not scan_number(at, end, &at, &value) or fabs(value) >= LARGE:
                    return False
                if not put_number(&self.numbers, value):
                    return False
                if self.first == 0:
                    while word < at and is_digit(word[0]):
                        word += 1
                    flag = word == at
            word = at
            at = _skip_blanks(at, end)
            if at == word and at < end:
                return False
            column += 1
        column = self.numbers.count - first
        if name < 0 or column == 0 or (self.first > 0 and column not in (self.first, self.second)):
            return False
        return self.end_row(file, line, name, flag)


cdef bint _is(const char *at, const char *end, bytes word) noexcept:
    """Return True if the next word is this one."""
    cdef Py_ssize_t length = _skip_word(at, end) - at
    return length == len(word) and memcmp(at, <const char *>word, length) == 0
