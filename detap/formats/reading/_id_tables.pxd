"""Test integer ids for repeats; the seed of hash tables."""

from libc.stdint cimport int64_t, uint64_t

# Random per process, so that no file can be crafted whose ids all collide.
cdef uint64_t SEED

cdef bint ascend(const int64_t *ids, Py_ssize_t count) noexcept nogil
cdef bint are_distinct(int64_t *ids, Py_ssize_t count) noexcept nogil
