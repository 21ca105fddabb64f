"""Precision-recall curves from hits, compiled. See curves.py.

A ranked list is stored as *hits*: for each relevant item, in order, the number of irrelevant items
above it. Precision rises only at hits, so nothing else is needed: half a million detections with
forty true positives are forty numbers.
"""

from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t

import numpy as np


cdef double pairwise_sum(const double* values, Py_ssize_t count) noexcept nogil:
    # The order of operations of numpy.add.reduce, for the same bits.
    cdef double[8] part
    cdef double total = 0.0
    cdef Py_ssize_t i = 0, j, half
    if count > 128:
        half = count // 2
        half -= half % 8
        return pairwise_sum(values, half) + pairwise_sum(values + half, count - half)
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


cdef void precision_at_hits(
    const int32_t* false_positives, Py_ssize_t hits, double precision_eps, double* precision
) noexcept nogil:
    cdef Py_ssize_t h
    cdef double tp
    for h in range(hits):
        tp = <double>(h + 1)
        precision[h] = tp / ((<double>false_positives[h] + tp) + precision_eps)


cdef void make_envelope(double* precision, Py_ssize_t hits) noexcept nogil:
    cdef Py_ssize_t h
    for h in range(hits - 2, -1, -1):
        if precision[h + 1] > precision[h]:
            precision[h] = precision[h + 1]


cdef void read_levels(
    const double* envelope, Py_ssize_t hits, double positives,
    const double* targets, Py_ssize_t n_levels, double* out,
) noexcept nogil:
    # The envelope at the first hit whose recall reaches the target; 0 if there is none.
    cdef Py_ssize_t h = 0
    cdef Py_ssize_t level
    for level in range(n_levels):
        while h < hits and <double>(h + 1) / positives < targets[level]:
            h += 1
        out[level] = envelope[h] if h < hits else 0.0


cdef double average_of_levels(
    double* values, const double* levels, Py_ssize_t count, Summing summing
) noexcept nogil:
    # voc_eval adds p / 11 level by level; numpy.mean adds in pairs and divides once;
    # numpy.trapezoid adds areas in pairs (they overwrite `values`).
    cdef Py_ssize_t i
    cdef double total = 0.0
    if summing == PAIRWISE:
        return pairwise_sum(values, count) / <double>count
    if summing == TRAPEZOID:
        for i in range(count - 1):
            values[i] = (levels[i + 1] - levels[i]) * (values[i + 1] + values[i]) / 2.0
        return pairwise_sum(values, count - 1)
    for i in range(count):
        total += values[i] / <double>count
    # Eleven elevenths add up to one ulp above 1, as in voc_eval; AP is capped at 1.
    return total if total < 1.0 else 1.0


cdef double area_under(
    const double* precision, Py_ssize_t hits, double positives, double* terms
) noexcept nogil:
    # Recall step times precision at each hit. The last term, the step from the final recall to 1,
    # is 0 but changes numpy's order of summation.
    cdef Py_ssize_t h
    cdef double previous = 0.0
    cdef double recall
    for h in range(hits):
        recall = <double>(h + 1) / positives
        terms[h] = (recall - previous) * precision[h]
        previous = recall
    if previous != 1.0:
        terms[hits] = 0.0
        hits += 1
    return pairwise_sum(terms, hits)


def fill_averages(
    const int32_t[::1] false_positives, const int32_t[::1] begin, const int64_t[::1] positives,
    const double[::1] levels, const double[::1] targets, double precision_eps, Summing summing: int,
    double[::1] out,
) -> None:
    """Write the interpolated average precision of several lists to `out`."""
    # Those of list k are ``begin[k]`` to ``begin[k + 1]``; without levels, precision is integrated.
    cdef Py_ssize_t k, hits, max_hits = 0
    for k in range(out.shape[0]):
        max_hits = max(max_hits, begin[k + 1] - begin[k])
    # Arrays are released on any exit.
    cdef double[::1] precision = np.empty(max_hits + 1)
    cdef double[::1] terms = np.empty(max(max_hits + 1, levels.shape[0]))
    with nogil:
        for k in range(out.shape[0]):
            if positives[k] <= 0:
                out[k] = NAN
                continue
            hits = begin[k + 1] - begin[k]
            if hits:
                precision_at_hits(&false_positives[begin[k]], hits, precision_eps, &precision[0])
                make_envelope(&precision[0], hits)
            if levels.shape[0]:
                read_levels(
                    &precision[0], hits, positives[k], &targets[0], levels.shape[0], &terms[0]
                )
                out[k] = average_of_levels(&terms[0], &levels[0], levels.shape[0], summing)
            else:
                out[k] = area_under(&precision[0], hits, positives[k], &terms[0])
