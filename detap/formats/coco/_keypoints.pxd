"""The `keypoints` of a COCO record: x, y and v of each, in one list.

Inline functions only.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint8_t

from detap.formats.coco._segmentation cimport FARTHEST
from detap.formats.json._grammar cimport Cursor, fail, skip_space
from detap.formats.reading._bytes cimport Bytes, is_digit
from detap.formats.reading._numbers cimport read_number
from detap.tables._columns cimport grow


cdef struct Poses:
    # Of all rows. The values of a record are kept once it is committed.
    bint enabled
    double *values              # x and y of each keypoint, and v of ground truth
    Py_ssize_t count, room, committed
    Py_ssize_t each             # values per record in the file; 0 before the first
    Py_ssize_t labeled         # keypoints of the record with v > 0
    double[4] extent            # bounding box: x, y, width, height
    int64_t num_keypoints
    double *sides               # of ground truth: width and height of the box
    uint8_t *without            # True without labeled keypoints
    Py_ssize_t rows_room


cdef inline bint _put(Poses *poses, double value) noexcept nogil:
    if poses.count == poses.room:
        poses.room = max(2 * poses.room, <Py_ssize_t>32768)
        if not grow(<void **>&poses.values, poses.room, sizeof(double)):
            return False
    poses.values[poses.count] = value
    poses.count += 1
    return True


cdef inline Bytes read_pose(Cursor *cursor, Bytes p, Poses *poses, bint truth) noexcept nogil:
    """Read [x, y, v, x, y, v, ...] of the same length as in earlier records."""
    cdef Py_ssize_t i = 0
    cdef int part = 0
    cdef double value
    cdef double[2] low
    cdef double[2] high
    poses.labeled = 0
    if p[0] != c'[':
        return fail(cursor, p)
    while True:
        p = skip_space(p + 1)
        # v is mostly a digit, which needs no number parser.
        if part == 2 and is_digit(p[0]) and (p[1] == c',' or p[1] == c']'):
            value = p[0] - 48
            p += 1
        elif part == 2 and is_digit(p[0]) and p[1] == c'.' and p[2] == c'0' and (
            p[3] == c',' or p[3] == c']'
        ):
            value = p[0] - 48
            p += 3
        else:
            p = read_number(p, cursor.end, &cursor.failed, &value)
            if p == NULL:
                return NULL
        if not fabs(value) <= FARTHEST:
            return fail(cursor, p)
        if part == 2:
            poses.labeled += value > 0
        elif i < 2:
            low[part] = high[part] = value
        else:
            low[part] = min(low[part], value)
            high[part] = max(high[part], value)
        if (part < 2 or truth) and not _put(poses, value):
            return fail(cursor, p)
        i += 1
        part = part + 1 if part < 2 else 0
        p = skip_space(p)
        if p[0] == c']':
            break
        if p[0] != c',':
            return fail(cursor, p)
    if part or (poses.each and i != poses.each):
        return fail(cursor, p)
    poses.extent = [low[0], low[1], high[0] - low[0], high[1] - low[1]]
    # If this record is read again, another is the first to be committed, of the same length.
    poses.each = i
    return p + 1
