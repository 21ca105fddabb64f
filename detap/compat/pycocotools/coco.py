"""``pycocotools.coco``: a data set in COCO's form, with its index and queries.

Everything is what pycocotools' class of the same name would hold: plain dictionaries, the very
objects that were given, in the same order. Annotations of a file, and results of a file or an
array, stay columns, and records without an index, until one of the attributes that show them is
read; then all is made as pycocotools makes it, and from there on that is what counts.
"""

import copy
import itertools
import time
from collections import defaultdict
from collections.abc import Iterable
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

_MADE_WHEN_READ = ("dataset", "anns", "imgToAnns", "catToImgs")
_OPENING = RLock()
"""Held while they are made, for which any thread may ask."""


class COCO:
    """A data set: images, categories and annotations.

    Parameters
    ----------
    annotation_file : str or path, optional
        An instances file. Without it the data set is empty, until `dataset` is assigned and
        :meth:`createIndex` called.

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
        self.dataset: Record = {}
        self.anns: dict[Any, Record] = {}
        self.cats: dict[Any, Record] = {}
        self.imgs: dict[Any, Record] = {}
        self.imgToAnns: defaultdict[Any, list[Record]] = defaultdict(list)
        self.catToImgs: defaultdict[Any, list[Any]] = defaultdict(list)
        if annotation_file is not None:
            print("loading annotations into memory...")
            begun = time.time()
            with open(annotation_file, "rb") as stream:
                content = stream.read()
            plain = type(self).createIndex is COCO.createIndex
            scanned = Annotations.scan(content) if plain else None
            dataset = scanned[0] if scanned else parse(content)
            if type(dataset) is not dict:
                raise AssertionError(f"annotation file format {type(dataset)} not supported")
            print(f"Done (t={time.time() - begun:0.2f}s)")
            self.dataset = dataset
            if scanned:
                _keep(self, scanned[1])
            else:
                self.createIndex()

    def __getattr__(self, name: str) -> Any:
        # Only what the instance has not: of what are still columns, the dictionaries.
        if name in _MADE_WHEN_READ:
            _open(self)
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> Record:
        _open(self)
        return vars(self)

    @property
    def unopened(self) -> Unopened | None:
        """The annotations, where no attribute that shows them was read or assigned yet."""
        own = vars(self)
        untouched = not any(name in own for name in _MADE_WHEN_READ)
        return own.get("_detap_unopened") if untouched else None

    def createIndex(self) -> None:
        """Make the attributes that follow from `dataset`."""
        print("creating index...")
        annotations = self.dataset.get("annotations", ())
        # In this order, so that of several keys that are missing the same one is named.
        anns, by_image = _index(annotations)
        imgs = {image["id"]: image for image in self.dataset.get("images", ())}
        cats = {category["id"]: category for category in self.dataset.get("categories", ())}
        images = _images_of_categories(annotations if "categories" in self.dataset else ())
        self.anns, self.imgToAnns, self.catToImgs = anns, by_image, images
        self.imgs, self.cats = imgs, cats
        print("index created!")

    def info(self) -> None:
        """Print what the file says of itself."""
        for key, value in _listed(self)["info"].items():
            print(f"{key}: {value}")

    def getAnnIds(
        self, imgIds: Any = (), catIds: Any = (), areaRng: Any = (), iscrowd: Any = None
    ) -> list[Any]:
        """Return the ids of the annotations that pass every filter that is given.

        Parameters
        ----------
        imgIds, catIds : ids, or one
            In the order of `imgIds`, and within an image in that of the file.
        areaRng : pair of float
            Both ends excluded.
        iscrowd : bool
        """
        images, categories = _several(imgIds), _several(catIds)
        if len(images) == 0:
            annotations: Iterable[Record] = self.dataset["annotations"]
        else:
            index = self.imgToAnns
            lists = (index[image] for image in images if image in index)
            annotations = itertools.chain.from_iterable(lists)
        if len(categories) != 0:
            wanted = _members(categories)
            annotations = (entry for entry in annotations if entry["category_id"] in wanted)
        if len(areaRng) != 0:
            low, high = areaRng[0], areaRng[1]
            annotations = (entry for entry in annotations if low < entry["area"] < high)
        if iscrowd is not None:
            annotations = (entry for entry in annotations if entry["iscrowd"] == iscrowd)
        return [entry["id"] for entry in annotations]

    def getCatIds(self, catNms: Any = (), supNms: Any = (), catIds: Any = ()) -> list[Any]:
        """Return the ids of the categories that pass every filter that is given.

        Parameters
        ----------
        catNms, supNms, catIds : names, supercategories and ids; or one of each
        """
        categories = _listed(self)["categories"]
        for key, wanted in (("name", catNms), ("supercategory", supNms), ("id", catIds)):
            values = _several(wanted)
            if len(values) != 0:
                categories = [entry for entry in categories if entry[key] in values]
        return [entry["id"] for entry in categories]

    def getImgIds(self, imgIds: Any = (), catIds: Any = ()) -> list[Any]:
        """Return the ids of all images in the order of the file, or of those that pass.

        Parameters
        ----------
        imgIds : ids, or one
        catIds : ids, or one
            Images that have all of them.
        """
        images, categories = _several(imgIds), _several(catIds)
        if len(images) == len(categories) == 0:
            return list(self.imgs)
        found = set(images)
        for place, category in enumerate(categories):
            having = set(self.catToImgs[category])
            if place == 0 and not found:
                found = having
            else:
                found &= having
        return list(found)

    def loadAnns(self, ids: Any = ()) -> Any:
        """Return the annotations of these ids, or of one, as a list."""
        return _load(self.anns, ids)

    def loadCats(self, ids: Any = ()) -> Any:
        """Return the categories of these ids, or of one, as a list."""
        return _load(self.cats, ids)

    def loadImgs(self, ids: Any = ()) -> Any:
        """Return the images of these ids, or of one, as a list."""
        return _load(self.imgs, ids)

    def loadRes(self, resFile: Any) -> "COCO":
        """Return the results of a detector on this data set.

        Parameters
        ----------
        resFile : str, list of dict, or (N, 7) array
            A results file; its records, which gain what pycocotools adds to them (id, area, ...);
            or columns of image id, x, y, width, height, score, category id.

        Raises
        ------
        AssertionError
            Where they are no list, or name an image that this data set does not have.
        """
        results, listed = COCO(), _listed(self)
        results.dataset["info"] = copy.deepcopy(listed.get("info", {}))
        results.dataset["images"] = list(listed["images"])
        print("Loading and preparing results...")
        begun = time.time()
        categories = listed.get("categories")  # captions have none
        found: Results | None = None
        records: Any = resFile
        if type(resFile) is str:
            with open(resFile, "rb") as stream:
                content = stream.read()
            if categories is not None:
                found = FileResults.scan(content, self.getImgIds(), categories)
            records = None if found else parse(content)
        elif type(resFile) is np.ndarray:
            _say_converting(resFile)
            if categories is not None:
                found = ArrayResults.of(resFile, self.getImgIds(), categories)
            records = None if found else ArrayResults.parse(resFile)
        kept: Unopened | None = found
        if found is not None:
            results.dataset["categories"] = copy.deepcopy(categories)
        else:
            kept = list(records) if _complete(self, results, records) else None
            results.dataset["annotations"] = records
        print(f"DONE (t={time.time() - begun:0.2f}s)")
        if kept is not None:
            _keep(results, kept)
        else:
            results.createIndex()
        return results

    def loadNumpyAnnotations(self, data: Any) -> list[Record]:
        """Return the rows of an (N, 7) array, as :meth:`loadRes` takes it, as records."""
        _say_converting(data)
        return ArrayResults.parse(data)

    def annToRLE(self, ann: Record) -> Any:
        """Return the mask of an annotation, run-length encoded.

        Raises
        ------
        MaskError
            Where its polygons are none, with its id.
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
        """Draw nothing: this package scores.

        Raises
        ------
        UsageError
            Always.
        """
        raise UsageError(
            "detap.compat.pycocotools draws nothing; draw with pycocotools.coco.COCO.showAnns, or "
            "see every image with its errors on the page of detap report --images"
        )

    def download(self, tarDir: Any = None, imgIds: Any = ()) -> None:
        """Download nothing: this package opens no connection.

        Raises
        ------
        UsageError
            Always.
        """
        raise UsageError(
            "detap.compat.pycocotools opens no connection; download with "
            "pycocotools.coco.COCO.download, or from the coco_url of each image"
        )


def _listed(coco: COCO) -> Record:
    """Return the data set, which may be without its annotations."""
    listed: Record | None = vars(coco).get("_detap_listed")  # another thread may be opening it
    return coco.dataset if listed is None or coco.unopened is None else listed


def _open(coco: COCO) -> None:
    """Make the dictionaries, unless they are there; what was assigned meanwhile stays."""
    own = vars(coco)
    with _OPENING:
        unopened: Unopened | None = own.get("_detap_unopened")
        if unopened is None:
            return
        listed = own["_detap_listed"]
        records = unopened if isinstance(unopened, list) else unopened.records()
        listed["annotations"] = records
        made = listed, *_index(records), _images_of_categories(records)
        for name, value in zip(_MADE_WHEN_READ, made, strict=True):
            own.setdefault(name, value)
        del own["_detap_listed"], own["_detap_unopened"]


def _keep(coco: COCO, unopened: Unopened) -> None:
    """Hold annotations until one of the attributes that show them is read."""
    listed = coco.dataset
    for name in _MADE_WHEN_READ:
        del vars(coco)[name]
    vars(coco).update(_detap_listed=listed, _detap_unopened=unopened)
    print("creating index...")
    coco.imgs = {image["id"]: image for image in listed["images"]}
    coco.cats = {category["id"]: category for category in listed["categories"]}
    print("index created!")


def _complete(coco: COCO, results: COCO, records: Any) -> bool:
    """Check the records of results, and add to each what follows from it.

    Returns
    -------
    bool
        Whether they are boxes, each of a category.
    """
    if type(records) is not list:
        raise AssertionError("results in not an array of objects")
    if not all_of(records, set(coco.getImgIds())):
        raise AssertionError("Results do not correspond to current coco set")
    first = records[0]
    if "caption" in first:
        images = {entry["image_id"] for entry in records}
        kept = {image["id"] for image in results.dataset["images"]} & images
        results.dataset["images"] = [
            image for image in results.dataset["images"] if image["id"] in kept
        ]
    elif any(key in first for key in ("bbox", "segmentation", "keypoints")):
        results.dataset["categories"] = copy.deepcopy(_listed(coco)["categories"])
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
    """Return the images of each category, one for each annotation."""
    images: defaultdict[Any, list[Any]] = defaultdict(list)
    for annotation in annotations:
        images[annotation["category_id"]].append(annotation["image_id"])
    return images


def _several(values: Any) -> Any:
    """Return what can be walked through and counted, and anything else as the only one."""
    return values if hasattr(values, "__iter__") and hasattr(values, "__len__") else [values]


def _members(values: Any) -> Any:
    """Return what says quickly whether something is among some ids, where their kind allows."""
    try:
        return frozenset(values) if type(values) in (list, tuple) else values
    except TypeError:
        return values


def _load(index: dict[Any, Record], ids: Any) -> list[Record] | None:
    if hasattr(ids, "__iter__") and hasattr(ids, "__len__"):
        return [index[name] for name in ids]
    return [index[ids]] if type(ids) is int else None


def _say_converting(data: Any) -> None:
    print("Converting ndarray to lists...")
    if type(data) is not np.ndarray:
        raise AssertionError
    print(data.shape)
    if data.shape[1] != 7:
        raise AssertionError
    for row in range(0, len(data), 1_000_000):
        print(f"{row}/{len(data)}")
