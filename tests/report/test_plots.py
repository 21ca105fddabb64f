"""Figures: content, reproducibility, and the error without the extra."""

import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from detap import UsageError
from detap.cli import main
from detap.evaluation.detection import evaluate
from detap.report.writers import plots
from detap.tables.detection import Detections, GroundTruth
from tests.analysis.data import fixture
from tests.cli.conftest import Run
from tests.tables import dt_table, gt_table

NAMES = (
    *("precision-recall", "miss-rate", "froc"),
    *("errors", "operating-point", "confusion", "calibration"),
)


@pytest.fixture
def files(fixtures: Path) -> list[str]:
    folder = fixtures / "error-types" / "coco"
    return ["--gt", str(folder / "instances.json"), "--dt", str(folder / "results.json")]


def test_each_figure_is_written_as_svg_and_png(files: list[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "new" / "figures"
    assert main(["eval", "--isolated", *files, "-q", "--plots", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {
        f"{name}.{kind}" for name in NAMES for kind in ("svg", "png")
    }
    for name in NAMES:
        assert ET.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<dc:date>" not in (folder / f"{name}.svg").read_bytes()


@pytest.fixture(autouse=True)
def _no_figure_stays_open() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize("name", NAMES)
def test_plot_draws_the_figure_of_the_command_with_pyplot(name: str) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    axes = fixture().plot(name)
    assert plt.get_fignums() == [axes.figure.number]
    assert plots.render(axes.figure, "png") == plots.render(plots.figure(fixture(), name), "png")


def test_the_command_opens_no_figure_of_pyplot() -> None:
    """Those would stay in memory."""
    plt = pytest.importorskip("matplotlib.pyplot")
    assert dict(plots.render_all(fixture()))
    assert plt.get_fignums() == []


def test_the_same_result_gives_the_same_bytes() -> None:
    pytest.importorskip("matplotlib")
    assert dict(plots.render_all(fixture())) == dict(plots.render_all(fixture()))


def test_they_show_the_hand_computed_values() -> None:
    """The dAP bars of fixtures/error-types/why.md in points, largest on top; best F1 at .55."""
    pytest.importorskip("matplotlib")
    axes = fixture().plot("errors")
    names = [label.get_text() for label in axes.get_yticklabels()][::-1]
    assert names[:3] == ["missed (TIDE)", "localization", "classification"]
    widths = [bar.get_width() for bar in axes.patches][::-1]
    assert widths[:3] == pytest.approx([5000 / 202, 2700 / 202, 330 / 202])
    axes = fixture().plot("operating-point")
    assert "Best F1 0.5455 at score 0.55" in axes.get_title(loc="left")
    axes = fixture().plot()
    first, second, mean = (line.get_ydata() for line in axes.lines)
    assert [np.sum(line) for line in (first, second)] == pytest.approx([34 + 33 * 0.4, 51])
    assert np.sum(mean) == pytest.approx(98.2 / 2)
    axes = fixture().plot("confusion")
    assert sorted(text.get_text() for text in axes.texts) == ["1", "1", "1", "1", "2", "5"]


def test_curves_per_image_show_the_hand_computed_values() -> None:
    """The ranking T F (T T) F of equal scores in brackets, of 5 ground truths on 4 images."""
    pytest.importorskip("matplotlib")
    boxes = np.array([[20.0 * k, 0, 20 * k + 10, 10] for k in range(7)])
    truth = gt_table(boxes[:5], image=1, label="a", images=[1, 2, 3, 4])
    detections = dt_table(boxes[[0, 5, 1, 2, 6]], [0.9, 0.8, 0.7, 0.7, 0.5], image=1, label="a")
    result = evaluate(truth, detections)
    axes = result.plot("miss-rate")
    (line,) = axes.lines
    miss = np.interp([0.01, 0.24, 0.26, 40], line.get_xdata(), line.get_ydata())
    assert miss.tolist() == pytest.approx([0.8, 0.8, 0.4, 0.4])
    assert line.get_label() == f"a {0.8 ** (6 / 9) * 0.4 ** (3 / 9):.3f}"
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.get_xticklabels()] == [
        "0.001",
        "0.01",
        "0.1",
        "1",
        "10",
    ]
    axes = result.plot("froc")
    (line,) = axes.lines
    recall = np.interp([0.24, 0.26, 8], line.get_xdata(), line.get_ydata())
    assert recall.tolist() == pytest.approx([0.2, 0.6, 0.6])
    assert line.get_label() == f"a {(0.2 + 6 * 0.6) / 7:.3f}"
    assert [text.get_text() for text in axes.get_xticklabels()][1] == "1/8"
    # verified for some classes only: FPPI has no meaning
    listed = replace(truth, listed={"negative": np.zeros((0, 2), np.int32)})
    partly = evaluate(listed, detections, replace(result.protocol, verified="listed"))
    drawn = {name.partition(".")[0] for name, _ in plots.render_all(partly)}
    assert drawn == {*NAMES} - {"miss-rate", "froc"}
    with pytest.raises(UsageError, match="FPPI"):
        partly.plot("froc")
    assert all(np.isnan(curve.fppi).all() for curve in partly.curves())


def test_names_are_escaped_and_many_classes_are_listed() -> None:
    pytest.importorskip("matplotlib")
    names = [f"class {n} $x^2$ <b>{'long ' * 9}" for n in range(30)]
    boxes = np.tile([0.0, 0.0, 9.0, 9.0], (30, 1))
    truth = GroundTruth.from_arrays(image=np.arange(30), boxes=boxes, label=names)
    other = [*names[1:], names[0]]
    detections = Detections.from_arrays(
        image=np.arange(30), boxes=boxes, label=other, score=np.full(30, 7.0)
    )
    result = evaluate(truth, detections)
    axes = result.plot("confusion")
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) == 20
    assert labels[-1].startswith("class 0 $x^2$ <b>long")
    drawn = {name.partition(".")[0] for name, _ in plots.render_all(result)}
    assert drawn == {*NAMES} - {"calibration"}  # a score of 7 is no probability


def test_results_that_cannot_be_drawn(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Run
) -> None:
    (tmp_path / "file").write_text("")
    if "matplotlib" in sys.modules or pytest.importorskip("matplotlib"):
        said = command("eval", "--isolated", *files, "--plots", str(tmp_path / "file")).refused()
        assert "is not a folder" in said
        with pytest.raises(UsageError, match="unknown figure 'pr'; available: precision-rec"):
            fixture().plot("pr")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    said = command("eval", "--isolated", *files, "--plots", str(tmp_path / "x")).refused()
    assert "pip install 'detap[plots]'" in said
    assert not (tmp_path / "x").exists()
    with pytest.raises(UsageError, match=r"figures need matplotlib: pip install 'detap\[plots\]'"):
        fixture().plot()
