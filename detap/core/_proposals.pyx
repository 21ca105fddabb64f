"""Greedy matching by IoU for proposal recall, compiled. See proposals.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from detap.core._ordering cimport Keyed, descending_key, group_rows, sort_by_key
from detap.core._overlap cimport overlap


cdef struct Buffers:
    int32_t* dt_start
    int32_t* dt_order
    int32_t* gt_start
    int32_t* gt_order
    Keyed* ranked
    Keyed* pairs
    Py_ssize_t pair_capacity
    double* pair_iou
    uint8_t* used


cdef void free_buffers(Buffers* buffers) noexcept nogil:
    free(buffers.dt_start)
    free(buffers.dt_order)
    free(buffers.gt_start)
    free(buffers.gt_order)
    free(buffers.ranked)
    free(buffers.pairs)
    free(buffers.pair_iou)
    free(buffers.used)


cdef Py_ssize_t max_group_size(const int32_t* start, Py_ssize_t groups) noexcept nogil:
    cdef Py_ssize_t i, max_size = 1
    for i in range(groups):
        if start[i + 1] - start[i] > max_size:
            max_size = start[i + 1] - start[i]
    return max_size


def fill_coverage(
    *, const int32_t[::1] dt_image, const double[::1] dt_score, const double[:, ::1] dt_corners,
    const double[::1] dt_areas, const int32_t[::1] gt_image, const double[:, ::1] gt_corners,
    const double[::1] gt_areas, const uint8_t[:, ::1] counted, Py_ssize_t images,
    const int64_t[::1] max_dets, double pixel_offset, double[:, :, ::1] out,
) -> None:
    """Write each ground truth's IoU with its matched proposal, (A, M, G)."""
    cdef Py_ssize_t n = dt_image.shape[0]
    cdef Py_ssize_t g = gt_image.shape[0]
    cdef Py_ssize_t i
    cdef Buffers buffers
    cdef bint ready = False
    memset(&buffers, 0, sizeof(Buffers))
    try:
        buffers.dt_start = <int32_t*>malloc((images + 1) * sizeof(int32_t))
        buffers.gt_start = <int32_t*>malloc((images + 1) * sizeof(int32_t))
        buffers.dt_order = <int32_t*>malloc((n + 1) * sizeof(int32_t))
        buffers.gt_order = <int32_t*>malloc((g + 1) * sizeof(int32_t))
        if (
            buffers.dt_start == NULL or buffers.gt_start == NULL
            or buffers.dt_order == NULL or buffers.gt_order == NULL
        ):
            raise MemoryError()
        group_rows(&dt_image[0] if n else NULL, n, images, buffers.dt_start, buffers.dt_order)
        group_rows(&gt_image[0] if g else NULL, g, images, buffers.gt_start, buffers.gt_order)
        buffers.ranked = <Keyed*>malloc(
            2 * max_group_size(buffers.dt_start, images) * sizeof(Keyed)
        )
        buffers.used = <uint8_t*>calloc(
            max_group_size(buffers.dt_start, images) + max_group_size(buffers.gt_start, images), 1
        )
        if buffers.ranked == NULL or buffers.used == NULL:
            raise MemoryError()
        with nogil:
            ready = True
            for i in range(images):
                ready = match_image(
                    i, &buffers, dt_score, dt_corners, dt_areas, gt_corners, gt_areas,
                    counted, max_dets, pixel_offset, out,
                )
                if not ready:
                    break
        if not ready:
            raise MemoryError()
    finally:
        free_buffers(&buffers)


cdef bint match_image(
    Py_ssize_t image, Buffers* buffers, const double[::1] dt_score, const double[:, ::1] dt_corners,
    const double[::1] dt_areas, const double[:, ::1] gt_corners, const double[::1] gt_areas,
    const uint8_t[:, ::1] counted, const int64_t[::1] max_dets, double pixel_offset,
    double[:, :, ::1] out,
) noexcept nogil:
    cdef const int32_t* proposals = buffers.dt_order + buffers.dt_start[image]
    cdef const int32_t* truths = buffers.gt_order + buffers.gt_start[image]
    cdef Py_ssize_t n = buffers.dt_start[image + 1] - buffers.dt_start[image]
    cdef Py_ssize_t g = buffers.gt_start[image + 1] - buffers.gt_start[image]
    cdef Py_ssize_t i, j, pairs, a, m, truth, proposal
    cdef Keyed* ranked
    cdef Keyed* sorted_pairs
    cdef double iou
    if n == 0 or g == 0:
        return True
    for i in range(n):
        buffers.ranked[i].row = proposals[i]
        buffers.ranked[i].key = descending_key(dt_score[proposals[i]])
    ranked = sort_by_key(buffers.ranked, buffers.ranked + n, n)
    n = n if n < max_dets[max_dets.shape[0] - 1] else max_dets[max_dets.shape[0] - 1]
    if n * g > buffers.pair_capacity:
        free(buffers.pairs)
        free(buffers.pair_iou)
        buffers.pairs = <Keyed*>malloc(2 * n * g * sizeof(Keyed))
        buffers.pair_iou = <double*>malloc(n * g * sizeof(double))
        buffers.pair_capacity = n * g
        if buffers.pairs == NULL or buffers.pair_iou == NULL:
            return False
    # By descending IoU; ties by ground truth, then by rank of the proposal.
    pairs = 0
    for i in range(g):
        for j in range(n):
            iou = overlap(
                &dt_corners[ranked[j].row, 0], dt_areas[ranked[j].row],
                &gt_corners[truths[i], 0], gt_areas[truths[i]], False, pixel_offset,
            )
            buffers.pair_iou[i * n + j] = iou
            if iou > 0.0:
                buffers.pairs[pairs].row = <int32_t>(i * n + j)
                buffers.pairs[pairs].key = descending_key(iou)
                pairs += 1
    sorted_pairs = sort_by_key(buffers.pairs, buffers.pairs + pairs, pairs)
    for a in range(counted.shape[0]):
        for m in range(max_dets.shape[0]):
            memset(buffers.used, 0, n + g)
            for i in range(pairs):
                truth = sorted_pairs[i].row // n
                proposal = sorted_pairs[i].row % n
                if (
                    proposal >= max_dets[m] or buffers.used[proposal] or buffers.used[n + truth]
                    or not counted[a, truths[truth]]
                ):
                    continue
                buffers.used[proposal] = 1
                buffers.used[n + truth] = 1
                out[a, m, truths[truth]] = buffers.pair_iou[sorted_pairs[i].row]
    return True
