"""The commands of the recipes work on files of the names they use."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from detap.cli import main
from tests.conftest import ROOT

COCO = ROOT / "fixtures" / "quickstart" / "coco"
VOC = ROOT / "fixtures" / "quickstart" / "voc"
BOXES = [(0, 0, 40, 40), (50, 10, 90, 60)]
SHELL = re.compile(r"```sh\n(.*?)```", re.S)


def lines(page: str) -> list[list[str]]:
    """Return the lines of each block without comments."""
    blocks = SHELL.findall((ROOT / "docs" / page).read_text("utf-8"))
    return [[line for line in block.splitlines() if line.startswith("detap ")] for block in blocks]


BLOCKS = [block for block in lines("recipes.md") if block]


def text_files(folder: Path, lines_of: list[str], images: int = 2) -> None:
    folder.mkdir(parents=True)
    for image in range(images):
        (folder / f"{image:06}.txt").write_text("".join(f"{line}\n" for line in lines_of))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with files named as on the pages."""
    for name in ("gt", "instances", "instances_val2017"):
        shutil.copy(COCO / "instances.json", tmp_path / f"{name}.json")
    for name in ("dt", "new", "old", "detections"):
        shutil.copy(COCO / "results.json", tmp_path / f"{name}.json")
    truth = json.loads((COCO / "instances.json").read_text())
    detections = json.loads((COCO / "results.json").read_text())
    images = [image["id"] for image in truth["images"]]
    (tmp_path / "subset.txt").write_text("".join(f"{image}\n" for image in images[:3]))
    tags = [f"{image},{'night' if n % 2 else 'day'}\n" for n, image in enumerate(images)]
    (tmp_path / "slices.csv").write_text("image,tag\n" + "".join(tags))
    for name in ("shards", "parts", "val", "reports"):
        (tmp_path / name).mkdir()
    call = ["eval", "--isolated", str(COCO / "instances.json"), str(COCO / "results.json")]
    main([*call, "--quiet", "-o", str(tmp_path / "reports" / "a.json")])
    for number, shard in enumerate((images[:3], images[3:]), 7):
        rows = [row for row in detections if row["image_id"] in shard]
        (tmp_path / "shards" / f"{number}.json").write_text(json.dumps(rows))
    for name in ("voc", "VOC2007"):
        shutil.copytree(VOC / "Annotations", tmp_path / name / "Annotations")
    names = [c["name"] for c in sorted(truth["categories"], key=lambda c: c["id"])]
    (tmp_path / "classes.txt").write_text("".join(f"{name}\n" for name in names))
    _of_voc(tmp_path)
    write_other_tools_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _of_voc(folder: Path) -> None:
    """Write COCO results for VOC's images: one correct box per image."""
    shutil.copytree(VOC / "detections", folder / "detections")
    box = [10.0, 10.0, 30.0, 30.0]
    stems = sorted(path.stem for path in (VOC / "Annotations").glob("*.xml"))
    rows = [
        {"image_id": stem, "category_id": n % 3, "bbox": box, "score": 0.5}
        for n, stem in enumerate(stems)
    ]
    (folder / "results.json").write_text(json.dumps(rows))


def write_other_tools_files(folder: Path) -> None:
    corners = [" ".join(map(str, box)) for box in BOXES]
    text_files(folder / "input" / "ground-truth", [f"cat {box}" for box in corners])
    text_files(folder / "input" / "detection-results", [f"cat 0.9 {box}" for box in corners])
    sides = [f"{x} {y} {x2 - x} {y2 - y}" for x, y, x2, y2 in BOXES]
    text_files(folder / "groundtruths", [f"cat {box}" for box in sides])
    shares = [
        f"{(x + x2) / 200} {(y + y2) / 200} {(x2 - x) / 100} {(y2 - y) / 100}"
        for x, y, x2, y2 in BOXES
    ]
    text_files(folder / "labels", [f"0 {box}" for box in shares])
    text_files(folder / "runs" / "detect" / "val" / "labels", [f"0 {box} 0.9" for box in shares])
    sizes = "".join(f"{image:06},100,100\n" for image in range(2))
    (folder / "sizes.csv").write_text(f"image,width,height\n{sizes}")
    (folder / "images" / "val").mkdir(parents=True)
    (folder / "labels" / "val").mkdir()
    for image in range(2):
        shutil.copy(folder / "labels" / f"{image:06}.txt", folder / "labels" / "val")
    (folder / "data.yaml").write_text("val: images/val\nnames: [cat]\n")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block[0][6:40])
def test_every_line_works(
    block: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines_of = "\n".join(block)
    if "--boxes xywh" in lines_of:  # two recipes call a folder `detections`
        shutil.rmtree(folder / "detections")
        text_files(folder / "detections", ["cat 0.9 0 0 40 40", "cat 0.8 50 10 40 50"])
    if "eval data.yaml" in lines_of:
        (folder / "classes.txt").unlink()
        for image in range(2):
            (folder / "images" / "val" / f"{image:06}.png").write_bytes(png(100, 100))
    if "convert" in lines_of:
        shutil.rmtree(folder / "labels" / "val")
        for name in ("instances.json", "data.yaml", "classes.txt"):
            (folder / name).unlink()
    for line in block:
        words = shlex.split(line, comments=True)[1:]
        if "dask" in words:
            continue  # tests/engines begins workers
        at = 2 if words[0] in ("baseline", "rank") else 1
        isolated = [] if words[0] in ("baseline", "convert", "check") else ["--isolated"]
        assert main([*words[:at], *isolated, *words[at:]]) == 0, capsys.readouterr().err


def png(width: int, height: int) -> bytes:
    """Return the header of a PNG image of a size."""
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n" + b"\0\0\0\x0dIHDR" + size + b"\x08\2\0\0\0" + b"\0" * 4
