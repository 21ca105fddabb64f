"""Largest one-to-one assignment of ground truths and detections, compiled. See assignment.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

cdef struct Weight:
    double pairs  # counted ground truths with a pair; compared first
    double value  # total IoU, and a trace of it for each detection that is no false positive


cdef inline Weight plus(Weight a, Weight b, double sign) noexcept nogil:
    a.pairs += sign * b.pairs
    a.value += sign * b.value
    return a


cdef inline bint less(Weight a, Weight b) noexcept nogil:
    return a.pairs < b.pairs or (a.pairs == b.pairs and a.value < b.value)


cdef struct State:  # column `columns + r` stands for no pair of row r
    const int64_t* start  # of each row's pairs
    const int32_t* detection  # of each pair
    const double* iou
    const uint8_t* counted  # of each row
    const double* bonus  # of each column
    int32_t columns
    int32_t* row_of  # of each column, or -1
    int32_t* column_of  # of each row
    int32_t* previous  # the row from which the path reaches a column
    int32_t* reached  # the columns that the search has reached
    int32_t* status  # of each column: 1 if reached, 2 if the search has passed it
    Weight* distance  # of each reached column
    Weight* column_price
    Weight* row_price


def assign(
    const int64_t[::1] start, const int32_t[::1] detection, const double[::1] iou,
    const uint8_t[::1] counted, const double[::1] bonus, int32_t[::1] row_of,
) -> None:
    """Write the ground truth assigned to each detection, or -1."""
    cdef int32_t row, rows = counted.shape[0], columns = bonus.shape[0], nodes = rows + columns
    if start.shape[0] != rows + 1 or start[rows] != detection.shape[0] or (
        iou.shape[0] != detection.shape[0] or row_of.shape[0] != nodes
    ):
        raise ValueError("array shapes do not match")
    row_of[:] = -1
    if detection.shape[0] == 0:
        return
    cdef int32_t[:, ::1] numbers = np.zeros((4, nodes), np.int32)
    cdef double[:, :, ::1] weights = np.zeros((3, nodes, 2))
    cdef State state
    state.start, state.detection, state.iou = &start[0], &detection[0], &iou[0]
    state.counted, state.bonus, state.columns = &counted[0], &bonus[0], columns
    state.row_of, state.column_of, state.previous = &row_of[0], &numbers[0, 0], &numbers[1, 0]
    state.reached, state.status = &numbers[2, 0], &numbers[3, 0]
    state.distance = <Weight*> &weights[0, 0, 0]
    state.column_price, state.row_price = state.distance + nodes, state.distance + 2 * nodes
    with nogil:
        for row in range(rows):
            insert(&state, row)


cdef void insert(State* state, int32_t first) noexcept nogil:
    """Assign one more row along a shortest augmenting path (Jonker and Volgenant, 1987)."""
    cdef int32_t row = first, column, other, count = 0, n
    cdef int64_t pair
    cdef Weight lowest, cost
    lowest.pairs = lowest.value = 0
    while True:
        for pair in range(state.start[row], state.start[row + 1]):
            column = state.detection[pair]
            cost.pairs = -<double> state.counted[row]
            cost.value = -(state.counted[row] * state.iou[pair] + state.bonus[column])
            relax(state, &count, row, column, plus(lowest, cost, 1))
        relax(state, &count, row, state.columns + row, lowest)
        column = -1
        for n in range(count):
            other = state.reached[n]
            if state.status[other] == 1 and (
                column < 0 or less(state.distance[other], state.distance[column])
            ):
                column = other
        lowest = state.distance[column]
        state.status[column] = 2
        if state.row_of[column] < 0:
            break
        row = state.row_of[column]
    state.row_price[first] = plus(state.row_price[first], lowest, 1)
    for n in range(count):
        other = state.reached[n]
        if state.status[other] == 2:
            cost = plus(lowest, state.distance[other], -1)
            state.column_price[other] = plus(state.column_price[other], cost, -1)
            if state.row_of[other] >= 0:
                row = state.row_of[other]
                state.row_price[row] = plus(state.row_price[row], cost, 1)
        state.status[other] = 0
    while True:
        row = state.previous[column]
        state.row_of[column] = row
        other = column
        if row == first:
            state.column_of[row] = other
            break
        column = state.column_of[row]
        state.column_of[row] = other


cdef inline void relax(
    State* state, int32_t* count, int32_t row, int32_t column, Weight distance
) noexcept nogil:
    """Note the way to a column through a row if it is the shortest known."""
    if state.status[column] == 2:
        return
    distance = plus(distance, state.row_price[row], -1)
    distance = plus(distance, state.column_price[column], -1)
    if state.status[column] == 0:
        state.status[column] = 1
        state.reached[count[0]] = column
        count[0] += 1
    elif not less(distance, state.distance[column]):
        return
    state.distance[column] = distance
    state.previous[column] = row
