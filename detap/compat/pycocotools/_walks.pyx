"""Walks over annotations, which are dictionaries, and down rankings. See fast_path.py, results.py."""

import json

cimport cython
from cpython.dict cimport PyDict_Next, PyDict_Size
from cpython.float cimport (
    PyFloat_AS_DOUBLE,
    PyFloat_Check,
    PyFloat_CheckExact,
    PyFloat_FromDouble,
)
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.long cimport PyLong_AsDouble, PyLong_CheckExact, PyLong_FromSsize_t
from cpython.object cimport PyObject
from libc.math cimport INFINITY, isfinite, signbit
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

import numpy as np

from detap.core._accumulate cimport Bits, get_bits, bits_of
from detap.formats.json._grammar cimport Cursor, skip_space, skip_string
from detap.formats.reading._bytes cimport Bytes, is_digit
from detap.formats.reading._id_tables cimport IdTable
from detap.formats.reading._numbers cimport read_integer, read_number
from detap.tables._words cimport trailing_zeros

ctypedef fused Real:
    float
    double


cdef extern from "Python.h":
    int PyObject_GC_IsTracked(PyObject*)
    void PyObject_GC_UnTrack(PyObject*)
    PyObject* PyDict_GetItemWithError(PyObject*, PyObject*) except? NULL
    PyObject* PyList_GET_ITEM(PyObject*, Py_ssize_t)
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t)
    long long PyLong_AsLongLongAndOverflow(PyObject*, int*)


cdef object NARROW = (np.float32, np.float16, np.integer)
cdef double EXACT = 2.0 ** 53  # up to here float64 holds every whole number


cdef inline bint above_zero(PyObject* whole):
    cdef int beyond = 0
    cdef long long value = PyLong_AsLongLongAndOverflow(whole, &beyond)
    return beyond > 0 or beyond == 0 and value > 0


cdef enum:
    KEYS = 8                      # most that are read of a record
    PLACES = 24                   # most that are learned of its order


cdef class Fields:
    """Values of records under some keys.

    Mostly all have the same keys, the very objects, in the same order: then they are gone through
    in that of the first record, which takes less than to look each up.

    Parameters
    ----------
    records : list
        Those to come.
    keys : tuple of str
    """

    cdef tuple keys
    cdef list order               # the keys of the first record, as far as they matter
    cdef int field[PLACES]        # index of the key at each position, or -1
    cdef Py_ssize_t size          # how many keys a record has, where some are absent; else -1
    cdef PyObject* values[KEYS]    # NULL if there is none

    def __init__(self, list records: list[dict[str, Any]], tuple keys: tuple[str, ...]):
        cdef object first = records[0] if records else None
        cdef Py_ssize_t index
        self.keys, self.size = keys, -1
        self.order = list(first) if type(first) is dict else []
        if all([type(key) is str for key in self.order]):
            absent = [key for key in keys if key not in self.order]
            if absent:
                self.size = len(self.order)
            else:
                last = max([self.order.index(key) for key in keys])
                del self.order[last + 1:]
        if not 0 < len(self.order) <= PLACES or not all([type(key) is str for key in self.order]):
            self.order, self.size = [None], -1  # which none has
        for index, key in enumerate(self.order):
            self.field[index] = keys.index(key) if key in keys else -1

    cdef int read(self, dict record) except -1:
        """Set the values of a record; they are valid until it changes."""
        cdef Py_ssize_t at = 0, index, count = PyList_GET_SIZE(self.order)
        cdef PyObject* key
        cdef PyObject* value
        memset(self.values, 0, sizeof(self.values))
        if self.size < 0 or PyDict_Size(record) == self.size:
            for index in range(count):
                if (
                    not PyDict_Next(record, &at, &key, &value)
                    or key != PyList_GET_ITEM(<PyObject*>self.order, index)
                ):
                    break
                if self.field[index] >= 0:
                    self.values[self.field[index]] = value
            else:
                return 0
        for index in range(len(self.keys)):
            self.values[index] = PyDict_GetItemWithError(
                <PyObject*>record, PyTuple_GET_ITEM(<PyObject*>self.keys, index)
            )
        return 0

    cdef inline PyObject* get(self, int field) except NULL:
        """Return the value of a field; raise KeyError if there is none."""
        if self.values[field] == NULL:
            raise KeyError(self.keys[field])
        return self.values[field]


def parse_validated(bytes content, Py_ssize_t start = 0, object stop = None) -> Any:
    """Parse JSON that a scanner has validated, three times as fast as `json`.

    Parameters
    ----------
    content : bytes
    start, stop : int
        Where the value begins and ends in it; by default all of it.

    Raises
    ------
    ValueError
        If a number is infinite, or a string not ASCII.
    """
    cdef Py_ssize_t end = len(content) if stop is None else stop
    cdef Cursor cursor
    cdef Bytes at
    if len(content) - end < 16:  # a number is read eight bytes at once
        content = content[start:end] + bytes(16)
        start, end = 0, end - start
    at = skip_space(<Bytes>content + start)
    cursor.end = <Bytes>content + end + 8
    return parsed(&cursor, &at, {})


cdef object parsed(Cursor *cursor, Bytes *at, dict keys):
    """Parse the value at `at`, and set `at` after it."""
    cdef uint8_t first = at[0][0]
    if is_digit(first) or first == c'-':
        return parsed_number(cursor, at)
    if first == c'{':
        return parsed_object(cursor, at, keys)
    if first == c'[':
        return parsed_list(cursor, at, keys)
    if first == c'"':
        return parsed_string(cursor, at)
    if first == c't' or first == c'n':
        at[0] += 4
        return True if first == c't' else None
    at[0] += 5
    return False


cdef inline bint is_traversed(object value):
    """Return True if the garbage collector has to look into a value, or may have to later.

    A dictionary may: Python has the collector watch it as soon as a container is assigned.
    """
    return type(value) is dict or PyObject_GC_IsTracked(<PyObject*>value)


cdef dict parsed_object(Cursor *cursor, Bytes *at, dict keys):
    cdef dict result = {}
    cdef str key
    cdef object value
    cdef bint traversed = False
    at[0] = skip_space(at[0] + 1)
    while at[0][0] != c'}':
        key = parsed_string(cursor, at)
        key = keys.setdefault(key, key)
        at[0] = skip_space(skip_space(at[0]) + 1)  # the colon
        value = parsed(cursor, at, keys)
        traversed = traversed or is_traversed(value)
        result[key] = value
        at[0] = skip_space(at[0])
        if at[0][0] == c',':
            at[0] = skip_space(at[0] + 1)
    at[0] += 1
    if not traversed:
        PyObject_GC_UnTrack(<PyObject*>result)
    return result


cdef list parsed_list(Cursor *cursor, Bytes *at, dict keys):
    cdef list result = []
    cdef object value
    cdef bint traversed = False
    at[0] = skip_space(at[0] + 1)
    while at[0][0] != c']':
        value = parsed(cursor, at, keys)
        traversed = traversed or is_traversed(value)
        result.append(value)
        at[0] = skip_space(at[0])
        if at[0][0] == c',':
            at[0] = skip_space(at[0] + 1)
    at[0] += 1
    return result if traversed else untracked(result)


cdef str parsed_string(Cursor *cursor, Bytes *at):
    cdef bint escapes
    cdef Bytes start = at[0]
    at[0] = skip_string(cursor, start, &escapes)
    if escapes:
        return json.loads(start[: at[0] - start].decode("ascii"))
    return start[1 : at[0] - start - 1].decode("ascii")


cdef object parsed_number(Cursor *cursor, Bytes *at):
    cdef Bytes start = at[0], failed
    cdef int64_t whole
    cdef double value
    at[0] = read_integer(start, &failed, &whole)
    if at[0] != NULL:
        return whole
    while is_digit(failed[0]):  # beyond 64 bits
        failed += 1
    if failed[0] != c'.' and failed[0] | 32 != c'e':
        at[0] = failed
        return int(start[: failed - start])
    at[0] = read_number(start, cursor.end, &failed, &value)
    if at[0] == NULL:
        raise ValueError("a number is infinite")
    return value


cdef class Places:
    """Index of each id among the selected ones.

    Parameters
    ----------
    places : dict of int
        By id.
    """

    cdef dict places
    cdef IdTable table            # if all ids are ordered integers, else None
    cdef long long last
    cdef int32_t index            # of the last

    def __init__(self, dict places: dict[Any, int]):
        self.places, self.table, self.last, self.index = places, None, 0, -1
        if all([type(name) is int for name in places]) and list(places.values()) == list(
            range(len(places))
        ):
            try:
                self.table = IdTable(places)
            except OverflowError:
                return
            self.index = self.table.number(0)

    cdef inline int32_t of(self, PyObject* name) except -2:
        """Return the index of an id, -1 if it is not selected."""
        cdef long long value
        cdef int beyond = 0
        cdef PyObject* item
        if self.table is not None and PyLong_CheckExact(<object>name):
            value = PyLong_AsLongLongAndOverflow(name, &beyond)
            if beyond:
                return -1
            if value != self.last:
                self.last, self.index = value, self.table.number(value)
            return self.index
        item = PyDict_GetItemWithError(<PyObject*>self.places, name)
        return -1 if item == NULL else <int32_t><object>item


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


cdef enum:
    IMAGE
    CATEGORY
    ID
    BOX
    AREA
    SCORE
    CROWD


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
    skipped : list
        Of masks, if categories are ignored: records of those that are not chosen, which
        pycocotools changes too.
    """

    cdef Places images, categories
    cdef Fields fields
    cdef bint scored, boxes, keypoints, by_category
    cdef double low, high         # of the last area range: pycocotools marks what lies outside
    cdef int32_t[::1] image, label
    cdef double[:, ::1] corners
    cdef double[::1] box_area, area, score
    cdef uint8_t[::1] crowd, ignored
    cdef readonly Py_ssize_t rows
    cdef readonly list ids, scores, records, skipped
    ids: list[int]
    scores: list[Any]
    records: list[dict[str, Any]]
    skipped: list[dict[str, Any]]
    cdef object arrays

    def __init__(
        self, dict images: dict[Any, int], dict categories: dict[Any, int], Py_ssize_t room,
        bint scored, band: tuple[float, float], str kind, bint by_category,
    ):
        self.images, self.categories, self.scored = Places(images), Places(categories), scored
        self.know([])
        self.boxes, self.keypoints = kind == "bbox", kind == "keypoints"
        self.by_category = by_category
        self.low, self.high = band
        self.rows = 0
        self.ids, self.scores, self.records, self.skipped = [], [], [], []
        self.arrays = (
            np.empty(room, np.int32), np.empty(room, np.int32), np.zeros((room, 4)),
            np.zeros(room), np.empty(room), np.zeros(room), np.zeros(room, np.uint8),
            np.zeros(room, np.uint8),
        )
        (self.image, self.label, self.corners, self.box_area, self.area, self.score,
         self.crowd, self.ignored) = self.arrays

    cdef know(self, list records):
        """Learn how the records to come are laid out."""
        self.fields = Fields(
            records, ("image_id", "category_id", "id", "bbox", "area", "score", "iscrowd")
        )

    def columns(self) -> tuple[
        NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64],
        NDArray[np.float64], NDArray[np.float64], NDArray[np.uint8], NDArray[np.uint8],
    ]:
        """Return image, label, corners, box_area, area, score, crowd and ignored of all taken."""
        return tuple([array[:self.rows] for array in self.arrays])

    def take_all(self, list records: list[dict[str, Any]]) -> bool:
        """Take the records; False where one is unusual, and nothing counts."""
        cdef object record
        self.know(records)
        for record in records:
            if type(record) is not dict or not self.take_one(<dict>record):
                return False
        return True

    def take_indexed(
        self, images: Iterable[Any], index: Mapping[Any, list[dict[str, Any]]],
        annotations: Mapping[Any, dict[str, Any]], bint by_category,
    ) -> bool:
        """Take what pycocotools' getAnnIds and loadAnns give for the images and categories."""
        cdef object image, listed, record
        for image in images:
            if image not in index:
                continue
            for listed in index[image]:
                if type(listed) is not dict:
                    return False
                if by_category and (<dict>listed)["category_id"] not in self.categories.places:
                    continue
                record = annotations[(<dict>listed)["id"]]
                if type(record) is not dict or not self.take_one(<dict>record):
                    return False
        return True

    def take_in_order(
        self, list records: list[dict[str, Any]], index: Mapping[Any, list[dict[str, Any]]],
        dict annotations: dict[Any, dict[str, Any]], bint by_category,
    ) -> bool:
        """Take the same in the order of the file, in which they lie in memory.

        False where the indices are not those of the records: then nothing counts.
        """
        cdef list lists = [
            index[image] if image in index else [] for image in self.images.places
        ]
        if not all([type(listed) is list for listed in lists]):
            return False
        cdef int64_t[::1] taken = np.zeros(len(lists), np.int64)
        cdef Py_ssize_t image_index
        cdef object record
        cdef list listed
        cdef PyObject* item
        self.know(records)
        for record in records:
            if type(record) is not dict:
                return False
            self.fields.read(<dict>record)
            image_index = self.images.of(self.fields.get(IMAGE))
            if image_index < 0:
                continue
            listed = lists[image_index]
            if taken[image_index] >= len(listed) or listed[taken[image_index]] is not record:
                return False
            taken[image_index] += 1
            if by_category and self.categories.of(self.fields.get(CATEGORY)) < 0:
                continue
            item = PyDict_GetItemWithError(<PyObject*>annotations, self.fields.get(ID))
            if item != <PyObject*>record or not self.take(<dict>record):
                return False
        return all(len(listed) == count for listed, count in zip(lists, taken))

    cdef bint take_one(self, dict record) except -1:
        self.fields.read(record)
        return self.take(record)

    cdef bint take(self, dict record) except -1:
        """Take a record whose fields were just read."""
        cdef Py_ssize_t row = self.rows
        cdef Fields fields = self.fields
        cdef int32_t image = self.images.of(fields.get(IMAGE))
        cdef int32_t label = self.categories.of(fields.get(CATEGORY))
        cdef object identifier = <object>fields.get(ID), score, crowd
        cdef bint ignored = False
        if not self.scored:
            crowd = <object>fields.get(CROWD)
            record["ignore"] = crowd
            if not (type(crowd) is int or type(crowd) is bool) or not 0 <= crowd <= 1:
                return False
            ignored = crowd
            if self.keypoints:
                if type(record["num_keypoints"]) is not int:
                    return False
                if record["num_keypoints"] == 0:
                    ignored = record["ignore"] = True
        if image < 0 or label < 0:
            if image >= 0 and not (self.boxes or self.by_category):
                self.skipped.append(record)
            return True
        if type(identifier) is not int or (self.scored and not above_zero(<PyObject*>identifier)):
            return False
        if self.boxes and not self.take_box(<object>fields.get(BOX)):
            return False
        if not number(<object>fields.get(AREA), &self.area[row]):
            return False
        self.image[row], self.label[row] = image, label
        if self.scored:
            score = <object>fields.get(SCORE)
            if not number(score, &self.score[row]):
                return False
            self.scores.append(score)
        else:
            self.crowd[row], self.ignored[row] = bool(crowd), ignored
            record["_ignore"] = int(ignored or not self.low <= self.area[row] <= self.high)
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
        if type(box) is list:
            if not (
                number(<object>PyList_GET_ITEM(<PyObject*>box, 0), &x)
                and number(<object>PyList_GET_ITEM(<PyObject*>box, 1), &y)
                and number(<object>PyList_GET_ITEM(<PyObject*>box, 2), &width)
                and number(<object>PyList_GET_ITEM(<PyObject*>box, 3), &height)
            ):
                return False
        elif not (
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


def all_of(list records: list[dict[str, Any]], set images: set[Any]) -> bool:
    """Return True if every record is of one of the images."""
    cdef Places places = Places({name: index for index, name in enumerate(images)})
    cdef Fields fields = Fields(records, ("image_id",))
    cdef object record
    cdef bint known = True
    for record in records:
        if type(record) is dict:
            fields.read(<dict>record)
            known = places.of(fields.get(0)) >= 0 and known
        else:
            known = record["image_id"] in images and known
    return known


cdef list untracked(list numbers):
    """Take a list from Python's garbage collector, which finds no cycle in numbers.

    Of a million small lists that all stay, it would else look at each again and again: without this,
    loading and evaluating 500,000 records takes twice the time.
    """
    PyObject_GC_UnTrack(<PyObject*>numbers)
    return numbers


@cython.boundscheck(True)  # a box may have fewer than four numbers
def complete_boxes(list records: list[dict[str, Any]]) -> bool:
    """Add to each record of a box its segmentation, area, id and iscrowd, as pycocotools does.

    Returns
    -------
    bool
        Whether each has a category.
    """
    cdef bint regular = True
    cdef Py_ssize_t index
    cdef object record, box, x, y, width, height, right, bottom
    cdef Fields fields = Fields(records, ("bbox", "segmentation", "category_id"))
    for index, record in enumerate(records):
        if type(record) is dict:
            fields.read(<dict>record)
            regular = fields.values[2] != NULL and regular
            if complete_box(<dict>record, fields.get(0), fields.values[1] == NULL, index + 1):
                continue
        box = record["bbox"]
        x, y, width, height = box[0], box[1], box[2], box[3]
        if "segmentation" not in record:
            right, bottom = x + width, y + height
            record["segmentation"] = [[x, y, x, bottom, right, bottom, right, y]]
        record["area"] = width * height
        record["id"] = index + 1
        record["iscrowd"] = 0
        regular = regular and "category_id" in record
    return regular


cdef bint complete_box(dict record, PyObject* box, bint bare, Py_ssize_t number) except -1:
    """Do so for a record of a usual box, of four floats; False for any other.

    Parameters
    ----------
    bare : bool
        Whether it has no segmentation yet.
    """
    cdef double width, height
    if not PyList_CheckExact(<object>box) or PyList_GET_SIZE(<object>box) != 4:
        return False
    cdef object x = <object>PyList_GET_ITEM(box, 0)
    cdef object y = <object>PyList_GET_ITEM(box, 1)
    cdef object w = <object>PyList_GET_ITEM(box, 2)
    cdef object h = <object>PyList_GET_ITEM(box, 3)
    if not (
        PyFloat_CheckExact(x) and PyFloat_CheckExact(y)
        and PyFloat_CheckExact(w) and PyFloat_CheckExact(h)
    ):
        return False
    width, height = PyFloat_AS_DOUBLE(w), PyFloat_AS_DOUBLE(h)
    if bare:
        right = PyFloat_FromDouble(PyFloat_AS_DOUBLE(x) + width)
        bottom = PyFloat_FromDouble(PyFloat_AS_DOUBLE(y) + height)
        record["segmentation"] = untracked(
            [untracked([x, y, x, bottom, right, bottom, right, y])]
        )
    record["area"] = PyFloat_FromDouble(width * height)
    record["id"] = PyLong_FromSsize_t(number)
    record["iscrowd"] = 0
    return True


def extent(list keypoints: list[Any]) -> tuple[list[np.float64], np.float64] | None:
    """Return the box around keypoints and its area, with numbers of numpy's, as pycocotools does.

    None where they are not x, y and v of each, all floats and finite.
    """
    cdef Py_ssize_t count = len(keypoints), i
    cdef double value
    cdef double[2] low
    cdef double[2] high
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
    const Real[:, :] rows, IdTable images, IdTable categories, int32_t unknown_label,
    int32_t[::1] image, int32_t[::1] label, double[:, ::1] corners,
    double[::1] box_area, double[::1] area, double[::1] score,
) -> bool:
    """Take the rows of an array (N, 7) as columns.

    Parameters
    ----------
    rows : (N, 7) float32 or float64
        Image id, x, y, width, height, score, category id.
    images, categories : IdTable
    unknown_label : int
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
            label[i] = number if number >= 0 else unknown_label
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
    Py_ssize_t begin, Py_ssize_t end, const int32_t[::1] start, const int32_t[::1] ranked,
    const uint8_t[::1] max_dets_index, const double[::1] score, const uint8_t[:, ::1] true_positive,
    const int64_t[:, ::1] positives, const double[::1] levels, double[:, :, :, :, ::1] out,
) -> None:
    """Write the score at which each recall level is reached, (T, R, K, A, M), of some classes.

    It is that of the first hit which brings recall there; of the best-scored detection, hit or
    not, for level 0; 0 where the level is not reached; and -1 where there is no ground truth.
    """
    cdef Py_ssize_t thresholds = out.shape[0], count = out.shape[1], areas = out.shape[3]
    cdef Py_ssize_t limits = out.shape[4], k, a, i, t, m, r
    cdef Bits bits = bits_of(true_positive, max_dets_index.shape[0])
    cdef int32_t row
    cdef uint64_t word
    cdef double recall
    cdef int64_t[:, ::1] hits = np.zeros((thresholds, limits), np.int64)
    cdef Py_ssize_t[:, ::1] level_index = np.zeros((thresholds, limits), np.intp)
    with nogil:
        for k in range(begin, end):
            for t in range(thresholds):
                for r in range(count):
                    for a in range(areas):
                        for m in range(limits):
                            out[t, r, k, a, m] = -1.0 if positives[a, k] == 0 else 0.0
            for a in range(areas):
                if positives[a, k] == 0:
                    continue
                hits[:] = 0
                level_index[:] = 0
                for i in range(start[k], start[k + 1]):
                    row = ranked[i]
                    if i == start[k]:
                        for r in range(count):
                            if levels[r] > 0.0:
                                break
                            level_index[:] = r + 1
                            for t in range(thresholds):
                                for m in range(limits):
                                    out[t, r, k, a, m] = score[row]
                    word = get_bits(&bits, a, row)
                    while word:
                        t = trailing_zeros(word)
                        word &= word - 1
                        for m in range(max_dets_index[row], limits):
                            hits[t, m] += 1
                            recall = <double>hits[t, m] / <double>positives[a, k]
                            while level_index[t, m] < count and levels[level_index[t, m]] <= recall:
                                out[t, level_index[t, m], k, a, m] = score[row]
                                level_index[t, m] += 1
