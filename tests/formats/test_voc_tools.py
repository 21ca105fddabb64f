"""Names and layouts of VOC folders, and the readers that real files take."""

from pathlib import Path

import pytest

from detap.formats.catalogue import FORMATS
from detap.formats.text.detections import class_of_stem, classes_of_stems, detect_layout
from detap.formats.text.lines import LineForm
from detap.formats.voc._scan import Annotations
from detap.formats.voc.tables import plain_start, read_detections, read_ground_truth
from tests.formats.voc_files import item, tree, xml


def folder(real_data: Path, name: str) -> Path:
    path = real_data / name
    if not path.is_dir():
        pytest.skip(f"real data is absent: {path}")
    return path


def test_the_scanner_reads_every_real_annotation(real_data: Path) -> None:
    for name in ("voc2007-test/Annotations", "bccd/Annotations", "voc-100/gt/voc_xml"):
        scanned = Annotations(100)
        for path in sorted(folder(real_data, name).glob("*.xml")):
            assert scanned.read(plain_start(path.read_bytes()), 0), path


def test_real_lines_are_regular(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a line was read by Python")

    root = folder(real_data, "cartucho-85")
    truth = read_ground_truth(root / "ground-truth")
    monkeypatch.setattr(LineForm, "read_line", refuse)
    assert len(read_detections(root / "detection-results", truth))


# --- the class of a file name, and the layout of a folder


KNOWN = frozenset({"dog", "light", "traffic_light", "tv", "det_x", "a"})

STEMS = {
    # Of the kit's form: what follows the last det_<set>_.
    "comp4_det_test_dog": ("dog", True, ()),
    "comp4_det_test_traffic_light": ("traffic_light", True, ()),
    "det_val_light": ("light", True, ()),
    "comp4_det_test_hot_dog": ("dog", True, ()),  # no class of that name, but one at its end
    "comp4_det_test_fire_hydrant": ("fire_hydrant", False, ()),
    "x_det_a_b_det_test_dog": ("dog", True, ()),
    "comp4_det_test_2007_light": ("light", True, ()),
    "comp4_det_test_my_traffic_light": ("traffic_light", True, ("traffic_light", "light")),
    "comp4_det_test_det_x": ("det_x", True, ()),
    "comp4_det_test_": ("", False, ()),
    # Of any other form: a class behind an underscore, or the whole name.
    "dog": ("dog", True, ()),
    "traffic_light": ("traffic_light", True, ()),
    "results_tv": ("tv", True, ()),
    "our_traffic_light": ("traffic_light", True, ("traffic_light", "light")),
    "results_emu": ("emu", False, ()),
    "emu": ("emu", False, ()),
    "Dog": ("Dog", False, ()),
}


@pytest.mark.parametrize(("stem", "expected"), STEMS.items(), ids=STEMS)
def test_the_class_of_a_file(stem: str, expected: tuple[str, bool, tuple[str, ...]]) -> None:
    match = class_of_stem(stem, KNOWN)
    if stem == "comp4_det_test_":
        assert not match.known
        return
    assert (match.name, bool(match.known), match.known[1:] and match.known) == expected


def test_other_files_resolve_an_ambiguous_name() -> None:
    stems = ("res_v2_dog", "res_v2_traffic_light", "res_v2_hot_cat")
    matches = classes_of_stems(stems, KNOWN)
    assert [matches[stem].name for stem in stems] == ["dog", "traffic_light", "hot_cat"]
    assert [matches[stem].known for stem in stems] == [("dog",), ("traffic_light",), ()]
    alone = classes_of_stems(("res_traffic_light",), KNOWN)
    assert alone["res_traffic_light"].known == ("traffic_light", "light")


IMAGES = frozenset({"000001", "000002", "img_dog", "7"})

LAYOUTS = {
    "kit": (("comp4_det_test_dog", "comp4_det_test_tv"), ("000001", "000002"), "class-files"),
    "kit, nothing in it": (("comp4_det_test_dog",), (), "class-files"),
    "kit, an unknown class": (("comp4_det_test_emu",), ("000001",), "class-files"),
    "kit, the wrong split": (("comp4_det_test_emu",), ("999999",), "class-files"),
    "an image each": (("000001", "000002"), ("dog", "emu"), "image-files"),
    "an image each, numbered classes": (("000001", "000002"), ("3", "14"), "image-files"),
    "a number that is an image too": (("000001", "000002"), ("7", "3"), "image-files"),
    "an image that ends as a class does": (("000001", "img_dog"), ("dog", "tv"), "image-files"),
    "an image each, the wrong split": (("999998", "999999"), ("dog",), "image-files"),
    "an image each, neither known": (("999998", "999999"), ("3", "4"), "image-files"),
    "an image each, empty": (("000001", "000002"), (), "image-files"),
    "nothing fits": (("report", "summary"), ("the", "a"), None),
    "nothing fits nor is in it": (("report",), (), None),
    "all fits": (("img_dog",), ("7", "dog"), None),
    "names of both kinds, classes inside": (("dog", "000001"), ("tv", "a"), "image-files"),
    "names of both kinds, images inside": (("dog", "000001"), ("7", "000002"), "class-files"),
    "names of classes, both kinds inside": (("dog", "tv"), ("7", "a"), "class-files"),
    "names of images, both kinds inside": (("000001", "000002"), ("7", "a"), "image-files"),
}


@pytest.mark.parametrize(("stems", "words", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_the_layout(stems: tuple[str, ...], words: tuple[str, ...], expected: str | None) -> None:
    assert detect_layout(stems, words, IMAGES, KNOWN - {"a"}) == expected


# --- metadata


def test_elements_and_file_names_of_annotations(tmp_path: Path) -> None:
    more = "<filename>x.jpg</filename><source><database>VOC</database></source>"
    tree(tmp_path, {"a": f"<annotation>{more}{item()}</annotation>", "b": xml(item())})
    truth = read_ground_truth(tmp_path)
    assert FORMATS["voc"].attribute_values(truth, "source/database") == {"a": "VOC"}
    assert FORMATS["voc"].file_names(truth) == {"a": "a.jpg"}
