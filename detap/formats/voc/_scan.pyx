"""Scan VOC annotations in XML into columns.

This is not an XML parser. It reads the plain well-formed XML that VOC tools write: elements without
attributes, and text in UTF-8, perhaps with ``&amp;``. The reader uses lxml for files with anything
else, or an unexpected object. So the checks below must be at least as strict as XML.
"""

from libc.math cimport NAN, isfinite, isnan
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcmp

from detap.formats.reading._bytes cimport Bytes, is_word, skip_character
from detap.formats.reading._names cimport Names, names_find
from detap.formats.text._ragged cimport RowColumns, scan_number
from detap.tables._columns cimport put_number


cdef enum:
    DEEPEST = 32
    LONGEST_NAME = 1000     # libxml2's own limit is larger


cdef enum Role:
    # The role of an element, given by its tag and its parent's role.
    IGNORED
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


cdef struct Object:
    # The current object: its elements so far (bits by role), and their values.
    int seen
    int32_t name
    bint difficult
    double[4] corners


cdef struct Open:
    # An open element.
    const char *tag
    size_t length
    Role role


cdef bint _is_object_miswritten(const char *tag, size_t length) noexcept nogil:
    """Return True if a tag is "object" except for its case."""
    cdef int i
    cdef char[6] lower
    if length != 6:
        return False
    for i in range(6):
        lower[i] = tag[i] | 32
    return memcmp(lower, b"object", 6) == 0


cdef Role _role(Role parent, const char *tag, size_t length) noexcept nogil:
    if parent == ROOT:
        if is_word(tag, length, b"object", 6):
            return OBJECT
        if is_word(tag, length, b"size", 4):
            return SIZE
    elif parent == OBJECT:
        if is_word(tag, length, b"name", 4):
            return NAME
        if is_word(tag, length, b"bndbox", 6):
            return BOX
        if is_word(tag, length, b"difficult", 9):
            return DIFFICULT
    elif parent == BOX and length == 4:
        if memcmp(tag, b"xmin", 4) == 0:
            return XMIN
        if memcmp(tag, b"ymin", 4) == 0:
            return YMIN
        if memcmp(tag, b"xmax", 4) == 0:
            return XMAX
        if memcmp(tag, b"ymax", 4) == 0:
            return YMAX
    elif parent == SIZE:
        if is_word(tag, length, b"width", 5):
            return WIDTH
        if is_word(tag, length, b"height", 6):
            return HEIGHT
    return IGNORED


cdef const char *_skip_character(const char *at, const char *end) noexcept nogil:
    """Return the position after a multi-byte UTF-8 character, or NULL if invalid."""
    cdef Bytes behind = skip_character(<Bytes>at, <Bytes>end)
    # XML does not allow U+FFFE and U+FFFF.
    if behind != NULL and memcmp(at, b"\xef\xbf", 2) == 0 and <uint8_t>at[2] >= 0xBE:
        return NULL
    return <const char *>behind


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
    while at != NULL and at < end:
        if at[0] == c'<':
            return at
        if <uint8_t>at[0] >= 128:
            at = _skip_character(at, end)
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


cdef bint _take_text(
    Role role, const char *at, const char *end, Object *current, double *size, Names *names
) noexcept nogil:
    """Take the text of a text-only element; False if it is unexpected."""
    cdef int i
    cdef const char *stop
    cdef double value
    cdef int bit = 1 << <int>role
    at = _skip_blanks(at, end)
    while end > at and _is_blank((end - 1)[0]):
        end -= 1
    if at == end:
        return False
    if role == NAME:
        for i in range(end - at):
            if <uint8_t>at[i] < 32 or at[i] == c'&':
                return False
        current.name = names_find(names, at, end - at, True)
        if current.name < 0:
            return False
    elif role == DIFFICULT:
        if end - at != 1 or not (at[0] == c'0' or at[0] == c'1'):
            return False
        current.difficult = at[0] == c'1'
    else:
        if not scan_number(at, end, &stop, &value) or stop != end:
            return False
        if role == WIDTH or role == HEIGHT:
            # Irregular: duplicate, or 0, which some tools write for unknown.
            if not isnan(size[role - WIDTH]) or value <= 0:
                return False
            size[role - WIDTH] = value
            return True
        current.corners[role - XMIN] = value
    if current.seen & bit:
        return False
    current.seen |= bit
    return True


cdef class Annotations(RowColumns):
    """The objects of the files read so far; the line of a row is its number in the file, from 1.

    Parameters
    ----------
    nesting : int
        The limit; more deeply nested files are not regular.

    Attributes
    ----------
    width, height : float
        Of the image of the last file, NaN if unknown.
    """

    cdef int deepest
    cdef double[2] size
    cdef Py_ssize_t first   # row of the file

    def __cinit__(self, int nesting):
        self.deepest = min(nesting, DEEPEST)

    @property
    def width(self) -> float:
        return self.size[0]

    @property
    def height(self) -> float:
        return self.size[1]

    def read(self, bytes data, int32_t file) -> bool:
        """Append the objects of a regular file; return False for others, and append nothing."""
        cdef const char *at = data
        self.first = self.rows.count
        self.size[0] = self.size[1] = NAN
        if self.scan(at, at + len(data), file):
            return True
        self.cut(self.first)
        return False

    cdef bint take_object(self, const Object *current, int32_t file) noexcept nogil:
        """Append a complete object; False if it is unexpected."""
        cdef int i
        cdef int required = (
            1 << <int>NAME | 1 << <int>BOX | 1 << <int>XMIN | 1 << <int>YMIN | 1 << <int>XMAX
            | 1 << <int>YMAX
        )
        cdef double width = current.corners[2] - current.corners[0]
        cdef double height = current.corners[3] - current.corners[1]
        if current.seen & required != required or not isfinite(width * height):
            return False
        for i in range(4):
            if not put_number(&self.numbers, current.corners[i]):
                return False
        return self.end_row(
            file, <int32_t>(self.rows.count - self.first + 1), current.name, current.difficult
        )

    cdef bint scan(self, const char *at, const char *end, int32_t file) noexcept nogil:
        """Append the objects of one file and set the image's size; False to fall back."""
        cdef Open[DEEPEST] stack
        cdef Object current
        cdef int depth = 0
        cdef bint sized = False
        cdef Role role
        cdef const char *tag
        cdef const char *text = NULL
        cdef size_t length
        current.seen = 0
        current.name = 0
        current.difficult = False
        at = _skip_blanks(at, end)
        while True:
            # Now `at` is at a "<", or at what should be one.
            if end - at < 2 or at[0] != c'<':
                return False
            at += 1
            if at[0] == c'/':
                if depth == 0:
                    return False
                tag = at + 1
                length = stack[depth - 1].length
                if <size_t>(end - tag) <= length or memcmp(tag, stack[depth - 1].tag, length) != 0:
                    return False
                role = stack[depth - 1].role
                if role >= NAME and not _take_text(role, text, at - 1, &current, self.size, &self.words):
                    return False
                at = _skip_blanks(tag + length, end)
                if at == end or at[0] != c'>':
                    return False
                at += 1
            else:
                tag = at
                at = _skip_name(at, end)
                if at == NULL or depth == self.deepest:
                    return False
                length = at - tag
                if depth == 0:
                    role = ROOT
                    if not is_word(tag, length, b"annotation", 10):
                        return False
                else:
                    if stack[depth - 1].role >= NAME:
                        return False
                    role = _role(stack[depth - 1].role, tag, length)
                    if role != OBJECT and _is_object_miswritten(tag, length):
                        return False
                at = _skip_blanks(at, end)
                if at == end:
                    return False
                if role == OBJECT:
                    current.seen = 0
                    current.difficult = False
                elif role == BOX:
                    if current.seen & 1 << <int>BOX:
                        return False
                    current.seen |= 1 << <int>BOX
                elif role == SIZE:
                    if sized:
                        return False
                    sized = True
                if at[0] == c'>':
                    at += 1
                    stack[depth].tag = tag
                    stack[depth].length = length
                    stack[depth].role = role
                    depth += 1
                    text = at
                    at = _skip_text(at, end)
                    if at == NULL:
                        return False
                    continue
                # An empty element: required elements may not be empty.
                if end - at < 2 or at[0] != c'/' or at[1] != c'>' or role >= NAME or depth == 0:
                    return False
                at += 2
                depth += 1
            # An element has ended.
            depth -= 1
            if role == OBJECT and not self.take_object(&current, file):
                return False
            if depth == 0:
                return _skip_blanks(at, end) == end
            at = _skip_text(at, end)
            if at == NULL:
                return False
