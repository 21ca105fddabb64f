# cython: auto_pickle=False
"""Ranking of galleries, compiled. See ranking.py.

A gallery of a million items is never sorted: the ranks of the relevant items are counted, or the
first k items are selected.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from detap.core._ordering cimport Keyed, descending_key, sort_by_key

cdef extern from *:
    """
    #include <stdint.h>
    #include <stddef.h>

    #if defined(__GNUC__) || defined(__clang__)
    #define DETAP_POPCOUNT(x) ((uint16_t)__builtin_popcountll(x))
    #else
    static uint16_t detap_popcount(uint64_t x) {
        x = x - ((x >> 1) & 0x5555555555555555ULL);
        x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
        x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
        return (uint16_t)((x * 0x0101010101010101ULL) >> 56);
    }
    #define DETAP_POPCOUNT(x) detap_popcount(x)
    #endif

    /* One loop, compiled for several instruction sets. Word w of all items is contiguous, so that
       a vector holds several items. */
    #define DETAP_DISTANCES(name)                                                              \\
        static void name(const uint64_t* query, const uint64_t* gallery, ptrdiff_t stride,     \\
                         ptrdiff_t words, ptrdiff_t count, uint16_t* out) {                    \\
            for (ptrdiff_t i = 0; i < count; i++)                                              \\
                out[i] = DETAP_POPCOUNT(query[0] ^ gallery[i]);                                \\
            for (ptrdiff_t w = 1; w < words; w++) {                                            \\
                const uint64_t own = query[w];                                                 \\
                const uint64_t* row = gallery + w * stride;                                    \\
                for (ptrdiff_t i = 0; i < count; i++)                                          \\
                    out[i] = (uint16_t)(out[i] + DETAP_POPCOUNT(own ^ row[i]));                \\
            }                                                                                  \\
        }

    DETAP_DISTANCES(detap_distances_plain)

    #if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
    #define DETAP_X86 1
    __attribute__((target("popcnt")))
    DETAP_DISTANCES(detap_distances_popcnt)
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512vpopcntdq")))
    DETAP_DISTANCES(detap_distances_avx512)
    #endif

    /* Negative squared distances, or products, of queries and a panel of items. Components are
       subtracted before squaring, so that nothing cancels. A vector lane is an item: each sum is
       added in the order of the components on any processor. */
    #define DETAP_PANEL 24

    #if defined(__GNUC__) || defined(__clang__)
    typedef double detap_two __attribute__((vector_size(16)));
    typedef double detap_four __attribute__((vector_size(32)));
    typedef double detap_eight __attribute__((vector_size(64)));
    enum { DETAP_ROWS = 4, DETAP_VECTORS = 2 };
    #else
    typedef double detap_two;
    enum { DETAP_ROWS = 1, DETAP_VECTORS = DETAP_PANEL };
    #endif
    #if defined(__GNUC__) && !defined(__clang__)
    #define DETAP_UNROLL _Pragma("GCC unroll 8")
    #else
    #define DETAP_UNROLL
    #endif

    #define DETAP_SQUARE(vector, sum, a, b)                                                    \\
        const vector difference = a - b;                                                       \\
        sum -= difference * difference
    #define DETAP_PRODUCT(vector, sum, a, b)                                                   \\
        const vector product = a * b;                                                          \\
        sum += product
    /* The product of two floats is exact as a double, so fused multiply-add gives the same bits. */
    #define DETAP_EXACT(vector, sum, a, b)                                                     \\
        for (int lane = 0; lane < LANES; lane++)                                               \\
            sum[lane] = __builtin_fma(a[lane], b[lane], sum[lane])

    #define DETAP_SUMS(name, add, vector, ROWS, VECTORS)                                       \\
        static void name(const double* queries, ptrdiff_t rows, ptrdiff_t width,               \\
                         const double* items, ptrdiff_t depth, double* out) {                  \\
            enum { LANES = sizeof(vector) / sizeof(double), STEP = LANES * VECTORS };          \\
            for (ptrdiff_t row = 0; row < rows; row += ROWS)                                   \\
                for (int first = 0; first < DETAP_PANEL; first += STEP) {                      \\
                    const double* query = queries + row * width;                               \\
                    const double* panel = items + first;                                       \\
                    double* to = out + row * DETAP_PANEL + first;                              \\
                    vector sums[ROWS][VECTORS], b[VECTORS];                                    \\
                    for (int r = 0; r < ROWS; r++)                                             \\
                        memcpy(sums[r], to + r * DETAP_PANEL, sizeof(sums[r]));                \\
                    for (ptrdiff_t d = 0; d < depth; d++, panel += DETAP_PANEL) {              \\
                        DETAP_UNROLL                                                           \\
                        for (int v = 0; v < VECTORS; v++)                                      \\
                            memcpy(&b[v], panel + v * LANES, sizeof(b[v]));                    \\
                        DETAP_UNROLL                                                           \\
                        for (int r = 0; r < ROWS; r++) {                                       \\
                            const vector a = query[r * width + d] - (vector){0};               \\
                            DETAP_UNROLL                                                       \\
                            for (int v = 0; v < VECTORS; v++) {                                \\
                                add(vector, sums[r][v], a, b[v]);                              \\
                            }                                                                  \\
                        }                                                                      \\
                    }                                                                          \\
                    for (int r = 0; r < ROWS; r++)                                             \\
                        memcpy(to + r * DETAP_PANEL, sums[r], sizeof(sums[r]));                \\
                }                                                                              \\
        }

    DETAP_SUMS(detap_squares_plain, DETAP_SQUARE, detap_two, DETAP_ROWS, DETAP_VECTORS)
    DETAP_SUMS(detap_products_plain, DETAP_PRODUCT, detap_two, DETAP_ROWS, DETAP_VECTORS)
    #ifdef DETAP_X86
    __attribute__((target("avx2")))
    DETAP_SUMS(detap_squares_avx2, DETAP_SQUARE, detap_four, 4, 3)
    __attribute__((target("avx2")))
    DETAP_SUMS(detap_products_avx2, DETAP_PRODUCT, detap_four, 4, 3)
    __attribute__((target("avx2,fma")))
    DETAP_SUMS(detap_exact_avx2, DETAP_EXACT, detap_four, 4, 3)
    __attribute__((target("avx512f")))
    DETAP_SUMS(detap_squares_avx512, DETAP_SQUARE, detap_eight, 8, 3)
    __attribute__((target("avx512f")))
    DETAP_SUMS(detap_products_avx512, DETAP_PRODUCT, detap_eight, 8, 3)
    __attribute__((target("avx512f")))
    DETAP_SUMS(detap_exact_avx512, DETAP_EXACT, detap_eight, 8, 3)
    #endif

    typedef void (*detap_sums)(const double*, ptrdiff_t, ptrdiff_t, const double*, ptrdiff_t,
                               double*);

    typedef struct {
        detap_sums squares, products, exact;
    } detap_loops;

    static detap_loops detap_best_sums(int plain) {
        const detap_loops any = {detap_squares_plain, detap_products_plain, detap_products_plain};
    #ifdef DETAP_X86
        if (!plain) {
            const detap_loops avx2 = {detap_squares_avx2, detap_products_avx2, detap_exact_avx2};
            const detap_loops avx512 = {detap_squares_avx512, detap_products_avx512,
                                        detap_exact_avx512};
            __builtin_cpu_init();
            if (__builtin_cpu_supports("avx512f"))
                return avx512;
            if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
                return avx2;
        }
    #endif
        (void)plain;
        return any;
    }

    typedef void (*detap_distances)(const uint64_t*, const uint64_t*, ptrdiff_t, ptrdiff_t,
                                    ptrdiff_t, uint16_t*);

    static detap_distances detap_best_distances(int plain) {
    #ifdef DETAP_X86
        if (!plain) {
            __builtin_cpu_init();
            if (__builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512bw")
                && __builtin_cpu_supports("avx512vl"))
                return detap_distances_avx512;
            if (__builtin_cpu_supports("popcnt"))
                return detap_distances_popcnt;
        }
    #endif
        (void)plain;
        return detap_distances_plain;
    }
    """
    ctypedef void (*detap_distances)(
        const uint64_t*, const uint64_t*, Py_ssize_t, Py_ssize_t, Py_ssize_t, uint16_t*
    ) noexcept nogil
    detap_distances detap_best_distances(int plain) noexcept nogil
    ctypedef void (*detap_sums)(
        const double*, Py_ssize_t, Py_ssize_t, const double*, Py_ssize_t, double*
    ) noexcept nogil
    ctypedef struct detap_loops:
        detap_sums squares, products, exact
    detap_loops detap_best_sums(int plain) noexcept nogil

cdef enum:
    TILE = 8192  # items at a time: distances and flags fit into L1
    QUERIES_PER_CALL = 16  # they share a tile of the gallery in L2
    MAX_BRACKETS = 1 << 14
    STRIP = 64  # items skipped together if none is good enough
    PANEL = 24  # items with interleaved components: DETAP_PANEL
    QUERIES = 8  # the number of queries is padded to a multiple of it
    DEPTH = 128  # components at a time: a panel fits into L1
    LINE = 64  # alignment of a panel in bytes

cdef detap_distances distances_to = detap_best_distances(0)
cdef detap_loops sums_with = detap_best_sums(0)


def use_plain_loops(bint plain) -> None:
    """Use the portable loops, or the fastest ones; for tests."""
    global distances_to, sums_with
    distances_to = detap_best_distances(plain)
    sums_with = detap_best_sums(plain)


cdef class Relevance:
    """Relevant items of each query: those that share a label with it."""

    cdef const int32_t[::1] query_classes, gallery_classes, itself
    cdef const uint64_t[:, ::1] query_labels, gallery_labels
    cdef readonly Py_ssize_t queries, items
    cdef Py_ssize_t words

    def __init__(
        self, query_classes: NDArray[np.int32], gallery_classes: NDArray[np.int32],
        query_labels: NDArray[np.uint64], gallery_labels: NDArray[np.uint64],
        itself: NDArray[np.int32],
    ):
        self.query_classes = query_classes
        self.gallery_classes = gallery_classes
        self.query_labels = query_labels
        self.gallery_labels = gallery_labels
        self.itself = itself
        self.words = self.gallery_labels.shape[0]
        if self.words:
            self.queries, self.items = self.query_labels.shape[0], self.gallery_labels.shape[1]
            if self.query_labels.shape[1] != self.words:
                raise ValueError("queries and gallery differ in labels")
        else:
            self.queries = self.query_classes.shape[0]
            self.items = self.gallery_classes.shape[0]
        if self.itself.shape[0] != self.queries:
            raise ValueError("itself must have one value per query")

    def part(self, Py_ssize_t low, Py_ssize_t high) -> Relevance:
        """Select the queries from `low` to `high`."""
        classes = self.query_classes if self.words else self.query_classes[low:high]
        labels = self.query_labels[low:high] if self.words else self.query_labels
        return Relevance(
            classes, self.gallery_classes, labels, self.gallery_labels, self.itself[low:high]
        )

    cdef void fill(
        self, Py_ssize_t query, Py_ssize_t first, Py_ssize_t count, uint8_t* out
    ) noexcept nogil:
        """Write 1 for relevant items, 0 for others, 2 for the query itself."""
        cdef Py_ssize_t i, w
        cdef int32_t query_class
        cdef uint64_t query_bits
        cdef const int32_t* classes
        cdef const uint64_t* labels
        if self.words == 0:
            query_class = self.query_classes[query]
            classes = &self.gallery_classes[first]
            for i in range(count):
                out[i] = classes[i] == query_class
        else:
            memset(out, 0, count)
            for w in range(self.words):
                query_bits = self.query_labels[query, w]
                labels = &self.gallery_labels[w, first]
                for i in range(count):
                    out[i] |= (labels[i] & query_bits) != 0
        i = self.itself[query] - first
        if 0 <= i < count:
            out[i] = 2


def count_relevant(Relevance relevance, Py_ssize_t low, Py_ssize_t high, int64_t[::1] out) -> None:
    """Count the relevant items of the queries from `low` to `high`."""
    cdef uint8_t flags[TILE]
    cdef Py_ssize_t q, i, tile, first, count
    cdef int64_t total
    if low < 0 or high > relevance.queries or out.shape[0] != relevance.queries:
        raise ValueError("out must have one value per query")
    with nogil:
        for q in range(low, high):
            total = 0
            for tile in range((relevance.items - 1) // TILE + 1):
                first = tile * TILE
                count = min(<Py_ssize_t>TILE, relevance.items - first)
                relevance.fill(q, first, count, flags)
                for i in range(count):
                    total += flags[i] & 1
            out[q] = total


cdef struct RelevantItem:
    int32_t earlier  # irrelevant items of equal distance earlier in the gallery
    int32_t distance


def rank_codes(
    const uint64_t[:, ::1] queries,
    const uint64_t[:, ::1] gallery,
    Relevance relevance,
    Py_ssize_t low,
    Py_ssize_t high,
    const int64_t[::1] start,
    int32_t[::1] hits,
    int32_t[::1] above,
    int32_t[::1] level,
) -> None:
    """Write the hits of the queries from `low` to `high`, by ascending Hamming distance."""
    # Those of query q are ``start[q] : start[q + 1]``, by rank: the irrelevant items above, those
    # that are nearer, and those at equal distance.
    cdef Py_ssize_t words = gallery.shape[0]
    cdef Py_ssize_t items = gallery.shape[1]
    cdef Py_ssize_t far = 64 * words + 1
    cdef Py_ssize_t q, tile, first, count, size
    cdef uint16_t distance[TILE]
    cdef uint8_t flags[TILE]
    cdef RelevantItem* relevant
    cdef RelevantItem* end[QUERIES_PER_CALL]
    cdef int32_t[:, ::1] relevant_items, irrelevant, offsets
    if queries.shape[1] != words or relevance.items != items:
        raise ValueError("queries, gallery and labels differ in shape")
    if low < 0 or high > relevance.queries or high - low > QUERIES_PER_CALL:
        raise ValueError("too many queries at a time")
    if queries.shape[0] != relevance.queries or start.shape[0] != relevance.queries + 1:
        raise ValueError("queries and start do not match relevance")
    if start[high] > hits.shape[0] or hits.shape[0] != above.shape[0]:
        raise ValueError("output arrays must have one value per relevant item")
    if level.shape[0] != hits.shape[0] or high <= low or items == 0:
        raise ValueError("output arrays must have one value per relevant item")
    size = start[high] - start[low]
    relevant_items = np.empty((size + 1, 2), np.int32)
    relevant = <RelevantItem*>&relevant_items[0, 0]
    irrelevant = np.zeros((high - low, far), np.int32)
    offsets = np.empty((2, far), np.int32)
    with nogil:
        for q in range(low, high):
            end[q - low] = relevant + (start[q] - start[low])
        for tile in range((items - 1) // TILE + 1):
            first = tile * TILE
            count = min(<Py_ssize_t>TILE, items - first)
            for q in range(low, high):
                distances_to(&queries[q, 0], &gallery[0, first], items, words, count, distance)
                relevance.fill(q, first, count, flags)
                end[q - low] = count_tile(
                    distance, flags, count, &irrelevant[q - low, 0], end[q - low]
                )
        for q in range(low, high):
            if start[q + 1] > start[q]:
                order_relevant(
                    relevant + (start[q] - start[low]), start[q + 1] - start[q],
                    &irrelevant[q - low, 0], far, &offsets[0, 0],
                    &hits[start[q]], &above[start[q]], &level[start[q]],
                )


cdef RelevantItem* count_tile(
    const uint16_t* distance, const uint8_t* flags, Py_ssize_t count, int32_t* irrelevant,
    RelevantItem* out,
) noexcept nogil:
    """Count irrelevant items by distance; append relevant ones with that count."""
    cdef Py_ssize_t i
    cdef int32_t* counter
    for i in range(count):
        counter = irrelevant + distance[i]
        if flags[i] == 1:
            out.earlier = counter[0]
            out.distance = distance[i]
            out += 1
        else:
            counter[0] += flags[i] == 0
    return out


cdef void order_relevant(
    const RelevantItem* relevant, Py_ssize_t count, const int32_t* irrelevant, Py_ssize_t far,
    int32_t* offsets, int32_t* hits, int32_t* above, int32_t* level,
) noexcept nogil:
    """Write the hits of the relevant items by distance."""
    cdef int32_t* nearer = offsets + far
    cdef Py_ssize_t i, d
    cdef int32_t offset = 0
    cdef int32_t n_irrelevant = 0
    cdef int32_t size
    memset(offsets, 0, far * sizeof(int32_t))
    for i in range(count):
        offsets[relevant[i].distance] += 1
    for d in range(far):
        size = offsets[d]
        offsets[d] = offset
        offset += size
        nearer[d] = n_irrelevant
        n_irrelevant += irrelevant[d]
    for i in range(count):
        d = relevant[i].distance
        offset = offsets[d]
        offsets[d] += 1
        hits[offset] = nearer[d] + relevant[i].earlier
        above[offset] = nearer[d]
        level[offset] = irrelevant[d]


ctypedef fused Score:
    float
    double


ctypedef fused Sum:
    float
    double


def fill_sums(
    const double[:, ::1] queries, const Score[:, :, ::1] panels, Py_ssize_t low, Py_ssize_t high,
    Sum[:, ::1] out, bint products, bint single,
) -> None:
    """Write negative squared distances of queries and items of some panels."""
    # Or their products. `queries` has the rows of `out`, padded with zeros to a multiple of 8;
    # `single` is True if all components are float32.
    cdef detap_sums sums_of = sums_with.squares
    cdef Py_ssize_t rows = queries.shape[0]
    cdef Py_ssize_t width = queries.shape[1]
    cdef Py_ssize_t number, chunk, first, count, depth, i, q
    cdef double* items
    cdef double* sums
    cdef const Score* panel
    cdef uint8_t[::1] memory
    if products:
        sums_of = sums_with.exact if single else sums_with.products
    if not 0 <= low <= high <= panels.shape[0] or panels.shape[2] != PANEL:
        raise ValueError("items out of range")
    if panels.shape[1] != width or rows != (out.shape[0] + QUERIES - 1) // QUERIES * QUERIES:
        raise ValueError("queries and items differ in shape")
    if not (panels.shape[0] - 1) * PANEL < out.shape[1] <= panels.shape[0] * PANEL:
        raise ValueError("out has the wrong shape")
    memory = np.empty((DEPTH + rows) * PANEL * sizeof(double) + LINE, np.uint8)
    with nogil:
        items = <double*>((<size_t>&memory[0] + LINE - 1) // LINE * LINE)
        sums = items + DEPTH * PANEL
        for number in range(low, high):
            memset(sums, 0, rows * PANEL * sizeof(double))
            for chunk in range((width + DEPTH - 1) // DEPTH):
                first = chunk * DEPTH
                depth = min(width - first, <Py_ssize_t>DEPTH)
                panel = &panels[number, first, 0]
                for i in range(depth * PANEL):
                    items[i] = panel[i]
                sums_of(&queries[0, first], rows, width, items, depth, sums)
            first = number * PANEL
            count = min(out.shape[1] - first, <Py_ssize_t>PANEL)
            for q in range(out.shape[0]):
                for i in range(count):
                    out[q, first + i] = <Sum>sums[q * PANEL + i]


cdef struct Best:
    Keyed* items  # (2 k,) the first k so far by ascending key, and candidates behind them
    Keyed* spare  # (2 k,)
    Py_ssize_t count, k
    bint is_full  # the first k are in order


cdef void keep_best(Best* best) noexcept nogil:
    """Drop all but the first k items, stably."""
    cdef Keyed* ordered = sort_by_key(best.items, best.spare, best.count)
    if ordered == best.spare:
        best.items, best.spare = best.spare, best.items
    best.count = min(best.count, best.k)


cdef void write_best(Best* best, int32_t* out) noexcept nogil:
    """Write the first k items in order."""
    cdef Py_ssize_t i
    keep_best(best)
    for i in range(best.count):
        out[i] = best.items[i].row


cdef inline double score_of(uint64_t key) noexcept nogil:
    """Return the score of a descending_key."""
    cdef uint64_t bits = ~key
    cdef double score
    bits = bits ^ (<uint64_t>1 << 63) if bits >> 63 else ~bits
    memcpy(&score, &bits, 8)
    return score


cdef void scan(
    const Score* scores, Py_ssize_t first, Py_ssize_t count, int32_t itself, Best* best
) noexcept nogil:
    """Keep the best-scored items of some from `first` on, skipping strips without any."""
    cdef Py_ssize_t i, number, end
    cdef Score worst = 0
    cdef int better
    if best.is_full:
        worst = <Score>score_of(best.items[best.k - 1].key)
    for number in range((count - 1) // STRIP + 1):
        end = min((number + 1) * STRIP, count)
        if best.is_full:
            better = 0
            for i in range(number * STRIP, end):
                better |= scores[i] > worst
            if not better:
                continue
        for i in range(number * STRIP, end):
            # Ties are in gallery order.
            if (best.is_full and not scores[i] > worst) or first + i == itself:
                continue
            best.items[best.count].key = descending_key(<double>scores[i])
            best.items[best.count].row = <int32_t>(first + i)
            best.count += 1
            if best.count == 2 * best.k:
                keep_best(best)
                best.is_full = True
                worst = <Score>score_of(best.items[best.k - 1].key)


def nearest_codes(
    const uint64_t[:, ::1] queries,
    const uint64_t[:, ::1] gallery,
    const int32_t[::1] itself,
    Py_ssize_t low,
    Py_ssize_t high,
    int32_t[:, ::1] out,
) -> None:
    """Write the nearest items of the queries from `low` to `high`, by Hamming distance."""
    cdef Py_ssize_t words = gallery.shape[0], items = gallery.shape[1], k = out.shape[1]
    cdef Py_ssize_t q, i, tile, first, count
    cdef uint16_t distance[TILE]
    cdef float score[TILE]
    cdef Best best[QUERIES_PER_CALL]
    cdef uint8_t[::1] memory
    cdef Keyed* buffer
    if queries.shape[1] != words or queries.shape[0] != out.shape[0]:
        raise ValueError("queries, gallery and out differ in shape")
    if low < 0 or high > queries.shape[0] or not 0 < high - low <= QUERIES_PER_CALL:
        raise ValueError("too many queries at a time")
    if itself.shape[0] != queries.shape[0] or items == 0 or k == 0:
        raise ValueError("itself must have one value per query")
    memory = np.empty((high - low) * 4 * k * sizeof(Keyed), np.uint8)
    buffer = <Keyed*>&memory[0]
    with nogil:
        for q in range(high - low):
            best[q] = Best(buffer + 4 * k * q, buffer + 4 * k * q + 2 * k, 0, k, False)
        for tile in range((items - 1) // TILE + 1):
            first = tile * TILE
            count = min(<Py_ssize_t>TILE, items - first)
            for q in range(low, high):
                distances_to(&queries[q, 0], &gallery[0, first], items, words, count, distance)
                for i in range(count):
                    score[i] = -<float>distance[i]
                scan(&score[0], first, count, itself[q], &best[q - low])
        for q in range(low, high):
            write_best(&best[q - low], &out[q, 0])


def nearest_scores(
    const Score[:, ::1] scores, const int32_t[::1] itself, Py_ssize_t row, int32_t[::1] out
) -> None:
    """Write the best-scored items of a row; ties are in gallery order."""
    cdef Py_ssize_t items = scores.shape[1], k = out.shape[0]
    cdef uint8_t[::1] memory
    cdef Best best
    if not 0 <= row < scores.shape[0] or items == 0 or k == 0:
        raise ValueError("row or query out of range")
    if itself.shape[0] != scores.shape[0]:
        raise ValueError("itself must have one value per query")
    memory = np.empty(4 * k * sizeof(Keyed), np.uint8)
    with nogil:
        best = Best(<Keyed*>&memory[0], <Keyed*>&memory[0] + 2 * k, 0, k, False)
        scan(&scores[row, 0], 0, items, itself[row], &best)
        write_best(&best, &out[0])


def rank_scores(
    const Score[:, ::1] scores,
    Relevance relevance,
    Py_ssize_t row,
    Py_ssize_t query,
    int32_t[::1] hits,
    int32_t[::1] above,
    int32_t[::1] level,
) -> None:
    """Write the hits of a query from a row of scores, as rank_codes."""
    cdef Py_ssize_t items = scores.shape[1]
    cdef Py_ssize_t count = hits.shape[0]
    cdef Py_ssize_t tiles = (items - 1) // TILE + 1
    cdef Py_ssize_t i, b, tile, first, size
    cdef Py_ssize_t h = 0
    cdef uint8_t flags[TILE]
    cdef Py_ssize_t brackets = min(<Py_ssize_t>MAX_BRACKETS, 4 * count)
    cdef double best, scale
    cdef uint64_t[::1] keys
    cdef int32_t[::1] bracket
    cdef uint8_t[::1] memory
    cdef Keyed* relevant
    cdef Keyed* order
    if not (0 <= row < scores.shape[0] and 0 <= query < relevance.queries):
        raise ValueError("row or query out of range")
    if relevance.items != items or above.shape[0] != count or level.shape[0] != count:
        raise ValueError("scores, relevance and outputs differ in shape")
    if count == 0:
        return
    memory = np.empty(2 * count * sizeof(Keyed), np.uint8)
    relevant = <Keyed*>&memory[0]
    keys = np.empty(count, np.uint64)
    bracket = np.zeros(brackets + 1, np.int32)
    with nogil:
        for tile in range(tiles):
            first = tile * TILE
            size = min(<Py_ssize_t>TILE, items - first)
            relevance.fill(query, first, size, flags)
            for i in range(size):
                if flags[i] == 1 and h < count:
                    relevant[h].key = descending_key(<double>scores[row, first + i])
                    relevant[h].row = <int32_t>(first + i)
                    h += 1
        # Stable sort: ties stay in gallery order.
        order = sort_by_key(relevant, relevant + count, h)
        best = <double>scores[row, order[0].row]
        # 0, infinite or NaN for ties and overflow: brackets still never fall.
        scale = <double>brackets / (best - <double>scores[row, order[h - 1].row])
        for i in range(h):
            keys[i] = order[i].key
            bracket[bracket_of(<double>scores[row, order[i].row], best, scale, brackets)] += 1
        first_of_brackets(&bracket[0], brackets)
        memset(&hits[0], 0, count * sizeof(int32_t))
        memset(&above[0], 0, count * sizeof(int32_t))
        memset(&level[0], 0, count * sizeof(int32_t))
        for tile in range(tiles):
            first = tile * TILE
            size = min(<Py_ssize_t>TILE, items - first)
            relevance.fill(query, first, size, flags)
            for i in range(size):
                if flags[i] == 0:
                    b = bracket_of(<double>scores[row, first + i], best, scale, brackets)
                    count_irrelevant(
                        descending_key(<double>scores[row, first + i]), <int32_t>(first + i),
                        bracket[b], bracket[b + 1], &keys[0], order, h,
                        &hits[0], &above[0], &level[0],
                    )
        cumulate(&keys[0], h, &hits[0], &above[0], &level[0])


cdef inline Py_ssize_t bracket_of(
    double score, double best, double scale, Py_ssize_t brackets
) noexcept nogil:
    """Return a bracket number that never falls as the score falls."""
    cdef double number = (best - score) * scale
    if not number > 0.0:
        return 0
    return brackets - 1 if number >= <double>brackets else <Py_ssize_t>number


cdef void first_of_brackets(int32_t* bracket, Py_ssize_t brackets) noexcept nogil:
    """Turn the sizes of brackets into the index of their first item."""
    cdef Py_ssize_t b
    cdef int32_t size
    cdef int32_t first = 0
    for b in range(brackets):
        size = bracket[b]
        bracket[b] = first
        first += size
    bracket[brackets] = first


cdef inline void count_irrelevant(
    uint64_t key, int32_t item, Py_ssize_t low, Py_ssize_t end,
    const uint64_t* keys, const Keyed* order, Py_ssize_t count,
    int32_t* hits, int32_t* above, int32_t* level,
) noexcept nogil:
    """Count an irrelevant item at the first relevant item below it."""
    # That item is between `low` and `end`, inclusive.
    cdef Py_ssize_t n_left = end - low
    cdef Py_ssize_t half
    if key > keys[count - 1]:
        return
    while n_left > 0:
        half = n_left // 2
        if keys[low + half] < key:
            low += half + 1
            n_left -= half + 1
        else:
            n_left = half
    if keys[low] != key:
        hits[low] += 1
        above[low] += 1
        return
    # A tie: it ranks above the relevant items later in the gallery.
    level[low] += 1
    n_left = count - low
    while n_left > 0:
        half = n_left // 2
        if keys[low + half] == key and order[low + half].row < item:
            low += half + 1
            n_left -= half + 1
        else:
            n_left = half
    if low < count:
        hits[low] += 1


cdef void cumulate(
    const uint64_t* keys, Py_ssize_t count, int32_t* hits, int32_t* above, int32_t* level
) noexcept nogil:
    """Turn counts per relevant item into cumulative counts."""
    cdef Py_ssize_t h
    cdef int32_t tied = 0
    for h in range(1, count):
        hits[h] += hits[h - 1]
    for h in range(count):
        if h and keys[h] == keys[h - 1]:
            level[h] = level[h - 1]
            above[h] = above[h - 1]
        else:
            above[h] = (above[h - 1] + tied + above[h]) if h else above[h]
            tied = level[h]
