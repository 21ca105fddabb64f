"""The overlap of two boxes, inlined where it is needed."""


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline double smaller(double a, double b) noexcept nogil:
    return a if a < b else b


cdef inline double overlap(
    const double* detection, double detection_area,
    const double* truth, double truth_area, bint crowd, double edge,
) noexcept nogil:
    """Return intersection over union, or over the detection's own area for crowds."""
    cdef double width, height
    width = smaller(detection[2], truth[2]) - larger(detection[0], truth[0]) + edge
    if width <= 0.0:
        return 0.0
    height = smaller(detection[3], truth[3]) - larger(detection[1], truth[1]) + edge
    if height <= 0.0:
        return 0.0
    return share_of(width * height, detection_area, truth_area, crowd)


cdef inline double share_of(
    double common, double detection_area, double truth_area, bint crowd
) noexcept nogil:
    """Return the share that a common area is of the union, or of the detection."""
    cdef double total = detection_area if crowd else detection_area + truth_area - common
    # Boxes so small that their areas underflow have no measurable overlap.
    return common / total if total > 0.0 else 0.0
