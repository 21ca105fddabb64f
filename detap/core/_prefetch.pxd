"""Prefetch memory into the cache."""

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #define detap_prefetch(address)
    #else
    #define detap_prefetch(address) __builtin_prefetch(address)
    #endif
    """
    void detap_prefetch(const void* address) noexcept nogil
