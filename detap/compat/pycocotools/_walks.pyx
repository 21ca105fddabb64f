"""Walks over annotations, which are dictionaries, and down rankings. See scoring.py, results.py."""

from cpython.dict cimport PyDict_GetItem
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsDouble
from cpython.object cimport PyObject
from libc.math cimport INFINITY, isfinite, signbit
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from detap.formats.reading._id_tables cimport IdTable

ctypedef fused Real:
    float
    double


cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject*)


cdef object NARROW = (np.float32, np.float16, np.integer)
cdef double EXACT = 2.0 ** 53  # up to here float64 holds every whole number


cdef inline bint number(object value, double* out) except -1:
    """Read a number that is finite, and that float64 holds as it is; False for anything else."""
    if PyFloat_Check(value):
        out[0] = PyFloat_AS_DOUBLE(value)
    elif type(value) is int:
        out[0] = PyLong_AsDouble(value)
        if not -EXACT < out[0] < EXACT:
            return False
    elif isinstance(value, NARROW):
        out[0] = float(value)
        if not -EXACT < out[0] < EXACT:
            return False
    else:
        return False
    return isfinite(out[0])


cdef class Columns:
    """The annotations of chosen images and categories, as columns.

    Attributes
    ----------
    rows : int
        How many were taken.
    ids, scores : list
        As they were given; ground truths have no scores.
    records : list
        Of masks and keypoints, which have no boxes: the records themselves.
    aside : list
        Of masks, where categories are not told apart: records of those that are not chosen, which
        pycocotools changes too.
    """

    cdef dict images, categories
    cdef bint scored, boxes, keypoints, by_category
    cdef double low, high         # of the last area range: pycocotools marks what lies outside
    cdef int32_t[::1] image, label
    cdef double[:, ::1] corners
    cdef double[::1] box_area, area, score
    cdef uint8_t[::1] crowd, neutral
    cdef readonly Py_ssize_t rows
    cdef readonly list ids, scores, records, aside
    cdef object arrays

    def __init__(
        self, dict images, dict categories, Py_ssize_t room, bint scored, band, str kind,
        bint by_category,
    ):
        self.images, self.categories, self.scored = images, categories, scored
        self.boxes, self.keypoints = kind == "bbox", kind == "keypoints"
        self.by_category = by_category
        self.low, self.high = band
        self.rows = 0
        self.ids, self.scores, self.records, self.aside = [], [], [], []
        self.arrays = (
            np.empty(room, np.int32), np.empty(room, np.int32), np.zeros((room, 4)),
            np.zeros(room), np.empty(room), np.zeros(room), np.zeros(room, np.uint8),
            np.zeros(room, np.uint8),
        )
        (self.image, self.label, self.corners, self.box_area, self.area, self.score,
         self.crowd, self.neutral) = self.arrays

    def columns(self):
        """Return image, label, corners, box_area, area, score, crowd and neutral of all taken."""
        return tuple([array[:self.rows] for array in self.arrays])

    def take_all(self, list records):
        """Take the records; False where one is unusual, and nothing counts."""
        cdef object record
        for record in records:
            if type(record) is not dict or not self.take(<dict>record):
                return False
        return True

    def take_indexed(self, images, index, annotations, bint by_category):
        """Take what pycocotools' getAnnIds and loadAnns give for the images and categories."""
        cdef object image, listed, record
        for image in images:
            if image not in index:
                continue
            for listed in index[image]:
                if type(listed) is not dict:
                    return False
                if by_category and (<dict>listed)["category_id"] not in self.categories:
                    continue
                record = annotations[(<dict>listed)["id"]]
                if type(record) is not dict or not self.take(<dict>record):
                    return False
        return True

    def take_in_order(self, list records, index, dict annotations, bint by_category):
        """Take the same in the order of the file, in which they lie in memory.

        False where the indices are not those of the records: then nothing counts.
        """
        cdef list lists = [index[image] if image in index else () for image in self.images]
        cdef int64_t[::1] taken = np.zeros(len(lists), np.int64)
        cdef Py_ssize_t place
        cdef object record
        cdef PyObject* found
        for record in records:
            if type(record) is not dict:
                return False
            found = PyDict_GetItem(self.images, (<dict>record)["image_id"])
            if found == NULL:
                continue
            place = <object>found
            if taken[place] >= len(lists[place]) or lists[place][taken[place]] is not record:
                return False
            taken[place] += 1
            if by_category and (<dict>record)["category_id"] not in self.categories:
                continue
            found = PyDict_GetItem(annotations, (<dict>record)["id"])
            if found != <PyObject*>record or not self.take(<dict>record):
                return False
        return all(len(listed) == count for listed, count in zip(lists, taken))

    cdef bint take(self, dict record) except -1:
        cdef Py_ssize_t row = self.rows
        cdef PyObject* image = PyDict_GetItem(self.images, record["image_id"])
        cdef PyObject* label = PyDict_GetItem(self.categories, record["category_id"])
        cdef object identifier = record["id"]
        cdef object crowd
        cdef bint neutral = False
        if not self.scored:
            crowd = record["iscrowd"]
            record["ignore"] = crowd
            if not (type(crowd) is int or type(crowd) is bool) or not 0 <= crowd <= 1:
                return False
            neutral = crowd
            if self.keypoints:
                if type(record["num_keypoints"]) is not int:
                    return False
                if record["num_keypoints"] == 0:
                    neutral = record["ignore"] = True
        if image == NULL or label == NULL:
            if image != NULL and not (self.boxes or self.by_category):
                self.aside.append(record)
            return True
        if type(identifier) is not int or (self.scored and identifier <= 0):
            return False
        if self.boxes and not self.take_box(record["bbox"]):
            return False
        if not number(record["area"], &self.area[row]):
            return False
        self.image[row], self.label[row] = <object>image, <object>label
        if self.scored:
            if not number(record["score"], &self.score[row]):
                return False
            self.scores.append(record["score"])
        else:
            self.crowd[row], self.neutral[row] = bool(crowd), neutral
            record["_ignore"] = int(neutral or not self.low <= self.area[row] <= self.high)
        if not self.boxes:
            self.records.append(record)
        self.ids.append(identifier)
        self.rows += 1
        return True

    cdef bint take_box(self, object box) except -1:
        cdef Py_ssize_t row = self.rows
        cdef double x, y, width, height
        if not (type(box) is list or type(box) is np.ndarray) or len(box) != 4:
            return False
        if not (
            number(box[0], &x) and number(box[1], &y)
            and number(box[2], &width) and number(box[3], &height)
        ):
            return False
        self.corners[row, 0], self.corners[row, 1] = x, y
        self.corners[row, 2], self.corners[row, 3] = x + width, y + height
        self.box_area[row] = width * height
        return (
            isfinite(self.corners[row, 2]) and isfinite(self.corners[row, 3])
            and isfinite(self.box_area[row])
        )


def all_of(list records, set images):
    """Tell whether every record is of one of the images."""
    cdef object record
    for record in records:
        if record["image_id"] not in images:
            return False
    return True


cdef list untracked(list numbers):
    """Take a list from Python's garbage collector, which finds no cycle in numbers.

    Of a million small lists that all stay, it would else look at each again and again.
    """
    PyObject_GC_UnTrack(<PyObject*>numbers)
    return numbers


def complete_boxes(list records):
    """Add to each record of a box its segmentation, area, id and iscrowd, as pycocotools does.

    Returns
    -------
    bool
        Whether each has a category.
    """
    cdef bint regular = True
    cdef Py_ssize_t place
    cdef object record, box, x, y, width, height, right, bottom
    for place, record in enumerate(records):
        box = record["bbox"]
        x, y, width, height = box[0], box[1], box[2], box[3]
        if "segmentation" not in record:
            right, bottom = x + width, y + height
            if type(x) is float and type(y) is float:
                record["segmentation"] = untracked(
                    [untracked([x, y, x, bottom, right, bottom, right, y])]
                )
            else:
                record["segmentation"] = [[x, y, x, bottom, right, bottom, right, y]]
        record["area"] = width * height
        record["id"] = place + 1
        record["iscrowd"] = 0
        regular = regular and "category_id" in record
    return regular


def extent(list keypoints):
    """Return the box around keypoints and its area, with numbers of numpy's, as pycocotools does.

    None where they are not x, y and v of each, all floats and finite.
    """
    cdef Py_ssize_t count = len(keypoints), i
    cdef double value, low[2], high[2]
    cdef object given
    if count == 0 or count % 3:
        return None
    low[0] = low[1] = INFINITY
    high[0] = high[1] = -INFINITY
    for i in range(count):
        if i % 3 == 2:
            continue
        given = keypoints[i]
        if type(given) is not float:
            return None
        value = PyFloat_AS_DOUBLE(given)
        if not isfinite(value) or value == 0.0 and signbit(value):
            return None
        low[i % 3] = min(low[i % 3], value)
        high[i % 3] = max(high[i % 3], value)
    number = np.float64
    box = [number(low[0]), number(low[1]), number(high[0] - low[0]), number(high[1] - low[1])]
    return box, number((high[0] - low[0]) * (high[1] - low[1]))


cdef inline int32_t placed(IdTable table, double name) noexcept nogil:
    """Return the number of an id, cut to a whole number; -1 of what is none."""
    return table.number(<int64_t>name) if -(2.0 ** 63) <= name < 2.0 ** 63 else -1


def take_rows(
    const Real[:, :] rows, IdTable images, IdTable categories, int32_t stranger,
    int32_t[::1] image, int32_t[::1] label, double[:, ::1] corners,
    double[::1] box_area, double[::1] area, double[::1] score,
):
    """Take the rows of an array (N, 7) as columns.

    Parameters
    ----------
    rows : (N, 7) float32 or float64
        Image id, x, y, width, height, score, category id.
    images, categories : IdTable
    stranger : int
        The label of a category that is none.
    image, label, corners, box_area, area, score
        Filled; `area` is the product in the precision of the rows.

    Returns
    -------
    bool
        False where a number is not finite, or an image unknown: then nothing counts.
    """
    cdef Py_ssize_t i
    cdef Real x, y, width, height, product
    cdef int32_t number
    cdef bint fine = True
    with nogil:
        for i in range(rows.shape[0]):
            x, y, width, height = rows[i, 1], rows[i, 2], rows[i, 3], rows[i, 4]
            product = width * height
            image[i] = placed(images, rows[i, 0])
            number = placed(categories, rows[i, 6])
            label[i] = number if number >= 0 else stranger
            corners[i, 0], corners[i, 1] = x, y
            corners[i, 2], corners[i, 3] = <double>width + x, <double>height + y
            box_area[i], area[i] = <double>width * height, product
            score[i] = rows[i, 5]
            fine = fine and image[i] >= 0 and isfinite(rows[i, 6]) and isfinite(score[i])
            fine = fine and isfinite(x) and isfinite(y) and isfinite(width) and isfinite(height)
            if not fine:
                break
    return fine


def fill_scores(
    const int32_t[::1] start, const int32_t[::1] ranked, const uint8_t[::1] limit,
    const double[::1] score, const uint64_t[::1] found, const int64_t[::1] positives,
    const double[::1] levels, double[:, :, :, ::1] out,
):
    """Write the score at which each recall level is reached, (K, M, T, R), of one area range.

    It is that of the first hit which brings recall there; of the best-scored detection, hit or
    not, for level 0; and 0 where the level is not reached. Classes without ground truth stay.
    """
    cdef Py_ssize_t limits = out.shape[1], thresholds = out.shape[2], count = out.shape[3]
    cdef Py_ssize_t k, i, t, m, r
    cdef int32_t row
    cdef uint64_t word
    cdef double recall
    cdef int64_t[:, ::1] hits = np.zeros((thresholds, limits), np.int64)
    cdef Py_ssize_t[:, ::1] due = np.zeros((thresholds, limits), np.intp)
    with nogil:
        for k in range(positives.shape[0]):
            if positives[k] == 0:
                continue
            out[k] = 0.0
            hits[:] = 0
            due[:] = 0
            for i in range(start[k], start[k + 1]):
                row = ranked[i]
                if i == start[k]:
                    for r in range(count):
                        if levels[r] <= 0.0:
                            out[k, :, :, r] = score[row]
                            due[:] = r + 1
                word = found[row]
                t = 0
                while word:
                    if word & 1:
                        for m in range(limit[row], limits):
                            hits[t, m] += 1
                            recall = <double>hits[t, m] / <double>positives[k]
                            while due[t, m] < count and levels[due[t, m]] <= recall:
                                out[k, m, t, due[t, m]] = score[row]
                                due[t, m] += 1
                    word >>= 1
                    t += 1
