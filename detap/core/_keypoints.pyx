# cython: auto_pickle=False
"""Object keypoint similarity (OKS), compiled but for exp. See keypoints.py."""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t

from detap.core._curves cimport pairwise_sum

cdef double FAR = 3.0
cdef double FAR_VALUE = exp(-FAR)
cdef double MARGIN = 1e-6       # far above any rounding error


cdef inline double _distance_outside(double value, double low, double high) noexcept nogil:
    """Return the distance of a value from a range, 0 inside it."""
    cdef double under = low - value if low > value else 0.0
    cdef double over = value - high if value > high else 0.0
    return under + over


cdef class OksPairs:
    """Pairs of detections and ground truths with K keypoints each."""

    cdef const double[:, :, ::1] detections
    cdef const int64_t[::1] point_start, start
    cdef const int32_t[::1] keypoint, truth
    cdef const double[:, ::1] points, boxes
    cdef const double[::1] point_variances, areas, variances
    cdef double min_similarity
    cdef double[::1] similarity

    def __init__(
        self, detections: NDArray[np.float64], point_start: NDArray[np.int64],
        keypoint: NDArray[np.int32], points: NDArray[np.float64],
        point_variances: NDArray[np.float64], boxes: NDArray[np.float64],
        areas: NDArray[np.float64], variances: NDArray[np.float64], start: NDArray[np.int64],
        truth: NDArray[np.int32], min_similarity: float, similarity: NDArray[np.float64],
    ):
        self.detections, self.point_start, self.keypoint = detections, point_start, keypoint
        self.points, self.point_variances, self.boxes = points, point_variances, boxes
        self.areas, self.variances, self.start, self.truth = areas, variances, start, truth
        self.min_similarity, self.similarity = min_similarity, similarity

    def exponents(self, Py_ssize_t begin, Py_ssize_t end, double[::1] out) -> int:
        """Write the exponents of the pairs of some detections."""
        # For each pair that is not skipped one per labeled keypoint, or K if none is labeled;
        # `similarity` holds their number per pair. Returns the number of all.
        cdef Py_ssize_t row, pair, count = 0, written
        with nogil:
            for row in range(begin, end):
                for pair in range(self.start[row], self.start[row + 1]):
                    written = self._write_pair(
                        &self.detections[row, 0, 0], self.truth[pair], &out[count]
                    )
                    self.similarity[pair] = written
                    count += written
        return count

    cdef Py_ssize_t _write_pair(
        self, const double *dt_point, Py_ssize_t truth, double *out
    ) noexcept nogil:
        cdef Py_ssize_t begin = self.point_start[truth], i, far = 0
        cdef Py_ssize_t count = self.point_start[truth + 1] - begin
        cdef double area = self.areas[truth], max_squared = 2 * FAR * (1 + MARGIN) * area, x, y
        cdef const double *gt_point = &self.points[0, 0] + 2 * begin
        cdef const int32_t *keypoint = &self.keypoint[0] + begin
        cdef const double *variance = &self.point_variances[0] + begin
        cdef const double *box = &self.boxes[truth, 0]
        if count:
            for i in range(count):
                x = dt_point[2 * keypoint[i]] - gt_point[2 * i]
                y = dt_point[2 * keypoint[i] + 1] - gt_point[2 * i + 1]
                out[i] = x * x + y * y
                far += out[i] > max_squared * variance[i]
        else:
            count = self.variances.shape[0]
            variance = &self.variances[0]
            for i in range(count):
                x = _distance_outside(dt_point[2 * i], box[0] - box[2], box[0] + box[2] * 2)
                y = _distance_outside(dt_point[2 * i + 1], box[1] - box[3], box[1] + box[3] * 2)
                out[i] = x * x + y * y
                far += out[i] > max_squared * variance[i]
        # A far keypoint adds less than exp(-FAR), any other at most 1.
        if count - far * (1 - FAR_VALUE) < count * (self.min_similarity - MARGIN):
            return 0
        for i in range(count):
            out[i] = -(out[i] / variance[i] / area / 2)
        return count

    def means(self, Py_ssize_t begin, Py_ssize_t end, const double[::1] values) -> None:
        """Write the mean of each pair's exponentials as its similarity."""
        cdef Py_ssize_t row, pair, count, index = 0
        with nogil:
            for row in range(begin, end):
                for pair in range(self.start[row], self.start[row + 1]):
                    count = <Py_ssize_t>self.similarity[pair]
                    if count:
                        self.similarity[pair] = pairwise_sum(&values[index], count) / count
                        index += count
