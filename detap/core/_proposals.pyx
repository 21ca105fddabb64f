"""Coverage of ground truths by proposals, compiled. See proposals.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from detap.core._ordering cimport Keyed, falling, group_rows, sort_by_key
from detap.core._overlap cimport overlap


cdef struct Room:
    int32_t* dt_start
    int32_t* dt_order
    int32_t* gt_start
    int32_t* gt_order
    Keyed* ranked
    Keyed* pairs
    Py_ssize_t pair_room
    double* pair_overlap
    uint8_t* used


cdef void release(Room* room) noexcept nogil:
    free(room.dt_start)
    free(room.dt_order)
    free(room.gt_start)
    free(room.gt_order)
    free(room.ranked)
    free(room.pairs)
    free(room.pair_overlap)
    free(room.used)


cdef Py_ssize_t widest(const int32_t* start, Py_ssize_t groups) noexcept nogil:
    cdef Py_ssize_t i, most = 1
    for i in range(groups):
        if start[i + 1] - start[i] > most:
            most = start[i + 1] - start[i]
    return most


def fill_coverage(
    *, const int32_t[::1] dt_image, const double[::1] dt_score, const double[:, ::1] dt_corners,
    const double[::1] dt_areas, const int32_t[::1] gt_image, const double[:, ::1] gt_corners,
    const double[::1] gt_areas, const uint8_t[:, ::1] counted, Py_ssize_t images,
    const int64_t[::1] limits, double edge, double[:, :, ::1] out,
) -> None:
    """Write, per area range, limit and ground truth, the overlap with its proposal."""
    cdef Py_ssize_t n = dt_image.shape[0]
    cdef Py_ssize_t g = gt_image.shape[0]
    cdef Py_ssize_t i
    cdef Room room
    cdef bint done = False
    memset(&room, 0, sizeof(Room))
    try:
        room.dt_start = <int32_t*>malloc((images + 1) * sizeof(int32_t))
        room.gt_start = <int32_t*>malloc((images + 1) * sizeof(int32_t))
        room.dt_order = <int32_t*>malloc((n + 1) * sizeof(int32_t))
        room.gt_order = <int32_t*>malloc((g + 1) * sizeof(int32_t))
        if (
            room.dt_start == NULL or room.gt_start == NULL
            or room.dt_order == NULL or room.gt_order == NULL
        ):
            raise MemoryError()
        group_rows(&dt_image[0] if n else NULL, n, images, room.dt_start, room.dt_order)
        group_rows(&gt_image[0] if g else NULL, g, images, room.gt_start, room.gt_order)
        room.ranked = <Keyed*>malloc(2 * widest(room.dt_start, images) * sizeof(Keyed))
        room.used = <uint8_t*>calloc(
            widest(room.dt_start, images) + widest(room.gt_start, images), 1
        )
        if room.ranked == NULL or room.used == NULL:
            raise MemoryError()
        with nogil:
            done = True
            for i in range(images):
                done = cover_image(
                    i, &room, dt_score, dt_corners, dt_areas, gt_corners, gt_areas,
                    counted, limits, edge, out,
                )
                if not done:
                    break
        if not done:
            raise MemoryError()
    finally:
        release(&room)


cdef bint cover_image(
    Py_ssize_t image, Room* room, const double[::1] dt_score, const double[:, ::1] dt_corners,
    const double[::1] dt_areas, const double[:, ::1] gt_corners, const double[::1] gt_areas,
    const uint8_t[:, ::1] counted, const int64_t[::1] limits, double edge, double[:, :, ::1] out,
) noexcept nogil:
    cdef const int32_t* proposals = room.dt_order + room.dt_start[image]
    cdef const int32_t* truths = room.gt_order + room.gt_start[image]
    cdef Py_ssize_t n = room.dt_start[image + 1] - room.dt_start[image]
    cdef Py_ssize_t g = room.gt_start[image + 1] - room.gt_start[image]
    cdef Py_ssize_t i, j, pairs, a, m, truth, proposal
    cdef Keyed* ranked
    cdef Keyed* sorted_pairs
    cdef double value
    if n == 0 or g == 0:
        return True
    for i in range(n):
        room.ranked[i].row = proposals[i]
        room.ranked[i].key = falling(dt_score[proposals[i]])
    ranked = sort_by_key(room.ranked, room.ranked + n, n)
    n = n if n < limits[limits.shape[0] - 1] else limits[limits.shape[0] - 1]
    if n * g > room.pair_room:
        free(room.pairs)
        free(room.pair_overlap)
        room.pairs = <Keyed*>malloc(2 * n * g * sizeof(Keyed))
        room.pair_overlap = <double*>malloc(n * g * sizeof(double))
        room.pair_room = n * g
        if room.pairs == NULL or room.pair_overlap == NULL:
            return False
    # Pairs by falling overlap; of equal ones the first ground truth, then the best-ranked proposal.
    pairs = 0
    for i in range(g):
        for j in range(n):
            value = overlap(
                &dt_corners[ranked[j].row, 0], dt_areas[ranked[j].row],
                &gt_corners[truths[i], 0], gt_areas[truths[i]], False, edge,
            )
            room.pair_overlap[i * n + j] = value
            if value > 0.0:
                room.pairs[pairs].row = <int32_t>(i * n + j)
                room.pairs[pairs].key = falling(value)
                pairs += 1
    sorted_pairs = sort_by_key(room.pairs, room.pairs + pairs, pairs)
    for a in range(counted.shape[0]):
        for m in range(limits.shape[0]):
            memset(room.used, 0, n + g)
            for i in range(pairs):
                truth = sorted_pairs[i].row // n
                proposal = sorted_pairs[i].row % n
                if (
                    proposal >= limits[m] or room.used[proposal] or room.used[n + truth]
                    or not counted[a, truths[truth]]
                ):
                    continue
                room.used[proposal] = 1
                room.used[n + truth] = 1
                out[a, m, truths[truth]] = room.pair_overlap[sorted_pairs[i].row]
    return True
