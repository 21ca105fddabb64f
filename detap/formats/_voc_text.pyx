"""Scan text files of boxes, a word and some numbers a line, straight into columns.

Only regular lines are read: a word, numbers in plain decimal, blanks between them. A file with
anything else, or with a box that could be a fault, is declined as a whole, and `_voc_lines` reads
it with care. What is read here is what is read there, to the last bit.
"""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

from detap.formats._numbers cimport NUMBER_LONG, NUMBER_NONE, scan_decimal
from detap.formats._voc_scan cimport (
    Inputs, Names, Rows, inputs_close, inputs_open, inputs_read, long_number, names_close,
    names_find, names_open, rows_close, rows_open, rows_reserve,
)

import numpy as np


cdef bint _is_box(const double *box, bint scored, bint sides) noexcept nogil:
    cdef double width, height
    if sides:
        if box[2] < 0 or box[3] < 0:
            return False
        if not (isfinite(box[0] + box[2]) and isfinite(box[1] + box[3])):
            return False
        width = box[2]
        height = box[3]
    else:
        width = box[2] - box[0]
        height = box[3] - box[1]
        if not scored and (width < 0 or height < 0):
            return False
    return isfinite(width * height)


cdef bint _scan_lines(
    const char *at, const char *end, int32_t file, Names *names, bint grow, bint sides, Rows *rows
) noexcept nogil:
    """Append the lines from `at` to `end`; False where one is not regular."""
    cdef const char *word
    cdef const char *stop
    cdef double value
    cdef double *values
    cdef bint scored = rows.width == 5
    cdef bint ascii
    cdef int32_t number
    cdef int column, kind
    while True:
        while at < end and (at[0] == c' ' or at[0] == c'\t'):
            at += 1
        if at == end:
            return True
        if at[0] == c'\n':
            at += 1
            continue
        if at[0] == c'\r' and at + 1 < end and at[1] == c'\n':
            at += 2
            continue
        # These begin what is no list of boxes at all: merge markers, JSON, HTML, PDF.
        if at[0] in (c'<', c'=', c'>', c'[', c'{', c'%'):
            return False
        word = at
        ascii = True
        while at < end and <uint8_t>at[0] > 32 and at[0] != 127:
            ascii = ascii and <uint8_t>at[0] < 128
            at += 1
        # Whether a new word is UTF-8 is for the careful reader to say.
        if grow and not ascii:
            return False
        number = names_find(names, word, at - word, grow)
        if number < 0 or not rows_reserve(rows):
            return False
        values = rows.values + rows.count * rows.width
        for column in range(rows.width):
            if at == end or not (at[0] == c' ' or at[0] == c'\t'):
                return False
            while at < end and (at[0] == c' ' or at[0] == c'\t'):
                at += 1
            kind = scan_decimal(at, end, &stop, &value)
            if kind == NUMBER_NONE:
                return False
            if kind == NUMBER_LONG:
                value = long_number(at, stop - at)
                if not isfinite(value):
                    return False
            values[column] = value
            at = stop
        while at < end and (at[0] == c' ' or at[0] == c'\t'):
            at += 1
        if at < end and at[0] == c'\r':
            at += 1
            if at == end:
                return False
        if at < end:
            if at[0] != c'\n':
                return False
            at += 1
        if not _is_box(values + rows.width - 4, scored, sides):
            return False
        rows.file[rows.count] = file
        rows.name[rows.count] = number
        rows.flag[rows.count] = 0
        rows.count += 1


def scan_files(
    int folder, list members, list known, *, bint grow, int width, bint sides,
    size_t file_bytes, size_t records,
    bint contents=False,
):
    """Scan text files, each whole or not at all.

    Parameters
    ----------
    folder : int
        The descriptor of the folder that they are in, or -1 where `members` are whole paths.
    members : list of bytes or None
        The files; None is declined.
    known : list of bytes
        The words that a line may begin with, numbered in this order.
    grow : bool
        Whether other words may, too; they get the next numbers.
    width : {4, 5}
        How many numbers follow: a box, or a score and a box.
    sides : bool
        Whether the last two numbers are width and height; else the far corner.
    file_bytes, records : int
        The limits: larger files are declined, and so is what comes behind so many rows.
    contents : bool
        Whether `members` are what the files hold, and not what they are called: for tests.

    Returns
    -------
    declined : list of int
        The files that were not read, by their place in `members`.
    file, name : (N,) int32 array
        The file of each row, and the number of its first word.
    words : list of bytes
        Those of `known`, then those that were met besides.
    values : (N, width) float64 array
    """
    cdef Names names
    cdef Rows rows
    cdef Inputs inputs
    cdef size_t before
    cdef long long size
    cdef list words = []
    cdef int32_t at
    cdef bint fine
    cdef bytes word
    cdef uint8_t[::1] declined = np.zeros(len(members), np.uint8)
    rows_open(&rows, width)
    names_open(&names)
    inputs.given = NULL
    inputs.sizes = NULL
    inputs.data = NULL
    try:
        inputs_open(&inputs, folder, members, contents, file_bytes)
        for word in known:
            if names_find(&names, word, len(word), True) < 0:
                raise MemoryError
        if names.count != len(known):
            raise ValueError("a known word is listed twice")
        # One stretch without the GIL, so that other threads run, and other imports with them.
        with nogil:
            for at in range(inputs.count):
                before = rows.count
                size = inputs_read(&inputs, at)
                fine = False
                if size >= 0:
                    fine = _scan_lines(inputs.data, inputs.data + size, at, &names, grow, sides, &rows)
                    fine = fine and rows.count <= records
                declined[at] = not fine
                if not fine:
                    rows.count = before
        for at in range(names.count):
            words.append(names.text[names.start[at] : names.start[at + 1]])
        return np.flatnonzero(declined).tolist(), *_columns(&rows), words
    finally:
        inputs_close(&inputs)
        names_close(&names)
        rows_close(&rows)


cdef tuple _columns(Rows *rows):
    cdef size_t count = rows.count
    file = np.empty(count, np.int32)
    name = np.empty(count, np.int32)
    values = np.empty((count, rows.width), np.float64)
    cdef int32_t[::1] file_view = file
    cdef int32_t[::1] name_view = name
    cdef double[:, ::1] values_view = values
    if count:
        memcpy(&file_view[0], rows.file, count * sizeof(int32_t))
        memcpy(&name_view[0], rows.name, count * sizeof(int32_t))
        memcpy(&values_view[0, 0], rows.values, count * rows.width * sizeof(double))
    return file, name, values
