"""Annotations, which are dictionaries, as columns, in one walk. See scoring.py and results.py."""

from cpython.dict cimport PyDict_GetItem
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsDouble
from cpython.object cimport PyObject
from libc.math cimport isfinite
from libc.stdint cimport int32_t, uint8_t

import gc

import numpy as np

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
        As they were given; of ground truths, which have no scores, `crowd` and `box` alone count.
    """

    cdef dict images, categories
    cdef bint scored
    cdef double low, high         # of the last area range: pycocotools marks what lies outside
    cdef int32_t[::1] image, label
    cdef double[:, ::1] corners
    cdef double[::1] box_area, area, score
    cdef uint8_t[::1] crowd
    cdef readonly Py_ssize_t rows
    cdef readonly list ids, scores
    cdef object arrays

    def __init__(self, dict images, dict categories, Py_ssize_t room, bint scored, band):
        self.images, self.categories, self.scored = images, categories, scored
        self.low, self.high = band
        self.rows = 0
        self.ids, self.scores = [], []
        self.arrays = (
            np.empty(room, np.int32), np.empty(room, np.int32), np.empty((room, 4)),
            np.empty(room), np.empty(room), np.zeros(room), np.zeros(room, np.uint8),
        )
        (self.image, self.label, self.corners, self.box_area, self.area, self.score,
         self.crowd) = self.arrays

    def columns(self):
        """Return image, label, corners, box_area, area, score and crowd of what was taken."""
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

    cdef bint take(self, dict record) except -1:
        cdef Py_ssize_t row = self.rows
        cdef PyObject* image = PyDict_GetItem(self.images, record["image_id"])
        cdef PyObject* label = PyDict_GetItem(self.categories, record["category_id"])
        cdef object identifier = record["id"]
        cdef object box = record["bbox"]
        cdef object crowd
        cdef double x, y, width, height
        if not self.scored:
            crowd = record["iscrowd"]
            record["ignore"] = crowd
            if not (type(crowd) is int or type(crowd) is bool) or not 0 <= crowd <= 1:
                return False
        if image == NULL or label == NULL:
            return True
        if type(identifier) is not int or (self.scored and identifier <= 0):
            return False
        if not (type(box) is list or type(box) is np.ndarray) or len(box) != 4:
            return False
        if not (
            number(box[0], &x) and number(box[1], &y)
            and number(box[2], &width) and number(box[3], &height)
            and number(record["area"], &self.area[row])
        ):
            return False
        self.image[row], self.label[row] = <object>image, <object>label
        self.corners[row, 0], self.corners[row, 1] = x, y
        self.corners[row, 2], self.corners[row, 3] = x + width, y + height
        self.box_area[row] = width * height
        if not (
            isfinite(self.corners[row, 2]) and isfinite(self.corners[row, 3])
            and isfinite(self.box_area[row])
        ):
            return False
        if self.scored:
            if not number(record["score"], &self.score[row]):
                return False
            self.scores.append(record["score"])
        else:
            self.crowd[row] = bool(crowd)
            record["_ignore"] = int(
                self.crowd[row] or not self.low <= self.area[row] <= self.high
            )
        self.ids.append(identifier)
        self.rows += 1
        return True


def complete_boxes(list records):
    """Add to each record of a box its segmentation, area, id and iscrowd, as pycocotools does.

    Millions of small objects are made that all stay: collecting garbage meanwhile would only cost.

    Returns
    -------
    bool
        Whether each has a category.
    """
    cdef bint regular = True
    cdef Py_ssize_t place
    cdef object record, box, x, y, width, height, right, bottom
    cdef bint collecting = gc.isenabled()
    gc.disable()
    try:
        for place, record in enumerate(records):
            box = record["bbox"]
            x, y, width, height = box[0], box[1], box[2], box[3]
            right, bottom = x + width, y + height
            if "segmentation" not in record:
                record["segmentation"] = [[x, y, x, bottom, right, bottom, right, y]]
            record["area"] = width * height
            record["id"] = place + 1
            record["iscrowd"] = 0
            regular = regular and "category_id" in record
    finally:
        if collecting:
            gc.enable()
    return regular
