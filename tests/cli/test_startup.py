"""Libraries imported at start-up: none that a run does not need."""

import compileall
import sys
import tomllib
from pathlib import Path

import pytest

import detap
from detap._version import __version__
from detap.cli import COMMANDS
from tests.cli.conftest import Files
from tests.processes import finished

HEAVY = {
    *("matplotlib", "pandas", "lxml", "rich", "pycocotools", "pyarrow", "fsspec", "msgspec"),
    *("asyncio", "unittest"),
}


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile the sources first, as the compiler's own imports are not part of start-up."""
    compileall.compile_dir(str(Path(detap.__file__).parent), quiet=1)


def imported_by(*arguments: str) -> set[str]:
    """Return the modules loaded by a command line."""
    code = (
        "import sys\n"
        "from detap.cli import main\n"
        "status = main(sys.argv[1:])\n"
        "sys.stderr.write('\\n' + ' '.join(sys.modules))\n"
        "sys.exit(status)\n"
    )
    ended = finished([sys.executable, "-c", code, *arguments])
    return set(ended.stderr.rpartition("\n")[2].split())


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["--help"], *([command, "--help"] for command in COMMANDS)],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    modules = imported_by(*arguments)
    assert modules & HEAVY == set()
    if len(arguments) == 1:
        assert "numpy" not in modules


def test_import_detap_imports_nothing_heavy() -> None:
    code = "import sys, detap; print(*sys.modules)"
    ended = finished([sys.executable, "-c", code])
    assert set(ended.stdout.split()) & (HEAVY | {"click"}) == set()


def test_eval_imports_only_what_it_needs(coco: Files, tmp_path: Path) -> None:
    modules = imported_by(*coco.arguments, "-o", str(tmp_path / "report.json"))
    assert "numpy" in modules
    assert modules & HEAVY == set()
    formats = {name.removeprefix("detap.formats.") for name in modules if "detap.formats." in name}
    assert not {"voc.tables", "yolo.rows", "cvat"} & formats
    assert not {"numpy.ma", "detap.evaluation.unscored", "detap.core.assignment"} & modules


def test_formats_by_name_do_not_import_masked_arrays() -> None:
    voc = Path(__file__).parents[2] / "fixtures" / "quickstart" / "voc"
    assert "numpy.ma" not in imported_by("eval", str(voc), str(voc / "detections"))


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["version"] == __version__


def test_parquet_does_not_import_pandas(tmp_path: Path) -> None:
    """It takes longer than reading; pyarrow imports it for scalars and arrays with nulls."""
    pytest.importorskip("pandas")
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    objects = {"bbox": [[0.0, 0.0, 10.0, 10.0]], "category": ["cat"], "area": [50.0]}
    truth = {"image_id": [1, 2], "width": [20, None], "height": [20, 20], "objects": [objects] * 2}
    box = {"x": [0.0], "y": [0.0], "width": [10.0], "height": [10.0]}
    detections = {"image_id": [1], "category": ["cat"], "score": [0.5], **box}
    for name, columns in (("gt", truth), ("dt", detections)):
        parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    gt, dt = (str(tmp_path / f"{name}.parquet") for name in ("gt", "dt"))
    assert "pandas" not in imported_by("eval", "--gt", gt, "--dt", dt, "--boxes", "xywh")
