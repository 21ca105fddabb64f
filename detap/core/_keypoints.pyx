"""How alike keypoints lie, compiled but for the exponential. See keypoints.py."""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t

cdef double FAR = 3.0
cdef double NEXT_TO_NOTHING = exp(-FAR)
cdef double MARGIN = 1e-6       # that rounding stays within by far


cdef inline double _beyond(double value, double low, double high) noexcept nogil:
    """Return by how much a value lies outside a range."""
    cdef double under = low - value if low > value else 0.0
    cdef double over = value - high if value > high else 0.0
    return under + over


cdef double _sum(const double *values, Py_ssize_t count) noexcept nogil:
    """Return the sum in the order in which numpy adds what lies side by side."""
    cdef double[8] part
    cdef double total = 0.0
    cdef Py_ssize_t i, j, half
    if count > 128:
        half = count // 2
        half -= half % 8
        return _sum(values, half) + _sum(values + half, count - half)
    i = 0
    if count >= 8:
        for j in range(8):
            part[j] = values[j]
        for i in range(8, count - count % 8, 8):
            for j in range(8):
                part[j] += values[i + j]
        total = ((part[0] + part[1]) + (part[2] + part[3])) + (
            (part[4] + part[5]) + (part[6] + part[7]))
        i = count - count % 8
    while i < count:
        total += values[i]
        i += 1
    return total


def fill_extents(const double[:, :, ::1] keypoints, double[:, ::1] out) -> None:
    """Write the boxes x1, y1, x2, y2 around keypoints, one at least."""
    cdef Py_ssize_t row, k
    cdef double *box
    with nogil:
        for row in range(keypoints.shape[0]):
            box = &out[row, 0]
            box[0] = box[2] = keypoints[row, 0, 0]
            box[1] = box[3] = keypoints[row, 0, 1]
            for k in range(1, keypoints.shape[1]):
                box[0] = min(box[0], keypoints[row, k, 0])
                box[1] = min(box[1], keypoints[row, k, 1])
                box[2] = max(box[2], keypoints[row, k, 0])
                box[3] = max(box[3], keypoints[row, k, 1])


cdef class Likeness:
    """Pairs of detections and ground truths, of which K keypoints each are compared.

    Parameters
    ----------
    detections : (N, K, 2) float64
        x and y.
    first : (G + 1,) int64
        Where the labelled keypoints of each ground truth begin, L of them in all.
    keypoint : (L,) int32
        Which of the K each is.
    places : (L, 2) float64
        x and y.
    spreads : (L,) float64
        The variances of these.
    boxes : (G, 4) float64
        x, y, width, height.
    areas : (G,) float64
        What distances are measured by, above 0.
    variances : (K,) float64
    start : (N + 1,) int64
        The pairs of each detection.
    truth : (P,) int32
    lowest : float
        Pairs that are sure to stay below this are not looked at closely.
    overlap : (P,) float64
        To be filled; 0 for those.
    """

    cdef const double[:, :, ::1] detections
    cdef const int64_t[::1] first, start
    cdef const int32_t[::1] keypoint, truth
    cdef const double[:, ::1] places, boxes
    cdef const double[::1] spreads, areas, variances
    cdef double lowest
    cdef double[::1] overlap

    def __init__(
        self, detections: NDArray[np.float64], first: NDArray[np.int64], keypoint: NDArray[np.int32],
        places: NDArray[np.float64], spreads: NDArray[np.float64], boxes: NDArray[np.float64],
        areas: NDArray[np.float64], variances: NDArray[np.float64], start: NDArray[np.int64],
        truth: NDArray[np.int32], lowest: float, overlap: NDArray[np.float64],
    ):
        self.detections, self.first, self.keypoint = detections, first, keypoint
        self.places, self.spreads, self.boxes = places, spreads, boxes
        self.areas, self.variances, self.start, self.truth = areas, variances, start, truth
        self.lowest, self.overlap = lowest, overlap

    def exponents(self, Py_ssize_t begin, Py_ssize_t end, double[::1] out) -> int:
        """Write what the exponential is to be taken of, for the pairs of some detections.

        Returns
        -------
        int
            How many: of each pair that may be as alike as wanted, one for each labelled keypoint,
            or for all where none is labelled. `overlap` says how many of each.
        """
        cdef Py_ssize_t row, pair, count = 0, written
        with nogil:
            for row in range(begin, end):
                for pair in range(self.start[row], self.start[row + 1]):
                    written = self.write(&self.detections[row, 0, 0], self.truth[pair], &out[count])
                    self.overlap[pair] = written
                    count += written
        return count

    cdef Py_ssize_t write(
        self, const double *here, Py_ssize_t truth, double *out
    ) noexcept nogil:
        cdef Py_ssize_t begin = self.first[truth], i, far = 0
        cdef Py_ssize_t count = self.first[truth + 1] - begin
        cdef double area = self.areas[truth], reach = 2 * FAR * (1 + MARGIN) * area, x, y
        cdef const double *there = &self.places[0, 0] + 2 * begin
        cdef const int32_t *keypoint = &self.keypoint[0] + begin
        cdef const double *spread = &self.spreads[0] + begin
        cdef const double *box = &self.boxes[truth, 0]
        if count:
            for i in range(count):
                x = here[2 * keypoint[i]] - there[2 * i]
                y = here[2 * keypoint[i] + 1] - there[2 * i + 1]
                out[i] = x * x + y * y
                far += out[i] > reach * spread[i]
        else:
            count = self.variances.shape[0]
            spread = &self.variances[0]
            for i in range(count):
                x = _beyond(here[2 * i], box[0] - box[2], box[0] + box[2] * 2)
                y = _beyond(here[2 * i + 1], box[1] - box[3], box[1] + box[3] * 2)
                out[i] = x * x + y * y
                far += out[i] > reach * spread[i]
        # Each far one adds less than exp(-FAR), any other at most 1.
        if count - far * (1 - NEXT_TO_NOTHING) < count * (self.lowest - MARGIN):
            return 0
        for i in range(count):
            out[i] = -(out[i] / spread[i] / area / 2)
        return count

    def means(self, Py_ssize_t begin, Py_ssize_t end, const double[::1] values) -> None:
        """Write the means of what :meth:`exponents` wrote, exponentiated, as overlaps of pairs."""
        cdef Py_ssize_t row, pair, count, at = 0
        with nogil:
            for row in range(begin, end):
                for pair in range(self.start[row], self.start[row + 1]):
                    count = <Py_ssize_t>self.overlap[pair]
                    if count:
                        self.overlap[pair] = _sum(&values[at], count) / count
                        at += count
