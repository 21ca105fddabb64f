"""IoU of many boxes, compiled. See overlap.py."""

from libc.stdint cimport uint8_t


def fill_overlaps(
    const double[:, ::1] detections, const double[::1] detection_areas,
    const double[:, ::1] truths, const double[::1] truth_areas,
    const uint8_t[::1] crowd, double pixel_offset, double[:, ::1] out,
) -> None:
    """Write the IoU of each detection (row) and ground truth (column)."""
    cdef Py_ssize_t n, g
    if (
        detection_areas.shape[0] != detections.shape[0] or truth_areas.shape[0] != truths.shape[0]
        or crowd.shape[0] != truths.shape[0] or out.shape[0] != detections.shape[0]
        or out.shape[1] != truths.shape[0] or detections.shape[1] != 4 or truths.shape[1] != 4
    ):
        raise ValueError("array shapes do not match")
    with nogil:
        for n in range(detections.shape[0]):
            for g in range(truths.shape[0]):
                out[n, g] = overlap(
                    &detections[n, 0], detection_areas[n],
                    &truths[g, 0], truth_areas[g], crowd[g], pixel_offset,
                )
