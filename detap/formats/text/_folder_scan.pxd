"""What both scanners of VOC files share: reading a file, rows in columns.

Only functions to be inlined: nothing of this module exists when the program runs.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.math cimport isfinite
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from detap.formats.reading._bytes cimport Bytes
from detap.formats.reading._names cimport Names, names_close, names_open
from detap.formats.reading._numbers cimport read_decimal
from detap.tables._columns cimport grow, take


cdef extern from *:
    """
    /* Reads a regular file below a folder in as few system calls as there can be. Whatever is odd
       about it (no regular file, too large, growing, unreadable) is left to the careful reader. */
    #ifdef _WIN32
    static long long detap_read_file(
        int folder, const char *name, char **data, size_t *room, size_t limit) {
        (void)folder; (void)name; (void)data; (void)room; (void)limit;
        return -1;
    }
    #else
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/stat.h>
    #include <unistd.h>
    static long long detap_read_file(
        int folder, const char *name, char **data, size_t *room, size_t limit) {
        struct stat about;
        size_t size, got = 0;
        long long answer = -1;
        int file = openat(folder < 0 ? AT_FDCWD : folder, name,
                          O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file < 0) return -1;
        if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) goto done;
        size = (size_t)about.st_size;
        if (size > limit) goto done;
        if (*room < size + 1) {
            char *larger = (char *)realloc(*data, size + size / 2 + 65536);
            if (!larger) goto done;
            *data = larger;
            *room = size + size / 2 + 65536;
        }
        /* One byte more than is due, so that a file that has grown is noticed. */
        for (;;) {
            ssize_t part = read(file, *data + got, size + 1 - got);
            if (part < 0) goto done;
            got += (size_t)part;
            if (part == 0 || got >= size) break;
        }
        if (got == size) answer = (long long)got;
    done:
        close(file);
        return answer;
    }
    #endif
    """
    long long detap_read_file(
        int folder, const char *name, char **data, size_t *room, size_t limit
    ) noexcept nogil


cdef inline bint scan_number(
    const char *at, const char *end, const char **stop, double *value
) noexcept nogil:
    """Read a finite decimal number that begins at `at`, and leave `stop` behind it."""
    return (
        read_decimal(<Bytes>at, <Bytes>end, <Bytes *>stop, value, False) and isfinite(value[0])
    )


cdef struct Rows:
    # One column each of file, name and flag, and `width` numbers a row.
    int32_t *file
    int32_t *name
    uint8_t *flag
    double *values
    size_t count, room
    int width


cdef inline void rows_open(Rows *rows, int width) noexcept nogil:
    rows.file = NULL
    rows.name = NULL
    rows.flag = NULL
    rows.values = NULL
    rows.count = rows.room = 0
    rows.width = width


cdef inline void rows_close(Rows *rows) noexcept nogil:
    free(rows.file)
    free(rows.name)
    free(rows.flag)
    free(rows.values)


cdef inline bint rows_reserve(Rows *rows) noexcept nogil:
    """Make room for one more row; False when out of memory."""
    cdef size_t room
    if rows.count < rows.room:
        return True
    room = rows.room + rows.room // 2 + 1024
    if not (
        grow(<void **>&rows.file, room, sizeof(int32_t))
        and grow(<void **>&rows.name, room, sizeof(int32_t))
        and grow(<void **>&rows.flag, room, 1)
        and grow(<void **>&rows.values, room, rows.width * sizeof(double))
    ):
        return False
    rows.room = room
    return True


cdef struct Inputs:
    # The files to be scanned: their names below a folder, or, for tests, their very contents.
    int folder
    size_t limit
    int32_t count
    const char **given      # NULL for a file that is not to be opened
    size_t *sizes           # of contents; NULL where `given` are names
    char *data
    size_t room


cdef inline int inputs_open(
    Inputs *inputs, int folder, list members, bint contents, size_t limit
) except -1:
    cdef Py_ssize_t i
    cdef size_t count = len(members)
    if count > 0x7FFFFFFF:
        raise OverflowError("more files than int32 can number")
    inputs.folder = folder
    inputs.limit = limit
    inputs.count = <int32_t>count
    inputs.data = NULL
    inputs.room = 0
    inputs.sizes = NULL
    inputs.given = <const char **>malloc((count + 1) * sizeof(char *))
    if inputs.given == NULL:
        raise MemoryError
    if contents:
        inputs.sizes = <size_t *>malloc((count + 1) * sizeof(size_t))
        if inputs.sizes == NULL:
            raise MemoryError
    for i in range(<Py_ssize_t>count):
        inputs.given[i] = NULL if members[i] is None else PyBytes_AS_STRING(members[i])
        if contents:
            inputs.sizes[i] = 0 if members[i] is None else len(members[i])
    return 0


cdef inline void inputs_close(Inputs *inputs) noexcept nogil:
    free(<void *>inputs.given)
    free(inputs.sizes)
    free(inputs.data)


cdef inline long long inputs_read(Inputs *inputs, int32_t at) noexcept nogil:
    """Have a file in `data` and return its size, or -1 where it is for the careful reader."""
    cdef char *exact
    if inputs.given[at] == NULL:
        return -1
    if inputs.sizes == NULL:
        return detap_read_file(
            inputs.folder, inputs.given[at], &inputs.data, &inputs.room, inputs.limit
        )
    # A block of just that size, so that AddressSanitizer sees a step beyond it.
    exact = <char *>malloc(inputs.sizes[at] if inputs.sizes[at] else 1)
    if exact == NULL or inputs.sizes[at] > inputs.limit:
        free(exact)
        return -1
    memcpy(exact, inputs.given[at], inputs.sizes[at])
    free(inputs.data)
    inputs.data = exact
    return <long long>inputs.sizes[at]


cdef struct Scan:
    # What both scanners work on, from the first file to the last.
    Names names
    Rows rows
    Inputs inputs
    size_t records          # how many rows there may be
    uint8_t *declined       # of each file, whether it was


# Appends the rows of one file, which lies from `at` to `end`; False declines it.
ctypedef bint (*Reader)(
    const char *at, const char *end, int32_t file, Scan *scan, void *how
) noexcept nogil


cdef inline void scan_start(Scan *scan, int width, size_t records) noexcept nogil:
    """Have an empty scan, which `scan_close` may be given whatever happens next."""
    names_open(&scan.names)
    rows_open(&scan.rows, width)
    scan.inputs.given = NULL
    scan.inputs.sizes = NULL
    scan.inputs.data = NULL
    scan.records = records
    scan.declined = NULL


cdef inline int scan_inputs(
    Scan *scan, int folder, list members, bint contents, size_t limit
) except -1:
    inputs_open(&scan.inputs, folder, members, contents, limit)
    scan.declined = <uint8_t *>malloc(scan.inputs.count + 1)
    if scan.declined == NULL:
        raise MemoryError
    return 0


cdef inline bint _note_digest(
    Scan *scan, int32_t at, size_t size, object sha256, dict digests
) noexcept with gil:
    """Note the sha256 of the file that lies in `data`; False where that fails."""
    try:
        digests[at] = sha256(PyMemoryView_FromMemory(scan.inputs.data, size, PyBUF_READ)).hexdigest()
        return True
    except Exception:
        return False


cdef inline void _read_all(
    Scan *scan, Reader read, void *how, object sha256, dict digests
) noexcept nogil:
    cdef int32_t at
    cdef size_t before
    cdef long long size
    cdef bint fine
    for at in range(scan.inputs.count):
        before = scan.rows.count
        size = inputs_read(&scan.inputs, at)
        fine = (
            size >= 0
            and read(scan.inputs.data, scan.inputs.data + size, at, scan, how)
            and scan.rows.count <= scan.records
            and (digests is None or _note_digest(scan, at, size, sha256, digests))
        )
        scan.declined[at] = not fine
        if not fine:
            scan.rows.count = before


cdef inline int scan_run(Scan *scan, Reader read, void *how, dict digests) except -1:
    """Read every file: without the GIL but for digests, so that other threads run meanwhile."""
    sha256 = None
    if digests is not None:
        from hashlib import sha256
    with nogil:
        _read_all(scan, read, how, sha256, digests)
    return 0


cdef inline list scan_declined(const Scan *scan):
    """Return the files that were not read."""
    cdef int32_t at
    return [at for at in range(scan.inputs.count) if scan.declined[at]]


cdef inline list scan_words(const Scan *scan):
    """Return the words, in the order of their numbers."""
    cdef const Names *names = &scan.names
    cdef int32_t at
    return [names.text[names.start[at] : names.start[at + 1]] for at in range(names.count)]


cdef inline tuple scan_columns(Scan *scan):
    """Return file, name, flag and numbers of each row; the rows are gone afterwards."""
    cdef Rows *rows = &scan.rows
    cdef size_t count = rows.count
    return (
        take(<void **>&rows.file, count, 1, sizeof(int32_t), b"i"),
        take(<void **>&rows.name, count, 1, sizeof(int32_t), b"i"),
        take(<void **>&rows.flag, count, 1, 1, b"?"),
        take(<void **>&rows.values, count, rows.width, sizeof(double), b"d"),
    )


cdef inline void scan_close(Scan *scan) noexcept nogil:
    inputs_close(&scan.inputs)
    names_close(&scan.names)
    rows_close(&scan.rows)
    free(scan.declined)
