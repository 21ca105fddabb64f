"""Largest one-to-one assignment of ground truths and detections, compiled. See assignment.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc

cdef struct Weight:
    double pairs  # counted ground truths with a pair; compared first
    double value  # total IoU, and a trace of it for each detection that is no false positive


cdef inline Weight plus(Weight a, Weight b, double sign) noexcept nogil:
    a.pairs += sign * b.pairs
    a.value += sign * b.value
    return a


cdef inline bint less(Weight a, Weight b) noexcept nogil:
    return a.pairs < b.pairs or (a.pairs == b.pairs and a.value < b.value)


cdef struct Graph:
    const int64_t* start
    const int32_t* detection
    const double* iou
    const uint8_t* counted
    const uint8_t* allowed
    const double* bonus
    int32_t rows
    int32_t columns


cdef struct State:  # column `columns + r` stands for no pair of row r
    int32_t* row_of  # of each column, or -1
    int32_t* column_of  # of each row
    int32_t* previous  # the row from which the path reaches a column
    int32_t* reached  # the columns that the search has reached
    uint8_t* status  # of each column: 1 if reached, 2 if the search has passed it
    Weight* distance  # of each reached column
    Weight* row_price
    Weight* column_price


def assign(
    const int64_t[::1] start, const int32_t[::1] detection, const double[::1] iou,
    const uint8_t[::1] counted, const uint8_t[::1] allowed, const double[::1] bonus,
    int32_t[::1] row_of,
) -> None:
    """Write the ground truth assigned to each detection, or -1."""
    cdef int32_t row, i, rows = counted.shape[0], columns = row_of.shape[0] - rows
    cdef bint complete
    if start.shape[0] != rows + 1 or start[rows] != detection.shape[0] or (
        iou.shape[0] != detection.shape[0] or allowed.shape[0] != detection.shape[0]
        or bonus.shape[0] != columns
    ):
        raise ValueError("array shapes do not match")
    cdef State state
    cdef Graph graph
    if rows == 0 or detection.shape[0] == 0:
        row_of[:] = -1
        return
    graph.start, graph.detection, graph.iou = &start[0], &detection[0], &iou[0]
    graph.counted, graph.allowed, graph.bonus = &counted[0], &allowed[0], &bonus[0]
    graph.rows, graph.columns = rows, columns
    state.row_of = &row_of[0]
    state.column_of = <int32_t*> malloc(rows * sizeof(int32_t))
    state.previous = <int32_t*> malloc((rows + columns) * sizeof(int32_t))
    state.reached = <int32_t*> malloc((rows + columns) * sizeof(int32_t))
    state.status = <uint8_t*> calloc(rows + columns, sizeof(uint8_t))
    state.distance = <Weight*> malloc((rows + columns) * sizeof(Weight))
    state.row_price = <Weight*> calloc(rows, sizeof(Weight))
    state.column_price = <Weight*> calloc(rows + columns, sizeof(Weight))
    complete = not (
        state.column_of == NULL or state.previous == NULL or state.reached == NULL
        or state.status == NULL or state.distance == NULL or state.row_price == NULL
        or state.column_price == NULL
    )
    if complete:
        with nogil:
            for i in range(rows + columns):
                state.row_of[i] = -1
            for row in range(rows):
                insert(&graph, &state, row)
    free(state.column_of)
    free(state.previous)
    free(state.reached)
    free(state.status)
    free(state.distance)
    free(state.row_price)
    free(state.column_price)
    if not complete:
        raise MemoryError


cdef void insert(Graph* graph, State* state, int32_t first) noexcept nogil:
    """Assign one more row along a shortest augmenting path (Jonker and Volgenant, 1987)."""
    cdef int32_t row = first, column, other, count = 0, n
    cdef int64_t edge
    cdef Weight lowest, cost
    lowest.pairs = lowest.value = 0
    while True:
        for edge in range(graph.start[row], graph.start[row + 1]):
            if graph.allowed[edge]:
                column = graph.detection[edge]
                cost.pairs = -<double> graph.counted[row]
                cost.value = -(graph.counted[row] * graph.iou[edge] + graph.bonus[column])
                relax(state, &count, row, column, plus(lowest, cost, 1))
        relax(state, &count, row, graph.columns + row, lowest)
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
