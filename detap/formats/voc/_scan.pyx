"""Scan VOC annotations in XML into columns.

This is not an XML parser. It reads the plain well-formed XML that VOC tools write: elements without
attributes, and text in UTF-8, perhaps with ``&amp;``. The reader uses lxml for files with anything
else, or an unexpected object. So the checks below must be at least as strict as XML.
"""

from libc.math cimport NAN, isfinite
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcmp, strlen

from detap.formats.reading._bytes cimport Bytes, is_word, skip_character
from detap.formats.reading._names cimport names_find
from detap.formats.text._ragged cimport RowColumns, scan_number
from detap.tables._columns cimport put_number


cdef extern from "Python.h":
    int PyOS_strnicmp(const char *one, const char *other, Py_ssize_t length) nogil


cdef enum:
    DEEPEST = 32
    LONGEST_NAME = 1000     # libxml2's own limit is larger
    ROLES = 14


cdef enum Role:
    # The role of an element, given by its tag and its parent's role.
    IGNORED
    FILE        # the parent of the root
    ROOT
    OBJECT
    BOX
    SIZE
    NAME        # from start on, elements that contain only text
    DIFFICULT
    XMIN
    YMIN
    XMAX
    YMAX
    WIDTH
    HEIGHT


ctypedef const char *Tag

cdef Tag[ROLES] TAGS = [
    b"", b"", b"annotation", b"object", b"bndbox", b"size", b"name", b"difficult", b"xmin", b"ymin",
    b"xmax", b"ymax", b"width", b"height",
]
cdef Role[ROLES] PARENTS = [
    FILE, FILE, FILE, ROOT, OBJECT, ROOT, OBJECT, OBJECT, BOX, BOX, BOX, BOX, SIZE, SIZE,
]
cdef int OF_IMAGE = 1 << <int>SIZE | 1 << <int>WIDTH | 1 << <int>HEIGHT
cdef int REQUIRED = (
    1 << <int>NAME | 1 << <int>BOX | 1 << <int>XMIN | 1 << <int>YMIN | 1 << <int>XMAX
    | 1 << <int>YMAX
)


cdef struct Open:
    # An open element.
    const char *tag
    size_t length
    Role role


cdef Role _role(Role parent, const char *tag, size_t length) noexcept nogil:
    cdef int role
    for role in range(ROOT, ROLES):
        if PARENTS[role] == parent and is_word(tag, length, TAGS[role], strlen(TAGS[role])):
            return <Role>role
    return IGNORED


cdef inline bint _is_blank(char c) noexcept nogil:
    return c == c' ' or c == c'\n' or c == c'\t' or c == c'\r'


cdef inline bint _is_letter(char c) noexcept nogil:
    return c'a' <= (c | 32) <= c'z' or c == c'_'


cdef const char *_skip_blanks(const char *at, const char *end) noexcept nogil:
    while at < end and _is_blank(at[0]):
        at += 1
    return at


cdef const char *_skip_text(const char *at, const char *end) noexcept nogil:
    """Return the next ``<``; NULL if there is none or the text is not plain."""
    cdef bint allowed
    while at != NULL and at < end:
        if at[0] == c'<':
            return at
        if <uint8_t>at[0] >= 128:
            # XML does not allow U+FFFE and U+FFFF.
            allowed = end - at < 3 or memcmp(at, b"\xef\xbf", 2) != 0 or <uint8_t>at[2] < 0xBE
            at = <const char *>skip_character(<Bytes>at, <Bytes>end) if allowed else NULL
        elif at[0] == c'&':
            at = at + 5 if end - at >= 5 and memcmp(at, b"&amp;", 5) == 0 else NULL
        # XML does not allow "]]>".
        elif (at[0] == c']' and end - at > 1 and at[1] == c']') or (at[0] < 32 and not _is_blank(at[0])):
            return NULL
        else:
            at += 1
    return NULL


cdef const char *_skip_name(const char *at, const char *end) noexcept nogil:
    """Return the position after an ASCII name without prefix, or NULL."""
    cdef const char *start = at
    if at == end or not _is_letter(at[0]):
        return NULL
    while at < end and (
        _is_letter(at[0]) or c'0' <= at[0] <= c'9' or at[0] == c'-' or at[0] == c'.'
    ):
        at += 1
    return at if at - start <= LONGEST_NAME else NULL


cdef class Annotations(RowColumns):
    """The objects of the files read so far; the line of a row is its number in the file, from 1.

    Parameters
    ----------
    nesting : int
        The limit; more deeply nested files are not regular.
    """

    cdef int deepest
    cdef Py_ssize_t first   # row of the file
    # The elements of the file and of the current object so far (bits by role), and their values.
    cdef int seen
    cdef int32_t name
    cdef bint difficult
    cdef double[6] values   # corners of the object; width and height of the image

    def __cinit__(self, int nesting):
        self.deepest = min(nesting, DEEPEST)

    def read(self, bytes data, int32_t file) -> tuple[float, float] | None:
        """Append the objects of a regular file; return its size, NaN if unknown.

        Return None for others, and append nothing.
        """
        cdef const char *at = data
        self.first = self.rows.count
        self.values[4] = self.values[5] = NAN
        self.seen = 0
        if self.scan(at, at + len(data), file):
            return self.values[4], self.values[5]
        self.cut(self.first)
        return None

    cdef bint is_repeated(self, Role role) noexcept nogil:
        """Return True if the file or the current object has had such an element."""
        cdef int bit = 1 << <int>role
        cdef bint repeated = self.seen & bit
        self.seen |= bit
        return repeated

    cdef bint take_text(self, Role role, const char *at, const char *end) noexcept nogil:
        """Take the text of a text-only element; False if it is unexpected."""
        cdef int i
        cdef const char *stop
        cdef double value
        at = _skip_blanks(at, end)
        while end > at and _is_blank((end - 1)[0]):
            end -= 1
        if at == end or self.is_repeated(role):
            return False
        if role == NAME:
            for i in range(end - at):
                if <uint8_t>at[i] < 32 or at[i] == c'&':
                    return False
            self.name = names_find(&self.words, at, end - at, True)
            return self.name >= 0
        if role == DIFFICULT:
            self.difficult = at[0] == c'1'
            return end - at == 1 and (self.difficult or at[0] == c'0')
        if not scan_number(at, end, &stop, &value) or stop != end:
            return False
        self.values[role - XMIN] = value
        return role < WIDTH or value > 0    # some tools write 0 for an unknown size

    cdef bint take_object(self, int32_t file) noexcept nogil:
        """Append a complete object; False if it is unexpected."""
        cdef int i
        cdef double width = self.values[2] - self.values[0]
        cdef double height = self.values[3] - self.values[1]
        if self.seen & REQUIRED != REQUIRED or not isfinite(width * height):
            return False
        for i in range(4):
            if not put_number(&self.numbers, self.values[i]):
                return False
        return self.end_row(
            file, <int32_t>(self.rows.count - self.first + 1), self.name, self.difficult
        )

    cdef bint scan(self, const char *at, const char *end, int32_t file) noexcept nogil:
        """Append the objects of one file and set the image's size; False to fall back."""
        cdef Open[DEEPEST + 1] stack
        cdef int depth = 0
        cdef Role role, parent
        cdef const char *tag
        cdef const char *text = NULL
        cdef size_t length
        cdef bint closes
        stack[0] = Open(NULL, 0, FILE)
        at = _skip_blanks(at, end)
        while True:
            # Now `at` is at a "<", or at what should be one.
            if end - at < 2 or at[0] != c'<':
                return False
            closes = at[1] == c'/'
            tag = at + 1 + closes
            at = _skip_name(tag, end)
            if at == NULL:
                return False
            length = at - tag
            at = _skip_blanks(at, end)
            if closes:
                role = stack[depth].role
                if not is_word(tag, length, stack[depth].tag, stack[depth].length):
                    return False
                if role >= NAME and not self.take_text(role, text, tag - 2):
                    return False
                depth -= 1
            else:
                parent = stack[depth].role
                role = _role(parent, tag, length)
                if depth == self.deepest or parent >= NAME or (parent == FILE and role != ROOT):
                    return False
                if role == OBJECT:
                    self.seen &= OF_IMAGE
                    self.difficult = False
                elif length == 6 and PyOS_strnicmp(tag, b"object", 6) == 0:
                    return False
                elif (role == BOX or role == SIZE) and self.is_repeated(role):
                    return False
                if at < end and at[0] == c'>':
                    depth += 1
                    stack[depth] = Open(tag, length, role)
                    text = at + 1
                    at = _skip_text(text, end)
                    if at == NULL:
                        return False
                    continue
                # An empty element: required elements may not be empty.
                if at == end or at[0] != c'/' or role >= NAME or role == ROOT:
                    return False
                at += 1
            # An element has ended.
            if at == end or at[0] != c'>' or (role == OBJECT and not self.take_object(file)):
                return False
            at += 1
            if depth == 0:
                return _skip_blanks(at, end) == end
            at = _skip_text(at, end)
            if at == NULL:
                return False
