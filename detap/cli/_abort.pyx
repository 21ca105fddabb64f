"""Set the exit status for libraries that end the process.

OpenBLAS calls ``exit(1)``, the status of a failed gate, if memory runs out while numpy is imported.
detap itself ends with ``os._exit``, which runs no exit handlers, so a handler runs only if a library
ends the process.
"""

from libc.stdio cimport fputs, stderr


cdef extern from "<stdlib.h>":
    int atexit(void (*)() noexcept nogil) noexcept nogil
    void _Exit(int) noexcept nogil


cdef int STATUS
cdef bytes TEXT
cdef const char *MESSAGE = NULL     # points into TEXT


cdef void _end() noexcept nogil:
    fputs(MESSAGE, stderr)
    _Exit(STATUS)


def end_with(int status, str message) -> None:
    """Set the status and the message for the case that a library ends the process."""
    global STATUS, TEXT, MESSAGE
    first = MESSAGE == NULL
    STATUS = status
    TEXT = f"{message}\n".encode()
    MESSAGE = TEXT
    if first:
        atexit(_end)
