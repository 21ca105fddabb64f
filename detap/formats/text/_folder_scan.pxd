"""Shared code of the text and XML scanners: reading files, and rows in columns.

All functions are inlined: this module does not exist at run time.
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
    /* Reads a regular file below a folder in as few system calls as possible. Files that are not
       regular, too large, growing or unreadable are left to the fallback reader. */
    #ifdef _WIN32
    static long long detap_read_file(
        int folder, const char *name, char **data, size_t *capacity, size_t limit) {
        (void)folder; (void)name; (void)data; (void)capacity; (void)limit;
        return -1;
    }
    #else
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/stat.h>
    #include <unistd.h>
    static long long detap_read_file(
        int folder, const char *name, char **data, size_t *capacity, size_t limit) {
        struct stat status;
        size_t size, got = 0;
        long long answer = -1;
        int file = openat(folder < 0 ? AT_FDCWD : folder, name,
                          O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file < 0) return -1;
        if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) goto done;
        size = (size_t)status.st_size;
        if (size > limit) goto done;
        if (*capacity < size + 1) {
            char *larger = (char *)realloc(*data, size + size / 2 + 65536);
            if (!larger) goto done;
            *data = larger;
            *capacity = size + size / 2 + 65536;
        }
        /* One byte more than expected, to detect a file that has grown. */
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
        int folder, const char *name, char **data, size_t *capacity, size_t limit
    ) noexcept nogil


cdef inline bint scan_number(
    const char *at, const char *end, const char **stop, double *value
) noexcept nogil:
    """Read a finite decimal number at `at`; `stop` gets its end."""
    return (
        read_decimal(<Bytes>at, <Bytes>end, <Bytes *>stop, value, False) and isfinite(value[0])
    )


cdef struct Rows:
    # Columns of file, name and flag, and `width` numbers per row.
    int32_t *file
    int32_t *name
    uint8_t *flag
    double *values
    size_t count, capacity
    int width


cdef inline void rows_open(Rows *rows, int width) noexcept nogil:
    rows.file = NULL
    rows.name = NULL
    rows.flag = NULL
    rows.values = NULL
    rows.count = rows.capacity = 0
    rows.width = width


cdef inline void rows_close(Rows *rows) noexcept nogil:
    free(rows.file)
    free(rows.name)
    free(rows.flag)
    free(rows.values)


cdef inline bint rows_reserve(Rows *rows) noexcept nogil:
    """Make space for one more row; False if out of memory."""
    cdef size_t capacity
    if rows.count < rows.capacity:
        return True
    capacity = rows.capacity + rows.capacity // 2 + 1024
    if not (
        grow(<void **>&rows.file, capacity, sizeof(int32_t))
        and grow(<void **>&rows.name, capacity, sizeof(int32_t))
        and grow(<void **>&rows.flag, capacity, 1)
        and grow(<void **>&rows.values, capacity, rows.width * sizeof(double))
    ):
        return False
    rows.capacity = capacity
    return True


cdef struct Inputs:
    # The files to scan: names below a folder, or contents for tests.
    int folder
    size_t limit
    int32_t count
    const char **given      # NULL for a file that must not be opened
    size_t *sizes           # of contents; NULL if `given` are names
    char *data
    size_t capacity


cdef inline int inputs_open(
    Inputs *inputs, int folder, list members, bint contents, size_t limit
) except -1:
    cdef Py_ssize_t i
    cdef size_t count = len(members)
    if count > 0x7FFFFFFF:
        raise OverflowError("too many files for int32")
    inputs.folder = folder
    inputs.limit = limit
    inputs.count = <int32_t>count
    inputs.data = NULL
    inputs.capacity = 0
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
    """Read a file into `data`; return its size, or -1 for the fallback reader."""
    cdef char *exact
    if inputs.given[at] == NULL:
        return -1
    if inputs.sizes == NULL:
        return detap_read_file(
            inputs.folder, inputs.given[at], &inputs.data, &inputs.capacity, inputs.limit
        )
    # Of exact size, so that AddressSanitizer detects reads beyond it.
    exact = <char *>malloc(inputs.sizes[at] if inputs.sizes[at] else 1)
    if exact == NULL or inputs.sizes[at] > inputs.limit:
        free(exact)
        return -1
    memcpy(exact, inputs.given[at], inputs.sizes[at])
    free(inputs.data)
    inputs.data = exact
    return <long long>inputs.sizes[at]


cdef struct Scan:
    # The state of a scan.
    Names names
    Rows rows
    Inputs inputs
    size_t records          # maximum number of rows
    uint8_t *unread         # 1 for each file that was not read


# Appends the rows of one file, from `at` to `end`; False falls back for it.
ctypedef bint (*Reader)(
    const char *at, const char *end, int32_t file, Scan *scan, void *options
) noexcept nogil


cdef inline void scan_start(Scan *scan, int width, size_t records) noexcept nogil:
    """Initialize an empty scan, which `scan_close` accepts at any time."""
    names_open(&scan.names)
    rows_open(&scan.rows, width)
    scan.inputs.given = NULL
    scan.inputs.sizes = NULL
    scan.inputs.data = NULL
    scan.records = records
    scan.unread = NULL


cdef inline int scan_inputs(
    Scan *scan, int folder, list members, bint contents, size_t limit
) except -1:
    inputs_open(&scan.inputs, folder, members, contents, limit)
    scan.unread = <uint8_t *>malloc(scan.inputs.count + 1)
    if scan.unread == NULL:
        raise MemoryError
    return 0


cdef inline bint _note_digest(
    Scan *scan, int32_t at, size_t size, object sha256, dict digests
) noexcept with gil:
    """Store the sha256 of the file in `data`; False if that fails."""
    try:
        digests[at] = sha256(PyMemoryView_FromMemory(scan.inputs.data, size, PyBUF_READ)).hexdigest()
        return True
    except Exception:
        return False


cdef inline void _read_all(
    Scan *scan, Reader read, void *options, object sha256, dict digests
) noexcept nogil:
    cdef int32_t at
    cdef size_t count
    cdef long long size
    cdef bint fine
    for at in range(scan.inputs.count):
        count = scan.rows.count
        size = inputs_read(&scan.inputs, at)
        fine = (
            size >= 0
            and read(scan.inputs.data, scan.inputs.data + size, at, scan, options)
            and scan.rows.count <= scan.records
            and (digests is None or _note_digest(scan, at, size, sha256, digests))
        )
        scan.unread[at] = not fine
        if not fine:
            scan.rows.count = count


cdef inline int scan_run(Scan *scan, Reader read, void *options, dict digests) except -1:
    """Read every file, without the GIL except for digests."""
    sha256 = None
    if digests is not None:
        from hashlib import sha256
    with nogil:
        _read_all(scan, read, options, sha256, digests)
    return 0


cdef inline list scan_unread(const Scan *scan):
    """Return the indices of the files that were not read."""
    cdef int32_t at
    return [at for at in range(scan.inputs.count) if scan.unread[at]]


cdef inline list scan_words(const Scan *scan):
    """Return the words in the order of their indices."""
    cdef const Names *names = &scan.names
    cdef int32_t at
    return [names.text[names.start[at] : names.start[at + 1]] for at in range(names.count)]


cdef inline tuple scan_columns(Scan *scan):
    """Return file, name, flag and numbers of each row, and clear the rows."""
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
    free(scan.unread)
