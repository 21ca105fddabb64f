"""Have memory bring what is needed soon."""

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #define detap_prefetch(place)
    #else
    #define detap_prefetch(place) __builtin_prefetch(place)
    #endif
    """
    void detap_prefetch(const void* place) noexcept nogil
