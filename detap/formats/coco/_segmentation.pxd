"""The `segmentation` of a COCO record: polygons, or RLE as a list or a string.

Inline functions only.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint32_t

from detap.formats.json._grammar cimport Cursor, fail, skip_space, skip_string
from detap.formats.reading._bytes cimport Bytes, is_word
from detap.formats.reading._numbers cimport read_integer, read_number
from detap.tables._columns cimport grow
from detap.tables._runs cimport SOUND, Runs, decode, put_run


cdef enum:
    FARTHEST = 100000000        # the fallback reader rejects larger coordinates


cdef struct Shapes:
    # Of all rows with one. The values of a record are kept once it is committed.
    bint enabled
    Runs runs
    double *points
    int64_t *rings              # after the last point of each polygon
    Py_ssize_t points_count, points_room, rings_count, rings_room
    Py_ssize_t kept_runs, kept_points, kept_rings
    int64_t height, width       # of the current row; 0 for polygons
    bint listed                 # polygons or uncompressed RLE


cdef inline void forget(Shapes *shapes) noexcept nogil:
    """Drop the values of a record that was not committed."""
    shapes.runs.count = shapes.kept_runs
    shapes.points_count = shapes.kept_points
    shapes.rings_count = shapes.kept_rings


cdef inline bint _put_point(Shapes *shapes, double value) noexcept nogil:
    if shapes.points_count == shapes.points_room:
        shapes.points_room = max(2 * shapes.points_room, <Py_ssize_t>4096)
        if not grow(<void **>&shapes.points, shapes.points_room, sizeof(double)):
            return False
    shapes.points[shapes.points_count] = value
    shapes.points_count += 1
    return True


cdef inline bint _put_ring(Shapes *shapes) noexcept nogil:
    if shapes.rings_count == shapes.rings_room:
        shapes.rings_room = max(2 * shapes.rings_room, <Py_ssize_t>512)
        if not grow(<void **>&shapes.rings, shapes.rings_room, sizeof(int64_t)):
            return False
    shapes.rings[shapes.rings_count] = shapes.points_count // 2
    shapes.rings_count += 1
    return True


cdef inline Bytes _read_polygons(Cursor *cursor, Bytes p, Shapes *shapes) noexcept nogil:
    """Read [[x, y, x, y, x, y, ...], ...]; `p` is after the first bracket."""
    cdef Py_ssize_t first, count
    cdef double value
    while True:
        p = skip_space(p)
        if p[0] != c'[':
            return fail(cursor, p)
        p += 1
        first = shapes.points_count
        while True:
            p = skip_space(p)
            p = read_number(p, cursor.end, &cursor.failed, &value)
            if p == NULL:
                return NULL
            if not fabs(value) <= FARTHEST or not _put_point(shapes, value):
                return fail(cursor, p)
            p = skip_space(p)
            if p[0] == c']':
                break
            if p[0] != c',':
                return fail(cursor, p)
            p += 1
        count = shapes.points_count - first
        if count & 1 or count < 6 and shapes.rings_count == shapes.kept_rings:
            return fail(cursor, p)
        if count < 6:
            shapes.points_count = first     # two points have no area
        elif not _put_ring(shapes):
            return fail(cursor, p)
        p = skip_space(p + 1)
        if p[0] == c']':
            return p + 1
        if p[0] != c',':
            return fail(cursor, p)
        p += 1


cdef inline Bytes _read_counts(Cursor *cursor, Bytes p, Shapes *shapes) noexcept nogil:
    """Read run lengths: a string, or a list of integers."""
    cdef Bytes behind
    cdef bint escapes
    cdef int64_t value
    if p[0] == c'"':
        behind = skip_string(cursor, p, &escapes)
        if behind != NULL and decode(
            p + 1, behind - p - 2, escapes, <int64_t>0xFFFFFFFF, &shapes.runs
        ) != SOUND:
            return fail(cursor, p)
        return behind
    if p[0] != c'[':
        return fail(cursor, p)
    shapes.listed = True
    while True:
        p = skip_space(p + 1)
        p = read_integer(p, &cursor.failed, &value)
        if p == NULL:
            return NULL
        p = skip_space(p)
        if value < 0 or value > <int64_t>0xFFFFFFFF or not put_run(&shapes.runs, <uint32_t>value):
            return fail(cursor, p)
        if p[0] == c']':
            return p + 1
        if p[0] != c',':
            return fail(cursor, p)


cdef inline Bytes _read_size(Cursor *cursor, Bytes p, Shapes *shapes) noexcept nogil:
    """Read [height, width]."""
    cdef int64_t[2] sides
    cdef int i
    if p[0] != c'[':
        return fail(cursor, p)
    for i in range(2):
        p = skip_space(p + 1)
        p = read_integer(p, &cursor.failed, &sides[i])
        if p == NULL:
            return NULL
        p = skip_space(p)
        if p[0] != (c']' if i else c',') or not 0 < sides[i] < <int64_t>1 << 31:
            return fail(cursor, p)
    shapes.height, shapes.width = sides[0], sides[1]
    return p + 1


cdef inline Bytes read_shape(Cursor *cursor, Bytes p, Shapes *shapes, int depth) noexcept nogil:
    """Read a segmentation, a value at level `depth`."""
    cdef int64_t total = 0
    cdef Py_ssize_t i
    cdef Bytes key
    cdef bint escapes, is_size, has_size = False, has_counts = False
    shapes.height = shapes.width = 0
    shapes.listed = False
    if cursor.deepest <= depth:
        return fail(cursor, p)
    if p[0] == c'[':
        shapes.listed = True
        return _read_polygons(cursor, p + 1, shapes)
    if p[0] != c'{':
        return fail(cursor, p)
    while True:
        key = skip_space(p + 1)
        if key[0] != c'"':
            return fail(cursor, key)
        p = skip_string(cursor, key, &escapes)
        if p == NULL:
            return NULL
        is_size = is_word(key + 1, p - key - 2, b"size", 4)
        if has_size if is_size else has_counts or not is_word(
            key + 1, p - key - 2, b"counts", 6
        ):
            return fail(cursor, key)
        p = skip_space(p)
        if p[0] != c':':
            return fail(cursor, p)
        p = skip_space(p + 1)
        if is_size:
            has_size = True
            p = _read_size(cursor, p, shapes)
        else:
            has_counts = True
            p = _read_counts(cursor, p, shapes)
        if p == NULL:
            return NULL
        p = skip_space(p)
        if p[0] == c'}':
            break
        if p[0] != c',':
            return fail(cursor, p)
    if not (has_size and has_counts):
        return fail(cursor, p)
    for i in range(shapes.kept_runs, shapes.runs.count):
        total += shapes.runs.at[i]
    if total != shapes.height * shapes.width or total > <int64_t>0xFFFFFFFF:
        return fail(cursor, p)
    return p + 1
