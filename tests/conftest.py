"""Shared fixtures: location of the real data and settings of hypothesis."""

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.cli.conftest import coco, command, detap, voc
from tests.depth import PROFILE, sampled
from tests.formats.voc_files import without_scanners
from tests.shards import shards

__all__ = ["coco", "command", "detap", "shards", "voc", "without_scanners"]

ROOT = Path(__file__).resolve().parent.parent

_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=_QUIET
)
settings.register_profile("sample", settings.get_profile("ci"), max_examples=sampled(60))
# Mutation testing: without the search for a smallest failing example, which can take minutes.
settings.register_profile(
    "unshrunk", settings.get_profile("sample"), phases=(Phase.explicit, Phase.generate)
)
settings.register_profile("long", deadline=None, max_examples=3000, suppress_health_check=_QUIET)
settings.load_profile(PROFILE)


def extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Extract an archive; Python before 3.11.4 has no filter for unsafe members."""
    safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    archive.extractall(folder, **safe)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real ground truths and detections, which is not part of the project."""
    chosen = os.environ.get("DETAP_DATA")
    folder = Path(chosen) if chosen else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real data is absent: no folder {folder}; set DETAP_DATA to where it is")
    return folder


def _part(real_data: Path, name: str, content: str) -> Path:
    """Return a folder of the real data; skip the test if it is absent."""
    folder = real_data / name
    if not folder.is_dir():
        pytest.skip(f"the data of {content} is absent: no folder {folder}")
    return folder


@pytest.fixture(scope="session")
def unscored(real_data: Path) -> Path:
    """Return the folder of expected values of detections without scores."""
    return _part(real_data, "unscored", "detections without scores")


@pytest.fixture(scope="session")
def measures(real_data: Path) -> Path:
    """Return the folder of the data of metrics beyond AP."""
    return _part(real_data, "measures", "metrics beyond AP")


@pytest.fixture(scope="session")
def formats2(real_data: Path) -> Path:
    """Return the folder of the files that labelling tools and trainers wrote."""
    return _part(real_data, "formats2", "labelling tools")


@pytest.fixture(scope="session")
def formats3(real_data: Path) -> Path:
    """Return the folder of the benchmarks' own files, and of predictions as tools write them."""
    return _part(real_data, "formats3", "benchmarks and inference tools")


@pytest.fixture(scope="session")
def kaist_files(measures: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return KAIST's ground truth and the results of two detectors, written as COCO JSON."""
    source, folder = measures / "kaist", tmp_path_factory.mktemp("kaist")
    files = {"ground truth": source / "KAIST_annotation.json"}
    for name in ("INSANet", "MLPD"):
        rows = [line.split(",") for line in (source / f"{name}_result.txt").read_text().split()]
        results = [
            {
                "image_id": int(row[0]) - 1,  # counted from 1 there
                "category_id": 1,
                "bbox": [float(number) for number in row[1:5]],
                "score": float(row[5]),
            }
            for row in rows
        ]
        files[name] = folder / f"{name}.json"
        files[name].write_text(json.dumps(results))
    return files


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is the working folder of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Return the folder of the hand-computed cases."""
    return ROOT / "fixtures"
