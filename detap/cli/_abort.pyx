"""When a library ends the process: its status must not read as a failed gate.

OpenBLAS calls ``exit(1)`` where memory is short while numpy is imported, and no exception tells of
it. The command itself ends by ``os._exit``, which runs no handlers: one that runs means that
somebody else gave up.
"""

from libc.stdio cimport fflush, fputs, stderr


cdef extern from "<stdlib.h>":
    int atexit(void (*)() noexcept nogil) noexcept nogil
    void _Exit(int) noexcept nogil


cdef int STATUS
cdef bytes SAID
cdef const char *MESSAGE = NULL     # within SAID


cdef void _end() noexcept nogil:
    fputs(MESSAGE, stderr)
    fflush(stderr)
    _Exit(STATUS)


def end_with(int status, str message) -> None:
    """From now on, let the process end with this status and message where a library ends it."""
    global STATUS, SAID, MESSAGE
    first = MESSAGE == NULL
    STATUS = status
    SAID = f"{message}\n".encode()
    MESSAGE = SAID
    if first:
        atexit(_end)
