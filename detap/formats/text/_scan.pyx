"""Scan text files of boxes, a word and some numbers a line, straight into columns.

Only regular lines are read: a word, numbers in plain decimal, blanks between them. A file with
anything else, or with a box that could be a fault, is declined as a whole, and `lines.py` reads it
with care. What is read here is what is read there, to the last bit.
"""

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int32_t, uint8_t

from detap.formats.reading._names cimport names_find
from detap.formats.text._folder_scan cimport (
    Rows, Scan, rows_reserve, scan_close, scan_columns, scan_declined, scan_inputs,
    scan_number, scan_run, scan_start, scan_words,
)

import numpy as np


cdef struct Form:
    bint grow       # whether lines may begin with words that are not known
    bint sides      # whether the last two numbers are width and height
    bint fractions  # whether lines are YOLO's: boxes in fractions, or polygons
    bint scored     # whether a score ends YOLO's lines
    int first, second   # how many coordinates they may have; 0 for a box or any polygon
    Py_ssize_t fewest, most     # coordinates of the polygons so far; 0 without any


cdef bint _is_box(const double *box, bint sides) noexcept nogil:
    cdef double width, height
    if sides:
        if not (isfinite(box[0] + box[2]) and isfinite(box[1] + box[3])):
            return False
        width = box[2]
        height = box[3]
    else:
        width = box[2] - box[0]
        height = box[3] - box[1]
    return isfinite(width * height)


cdef int _scan_fractions(
    const char **start, const char *end, double *values, int width, Form *form
) noexcept nogil:
    """Read the coordinates of YOLO's line, and behind them a score where one is due.

    `values` gets as many coordinates as there is room for, the rest being 0, and the score. Of a
    polygon that may have any number of corners, it gets the lowest and the highest x and y.
    Returns 0 for a box, 1 for a polygon, and -1 where the line is not regular.
    """
    cdef const char *at = start[0]
    cdef double[2] low = [INFINITY, INFINITY]
    cdef double[2] high = [-INFINITY, -INFINITY]
    cdef double number = 0.0, last = 0.0, part
    cdef int scored = form.scored, kept = width - form.scored, side
    cdef Py_ssize_t count = 0, place
    cdef bint apart, polygon
    while True:
        apart = False
        while at < end and (at[0] == c' ' or at[0] == c'\t'):
            at += 1
            apart = True
        if at == end or at[0] == c'\n' or at[0] == c'\r':
            break
        last = number
        if not (apart and scan_number(at, end, &at, &number)):
            return -1
        if count < kept:
            values[count] = number
        # Of a line with a score, the last number is none of a polygon's.
        place = count - scored
        count += 1
        if place >= 0:
            part = last if scored else number
            side = place & 1
            low[side] = part if part < low[side] else low[side]
            high[side] = part if part > high[side] else high[side]
    start[0] = at
    count -= scored
    if form.first:
        if count != form.first and count != form.second:
            return -1
        polygon = count == kept and kept > 4
        for place in range(count, kept):
            values[place] = 0.0
    else:
        if count != 4 and (count < 6 or count & 1):
            return -1
        polygon = count != 4
        if polygon:
            values[0] = low[0]
            values[1] = low[1]
            values[2] = high[0]
            values[3] = high[1]
    if scored:
        values[kept] = number
    if polygon:
        if form.fewest == 0 or count < form.fewest:
            form.fewest = count
        if count > form.most:
            form.most = count
    return polygon


cdef bint _scan_lines(
    const char *at, const char *end, int32_t file, Scan *scan, void *how
) noexcept nogil:
    """Append the lines from `at` to `end`; False where one is not regular."""
    cdef Form *form = <Form *>how
    cdef Rows *rows = &scan.rows
    cdef const char *word
    cdef double *values
    cdef bint ascii
    cdef int32_t number
    cdef int column, flag = 0
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
        if form.grow and not ascii:
            return False
        number = names_find(&scan.names, word, at - word, form.grow)
        if number < 0 or not rows_reserve(rows):
            return False
        values = rows.values + rows.count * rows.width
        if form.fractions:
            flag = _scan_fractions(&at, end, values, rows.width, form)
            if flag < 0:
                return False
        for column in range(0 if form.fractions else rows.width):
            if at == end or not (at[0] == c' ' or at[0] == c'\t'):
                return False
            while at < end and (at[0] == c' ' or at[0] == c'\t'):
                at += 1
            if not scan_number(at, end, &at, &values[column]):
                return False
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
        if not (form.fractions or _is_box(values + rows.width - 4, form.sides)):
            return False
        rows.file[rows.count] = file
        rows.name[rows.count] = number
        rows.flag[rows.count] = flag
        rows.count += 1


def scan_files(
    int folder, list members: list[bytes | None], list known: list[bytes], *, bint grow, int width,
    bint sides, bint fractions, size_t file_bytes, size_t records, bint scored=False,
    tuple counts: tuple[int, ...] = (), set polygons: set[int] | None = None,
    dict digests: dict[int, str] | None = None, bint contents=False,
) -> tuple[
    list[int], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_], NDArray[np.float64],
    list[bytes],
]:
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
    width : int
        How many numbers a row has: a box (4) or a score and a box (5); of YOLO's lines, 4 or 8
        coordinates, and a score.
    sides : bool
        Whether the last two numbers are width and height; else the far corner.
    fractions : bool
        Whether lines are YOLO's: a box or three corners or more, and then the score.
    scored : bool
        Whether YOLO's lines have a score.
    counts : tuple of int
        How many coordinates YOLO's lines may have: one number or two. Without, those of a box or a
        polygon.
    polygons : set of int, optional
        Gets the least and the greatest number of coordinates of a polygon.
    file_bytes, records : int
        The limits: larger files are declined, and so is what comes behind so many rows.
    digests : dict, optional
        Gets the sha256 of each file that is not declined, in hexadecimal, by its place in
        `members`.
    contents : bool
        Whether `members` are what the files hold, and not what they are called: for tests.

    Returns
    -------
    declined : list of int
        The files that were not read, by their place in `members`.
    file, name : (N,) int32 array
        The file of each row, and the number of its first word.
    flag : (N,) bool array
        Whether it was a polygon.
    words : list of bytes
        Those of `known`, then those that were met besides.
    values : (N, width) float64 array
    """
    cdef Scan scan
    cdef Form form
    cdef bytes word
    form.grow = grow
    form.sides = sides
    form.fractions = fractions
    form.scored = scored
    form.first = form.second = form.fewest = form.most = 0
    if counts:
        form.first, form.second = min(counts), max(counts)
    scan_start(&scan, width, records)
    try:
        scan_inputs(&scan, folder, members, contents, file_bytes)
        for word in known:
            if names_find(&scan.names, word, len(word), True) < 0:
                raise MemoryError
        if scan.names.count != len(known):
            raise ValueError("a known word is listed twice")
        scan_run(&scan, _scan_lines, &form, digests)
        words = scan_words(&scan)
        if polygons is not None and form.most:
            polygons.update((form.fewest, form.most))
        file, name, flag, values = map(np.asarray, scan_columns(&scan))
        return scan_declined(&scan), file, name, flag, values, words
    finally:
        scan_close(&scan)
