"""Curves from hits, compiled. See curves.py for what each function means.

A ranked list is held as its *hits*: for each relevant item, in order, how many irrelevant ones
stand above it. Precision changes for the better only at a hit, so nothing else is needed, and a
list of half a million detections with forty true positives is forty numbers.
"""

from libc.math cimport NAN
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

import numpy as np


cdef double pairwise_sum(const double* values, Py_ssize_t count) noexcept nogil:
    # In numpy.add.reduce's order of operations, so that means are equal to its to the last bit.
    cdef Py_ssize_t i, half
    cdef double total
    cdef double r0, r1, r2, r3, r4, r5, r6, r7
    if count < 8:
        total = 0.0
        for i in range(count):
            total += values[i]
        return total
    if count <= 128:
        r0, r1, r2, r3 = values[0], values[1], values[2], values[3]
        r4, r5, r6, r7 = values[4], values[5], values[6], values[7]
        i = 8
        while i < count - (count % 8):
            r0 += values[i]
            r1 += values[i + 1]
            r2 += values[i + 2]
            r3 += values[i + 3]
            r4 += values[i + 4]
            r5 += values[i + 5]
            r6 += values[i + 6]
            r7 += values[i + 7]
            i += 8
        total = ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
        while i < count:
            total += values[i]
            i += 1
        return total
    half = count // 2
    half -= half % 8
    return pairwise_sum(values, half) + pairwise_sum(values + half, count - half)


cdef void precision_at_hits(
    const int32_t* false_positives, Py_ssize_t hits, double guard, double* precision
) noexcept nogil:
    cdef Py_ssize_t h
    cdef double found
    for h in range(hits):
        found = <double>(h + 1)
        precision[h] = found / ((<double>false_positives[h] + found) + guard)


cdef void make_envelope(double* precision, Py_ssize_t hits) noexcept nogil:
    cdef Py_ssize_t h
    for h in range(hits - 2, -1, -1):
        if precision[h + 1] > precision[h]:
            precision[h] = precision[h + 1]


cdef void read_levels(
    const double* envelope, Py_ssize_t hits, double positives,
    const double* due, Py_ssize_t level_count, double* out,
) noexcept nogil:
    # The first hit of the recall that is due, or of a higher one; 0 where there is none.
    cdef Py_ssize_t h = 0
    cdef Py_ssize_t level
    for level in range(level_count):
        while h < hits and <double>(h + 1) / positives < due[level]:
            h += 1
        out[level] = envelope[h] if h < hits else 0.0


cdef double average_of_levels(
    double* values, const double* levels, Py_ssize_t count, Summing summing
) noexcept nogil:
    # voc_eval adds p / 11 level by level; numpy.mean adds in pairs and divides once;
    # numpy.trapezoid adds areas in pairs, which are put in place of the values.
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
    # Eleven elevenths add up to one ulp above 1, there as here; an AP above 1 is not reported.
    return total if total < 1.0 else 1.0


cdef double area_under(
    const double* precision, Py_ssize_t hits, double positives, double* terms
) noexcept nogil:
    # Recall step times precision at each hit. The last term, of precision 0, is the step from the
    # final recall to 1: it is there because it takes part in numpy's order of summation.
    cdef Py_ssize_t h
    cdef double before = 0.0
    cdef double recall
    for h in range(hits):
        recall = <double>(h + 1) / positives
        terms[h] = (recall - before) * precision[h]
        before = recall
    if before != 1.0:
        terms[hits] = 0.0
        hits += 1
    return pairwise_sum(terms, hits)


def hits_of(const uint8_t[::1] relevant) -> list[int]:
    """Return a list: for each relevant item, how many irrelevant ones stand above it."""
    cdef Py_ssize_t i
    cdef int32_t above = 0
    counts = []
    for i in range(relevant.shape[0]):
        if relevant[i]:
            counts.append(above)
        else:
            above += 1
    return counts


def fill_precision(
    const int32_t[::1] false_positives, double guard, bint envelope, double[::1] out
) -> None:
    """Write the precision at each hit, or its envelope, into `out`."""
    cdef Py_ssize_t hits = false_positives.shape[0]
    if out.shape[0] != hits:
        raise ValueError("one place per hit is needed")
    if hits == 0:
        return
    with nogil:
        precision_at_hits(&false_positives[0], hits, guard, &out[0])
        if envelope:
            make_envelope(&out[0], hits)


def fill_levels(
    const double[::1] envelope, double positives, const double[::1] due, double[::1] out
) -> None:
    """Write the interpolated precision at each recall level into `out`."""
    if out.shape[0] != due.shape[0]:
        raise ValueError("one place per level is needed")
    if due.shape[0] == 0:
        return
    cdef const double* first = &envelope[0] if envelope.shape[0] else NULL
    with nogil:
        read_levels(first, envelope.shape[0], positives, &due[0], due.shape[0], &out[0])


def average_precision(double[::1] values, const double[::1] levels, Summing summing: int) -> float:
    """Return the average of interpolated precisions, which may be overwritten."""
    return average_of_levels(&values[0], &levels[0], values.shape[0], summing)


def area(const double[::1] precision, double positives) -> float:
    """Return the area under precision at the hits, over recall."""
    cdef Py_ssize_t hits = precision.shape[0]
    if hits == 0:
        return 0.0
    cdef double* terms = <double*>malloc((hits + 1) * sizeof(double))
    if terms == NULL:
        raise MemoryError()
    try:
        return area_under(&precision[0], hits, positives, terms)
    finally:
        free(terms)


def count_above(
    const int8_t[::1] kind, const int32_t[::1] start, const int32_t[::1] begin,
    const int32_t[::1] place, int32_t[:, ::1] out,
) -> None:
    """Write how many items of each kind stand above places of the lists that they are in.

    Parameters
    ----------
    kind : (n,) int8
        Of each item, from 0 to 7, list by list; -1 of those that are not counted.
    start, begin : (K + 1,) int32
        Where the items, and the places, of each list begin.
    place : (E,) int32
        Indices into `kind`, ascending in each list.
    out : (kinds, E) int32
    """
    cdef int32_t counts[8]
    cdef Py_ssize_t k, e, i, which
    if out.shape[0] > 8:
        raise ValueError("more than 8 kinds")
    with nogil:
        for k in range(start.shape[0] - 1):
            for i in range(8):
                counts[i] = 0
            i = start[k]
            for e in range(begin[k], begin[k + 1]):
                while i < place[e]:
                    if kind[i] >= 0:
                        counts[kind[i]] += 1
                    i += 1
                for which in range(out.shape[0]):
                    out[which, e] = counts[which]


def fill_averages(
    const int32_t[::1] false_positives, const int32_t[::1] begin, const int64_t[::1] positives,
    const double[::1] levels, const double[::1] due, double guard, Summing summing: int,
    double[::1] out,
) -> None:
    """Write the interpolated average precision of each of several lists into `out`.

    The hits of list k are those from ``begin[k]`` to ``begin[k + 1]``; without levels it is the
    area under precision.
    """
    cdef Py_ssize_t k, hits, most = 0
    for k in range(out.shape[0]):
        most = max(most, begin[k + 1] - begin[k])
    # An array is released however this ends.
    cdef double[::1] precision = np.empty(most + 1)
    cdef double[::1] terms = np.empty(max(most + 1, levels.shape[0]))
    with nogil:
        for k in range(out.shape[0]):
            if positives[k] <= 0:
                out[k] = NAN
                continue
            hits = begin[k + 1] - begin[k]
            if hits:
                precision_at_hits(&false_positives[begin[k]], hits, guard, &precision[0])
                make_envelope(&precision[0], hits)
            if levels.shape[0]:
                read_levels(
                    &precision[0], hits, positives[k], &due[0], levels.shape[0], &terms[0]
                )
                out[k] = average_of_levels(&terms[0], &levels[0], levels.shape[0], summing)
            else:
                out[k] = area_under(&precision[0], hits, positives[k], &terms[0])
