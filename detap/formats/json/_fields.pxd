"""Columns that are filled from JSON records, and the reader of their file."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from detap.formats.json._grammar cimport Cursor
from detap.formats.reading._bytes cimport Bytes
from detap.formats.reading._names cimport Names
from detap.tables._columns cimport Buffer


cdef enum:
    MOST_FIELDS = 24
    MOST_KEYS = 40
    SLOTS = 48
    WORDS = 6


cdef enum Kind:
    SKIP, NUMBER, SCORE, AREA, COUNT, BOX, ID, KEY, FLAG, SPAN, INNER


cdef struct Slot:
    int length                  # of the text between two values; -1: too long
    int field
    uint64_t hashed             # of the key
    uint64_t[WORDS] words
    uint64_t[WORDS] masks


cdef struct Ids:
    # The distinct ids of a column, in order of occurrence; open addressing.
    int64_t *values
    int32_t *slots              # index + 1, or 0
    uint64_t mask
    int32_t count, room
    int32_t kept                # ids of finished rows
    int64_t last                # the id of the row before, and its index
    int32_t last_index


cdef struct Column_:
    Kind kind
    int width                   # bytes per row
    void *data
    Py_ssize_t missing          # rows without a value
    char *text                  # of spans: their JSON, each with a comma behind
    Py_ssize_t used, pending, room
    Ids ids


cdef struct Key:
    const char *name
    Py_ssize_t length
    int field


@cython.final
cdef class Fields:
    cdef Column_[MOST_FIELDS] columns
    cdef Key[MOST_KEYS] key_names
    cdef Slot[SLOTS] slots
    cdef int size, key_count, slot_count
    cdef uint32_t seen, active, spans, forbidden, box, only_boxless
    cdef uint32_t[8] required
    cdef int required_count
    cdef bint xyxy, has_new_ids
    cdef public bint each
    cdef list names, kept_keys
    cdef Key inner
    cdef Names words            # JSON of the ids that are text or large numbers
    cdef Py_ssize_t room
    cdef readonly Py_ssize_t rows, count, drained
    cdef public Py_ssize_t most
    cdef Buffer marked
    cdef int field_of(self, Bytes key, Py_ssize_t length) noexcept nogil
    cdef Bytes learn(self, Cursor *cursor, int index, Bytes start) noexcept nogil
    cdef Bytes read_value(self, Cursor *cursor, int field, Bytes p, Py_ssize_t row, int depth) noexcept nogil
    cdef Bytes read_id(self, Cursor *cursor, Bytes p, Ids *ids, int32_t *index) noexcept nogil
    cdef Bytes read_key(self, Cursor *cursor, Bytes p, int64_t *value) noexcept nogil
    cdef int64_t number_of(self, object value) except? -1
    cdef Bytes read_box(self, Cursor *cursor, Bytes p, double *box) noexcept nogil
    cdef Bytes read_inner(self, Cursor *cursor, Bytes p, double *value, int depth) noexcept nogil
    cdef Bytes record(self, Cursor *cursor, Bytes p, int depth) noexcept nogil
    cdef bint reserve(self, Py_ssize_t rows) noexcept nogil
    cdef bint activate(self, int field) noexcept nogil
    cdef object name_of(self, int64_t value)
    cdef bint put_span(self, Column_ *column, Bytes text, Py_ssize_t length) noexcept nogil
    cdef bint complete(self, Py_ssize_t count) noexcept nogil
    cdef void finish_row(self) noexcept nogil
    cdef void roll_back(self, Py_ssize_t rows) noexcept nogil
    cdef bint read_objects(self, Cursor *cursor, Bytes p) noexcept nogil
    cdef bint read_lists(self, Cursor *cursor, Bytes p) noexcept nogil
    cdef Bytes read_list(self, Cursor *cursor, int field, Bytes p, Py_ssize_t *count) noexcept nogil
    cdef int field(self, str name) except -1
    cdef Py_ssize_t span(self, int field, Py_ssize_t row, Bytes *start) noexcept nogil
