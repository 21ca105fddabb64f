"""Masks in pycocotools' formats and their run lengths; see mask.py and fast_path.py."""

from cython cimport boundscheck, final
from libc.math cimport fabs
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from detap.core._masks cimport merge, max_runs, rasterize
from detap.tables._runs cimport SOUND, Runs, area_of, decode, put_run

from typing import TYPE_CHECKING

import numpy as np

from detap.errors import MaskError
from detap.tables._runs import FAULTS

if TYPE_CHECKING:
    from detap.core.masks import MaskArrays


cdef enum:
    FARTHEST = 100000000        # coordinates beyond are no pixels of an image
    MOST_RUNS = 1 << 23         # of one polygon, so that a few bytes do not take all memory
    DIGITS = 7                  # of five bits: as many as a run of 32 bits and its sign take

cdef int64_t MOST_PIXELS = 0xFFFFFFFF


@final
cdef class Lists:
    """Run lists of masks, one behind the other.

    Parameters
    ----------
    room : int
        How many there will be.

    Attributes
    ----------
    count : int
    sizes : (room, 2) int64
        Height and width of each, as it says itself.
    """

    cdef Runs runs, part, other, crossings
    cdef readonly Py_ssize_t count
    cdef readonly object sizes
    sizes: NDArray[np.int64]
    cdef object starts
    cdef int64_t[:, ::1] size
    cdef int64_t[::1] start

    def __cinit__(self, Py_ssize_t room):
        memset(&self.runs, 0, sizeof(Runs))
        memset(&self.part, 0, sizeof(Runs))
        memset(&self.other, 0, sizeof(Runs))
        memset(&self.crossings, 0, sizeof(Runs))
        self.sizes, self.starts = np.zeros((room, 2), np.int64), np.zeros(room + 1, np.int64)
        self.size, self.start = self.sizes, self.starts

    def __dealloc__(self):
        free(self.runs.at)
        free(self.part.at)
        free(self.other.at)
        free(self.crossings.at)

    cdef int64_t length(self, Py_ssize_t mask) noexcept nogil:
        return self.start[mask + 1] - self.start[mask]

    cdef const uint32_t *at(self, Py_ssize_t mask) noexcept nogil:
        return self.runs.at + self.start[mask]

    cdef int64_t total(self, Py_ssize_t mask) noexcept nogil:
        """Return the number of pixels in the runs of a mask, inside and outside."""
        return _total(self.at(mask), self.length(mask))

    cdef bint usual(self, Py_ssize_t mask) noexcept nogil:
        """Return True if they fill its size and only the first run may be empty."""
        cdef Py_ssize_t i
        for i in range(1, self.length(mask)):
            if self.at(mask)[i] == 0:
                return False
        return self.length(mask) > 0 and self.total(mask) == (
            self.size[mask, 0] * self.size[mask, 1]
        )

    cdef int close(self, uint64_t height, uint64_t width) except -1:
        """End a mask, whose runs are there."""
        self.size[self.count, 0], self.size[self.count, 1] = height, width
        self.count += 1
        self.start[self.count] = self.runs.count
        return 0

    cdef int copy(self, const Runs *given) except -1:
        cdef Py_ssize_t i
        for i in range(given.count):
            if not put_run(&self.runs, given.at[i]):
                raise MemoryError
        return 0

    cdef int take_text(self, bytes text, uint64_t height, uint64_t width) except -1:
        fault = decode(text, len(text), False, MOST_PIXELS, &self.runs)
        if fault != SOUND:
            if <int>fault not in FAULTS:
                raise MemoryError
            raise MaskError(f"counts {FAULTS[<int>fault]}; write the mask again")
        return self.close(height, width)

    cdef int take_counts(self, counts, uint64_t height, uint64_t width) except -1:
        cdef const uint32_t[:] runs = np.array(counts, dtype=np.uint32)
        cdef Py_ssize_t i
        for i in range(runs.shape[0]):
            if not put_run(&self.runs, runs[i]):
                raise MemoryError
        return self.close(height, width)

    cdef int draw(self, ring, int64_t height, int64_t width, Runs *to) except -1:
        """Rasterise a polygon, given as x, y, x, y, ..."""
        cdef const double[::1] points = np.array(ring, dtype=np.double)
        cdef Py_ssize_t count = points.shape[0] // 2, i
        for i in range(points.shape[0]):
            if not fabs(points[i]) <= FARTHEST:
                raise MaskError(f"a coordinate of a polygon is {points[i]}; give pixels")
        if not (0 <= height and 0 <= width and height * width <= MOST_PIXELS):
            raise MaskError(f"a mask of size [{height}, {width}] cannot be drawn")
        if count and max_runs(&points[0], count, height, width) > MOST_RUNS:
            raise MaskError(
                f"a polygon of {count} points may become more than {MOST_RUNS} runs of pixels in a "
                f"mask of size [{height}, {width}]; simplify it"
            )
        if not rasterize(&points[0] if count else NULL, count, height, width,
                         &self.crossings, to):
            raise MemoryError
        return 0

    cdef int take_polygon(self, ring, int64_t height, int64_t width) except -1:
        self.draw(ring, height, width, &self.part)
        self.copy(&self.part)
        return self.close(height, width)

    cdef int take_polygons(self, list rings, int64_t height, int64_t width) except -1:
        """Take the union of polygons."""
        cdef Runs one, swap
        memset(&one, 0, sizeof(Runs))
        try:
            self.draw(rings[0], height, width, &one)
            for ring in rings[1:]:
                self.draw(ring, height, width, &self.part)
                if not merge(&one, &self.part, False, &self.other):
                    raise MemoryError
                swap = one
                one = self.other
                self.other = swap
            self.copy(&one)
        finally:
            free(one.at)
        return self.close(height, width)

    cdef bytes text(self, Py_ssize_t mask):
        """Return the runs of a mask as COCO's run-length string."""
        cdef const uint32_t *runs = self.at(mask)
        cdef Py_ssize_t count = self.length(mask), i, length = 0
        cdef uint8_t *out = <uint8_t *>malloc(DIGITS * count + 1)
        cdef int64_t value
        cdef uint8_t digit
        cdef bint more
        if out == NULL:
            raise MemoryError
        for i in range(count):
            value = runs[i]
            if i > 2:
                value -= runs[i - 2]
            more = True
            while more:
                digit = value & 31
                value >>= 5
                more = value != (-1 if digit & 16 else 0)
                out[length] = digit + (80 if more else 48)
                length += 1
        try:
            return out[:length]
        finally:
            free(out)

    def texts(self) -> list[dict[str, Any]]:
        """Return the masks as pycocotools has them: size and counts of each."""
        return [self.record(i) for i in range(self.count)]

    cdef dict record(self, Py_ssize_t mask):
        size = [self.size[mask, 0], self.size[mask, 1]]
        return {"size": size, "counts": self.text(mask)}

    def areas(self) -> NDArray[np.uint32]:
        """Return the number of pixels of each, (n,) uint32."""
        result = np.zeros(self.count, np.uint32)
        cdef uint32_t[::1] area = result
        cdef Py_ssize_t i
        for i in range(self.count):
            area[i] = <uint32_t>area_of(self.at(i), self.length(i))
        return result

    def boxes(self) -> NDArray[np.float64]:
        """Return x, y, width and height of the box around each, (n, 4) float64."""
        result = np.zeros((self.count, 4))
        cdef double[:, ::1] box = result
        cdef Py_ssize_t i
        for i in range(self.count):
            self.box(i, &box[i, 0])
        return result

    cdef int box(self, Py_ssize_t mask, double *out) except -1:
        """Write the box of a mask: of one without a pixel, what unsigned numbers make of it."""
        cdef uint32_t height = <uint32_t>self.size[mask, 0], width = <uint32_t>self.size[mask, 1]
        cdef uint32_t left = width, top = height, right = 0, bottom = 0, begin, end, at = 0
        cdef const uint32_t *runs = self.at(mask)
        cdef Py_ssize_t count = self.length(mask), i = 1
        out[0] = out[1] = out[2] = out[3] = 0.0
        if count < 2:
            return 0
        while i < count:
            begin = at + runs[i - 1]
            at = begin + runs[i]
            i += 2
            if at == begin:
                continue
            if height == 0:
                raise MaskError("a mask of no height has pixels; size is [height, width]")
            end = at - 1
            left = min(left, begin // height)
            right = max(right, end // height)
            if begin // height < end // height:
                top, bottom = 0, height - 1
            else:
                top = min(top, begin % height)
                bottom = max(bottom, end % height)
        out[0], out[1] = left, top
        out[2], out[3] = <uint32_t>(right - left + 1), <uint32_t>(bottom - top + 1)
        return 0

    def merged(self, bint intersect) -> dict[str, Any]:
        """Return the union of all, or what they share, as one record."""
        cdef Lists made = Lists(1)
        cdef Py_ssize_t i
        cdef Runs one, part, swap
        if self.count == 0:
            return {"size": [0, 0], "counts": b""}
        memset(&one, 0, sizeof(Runs))
        try:
            for i in range(self.length(0)):
                if not put_run(&one, self.at(0)[i]):
                    raise MemoryError
            for i in range(1, self.count):
                if tuple(self.size[i]) != tuple(self.size[0]):
                    return {"size": [0, 0], "counts": b""}
                part.at, part.count, part.room = self.runs.at + self.start[i], self.length(i), 0
                if not one.count or not part.count or (
                    _total(one.at, one.count) != _total(part.at, part.count)
                ):
                    raise self.unequal(i, _total(one.at, one.count))
                if not merge(&one, &part, intersect, &self.other):
                    raise MemoryError
                swap = one
                one = self.other
                self.other = swap
            made.copy(&one)
        finally:
            free(one.at)
        made.close(self.size[0, 0], self.size[0, 1])
        return made.record(0)

    def unequal(self, Py_ssize_t mask, int64_t other) -> MaskError:
        """Return the problem if the runs of two masks do not end together."""
        height, width = self.size[mask]
        for total in (self.total(mask), other):
            if total != height * width:
                return MaskError(
                    f"counts sum to {total}, and a mask of size [{height}, {width}] has "
                    f"{height * width} pixels; write it again, size is [height, width]"
                )
        return MaskError("counts of two masks of one size do not sum to the same; write them again")

    def decoded(self) -> NDArray[np.uint8]:
        """Return the bitmaps, (h, w, n) uint8, all of the first one's size."""
        cdef uint64_t height, width, pixels, at
        cdef Py_ssize_t i, k
        cdef uint8_t[::1] out
        cdef const uint32_t *runs
        if self.count == 0:
            raise MaskError("no mask to decode: the list is empty")
        height, width = self.size[0]
        pixels = height * width
        for i in range(self.count):
            if self.total(i) != <int64_t>pixels:
                raise self.unlike(i)
        bits = np.zeros(pixels * self.count, np.uint8)
        out = bits
        for i in range(self.count):
            runs = self.at(i)
            at = i * pixels
            for k in range(self.length(i)):
                if k & 1 and runs[k]:
                    memset(&out[at], 1, runs[k])
                at += runs[k]
        return bits.reshape((height, width, self.count), order="F")

    def unlike(self, Py_ssize_t mask) -> MaskError:
        """Return the problem if a mask does not fill the first one's size."""
        height, width = self.size[0]
        if tuple(self.size[mask]) != (height, width):
            return MaskError(
                f"masks of size {list(self.size[mask])} and [{height}, {width}] make no array "
                "of bitmaps; decode them one by one"
            )
        return self.unequal(mask, self.total(mask))

    def arrays(self) -> MaskArrays | None:
        """Return all columns, as :data:`detap.core.masks.MaskArrays` has them.

        None where the runs of one are unusual: empty, or not as many pixels as its size has.
        """
        cdef Py_ssize_t i
        for i in range(self.count):
            if not self.usual(i):
                return None
        runs = np.zeros(0, np.uint32)
        if self.runs.count:
            runs = np.array(<uint32_t[: self.runs.count]>self.runs.at)
        none = np.zeros(self.count + 1, np.int64)
        sizes = self.sizes[: self.count].astype(np.int32)
        starts = self.starts[: self.count + 1]
        return sizes, starts, runs, none, none[:0], np.zeros((0, 2))


cdef int64_t _total(const uint32_t *runs, Py_ssize_t count) noexcept nogil:
    cdef int64_t total = 0
    cdef Py_ssize_t i
    for i in range(count):
        total += runs[i]
    return total


@boundscheck(True)  # a size may have fewer than two numbers
def read(records: Sequence[Any]) -> Lists:
    """Return the run lists of records of size and counts, a string."""
    cdef Lists lists = Lists(len(records))
    for record in records:
        counts = record["counts"]
        text = str.encode(counts) if type(counts) is str else counts
        lists.take_text(text, record["size"][0], record["size"][1])
    return lists


@boundscheck(True)
def read_counts(records: Sequence[Any]) -> Lists:
    """Return the run lists of records of size and counts, a list."""
    cdef Lists lists = Lists(len(records))
    for record in records:
        lists.take_counts(record["counts"], record["size"][0], record["size"][1])
    return lists


def draw(polygons: Sequence[Any], height: int, width: int) -> Lists:
    """Return the run lists of polygons."""
    cdef Lists lists = Lists(len(polygons))
    for ring in polygons:
        lists.take_polygon(ring, height, width)
    return lists


def encode(const uint8_t[::1, :, :] bits) -> Lists:
    """Return the run lists of bitmaps (h, w, n): a run ends where the value changes."""
    cdef Lists lists = Lists(bits.shape[2])
    cdef Py_ssize_t pixels = bits.shape[0] * bits.shape[1], i, k
    cdef const uint8_t *at
    cdef uint8_t before
    cdef uint32_t run
    for i in range(bits.shape[2]):
        at = &bits[0, 0, i] if pixels else NULL
        before = run = 0
        for k in range(pixels):
            if at[k] != before:
                if not put_run(&lists.runs, run):
                    raise MemoryError
                run, before = 0, at[k]
            run += 1
        if not put_run(&lists.runs, run):
            raise MemoryError
        lists.close(bits.shape[0], bits.shape[1])
    return lists


def overlaps(Lists claims, Lists truths, const uint8_t[::1] crowd) -> NDArray[np.float64]:
    """Return the overlap of each of D masks with each of G, (D, G) float64, column by column.

    It is -1 for masks of different sizes whose boxes meet.
    """
    cdef Py_ssize_t d, g
    cdef const double[:, ::1] claim_box = claims.boxes(), truth_box = truths.boxes()
    result = np.zeros((claims.count, truths.count), order="F")
    cdef double[::1, :] overlap = result
    cdef int64_t common, both
    for g in range(truths.count):
        for d in range(claims.count):
            if not _meet(&claim_box[d, 0], &truth_box[g, 0]):
                continue
            if (claims.size[d, 0] != truths.size[g, 0]
                    or claims.size[d, 1] != truths.size[g, 1]):
                overlap[d, g] = -1.0
                continue
            if claims.total(d) != truths.total(g):
                raise claims.unequal(d, truths.total(g))
            common = both = 0
            _compare(claims.at(d), claims.length(d), truths.at(g), truths.length(g),
                     &common, &both)
            if common:
                if crowd[g]:
                    both = area_of(claims.at(d), claims.length(d))
                overlap[d, g] = <double>common / <double>both
    return result


cdef void _compare(
    const uint32_t *a, Py_ssize_t count_a, const uint32_t *b, Py_ssize_t count_b,
    int64_t *common, int64_t *both,
) noexcept nogil:
    """Count the pixels of two masks of as many, in their common and in their joint part.

    In the reference's order of steps, which end where an empty run of each follows.
    """
    cdef Py_ssize_t i = 0, j = 0
    cdef uint32_t left_a = a[0], left_b = b[0], step
    cdef bint in_a = False, in_b = False
    while True:
        step = min(left_a, left_b)
        if in_a or in_b:
            both[0] += step
            if in_a and in_b:
                common[0] += step
        left_a -= step
        left_b -= step
        if left_a == 0 and i + 1 < count_a:
            i += 1
            left_a = a[i]
            in_a = not in_a
        if left_b == 0 and j + 1 < count_b:
            j += 1
            left_b = b[j]
            in_b = not in_b
        if left_a == 0 and left_b == 0:
            return


cdef bint _meet(const double *a, const double *b) noexcept nogil:
    """Return True if two boxes share more than an edge."""
    return (
        min(a[0] + a[2], b[0] + b[2]) > max(a[0], b[0])
        and min(a[1] + a[3], b[1] + b[3]) > max(a[1], b[1])
    )


# --- of annotations


cdef bint _plain(object value) noexcept:
    return type(value) is float or type(value) is int


cdef bint _are_plain(list rings) noexcept:
    """Return True if these are polygons of plain numbers that pycocotools accepts."""
    cdef object ring, value
    for ring in rings:
        if type(ring) is not list:
            return False
        for value in <list>ring:
            if not _plain(value):
                return False
    return len(rings) > 0 and len(<list>rings[0]) > 4


@boundscheck(True)
def of_annotations(list records: list[Any], dict images: dict[Any, Any]) -> Lists | None:
    """Return the run lists of annotations, and let each hold its own as pycocotools does.

    What is no run-length string yet becomes one. None where a segmentation is unusual.

    Parameters
    ----------
    images : dict
        The records of the images, of height and width.
    """
    cdef Lists lists = Lists(len(records))
    cdef object record, image, shape, counts
    cdef int64_t height, width
    for record in records:
        image = images[record["image_id"]]
        if type(image["height"]) is not int or type(image["width"]) is not int:
            return None
        height, width = image["height"], image["width"]
        shape = record["segmentation"]
        if type(shape) is list:
            if not _are_plain(<list>shape):
                return None
            lists.take_polygons(<list>shape, height, width)
            record["segmentation"] = lists.record(lists.count - 1)
            continue
        if type(shape) is not dict:
            return None
        counts = shape["counts"]
        if type(counts) is list:
            lists.take_counts(counts, shape["size"][0], shape["size"][1])
            record["segmentation"] = lists.record(lists.count - 1)
        else:
            text = str.encode(counts) if type(counts) is str else counts
            lists.take_text(text, shape["size"][0], shape["size"][1])
    return lists
