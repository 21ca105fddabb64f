"""Scan text files of boxes, a word and numbers per line, into columns.

Only regular lines are read: a word and plain decimal numbers, separated by blanks. For a file with
anything else, or with a possibly invalid box, the reader falls back to `lines.py`. Both readers give
the same bits.
"""

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int32_t, uint8_t

from detap.formats.reading._names cimport names_find
from detap.formats.text._folder_scan cimport (
    Rows, Scan, rows_reserve, scan_close, scan_columns, scan_inputs, scan_number,
    scan_run, scan_start, scan_unread, scan_words,
)

import numpy as np


cdef struct Form:
    bint grow       # lines may begin with unknown words
    bint xywh       # the last two numbers are width and height
    bint fractions  # YOLO lines: normalized boxes, or polygons
    bint scored     # YOLO lines end with a score
    int first, second   # allowed numbers of coordinates; 0 for a box or any polygon
    Py_ssize_t fewest, most     # coordinates of polygons so far; 0 without polygons


cdef bint _is_box(const double *box, bint xywh) noexcept nogil:
    cdef double width, height
    if xywh:
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
    """Read the coordinates of a YOLO line and its score, if any.

    `values` gets the coordinates that fit, then zeros, and the score; for a polygon with any number
    of corners, the lowest and the highest x and y. Returns 0 for a box, 1 for a polygon, and -1 for
    an irregular line.
    """
    cdef const char *at = start[0]
    cdef double[2] low = [INFINITY, INFINITY]
    cdef double[2] high = [-INFINITY, -INFINITY]
    cdef double number = 0.0, last = 0.0, coordinate
    cdef int scored = form.scored, capacity = width - form.scored, axis
    cdef Py_ssize_t count = 0, index
    cdef bint separated, polygon
    while True:
        separated = False
        while at < end and (at[0] == c' ' or at[0] == c'\t'):
            at += 1
            separated = True
        if at == end or at[0] == c'\n' or at[0] == c'\r':
            break
        last = number
        if not (separated and scan_number(at, end, &at, &number)):
            return -1
        if count < capacity:
            values[count] = number
        # In a line with a score, the last number is not a coordinate.
        index = count - scored
        count += 1
        if index >= 0:
            coordinate = last if scored else number
            axis = index & 1
            low[axis] = coordinate if coordinate < low[axis] else low[axis]
            high[axis] = coordinate if coordinate > high[axis] else high[axis]
    start[0] = at
    count -= scored
    if form.first:
        if count != form.first and count != form.second:
            return -1
        polygon = count == capacity and capacity > 4
        for index in range(count, capacity):
            values[index] = 0.0
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
        values[capacity] = number
    if polygon:
        if form.fewest == 0 or count < form.fewest:
            form.fewest = count
        if count > form.most:
            form.most = count
    return polygon


cdef bint _scan_lines(
    const char *at, const char *end, int32_t file, Scan *scan, void *options
) noexcept nogil:
    """Append the lines from `at` to `end`; False if one is irregular."""
    cdef Form *form = <Form *>options
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
        # The beginning of other kinds of files: merge markers, JSON, HTML, PDF.
        if at[0] in (c'<', c'=', c'>', c'[', c'{', c'%'):
            return False
        word = at
        ascii = True
        while at < end and <uint8_t>at[0] > 32 and at[0] != 127:
            ascii = ascii and <uint8_t>at[0] < 128
            at += 1
        # The fallback reader checks whether a new word is UTF-8.
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
        if not (form.fractions or _is_box(values + rows.width - 4, form.xywh)):
            return False
        rows.file[rows.count] = file
        rows.name[rows.count] = number
        rows.flag[rows.count] = flag
        rows.count += 1


def scan_files(
    int folder, list members: list[bytes | None], list known: list[bytes], *, bint grow, int width,
    bint xywh, bint fractions, size_t file_bytes, size_t records, bint scored=False,
    tuple counts: tuple[int, ...] = (), set polygons: set[int] | None = None,
    dict digests: dict[int, str] | None = None, bint contents=False,
) -> tuple[
    list[int], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_], NDArray[np.float64],
    list[bytes],
]:
    """Scan text files; a file with an irregular line is skipped completely.

    Parameters
    ----------
    folder : int
        The descriptor of their folder, or -1 if `members` are full paths.
    members : list of bytes or None
        The files; None is skipped.
    known : list of bytes
        The words that a line may begin with, in the order of their indices.
    grow : bool
        Allow other words; they get the next indices.
    width : int
        Numbers per row: a box (4), or a score and a box (5); for YOLO lines, 4 or 8 coordinates,
        and a score.
    xywh : bool
        The last two numbers are width and height, not a corner.
    fractions : bool
        Read YOLO lines: a box or at least three corners, and then the score.
    scored : bool
        YOLO lines have a score.
    counts : tuple of int
        One or two allowed numbers of coordinates in YOLO lines; by default those of a box or a
        polygon.
    polygons : set of int, optional
        Gets the minimum and maximum number of coordinates of a polygon.
    file_bytes, records : int
        The limits: larger files, and files after so many rows, are skipped.
    digests : dict, optional
        Gets the sha256 of each file that was read, in hexadecimal, by its index in `members`.
    contents : bool
        `members` are file contents, not names; for tests.

    Returns
    -------
    unread : list of int
        Indices in `members` of the files that were not read.
    file, name : (N,) int32 array
        The file of each row, and the index of its first word.
    flag : (N,) bool array
        True for a polygon.
    words : list of bytes
        `known`, then the new words.
    values : (N, width) float64 array
    """
    cdef Scan scan
    cdef Form form
    cdef bytes word
    form.grow = grow
    form.xywh = xywh
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
            raise ValueError("duplicate known word")
        scan_run(&scan, _scan_lines, &form, digests)
        words = scan_words(&scan)
        if polygons is not None and form.most:
            polygons.update((form.fewest, form.most))
        file, name, flag, values = map(np.asarray, scan_columns(&scan))
        return scan_unread(&scan), file, name, flag, values, words
    finally:
        scan_close(&scan)
