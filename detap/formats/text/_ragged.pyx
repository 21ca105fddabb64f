"""Read lines of a word and numbers, such as ``dog .9 10 20 30 40``, into columns.

Regular lines are read here: an accepted word, an expected number of decimal numbers, and perhaps a
last word. A Python function reads every other line, and so defines what is valid.
"""

from libc.math cimport fabs, floor
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp

from detap.formats.reading._names cimport Names, names_close, names_find, names_open
from detap.formats.text._rows cimport scan_number
from detap.tables._columns cimport grow, take

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


cdef class RaggedLines:
    """The rows of the files read so far.

    Parameters
    ----------
    odd : callable
        Returns the word, the numbers and the flag of a line that is not regular, or None to skip
        it, from the file, the line number and the line. It may raise an exception.
    accept : callable
        Returns True if regular lines may have a word; called once for each word that is accepted.
    counts : tuple of int
        One or two allowed numbers of numbers in a line.
    polygon : int
        If not 0, this number of numbers is allowed too, and every second one above.
    shorter : int
        If not 0, this number of numbers and more are allowed if the last is not whole.
    lead : int
        Numbers before the word.
    last : tuple of bytes
        Optional last words of a line: the one that clears the flag, and the one that sets it.
    """

    cdef object odd, accept
    cdef Names words
    cdef int32_t *file
    cdef int32_t *line
    cdef int32_t *word
    cdef uint8_t *flag
    cdef int64_t *end
    cdef double *numbers
    cdef Py_ssize_t rows, rows_capacity, used, capacity
    cdef Py_ssize_t first, second, polygon, shorter, lead
    cdef bytes unflagged, flagged
    cdef int32_t current

    def __cinit__(
        self, object odd: Callable[[int, int, bytes], tuple[bytes, list[float], bool] | None],
        object accept: Callable[[bytes], bool], *, tuple counts: tuple[int, ...], Py_ssize_t polygon=0,
        Py_ssize_t shorter=0, Py_ssize_t lead=0, tuple last: tuple[bytes, ...] = (),
    ):
        names_open(&self.words)
        self.odd = odd
        self.accept = accept
        self.first, self.second = counts[0], counts[len(counts) - 1]
        self.polygon, self.shorter = polygon, shorter
        self.lead = lead
        if last:
            self.unflagged, self.flagged = last

    def __dealloc__(self):
        names_close(&self.words)
        free(self.file)
        free(self.line)
        free(self.word)
        free(self.flag)
        free(self.end)
        free(self.numbers)

    def __len__(self) -> int:
        return self.rows

    def read(self, bytes data, int32_t file, Py_ssize_t most) -> None:
        """Append the rows of a file, until there are more than `most`; none if `odd` raises."""
        cdef Py_ssize_t rows = self.rows, used = self.used
        cdef const char *at = data
        cdef const char *end = at + len(data)
        cdef const char *stop
        cdef const char *behind
        cdef int32_t line = 0
        self.current = file
        try:
            while at < end and self.rows <= most:
                line += 1
                stop = <const char *>memchr(at, c'\n', end - at)
                stop = end if stop == NULL else stop
                behind = stop - 1 if stop > at and (stop - 1)[0] == c'\r' else stop
                if not self.add_regular(at, behind, line):
                    self.add_odd(at[:behind - at], line)
                at = stop + 1
        except BaseException:
            self.rows, self.used = rows, used
            raise

    cdef int add_regular(self, const char *at, const char *end, int32_t line) except -1:
        """Append a line if it is regular; return 1 if it is, or is blank, and else 0."""
        cdef const char *word
        cdef Py_ssize_t column = 0, used = self.used
        cdef int32_t name = -1
        cdef bint flag = False
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
            elif not self.reserve(used + 1) or not scan_number(at, end, &at, &self.numbers[used]):
                return False
            elif fabs(self.numbers[used]) >= LARGE:
                return False
            else:
                used += 1
            word = at
            at = _skip_blanks(at, end)
            if at == word and at < end:
                return False
            column += 1
        return name >= 0 and self.fits(used - self.used) and self.end_row(name, used, flag, line)

    cdef bint fits(self, Py_ssize_t count) noexcept:
        """Return True if a line may have as many numbers as were read."""
        cdef double last
        if self.shorter > 0 and count >= self.shorter:
            last = self.numbers[self.used + count - 1]
            if last != floor(last):
                return True
        return (
            count == self.first or count == self.second
            or (self.polygon > 0 and count >= self.polygon and (count - self.polygon) % 2 == 0)
        )

    cdef add_odd(self, bytes text, int32_t line):
        """Append a line as `odd` reads it."""
        cdef bytes word
        cdef Py_ssize_t used = self.used
        cdef int32_t name
        row = self.odd(self.current, line, text)
        if row is None:
            return
        word, values, flag = row
        name = names_find(&self.words, word, len(word), True)
        if name < 0 or not self.reserve(used + len(values)):
            raise MemoryError
        for value in values:
            self.numbers[used] = value
            used += 1
        if not self.end_row(name, used, flag, line):
            raise MemoryError

    cdef bint reserve(self, Py_ssize_t count) noexcept:
        """Make space for so many numbers; False if out of memory."""
        cdef Py_ssize_t capacity = count + count // 2 + 4096
        if count <= self.capacity:
            return True
        if not grow(<void **>&self.numbers, capacity, sizeof(double)):
            return False
        self.capacity = capacity
        return True

    cdef bint end_row(self, int32_t name, Py_ssize_t used, bint flag, int32_t line) noexcept:
        """Complete a row whose numbers end at `used`; False if out of memory."""
        cdef Py_ssize_t row = self.rows, capacity = row + row // 2 + 1024
        if row == self.rows_capacity:
            if not (
                grow(<void **>&self.file, capacity, sizeof(int32_t))
                and grow(<void **>&self.line, capacity, sizeof(int32_t))
                and grow(<void **>&self.word, capacity, sizeof(int32_t))
                and grow(<void **>&self.flag, capacity, 1)
                and grow(<void **>&self.end, capacity, sizeof(int64_t))
            ):
                return False
            self.rows_capacity = capacity
        self.file[row] = self.current
        self.line[row] = line
        self.word[row] = name
        self.flag[row] = flag
        self.end[row] = self.used = used
        self.rows = row + 1
        return True

    def columns(self) -> tuple[
        NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_],
        NDArray[np.int64], NDArray[np.float64], list[bytes],
    ]:
        """Return the file, line, word index, flag and end of each row, all numbers, and the words.

        The rows are cleared.
        """
        cdef const Names *words = &self.words
        cdef Py_ssize_t rows = self.rows, used = self.used
        cdef int32_t at
        columns = (
            take(<void **>&self.file, rows, 1, sizeof(int32_t), b"i"),
            take(<void **>&self.line, rows, 1, sizeof(int32_t), b"i"),
            take(<void **>&self.word, rows, 1, sizeof(int32_t), b"i"),
            take(<void **>&self.flag, rows, 1, 1, b"?"),
            take(<void **>&self.end, rows, 1, sizeof(int64_t), b"q"),
            take(<void **>&self.numbers, used, 1, sizeof(double), b"d"),
        )
        self.rows = self.rows_capacity = self.used = self.capacity = 0
        texts = [words.text[words.start[at]:words.start[at + 1]] for at in range(words.count)]
        return (*map(np.asarray, columns), texts)


cdef bint _is(const char *at, const char *end, bytes word) noexcept:
    """Return True if the next word is this one."""
    cdef Py_ssize_t length = _skip_word(at, end) - at
    return length == len(word) and memcmp(at, <const char *>word, length) == 0
