"""``pycocotools.coco``: a COCO data set with its index and queries.

Attributes hold what pycocotools' class holds: the given dictionaries, in the same order.
Annotations of a file, and results of a file or an array, are stored as columns until an attribute
that contains them is read. Then the dictionaries are created as pycocotools does, and replace the
columns.
"""

import contextlib
import copy
import gc
import itertools
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from threading import RLock
from typing import Any

import numpy as np

from detap.compat.pycocotools import mask as maskUtils
from detap.compat.pycocotools._walks import all_of
from detap.compat.pycocotools.annotations import Annotations
from detap.compat.pycocotools.results import ArrayResults, FileResults, Results, complete, parse
from detap.errors import MaskError, UsageError

Record = dict[str, Any]
Unopened = Annotations | Results | list[Record]

_LAZY = ("dataset", "anns", "imgToAnns", "catToImgs")
_OPENING = RLock()
"""Lock for creating the lazy attributes from any thread."""


class COCO:
    """A data set: images, categories and annotations.

    Parameters
    ----------
    annotation_file : str or path, optional
        An instances file. Without it, assign `dataset` and call :meth:`createIndex`.

    Attributes
    ----------
    dataset : dict
        The file's content.
    anns, imgs, cats : dict
        Annotations, images and categories by id.
    imgToAnns : defaultdict of list
        The annotations of each image id.
    catToImgs : defaultdict of list
        The image id of each annotation of a category id.
    """

    def __init__(self, annotation_file: Any = None) -> None:
        self.anns: dict[Any, Record] = {}
        self.cats: dict[Any, Record] = {}
        self.imgs: dict[Any, Record] = {}
        self.imgToAnns: defaultdict[Any, list[Record]] = defaultdict(list)
        self.catToImgs: defaultdict[Any, list[Any]] = defaultdict(list)
        # Last, so that the records are freed in the order of the file, which takes half the time.
        self.dataset: Record = {}
        if annotation_file is not None:
            print("loading annotations into memory...")
            start = time.time()
            with open(annotation_file, "rb") as stream:
                content = stream.read()
            plain = type(self).createIndex is COCO.createIndex
            scanned = Annotations.scan(content) if plain else None
            dataset = scanned[0] if scanned else parse(content)
            if type(dataset) is not dict:
                raise AssertionError(f"annotation file format {type(dataset)} not supported")
            print(f"Done (t={time.time() - start:0.2f}s)")
            self.dataset = dataset
            if scanned:
                _store_columns(self, scanned[1])
            else:
                self.createIndex()

    def __getattr__(self, name: str) -> Any:
        if name in _LAZY:
            _open(self, name)
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> Record:
        _open(self)
        return vars(self)

    @property
    def unopened(self) -> Unopened | None:
        """The stored annotations, until an attribute that contains them is accessed."""
        attributes = vars(self)
        untouched = not any(name in attributes for name in _LAZY if name != "catToImgs")
        return attributes.get("_detap_unopened") if untouched else None

    def createIndex(self) -> None:
        """Create the index attributes from `dataset`."""
        print("creating index...")
        annotations = self.dataset.get("annotations", ())
        # pycocotools' order, so that a KeyError names the same missing key.
        anns, by_image = _index(annotations)
        imgs = {image["id"]: image for image in self.dataset.get("images", ())}
        cats = {category["id"]: category for category in self.dataset.get("categories", ())}
        images = _images_of_categories(annotations if "categories" in self.dataset else ())
        self.anns, self.imgToAnns, self.catToImgs = anns, by_image, images
        self.imgs, self.cats = imgs, cats
        print("index created!")

    def info(self) -> None:
        """Print the `info` of the file."""
        for key, value in _dataset(self)["info"].items():
            print(f"{key}: {value}")

    def getAnnIds(
        self, imgIds: Any = (), catIds: Any = (), areaRng: Any = (), iscrowd: Any = None
    ) -> list[Any]:
        """Return the ids of annotations that pass all given filters.

        Parameters
        ----------
        imgIds, catIds : ids, or one
            The result is in the order of `imgIds`, then of the file.
        areaRng : pair of float
            Both ends excluded.
        iscrowd : bool
        """
        images, categories = _as_sequence(imgIds), _as_sequence(catIds)
        if len(images) == 0:
            annotations: Iterable[Record] = self.dataset["annotations"]
        else:
            index = self.imgToAnns
            lists = (index[image] for image in images if image in index)
            annotations = itertools.chain.from_iterable(lists)
        if len(categories) != 0:
            requested = _as_set(categories)
            annotations = (entry for entry in annotations if entry["category_id"] in requested)
        if len(areaRng) != 0:
            low, high = areaRng[0], areaRng[1]
            annotations = (entry for entry in annotations if low < entry["area"] < high)
        if iscrowd is not None:
            annotations = (entry for entry in annotations if entry["iscrowd"] == iscrowd)
        return [entry["id"] for entry in annotations]

    def getCatIds(self, catNms: Any = (), supNms: Any = (), catIds: Any = ()) -> list[Any]:
        """Return the ids of categories that pass all given filters.

        Parameters
        ----------
        catNms, supNms, catIds : names, supercategories and ids; or one of each
        """
        categories = _dataset(self)["categories"]
        for key, requested in (("name", catNms), ("supercategory", supNms), ("id", catIds)):
            values = _as_sequence(requested)
            if len(values) != 0:
                categories = [entry for entry in categories if entry[key] in values]
        return [entry["id"] for entry in categories]

    def getImgIds(self, imgIds: Any = (), catIds: Any = ()) -> list[Any]:
        """Return the ids of images that pass all given filters.

        Parameters
        ----------
        imgIds : ids, or one
        catIds : ids, or one
            Keep images that have all of these categories.
        """
        images, categories = _as_sequence(imgIds), _as_sequence(catIds)
        if len(images) == len(categories) == 0:
            return list(self.imgs)
        image_ids = set(images)
        for index, category in enumerate(categories):
            with_category = set(self.catToImgs[category])
            if index == 0 and not image_ids:
                image_ids = with_category
            else:
                image_ids &= with_category
        return list(image_ids)

    def loadAnns(self, ids: Any = ()) -> Any:
        """Return the annotations with these ids, or one id, as a list."""
        return _load(self.anns, ids)

    def loadCats(self, ids: Any = ()) -> Any:
        """Return the categories with these ids, or one id, as a list."""
        return _load(self.cats, ids)

    def loadImgs(self, ids: Any = ()) -> Any:
        """Return the images with these ids, or one id, as a list."""
        return _load(self.imgs, ids)

    def loadRes(self, resFile: Any) -> "COCO":
        """Return the results of a detector as a data set.

        Parameters
        ----------
        resFile : str, list of dict, or (N, 7) array
            A results file; its records, to which fields (id, area, ...) are added; or an array
            with columns image id, x, y, width, height, score, category id.

        Raises
        ------
        AssertionError
            If they are not a list, or have an image that is not in this data set.
        """
        results, dataset = COCO(), _dataset(self)
        results.dataset["info"] = copy.deepcopy(dataset.get("info", {}))
        results.dataset["images"] = list(dataset["images"])
        print("Loading and preparing results...")
        start = time.time()
        categories = dataset.get("categories")  # absent for captions
        columns: Results | None = None
        records: Any = resFile
        if type(resFile) is str:
            with open(resFile, "rb") as stream:
                content = stream.read()
            if categories is not None:
                columns = FileResults.scan(content, self.getImgIds(), categories)
            records = None if columns else parse(content)
        elif type(resFile) is np.ndarray:
            _check_array(resFile)
            if categories is not None:
                columns = ArrayResults.of(resFile, self.getImgIds(), categories)
            records = None if columns else ArrayResults.parse(resFile)
        unopened: Unopened | None = columns
        if columns is not None:
            results.dataset["categories"] = copy.deepcopy(categories)
        else:
            unopened = list(records) if _complete(self, results, records) else None
            results.dataset["annotations"] = records
        print(f"DONE (t={time.time() - start:0.2f}s)")
        if unopened is not None:
            _store_columns(results, unopened)
        else:
            results.createIndex()
        return results

    def loadNumpyAnnotations(self, data: Any) -> list[Record]:
        """Return the rows of an (N, 7) array, as in :meth:`loadRes`, as records."""
        _check_array(data)
        return ArrayResults.parse(data)

    def annToRLE(self, ann: Record) -> Any:
        """Return the mask of an annotation as RLE.

        Raises
        ------
        MaskError
            If its polygons are invalid.
        """
        image = self.imgs[ann["image_id"]]
        height, width = image["height"], image["width"]
        shape = ann["segmentation"]
        try:
            if type(shape) is list:
                return maskUtils.merge(maskUtils.frPyObjects(shape, height, width))
            if type(shape["counts"]) is list:
                return maskUtils.frPyObjects(shape, height, width)
        except MaskError as error:
            raise MaskError(f"annotation {ann.get('id')}: {error}") from None
        return shape

    def annToMask(self, ann: Record) -> Any:
        """Return the mask of an annotation as a bitmap, (height, width) uint8."""
        return maskUtils.decode(self.annToRLE(ann))

    def showAnns(self, anns: Any, draw_bbox: bool = False) -> None:
        """Raise UsageError: drawing is not supported.

        Raises
        ------
        UsageError
            Always.
        """
        raise UsageError(
            "detap.compat.pycocotools does not draw; use pycocotools.coco.COCO.showAnns, or "
            "detap report --images"
        )

    def download(self, tarDir: Any = None, imgIds: Any = ()) -> None:
        """Raise UsageError: downloading is not supported.

        Raises
        ------
        UsageError
            Always.
        """
        raise UsageError(
            "detap.compat.pycocotools does not download; use pycocotools.coco.COCO.download, or "
            "the coco_url of each image"
        )


def _dataset(coco: COCO) -> Record:
    """Return the data set, possibly without annotations."""
    dataset: Record | None = vars(coco).get("_detap_listed")  # another thread may create it
    return coco.dataset if dataset is None or coco.unopened is None else dataset


def _open(coco: COCO, requested: str = "") -> None:
    """Create the lazy attributes, unless they exist or were assigned.

    `catToImgs`, which contains no records, is created from columns alone if it is `requested`.
    """
    attributes = vars(coco)
    with _OPENING:
        unopened: Unopened | None = attributes.get("_detap_unopened")
        if unopened is None:
            return
        if requested == "catToImgs" and isinstance(unopened, Annotations):
            attributes.setdefault(requested, unopened.images_of_categories())
            return
        dataset = attributes["_detap_listed"]
        with _collection_paused():
            records = unopened if isinstance(unopened, list) else unopened.records()
            dataset["annotations"] = records
            made = dataset, *_index(records), _images_of_categories(records)
        for name, value in zip(_LAZY, made, strict=True):
            attributes.setdefault(name, value)
        del attributes["_detap_listed"], attributes["_detap_unopened"]


@contextlib.contextmanager
def _collection_paused() -> Iterator[None]:
    """Pause the garbage collector, which would visit each new record again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _store_columns(coco: COCO, unopened: Unopened) -> None:
    """Store annotations until a lazy attribute is read."""
    dataset = coco.dataset
    for name in _LAZY:
        del vars(coco)[name]
    vars(coco).update(_detap_listed=dataset, _detap_unopened=unopened)
    print("creating index...")
    coco.imgs = {image["id"]: image for image in dataset["images"]}
    coco.cats = {category["id"]: category for category in dataset["categories"]}
    print("index created!")


def _complete(coco: COCO, results: COCO, records: Any) -> bool:
    """Check the records of results, and add derived fields.

    Returns
    -------
    bool
        True for boxes with a category each.
    """
    if type(records) is not list:
        raise AssertionError("results in not an array of objects")
    if not all_of(records, set(coco.getImgIds())):
        raise AssertionError("Results do not correspond to current coco set")
    first = records[0]
    if "caption" in first:
        images = {entry["image_id"] for entry in records}
        shown = {image["id"] for image in results.dataset["images"]} & images
        results.dataset["images"] = [
            image for image in results.dataset["images"] if image["id"] in shown
        ]
    elif any(key in first for key in ("bbox", "segmentation", "keypoints")):
        results.dataset["categories"] = copy.deepcopy(_dataset(coco)["categories"])
    return complete(records)


def _index(
    annotations: Iterable[Record],
) -> tuple[dict[Any, Record], defaultdict[Any, list[Record]]]:
    """Return the annotations by id, and by image."""
    by_id: dict[Any, Record] = {}
    by_image: defaultdict[Any, list[Record]] = defaultdict(list)
    for annotation in annotations:
        by_image[annotation["image_id"]].append(annotation)
        by_id[annotation["id"]] = annotation
    return by_id, by_image


def _images_of_categories(annotations: Iterable[Record]) -> defaultdict[Any, list[Any]]:
    """Return the image ids by category, one per annotation."""
    images: defaultdict[Any, list[Any]] = defaultdict(list)
    for annotation in annotations:
        images[annotation["category_id"]].append(annotation["image_id"])
    return images


def _as_sequence(values: Any) -> Any:
    """Return a sized iterable unchanged, and any other value in a list."""
    return values if hasattr(values, "__iter__") and hasattr(values, "__len__") else [values]


def _as_set(values: Any) -> Any:
    """Return ids as a set for fast lookups, if they are hashable."""
    try:
        return frozenset(values) if type(values) in (list, tuple) else values
    except TypeError:
        return values


def _load(index: dict[Any, Record], ids: Any) -> list[Record] | None:
    if hasattr(ids, "__iter__") and hasattr(ids, "__len__"):
        return [index[name] for name in ids]
    return [index[ids]] if type(ids) is int else None


def _check_array(data: Any) -> None:
    print("Converting ndarray to lists...")
    if type(data) is not np.ndarray:
        raise AssertionError
    print(data.shape)
    if data.shape[1] != 7:
        raise AssertionError
    for row in range(0, len(data), 1_000_000):
        print(f"{row}/{len(data)}")
