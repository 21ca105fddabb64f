"""Hash tables from integer ids to indices."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t

# Random per process, so that no file can be crafted whose ids all collide.
cdef uint64_t SEED

@cython.final
cdef class IdTable:
    cdef int64_t *ids
    cdef int32_t *numbers
    cdef uint64_t mask
    cdef int64_t low
    cdef bint direct
    cdef bint build(self, const int64_t *ids, Py_ssize_t count) noexcept nogil
    cdef bint build_direct(self, const int64_t *ids, Py_ssize_t count, uint64_t span) noexcept nogil
    cdef bint build_hashed(self, const int64_t *ids, Py_ssize_t count) noexcept nogil
    cdef uint64_t slot(self, int64_t identifier) noexcept nogil
    cdef int32_t number(self, int64_t identifier) noexcept nogil


cdef IdTable listed(list numbers)
cdef Py_ssize_t renumber(int64_t *ids, Py_ssize_t count, IdTable table) noexcept nogil
cdef bint ascend(const int64_t *ids, Py_ssize_t count) noexcept nogil
cdef bint are_distinct(int64_t *ids, Py_ssize_t count) noexcept nogil
