"""IoU of two boxes, inlined by its users."""


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline double smaller(double a, double b) noexcept nogil:
    return a if a < b else b


cdef inline double overlap(
    const double* detection, double detection_area,
    const double* truth, double truth_area, bint crowd, double pixel_offset,
) noexcept nogil:
    """Return the IoU, or for crowds the intersection over the detection's area."""
    cdef double width, height
    width = smaller(detection[2], truth[2]) - larger(detection[0], truth[0]) + pixel_offset
    if width <= 0.0:
        return 0.0
    height = smaller(detection[3], truth[3]) - larger(detection[1], truth[1]) + pixel_offset
    if height <= 0.0:
        return 0.0
    return divide_overlap(width * height, detection_area, truth_area, crowd)


cdef inline double divide_overlap(
    double intersection, double detection_area, double truth_area, bint crowd
) noexcept nogil:
    """Divide an intersection by the union, or by the detection's area."""
    cdef double denominator = detection_area
    if not crowd:
        denominator = detection_area + truth_area - intersection
    # The areas of tiny boxes underflow to 0.
    return intersection / denominator if denominator > 0.0 else 0.0
