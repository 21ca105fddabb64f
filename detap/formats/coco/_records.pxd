"""Records of COCO files: read a few values and skip the others.

Most records of a file have the same keys in the same order. So the text between two values is kept
and compared with that of the next record, and parsed as JSON only if it differs.
Inline functions only.
"""

from libc.math cimport fabs, floor, isfinite
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from detap.tables._words cimport ALL_BITS, load
from detap.formats.reading._bytes cimport Bytes, is_digit, is_word
from detap.formats.json._grammar cimport (
    Cursor, fail, skip_colon, skip_key, skip_space, skip_string, skip_value, skip_word,
)
from detap.formats.coco._keypoints cimport Poses, read_pose
from detap.formats.coco._segmentation cimport Shapes, forget, read_shape
from detap.formats.reading._numbers cimport read_integer, read_number


cdef enum:
    SLOTS = 48
    WORDS = 6

cdef enum Field:
    OTHER, ID, IMAGE_ID, CATEGORY_ID, BBOX, AREA, ISCROWD, IGNORE, ISGROUPOF, SCORE, WIDTH, HEIGHT
    ATTRIBUTES, NAME, NEGATIVE, NOT_EXHAUSTIVE, OBJECTS, SEGMENTATION, KEYPOINTS, NUM_KEYPOINTS
    DIFFICULT

cdef enum Kind:
    RESULT, ANNOTATION, IMAGE, CATEGORY, SKIPPED
    LINE, OBJECT                # of JSON Lines: an image, and one of its objects

cdef struct Slot:
    int length                  # of the text between two values; -1: too long
    Field field
    uint64_t hashed             # of the key
    uint64_t[WORDS] words
    uint64_t[WORDS] masks

cdef struct Shape:
    int count
    Slot[SLOTS] slots


cdef struct Text:
    Bytes at                    # UTF-8 string in the buffer, or NULL
    Py_ssize_t length
    bint escapes
    bint whole                  # True if an id is written as an integer


cdef struct Row:
    int64_t id, image, category
    Text id_text, image_text, category_text     # if the id is a string
    double[4] box
    bint xyxy                   # True for x1, y1, x2, y2
    double area, score, width, height
    uint8_t crowd, ignore, group_of, difficult
    Text name
    Bytes[3] listed             # start of the category lists, or of the objects
    Shapes shapes               # of all rows, if read
    Poses poses                 # of all rows, if read
    uint32_t seen               # bits by field


cdef inline bint is_class_key(Bytes key, Py_ssize_t length) noexcept nogil:
    """Return True if a key of an object of JSON Lines holds its class."""
    return (
        is_word(key, length, b"category", 8) or is_word(key, length, b"categories", 10)
        or is_word(key, length, b"category_id", 11) or is_word(key, length, b"label", 5)
        or is_word(key, length, b"labels", 6)
    )


cdef inline Field _line_field(Bytes key, Py_ssize_t length) noexcept nogil:
    if is_word(key, length, b"image_id", 8):
        return IMAGE_ID
    if is_word(key, length, b"file_name", 9):
        return NAME
    if is_word(key, length, b"objects", 7):
        return OBJECTS
    if is_word(key, length, b"height", 6):
        return HEIGHT
    return WIDTH if is_word(key, length, b"width", 5) else OTHER


cdef inline Field field_of(
    Kind kind, const Row *row, Bytes key, Py_ssize_t length
) noexcept nogil:
    """Return the field of a key (without quotes)."""
    if kind == IMAGE:
        if is_word(key, length, b"id", 2):
            return ID
        if is_word(key, length, b"width", 5):
            return WIDTH
        if is_word(key, length, b"neg_category_ids", 16):
            return NEGATIVE
        if is_word(key, length, b"not_exhaustive_category_ids", 27):
            return NOT_EXHAUSTIVE
        return HEIGHT if is_word(key, length, b"height", 6) else OTHER
    if kind == CATEGORY:
        if is_word(key, length, b"id", 2):
            return ID
        return NAME if is_word(key, length, b"name", 4) else OTHER
    if kind == LINE:
        return _line_field(key, length)
    if kind == OBJECT and is_class_key(key, length):
        return CATEGORY_ID
    if is_word(key, length, b"image_id", 8):
        return IMAGE_ID if kind != OBJECT else OTHER
    if is_word(key, length, b"category_id", 11):
        return CATEGORY_ID
    if is_word(key, length, b"bbox", 4):
        return BBOX
    if row.shapes.enabled and is_word(key, length, b"segmentation", 12):
        return SEGMENTATION
    if row.poses.enabled and is_word(key, length, b"keypoints", 9):
        return KEYPOINTS
    if kind == RESULT:
        return SCORE if is_word(key, length, b"score", 5) else OTHER
    if kind == OBJECT and is_word(key, length, b"score", 5):
        return SCORE
    if is_word(key, length, b"id", 2):
        return ID if kind != OBJECT else OTHER
    if is_word(key, length, b"area", 4):
        return AREA
    if is_word(key, length, b"iscrowd", 7):
        return ISCROWD
    if is_word(key, length, b"ignore", 6):
        return IGNORE
    if row.poses.enabled and is_word(key, length, b"num_keypoints", 13):
        return NUM_KEYPOINTS
    if kind == OBJECT and is_word(key, length, b"difficult", 9):
        return DIFFICULT
    if kind != OBJECT and is_word(key, length, b"attributes", 10):
        return ATTRIBUTES
    return ISGROUPOF if is_word(key, length, b"isgroupof", 9) else OTHER


cdef inline bint _matches(Bytes p, const Slot *slot) noexcept nogil:
    """Return True if the text up to the next value equals that of the last record.

    White space before the value belongs to the text, and makes it differ.
    """
    cdef uint64_t difference = (load(p) ^ slot.words[0]) & slot.masks[0]
    cdef int i
    if slot.length < 0 or p[slot.length] <= 32:
        return False
    for i in range(1, (slot.length + 7) >> 3):
        difference |= (load(p + 8 * i) ^ slot.words[i]) & slot.masks[i]
    return difference == 0


cdef inline Bytes _learn(
    Cursor *cursor, Shape *shape, int index, Kind kind, const Row *row, Bytes start
) noexcept nogil:
    """Read the next key and store it in its slot for the next record.

    The slots before hold the keys before in this record, which detects duplicates.
    """
    cdef Slot *slot = &shape.slots[index]
    cdef Bytes p = skip_space(start), key
    cdef int i, left
    if index == SLOTS:
        return fail(cursor, p)
    if index:
        if p[0] != c',':
            return fail(cursor, p)
        p = skip_space(p + 1)
    key = p
    p = skip_key(cursor, p, &slot.hashed)
    if p == NULL:
        return NULL
    for i in range(index):
        if shape.slots[i].hashed == slot.hashed:
            return fail(cursor, key)
    slot.field = field_of(kind, row, key + 1, p - key - 2)
    p = skip_colon(cursor, p)
    if p == NULL:
        return NULL
    if p >= cursor.end:
        return fail(cursor, p)
    slot.length = <int>(p - start) if p - start <= 8 * WORDS else -1
    for i in range((slot.length + 7) >> 3):
        left = slot.length - 8 * i
        slot.masks[i] = ALL_BITS if left >= 8 else (<uint64_t>1 << (8 * left)) - 1
        slot.words[i] = load(start + 8 * i) & slot.masks[i]
    shape.count = index + 1
    return p


cdef inline Bytes _read_box(Cursor *cursor, Bytes p, Row *row) noexcept nogil:
    """Read [x, y, width, height] or [x1, y1, x2, y2] with finite corners and area."""
    cdef int i
    cdef double *box = row.box
    if p[0] != c'[':
        return fail(cursor, p)
    p += 1
    for i in range(4):
        p = skip_space(p)
        p = read_number(p, cursor.end, &cursor.failed, &box[i])
        if p == NULL:
            return NULL
        p = skip_space(p)
        if p[0] != (c']' if i == 3 else c','):
            return fail(cursor, p)
        p += 1
    if row.xyxy:
        if not isfinite((box[2] - box[0]) * (box[3] - box[1])):
            return fail(cursor, p)
    elif not (isfinite(box[2] * box[3]) and isfinite(box[0] + box[2])
            and isfinite(box[1] + box[3])):
        return fail(cursor, p)
    return p


cdef inline Bytes _read_score(Cursor *cursor, Bytes p, double *score) noexcept nogil:
    """Read a score; fail for an integer that float64 may round, creating a tie."""
    cdef Bytes behind = read_number(p, cursor.end, &cursor.failed, score)
    cdef Bytes at = p
    if behind == NULL or fabs(score[0]) < 9007199254740992.0:
        return behind
    while at < behind:
        if at[0] == c'.' or at[0] | 32 == c'e':
            return behind
        at += 1
    return fail(cursor, p)


cdef inline Bytes _read_whole(Cursor *cursor, Bytes p, int64_t *value) noexcept nogil:
    """Read an integer that float64 represents exactly."""
    cdef double number
    p = read_number(p, cursor.end, &cursor.failed, &number)
    if p == NULL:
        return NULL
    if not -2.0**53 < number < 2.0**53 or number != floor(number):
        return fail(cursor, p)
    value[0] = <int64_t>number
    return p


cdef inline Bytes _read_flag(Cursor *cursor, Bytes p, uint8_t *flag) noexcept nogil:
    """Read 0, 1, true or false."""
    cdef int64_t value
    if p[0] == c't' or p[0] == c'f':
        flag[0] = p[0] == c't'
        return skip_word(cursor, p, b"true", 4) if flag[0] else skip_word(cursor, p, b"false", 5)
    if (p[0] | 1) == c'1' and not (is_digit(p[1]) or p[1] == c'.' or p[1] | 32 == c'e'):
        flag[0] = p[0] - 48
        return p + 1
    p = _read_whole(cursor, p, &value)
    if p == NULL or value >> 1:
        return fail(cursor, p) if p != NULL else NULL
    flag[0] = <uint8_t>value
    return p


cdef inline Bytes _read_text(Cursor *cursor, Bytes p, Text *text) noexcept nogil:
    """Read a string."""
    cdef Bytes behind
    if p[0] != c'"':
        return fail(cursor, p)
    behind = skip_string(cursor, p, &text.escapes)
    text.at = p + 1
    text.length = behind - p - 2
    return behind


cdef inline Bytes _read_identifier(
    Cursor *cursor, Bytes p, int64_t *value, Text *text
) noexcept nogil:
    """Read an id: an integer, an integral float, or a string."""
    cdef Bytes behind
    text.at, text.whole = NULL, False
    if p[0] == c'"':
        return _read_text(cursor, p, text)
    behind = read_integer(p, &cursor.failed, value)
    text.whole = behind != NULL
    return behind if text.whole else _read_whole(cursor, p, value)


cdef inline Bytes read_value(
    Cursor *cursor, Row *row, Kind kind, Field field, Bytes p, int depth
) noexcept nogil:
    if field == CATEGORY_ID and row.seen & 1 << <int>CATEGORY_ID:
        return fail(cursor, p)  # two keys with a class
    row.seen |= <uint32_t>1 << <int>field
    if field == BBOX:
        return _read_box(cursor, p, row)
    if field == IMAGE_ID:
        return _read_identifier(cursor, p, &row.image, &row.image_text)
    if field == CATEGORY_ID:
        return _read_identifier(cursor, p, &row.category, &row.category_text)
    if field == SCORE:
        return _read_score(cursor, p, &row.score)
    if field == OTHER or field == ATTRIBUTES:
        return skip_value(cursor, p, depth)
    if field == SEGMENTATION:
        return read_shape(cursor, p, &row.shapes, depth)
    if field == KEYPOINTS:
        return read_pose(cursor, p, &row.poses, kind == ANNOTATION)
    if field == NUM_KEYPOINTS:
        p = _read_whole(cursor, p, &row.poses.num_keypoints)
        return fail(cursor, p) if p != NULL and row.poses.num_keypoints < 0 else p
    if field == ID:
        return _read_identifier(cursor, p, &row.id, &row.id_text)
    if field == AREA:
        return read_number(p, cursor.end, &cursor.failed, &row.area)
    if field == ISCROWD:
        return _read_flag(cursor, p, &row.crowd)
    if field == IGNORE:
        return _read_flag(cursor, p, &row.ignore)
    if field == ISGROUPOF:
        return _read_flag(cursor, p, &row.group_of)
    if field == DIFFICULT:
        return _read_flag(cursor, p, &row.difficult)
    if field == NAME:
        return _read_text(cursor, p, &row.name)
    if field >= NEGATIVE:
        row.listed[<int>field - <int>NEGATIVE] = p
        return skip_value(cursor, p, depth)
    if field == WIDTH:
        return read_number(p, cursor.end, &cursor.failed, &row.width)
    return read_number(p, cursor.end, &cursor.failed, &row.height)


cdef inline Bytes read_record(
    Cursor *cursor, Shape *shape, Row *row, Kind kind, Bytes p, int depth
) noexcept nogil:
    """Read one record, an object at level `depth`."""
    cdef int index = 0
    cdef Bytes q
    if p[0] != c'{':
        return fail(cursor, p)
    p += 1
    row.seen = 0
    forget(&row.shapes)
    row.poses.count = row.poses.committed
    while True:
        if index < shape.count and _matches(p, &shape.slots[index]):
            p += shape.slots[index].length
        else:
            q = skip_space(p)
            if q[0] == c'}':
                return q + 1
            p = _learn(cursor, shape, index, kind, row, p)
            if p == NULL:
                return NULL
        p = read_value(cursor, row, kind, shape.slots[index].field, p, depth + 1)
        if p == NULL:
            return NULL
        index += 1
        if p[0] == c'}':
            return p + 1


cdef inline double put_corners(const Row *row, double *corners) noexcept nogil:
    """Write the corners of a row's box and return its area."""
    corners[0] = row.box[0]
    corners[1] = row.box[1]
    if row.xyxy:
        corners[2], corners[3] = row.box[2], row.box[3]
        return (row.box[2] - row.box[0]) * (row.box[3] - row.box[1])
    corners[2] = row.box[2] + row.box[0]
    corners[3] = row.box[3] + row.box[1]
    return row.box[2] * row.box[3]
