"""Read JSON records into columns.

`Fields` has the requested columns; `Reader` walks a file in blocks without the GIL and stops at an
odd record: one with a value of an unusual type, an escaped or repeated key, NaN, a huge number, or
with invalid JSON. Its bytes go to Python, whose values `Fields.append` adds as the next row.

Most records of a file have the same keys in the same order. So the text between two values is kept
and compared with that of the next record, and parsed as JSON only if it differs.
"""

cimport cython
from libc.math cimport NAN, fabs, floor, isfinite
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from detap.formats.json._grammar cimport (
    Cursor, fail, skip_colon, skip_key, skip_space, skip_string, skip_value, skip_word,
)
from detap.formats.reading._bytes cimport Bytes, is_word
from detap.formats.reading._names cimport Names, names_close, names_find
from detap.formats.reading._numbers cimport read_integer, read_number
from detap.tables._columns cimport grow, take

import json
from collections.abc import Callable, Mapping, Sequence

from detap.tables.columns import Name


cdef extern from *:
    int64_t WORD "0x4000000000000000LL"     # keys from here on are words


cdef enum:
    BLOCK = 262144
    PADDING = 128       # bytes after a buffer that may be read
    NEARBY = 64         # a step failing this close to the end is retried
    FULL = 8388608      # bytes of spans after which a walk stops

cdef enum:
    MOST_FIELDS = 24
    MOST_KEYS = 40
    SLOTS = 48
    LONGEST = 48        # text between two values that is compared


cdef enum Kind:
    NUMBER, SCORE, COUNT, BOX, KEY, FLAG, SPAN


cdef struct Slot:
    int length                  # of the text between two values; 0: too long
    int field
    uint64_t hashed             # of the key
    uint8_t[LONGEST] text


cdef struct Column_:
    Kind kind
    int width                   # bytes per row
    void *data
    char *text                  # of spans: their JSON, each with a comma behind
    Py_ssize_t used, room


cdef struct Key:
    const char *name
    Py_ssize_t length
    int field


# States of a walk.
cdef enum:
    _DONE, _ODD, _LIMIT, _FULL

PADDED: int = PADDING
DONE: int = _DONE
ODD: int = _ODD
LIMIT: int = _LIMIT
FIRST_WORD: int = WORD  # keys from here on are text or large numbers

cdef dict KINDS = {
    "number": NUMBER, "score": SCORE, "area": NUMBER, "count": COUNT, "box": BOX, "key": KEY,
    "flag": FLAG, "span": SPAN,
}


cdef inline bint _matches(Bytes p, const Slot *slot) noexcept nogil:
    """Return True if the text up to the next value equals that of the last record.

    White space before the value belongs to the text, and makes it differ.
    """
    return slot.length > 0 and p[slot.length] > 32 and memcmp(p, slot.text, slot.length) == 0


cdef inline Bytes _read_whole(Cursor *cursor, Bytes p, double *number) noexcept nogil:
    """Read an integer that float64 represents exactly."""
    p = read_number(p, cursor.end, &cursor.failed, number)
    if p != NULL and not (fabs(number[0]) < 2.0**53 and number[0] == floor(number[0])):
        return fail(cursor, p)
    return p


cdef inline Bytes _read_flag(Cursor *cursor, Bytes p, double *flag) noexcept nogil:
    """Read 0, 1, true or false."""
    if p[0] == c't' or p[0] == c'f':
        flag[0] = p[0] == c't'
        return skip_word(cursor, p, b"true", 4) if flag[0] else skip_word(cursor, p, b"false", 5)
    p = read_number(p, cursor.end, &cursor.failed, flag)
    return p if p == NULL or flag[0] == 0 or flag[0] == 1 else fail(cursor, p)


cdef inline Bytes _read_score(Cursor *cursor, Bytes p, double *score) noexcept nogil:
    """Read a score, NaN for null; fail for an integer that float64 may round, creating a tie."""
    cdef Bytes behind, at = p
    if p[0] == c'n':
        score[0] = NAN
        return skip_word(cursor, p, b"null", 4)
    behind = read_number(p, cursor.end, &cursor.failed, score)
    if behind == NULL or fabs(score[0]) < 9007199254740992.0:
        return behind
    while at < behind:
        if at[0] == c'.' or at[0] | 32 == c'e':
            return behind
        at += 1
    return fail(cursor, p)


@cython.final
cdef class Fields:
    """Columns of the values of records.

    A column is named by the first of its keys. Kinds:

    - number, area: finite, not negative; NaN if missing. count: also whole. flag: 0, 1, true or
      false. score: no integer that float64 rounds; null is NaN.
    - box: four numbers with finite corners and area, x1, y1, x2, y2 if `xyxy`.
    - key: an integer or a string, as a number of its own.
    - span: the JSON of any value; some are kept `only_boxless`, of records without a box.

    null is no value; of a score, box or key it is odd.
    A record with none of a `required` tuple is odd; with `each`, every record. `most` is the maximum
    number of rows. Spans are kept of those from `drained`.
    """

    cdef Column_[MOST_FIELDS] columns
    cdef Key[MOST_KEYS] key_names
    cdef Slot[SLOTS] slots
    cdef int size, key_count, slot_count
    cdef uint32_t seen, active, box, only_boxless
    cdef uint32_t[8] required
    cdef int required_count
    cdef bint xyxy
    cdef public bint each
    cdef list names, kept_keys
    cdef Names words            # JSON of the keys that are text or large numbers
    cdef Py_ssize_t room
    cdef readonly Py_ssize_t rows, drained
    cdef public Py_ssize_t most

    def __cinit__(
        self, columns: Sequence[tuple[str | tuple[str, ...], str]] = (),
        required: Sequence[tuple[str, ...]] = (), bint xyxy=False,
        only_boxless: Sequence[str] = (),
    ):
        cdef Column_ *column
        cdef bytes word
        self.names, self.kept_keys = [], []
        self.most = (<size_t>-1) >> 1
        self.xyxy = xyxy
        for keys, kind in columns:
            column = &self.columns[self.size]
            column.kind = KINDS[kind]
            column.width = 32 if column.kind == BOX else 8
            if column.kind == BOX:
                self.box = 1 << self.size
            keys = keys if isinstance(keys, tuple) else (keys,)
            for key in keys:
                word = key.encode()
                self.kept_keys.append(word)
                self.key_names[self.key_count] = Key(word, len(word), self.size)
                self.key_count += 1
            self.names.append(keys[0])
            self.size += 1
        for names in required:
            for name in names:
                self.required[self.required_count] |= 1 << self.field(name)
            self.required_count += 1
        for name in only_boxless:
            self.only_boxless |= 1 << self.field(name)

    def __dealloc__(self):
        cdef int i
        for i in range(self.size):
            free(self.columns[i].data)
            free(self.columns[i].text)
        names_close(&self.words)

    cdef int field(self, str name) except -1:
        return self.names.index(name)

    # --- one record

    cdef int field_of(self, Bytes key, Py_ssize_t length) noexcept nogil:
        """Return the column of a key (without quotes), or -1."""
        cdef int i
        for i in range(self.key_count):
            if is_word(key, length, self.key_names[i].name, self.key_names[i].length):
                return self.key_names[i].field
        return -1

    cdef Bytes learn(self, Cursor *cursor, int index, Bytes start) noexcept nogil:
        """Read the next key and store it in its slot for the next record.

        The slots before hold the keys before in this record, which detects duplicates.
        """
        cdef Slot *slot = &self.slots[index]
        cdef Bytes p = skip_space(start), key
        cdef int i
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
            if self.slots[i].hashed == slot.hashed:
                return fail(cursor, key)
        slot.field = self.field_of(key + 1, p - key - 2)
        p = skip_colon(cursor, p)
        if p == NULL:
            return NULL
        if p >= cursor.end:
            return fail(cursor, p)
        slot.length = <int>(p - start) if p - start <= LONGEST else 0
        memcpy(slot.text, start, slot.length)
        self.slot_count = index + 1
        return p

    cdef Bytes record(self, Cursor *cursor, Bytes p, int depth) noexcept nogil:
        """Read one record, an object at level `depth`, into the next row."""
        cdef int index = 0, field
        cdef Bytes q
        if self.size == 0:
            return skip_value(cursor, p, depth)
        if p[0] != c'{' or not self.reserve(self.rows + 1):
            return fail(cursor, p)
        p += 1
        self.seen = 0
        while True:
            if index < self.slot_count and _matches(p, &self.slots[index]):
                p += self.slots[index].length
            else:
                q = skip_space(p)
                if q[0] == c'}':
                    return q + 1
                p = self.learn(cursor, index, p)
                if p == NULL:
                    return NULL
            field = self.slots[index].field
            if field < 0:
                p = skip_value(cursor, p, depth + 1)
            elif self.seen >> field & 1:
                return fail(cursor, p)  # two keys of one column
            else:
                p = self.read_value(cursor, field, p, self.rows, depth + 1)
            if p == NULL:
                return NULL
            index += 1
            if p[0] == c'}':
                return p + 1

    cdef inline Bytes read_value(
        self, Cursor *cursor, int field, Bytes p, Py_ssize_t row, int depth
    ) noexcept nogil:
        """Read a value of a column into a row; its level is `depth`."""
        cdef Column_ *column = &self.columns[field]
        cdef double *number
        cdef Kind kind = column.kind
        cdef Bytes start = p
        if p[0] == c'n' and kind != SCORE and kind != BOX and kind != KEY:
            return skip_word(cursor, p, b"null", 4)
        if column.data == NULL and not self.activate(field):
            return fail(cursor, p)
        self.seen |= <uint32_t>1 << field
        number = <double *>column.data + row
        if kind == BOX:
            return self.read_box(cursor, p, <double *>column.data + 4 * row)
        if kind == KEY:
            return self.read_key(cursor, p, <int64_t *>column.data + row)
        if kind == SCORE:
            return _read_score(cursor, p, number)
        if kind == FLAG:
            return _read_flag(cursor, p, number)
        if kind == SPAN:
            p = skip_value(cursor, p, depth)
            if p == NULL:
                return NULL
            if not self.put_span(column, start, p - start):
                return fail(cursor, start)
            (<int64_t *>column.data)[row] = column.used
            return p
        if kind == COUNT:
            p = _read_whole(cursor, p, number)
        else:
            p = read_number(p, cursor.end, &cursor.failed, number)
        return p if p == NULL or number[0] >= 0 else fail(cursor, start)

    cdef inline Bytes read_box(self, Cursor *cursor, Bytes p, double *box) noexcept nogil:
        cdef int i
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
        if self.xyxy:
            if not isfinite((box[2] - box[0]) * (box[3] - box[1])):
                return fail(cursor, p)
        elif not (isfinite(box[2] * box[3]) and isfinite(box[0] + box[2])
                and isfinite(box[1] + box[3])):
            return fail(cursor, p)
        return p

    cdef inline Bytes read_key(self, Cursor *cursor, Bytes p, int64_t *to) noexcept nogil:
        """Read an integer, a whole float or a string without surrogates."""
        cdef Bytes behind, at = p
        cdef bint escapes
        cdef int64_t value = WORD
        cdef double number
        if p[0] == c'"':
            behind = skip_string(cursor, p, &escapes)
            if behind == NULL:
                return NULL
            while escapes and at < behind:
                if at[0] == c'\\' and at[1] == c'u' and at[2] | 32 == c'd':
                    return fail(cursor, p)
                at += 2 if at[0] == c'\\' else 1
        else:
            behind = read_integer(p, &cursor.failed, &value)
            if behind == NULL:
                behind = _read_whole(cursor, p, &number)
                if behind == NULL:
                    return NULL
                value = <int64_t>number
        if not -WORD < value < WORD:
            value = names_find(&self.words, <const char *>p, behind - p, True)
            if value < 0:
                return fail(cursor, p)
            value += WORD
        to[0] = value
        return behind

    # --- rows

    cdef inline bint reserve(self, Py_ssize_t rows) noexcept nogil:
        cdef Py_ssize_t room
        cdef int i
        if rows <= self.room:
            return True
        room = max(2 * self.room, rows + 1023)
        for i in range(self.size):
            if self.active >> i & 1:
                if not grow(&self.columns[i].data, room, self.columns[i].width):
                    return False
        self.room = room
        return True

    cdef bint activate(self, int field) noexcept nogil:
        """Allocate a column at its first value; False when out of memory."""
        cdef Column_ *column = &self.columns[field]
        cdef Py_ssize_t row
        if not grow(&column.data, max(self.room, 1), column.width):
            return False
        self.active |= <uint32_t>1 << field
        for row in range(self.rows):
            self.put_missing(column, row)
        return True

    cdef inline void put_missing(self, Column_ *column, Py_ssize_t row) noexcept nogil:
        cdef int i, numbers = column.width // 8
        if column.kind == KEY:
            (<int64_t *>column.data)[row] = INT64_MIN
        elif column.kind == SPAN:
            (<int64_t *>column.data)[row] = column.used = self.span_end(column, row)
        else:
            for i in range(numbers):
                (<double *>column.data)[numbers * row + i] = NAN

    cdef inline int64_t span_end(self, const Column_ *column, Py_ssize_t row) noexcept nogil:
        """Return the end of the spans of the rows before a row."""
        return (<int64_t *>column.data)[row - 1] if row > self.drained else 0

    cdef bint put_span(self, Column_ *column, Bytes text, Py_ssize_t length) noexcept nogil:
        """Append JSON to the spans."""
        if column.used + length + 1 + PADDING > column.room:
            column.room = max(2 * column.room, column.used + length + 4096)
            if not grow(<void **>&column.text, column.room, 1):
                return False
        memcpy(column.text + column.used, text, length)
        column.text[column.used + length] = c','
        column.used += length + 1
        return True

    cdef void finish_row(self) noexcept nogil:
        """Complete the row whose values were read by those that it lacks."""
        cdef uint32_t kept = self.seen & ~(self.only_boxless if self.seen & self.box else 0)
        cdef uint32_t missing = self.active & ~kept
        cdef int i = 0
        while missing:
            if missing & 1:
                self.put_missing(&self.columns[i], self.rows)
            missing >>= 1
            i += 1
        self.rows += 1

    cdef bint complete(self, Py_ssize_t count) noexcept nogil:
        """Complete new rows; False if required values are missing."""
        cdef int i
        for i in range(self.required_count):
            if not self.seen & self.required[i]:
                return False
        while count:
            self.finish_row()
            count -= 1
        return True

    cdef void roll_back(self, Py_ssize_t rows) noexcept nogil:
        """Remove the rows from `rows`, and spans of a row that was not finished."""
        cdef int i
        cdef Column_ *column
        for i in range(self.size):
            column = &self.columns[i]
            if column.kind == SPAN and column.data != NULL:
                column.used = self.span_end(column, rows)
        self.rows = rows

    def append(self, values: Mapping[str, object]) -> None:
        """Append a row; columns without a value are missing.

        Ids are integers or strings, spans are JSON as bytes.
        """
        cdef Column_ *column
        cdef Py_ssize_t row = self.rows
        cdef double *box
        cdef bytes text
        cdef int field, i
        self.roll_back(row)
        self.seen = 0
        if not self.reserve(row + 1):
            raise MemoryError
        for field, name in enumerate(self.names):
            value = values.get(name)
            if value is None:
                continue
            column = &self.columns[field]
            self.seen |= <uint32_t>1 << field
            if column.data == NULL and not self.activate(field):
                raise MemoryError
            if column.kind == BOX:
                box = <double *>column.data + 4 * row
                for i in range(4):
                    box[i] = value[i]
            elif column.kind == SPAN:
                text = value
                if not self.put_span(column, text, len(text)):
                    raise MemoryError
                (<int64_t *>column.data)[row] = column.used
            elif column.kind == KEY:
                (<int64_t *>column.data)[row] = self.number_of(value)
            else:
                (<double *>column.data)[row] = value
        self.finish_row()

    cdef int64_t number_of(self, object value) except? -1:
        """Return an id as a number: itself, or that of a word."""
        cdef bytes text
        cdef int64_t word
        if not isinstance(value, str) and -WORD < value < WORD:
            return value
        text = json.dumps(value).encode()
        word = names_find(&self.words, text, len(text), True)
        if word < 0:
            raise MemoryError
        return WORD + word

    def bytes_of(self, str name) -> bytes:
        """Return a copy of a column's rows."""
        cdef Column_ *column = &self.columns[self.field(name)]
        if column.data == NULL and not self.activate(self.field(name)):
            raise MemoryError
        return (<const char *>column.data)[: column.width * self.rows]

    def names_of(self, keys: Sequence[int]) -> list[Name | None]:
        """Return the values of keys; None for a missing one."""
        return [self.name_of(key) for key in keys]

    def take(self, str name) -> NDArray[Any]:
        """Return a column, which is empty afterwards; after the last row."""
        cdef Column_ *column = &self.columns[self.field(name)]
        code = b"q" if column.kind == KEY or column.kind == SPAN else b"d"
        if column.data == NULL and not self.activate(self.field(name)):
            raise MemoryError
        self.active &= ~(<uint32_t>1 << self.field(name))
        return take(&column.data, self.rows, column.width // 8, 8, code)

    def holds(self, str name) -> bool:
        """Return True if a record had a value, whether kept or not."""
        return bool(self.active >> self.field(name) & 1)

    def key_of(self, str name, Py_ssize_t row) -> Name | None:
        """Return the key of a row; None if it is missing."""
        cdef Column_ *column = &self.columns[self.field(name)]
        return None if column.data == NULL else self.name_of((<int64_t *>column.data)[row])

    cdef object name_of(self, int64_t value):
        cdef int64_t word = value - WORD
        cdef bytes text
        if value < WORD:
            return None if value == INT64_MIN else value
        text = self.words.text[self.words.start[word] : self.words.start[word + 1]]
        if text[0] == c'"' and b"\\" not in text:
            return text[1 : len(text) - 1].decode()
        return json.loads(text)

    def span_of(self, str name, Py_ssize_t row) -> bytes:
        """Return the JSON of a row; empty if it has none, or was drained."""
        cdef Column_ *column = &self.columns[self.field(name)]
        cdef int64_t begin, end
        if column.data == NULL or row < self.drained:
            return b""
        begin, end = self.span_end(column, row), (<int64_t *>column.data)[row]
        return column.text[begin : end - 1] if end > begin else b""

    def spans(self, str name) -> tuple[bytes, bytes]:
        """Return the JSON of the rows from `drained`, padded, and the ends, int64.

        A comma is behind each.
        """
        cdef Column_ *column = &self.columns[self.field(name)]
        cdef const char *ends = <const char *>column.data
        if ends == NULL:
            return bytes(PADDING), bytes(8 * (self.rows - self.drained))
        text = column.text[: column.used] if column.text else b""
        return text + bytes(PADDING), ends[8 * self.drained : 8 * self.rows]

    def drain(self) -> None:
        """Forget the spans of all rows."""
        self.forget_spans()

    cdef void forget_spans(self) noexcept nogil:
        self.drained = self.rows
        self.roll_back(self.rows)

    # --- lines

    def read_lines(
        self, Fields inner, str name, bytes text, Py_ssize_t at, int nesting
    ) -> int:
        """Append the lines of text from an offset, each a record as a row.

        Under `name`, it has a list of objects or an object of lists: rows of `inner`, whose ends
        are then in the column. The last line ends too, and is followed by the padding.
        Return the offset of an odd or blank line, which the caller reads and steps over, or that
        where the text ends or `inner` has more than `most` rows.
        """
        cdef Bytes start = text, p, line_end
        cdef Bytes end = start + len(text) - PADDING
        cdef Cursor cursor
        cdef Py_ssize_t before
        cdef int field = self.field(name)
        cursor.deepest = min(nesting, 64)
        with nogil:
            while start + at < end and inner.rows <= inner.most:
                line_end = <Bytes>memchr(start + at, c'\n', end - start - at)
                cursor.end, cursor.keys = end, 0
                before = inner.rows
                p = self.record(&cursor, skip_space(start + at), 1)
                # A value may not continue on the next line.
                if (
                    self.each or p == NULL or p > line_end or skip_space(p) < line_end
                    or not self.read_nested(inner, field, &cursor) or not self.complete(1)
                ):
                    inner.roll_back(before)
                    break
                self.forget_spans()
                (<int64_t *>self.columns[field].data)[self.rows - 1] = inner.rows
                at = line_end + 1 - start
        self.roll_back(self.rows)
        return at

    cdef bint read_nested(self, Fields inner, int field, Cursor *cursor) noexcept nogil:
        """Read the objects in the span of the row being read, the first that is not drained."""
        cdef Bytes p = <Bytes>self.columns[field].text
        if not self.seen >> field & 1:
            return False
        cursor.end = p + self.columns[field].used
        return inner.read_objects(cursor, p) if p[0] == c'[' else inner.read_lists(cursor, p)

    cdef bint read_objects(self, Cursor *cursor, Bytes p) noexcept nogil:
        """Read a list whose syntax was checked."""
        p = skip_space(p + 1)
        while p[0] != c']':
            p = self.record(cursor, p, 3)
            if p == NULL or not self.complete(1):
                return False
            p = skip_space(p)
            if p[0] == c',':
                p = skip_space(p + 1)
        return True

    cdef bint read_lists(self, Cursor *cursor, Bytes p) noexcept nogil:
        """Read an object of lists whose syntax was checked; boxes are required."""
        cdef Py_ssize_t count = -1, n
        cdef uint32_t seen = 0
        cdef Bytes key
        cdef bint escapes
        cdef int field
        if p[0] != c'{':
            return False
        p = skip_space(p + 1)
        while p[0] != c'}':
            key = p
            p = skip_string(cursor, p, &escapes)
            field = self.field_of(key + 1, p - key - 2)
            p = skip_space(skip_space(p) + 1)
            if p[0] == c'[':
                if field >= 0:
                    if seen >> field & 1:   # two keys of one column
                        return False
                    seen |= <uint32_t>1 << field
                p = self.read_list(cursor, field, p, &n)
                if p == NULL or count >= 0 and n != count:
                    return False
                count = n
            elif field < 0:
                p = skip_value(cursor, p, 3)
            else:
                return False
            p = skip_space(p)
            if p[0] == c',':
                p = skip_space(p + 1)
        self.seen = seen
        return seen & self.box != 0 and (count == 0 or self.complete(count))

    cdef Bytes read_list(
        self, Cursor *cursor, int field, Bytes p, Py_ssize_t *count
    ) noexcept nogil:
        """Read the values of one column, of the rows from the next."""
        cdef Py_ssize_t row = self.rows
        cdef Column_ *column = &self.columns[max(field, 0)]
        p = skip_space(p + 1)
        while p[0] != c']':
            if field < 0:
                p = skip_value(cursor, p, 4)
            else:
                if not self.reserve(row + 1) or column.data == NULL and not self.activate(field):
                    return NULL
                self.put_missing(column, row)   # for null
                p = self.read_value(cursor, field, p, row, 4)
            if p == NULL:
                return NULL
            row += 1
            p = skip_space(p)
            if p[0] == c',':
                p = skip_space(p + 1)
        count[0] = row - self.rows
        return p + 1


cdef struct Nesting:
    Py_ssize_t depth, deepest
    bint inside, escaped        # in a string, after a backslash


cdef inline void _nest(Nesting *nested, uint8_t c) noexcept nogil:
    """Count the next byte of JSON text, if it is a bracket outside strings."""
    if nested.inside:
        nested.inside = nested.escaped or c != c'"'
        nested.escaped = not nested.escaped and c == c'\\'
    elif c == c'"':
        nested.inside = True
    elif c == c'[' or c == c'{':
        nested.depth += 1
        nested.deepest = max(nested.deepest, nested.depth)
    elif c == c']' or c == c'}':
        nested.depth -= 1


@cython.final
cdef class Reader:
    """A JSON file that is read in blocks.

    `reader` returns the next bytes, at most the given number. `failed` is set if the file cannot be
    read further, or is too large.
    """

    cdef object reader
    cdef object error           # raised by the reader
    cdef uint8_t *bytes
    cdef size_t capacity, have, at
    cdef uint64_t given_bytes, most_bytes
    cdef readonly bint failed
    cdef bint ended, first      # `first`: the next item is the first of its list
    cdef Cursor cursor

    def __cinit__(self, reader: Callable[[int], bytes], most_bytes: int, int nesting):
        self.reader, self.most_bytes = reader, most_bytes
        self.cursor.deepest = min(nesting, 64)

    def __dealloc__(self):
        free(self.bytes)

    @property
    def given(self) -> int:
        """Bytes read so far; safe to call from another thread."""
        return self.given_bytes

    @property
    def offset(self) -> int:
        """Offset of the next byte in the file."""
        return self.given_bytes - (self.have - self.at)

    cdef check(self):
        """Raise the error of the reader."""
        if self.error is not None:
            raise self.error

    cdef Py_ssize_t ask_reader(self, uint8_t *to, size_t count) noexcept with gil:
        try:
            block = self.reader(count)
            memcpy(to, <const char *>(<bytes>block), min(<size_t>len(block), count))
            return len(block) if <size_t>len(block) <= count else -1
        except BaseException as error:
            self.error = error
            return -1

    cdef bint more(self) noexcept nogil:
        """Read another block after the unprocessed bytes; False on failure."""
        cdef Py_ssize_t got
        cdef size_t larger
        if self.at:
            memmove(self.bytes, self.bytes + self.at, self.have - self.at)
            self.have -= self.at
            self.at = 0
        if self.have + BLOCK > self.capacity:
            larger = max(2 * self.capacity, <size_t>(2 * BLOCK))
            if not grow(<void **>&self.bytes, larger + PADDING, 1):
                return False
            self.capacity = larger
        got = self.ask_reader(self.bytes + self.have, BLOCK)
        self.failed = got < 0
        if self.failed:
            return False
        self.ended = got == 0
        self.have += got
        self.given_bytes += got
        memset(self.bytes + self.have, 0, PADDING)
        self.cursor.end = self.bytes + self.have
        self.failed = self.given_bytes > self.most_bytes
        return not self.failed

    cdef bint again(self) noexcept nogil:
        """Read more bytes after a step that may have failed for lack of them.

        Reads at least as many bytes as the step consumed, so that a long string is not scanned
        again for each block.
        """
        cdef uint64_t goal = self.given_bytes + (self.have - self.at)
        if self.ended or self.cursor.failed + NEARBY < self.cursor.end:
            return False
        while True:
            if not self.more():
                return False
            if self.ended or self.given_bytes >= goal:
                return True

    def begin(self) -> None:
        """Read the first block and step over a byte order mark."""
        while self.have < 4 and not self.ended and self.more():
            pass
        self.check()
        if self.have >= 3 and memcmp(self.bytes, b"\xef\xbb\xbf", 3) == 0:
            self.at = 3

    cdef uint8_t next(self) noexcept nogil:
        """Skip white space and return the next byte; 0 at the end."""
        cdef Bytes p
        if self.bytes == NULL:
            return 0
        while True:
            p = skip_space(self.bytes + self.at)
            self.at = p - self.bytes
            if p < self.cursor.end or self.ended:
                return p[0]
            if not self.more():
                return 0

    def peek(self) -> str:
        """Return the next character other than white space; empty at the end."""
        cdef uint8_t c = self.next()
        self.check()
        return chr(c) if self.at < self.have else ""

    def skip(self) -> None:
        """Step over the character that `peek` returned."""
        self.at += 1
        self.first = True

    cdef Py_ssize_t extent(self) noexcept nogil:
        """Return the length of the next value by its brackets and quotes; -1 if it has no end."""
        cdef Nesting nested = Nesting(0, 0, False, False)
        cdef size_t i = 0
        cdef uint8_t c
        while True:
            while self.at + i >= self.have:
                if self.ended or not self.more():
                    return i if nested.depth == 0 and not nested.inside else -1
            c = self.bytes[self.at + i]
            if nested.depth == 0 and not nested.inside:
                if c in (c',', c':', c']', c'}') or c <= 32:
                    return i
            _nest(&nested, c)
            i += 1
            if nested.depth == 0 and not nested.inside and c in (c'"', c']', c'}'):
                return i

    def value(self) -> bytes | None:
        """Return the JSON of the next value, and step over it; None if it has no end."""
        cdef Py_ssize_t length
        self.next()
        with nogil:
            length = self.extent()
        self.check()
        if length <= 0:
            return None
        text = (<const char *>self.bytes + self.at)[:length]
        self.at += length
        return text

    def walk(self, Fields fields, int depth) -> int:
        """Read the records of a list at this level into rows.

        Return DONE at the end of the list; ODD before a record that the caller reads by `value`;
        LIMIT before one too many; else the spans should be drained.
        """
        cdef int state
        with nogil:
            state = self.read_list(fields, depth)
        self.check()
        fields.roll_back(fields.rows)
        return state

    cdef int read_list(self, Fields fields, int depth) noexcept nogil:
        cdef Bytes p
        cdef int i
        while True:
            p = skip_space(self.bytes + self.at)
            if self.first and p[0] == c']':
                self.at = p + 1 - self.bytes
                return _DONE
            if fields.rows >= fields.most and p < self.cursor.end:
                return _LIMIT
            if fields.each or fields.size and self.cursor.deepest < depth + 2:
                self.cursor.failed = p
                if p < self.cursor.end or not self.again():
                    self.at = p - self.bytes
                    return _ODD
                continue
            self.cursor.keys = 0
            p = fields.record(&self.cursor, p, depth + 1)
            if p != NULL:
                p = skip_space(p)
                if p[0] == c',' or p[0] == c']':
                    if not fields.complete(1):
                        return _ODD
                    self.first = False
                    self.at = p + 1 - self.bytes
                    if p[0] == c']':
                        return _DONE
                    for i in range(fields.size):
                        if fields.columns[i].used > FULL:
                            return _FULL
                    continue
                self.cursor.failed = p
            fields.roll_back(fields.rows)
            if not self.again():
                return _ODD

    def end_item(self, closing: str) -> bool | None:
        """Step over the comma or bracket after an item; True at the end, None for others."""
        character = self.peek()
        if character not in (",", closing) or not character:
            return None
        self.at += 1
        self.first = False
        return character == closing


def nesting(bytes text) -> int:
    """Return the maximum nesting depth of JSON text.

    Brackets in strings do not count. For invalid JSON, the result is arbitrary.
    """
    cdef Nesting nested = Nesting(0, 0, False, False)
    cdef Bytes p = text
    cdef Bytes end = p + len(text)
    with nogil:
        while p < end:
            _nest(&nested, p[0])
            p += 1
    return nested.deepest
