"""The examples of experiment trackers, run on the trackers themselves if they are installed."""

import json
import os
import shutil
import sys
from math import isnan
from pathlib import Path
from typing import Any

import pytest

import detap
from tests.conftest import ROOT
from tests.processes import finished

TRACKING = ROOT / "examples" / "tracking"
QUICKSTART = ROOT / "fixtures" / "quickstart" / "coco"
EPOCHS = ("results-worse.json", "results.json")


def result_of(epoch: int) -> detap.Result:
    return detap.evaluate(str(QUICKSTART / "instances.json"), str(QUICKSTART / EPOCHS[epoch]))


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = finished(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg", **environment},
    )
    return done.stdout


def run_example(name: str, folder: Path, *words: str, **environment: str) -> None:
    (folder / "fixtures").symlink_to(ROOT / "fixtures")
    run([sys.executable, str(TRACKING / name), *words], folder, **environment)


# --- Result.metrics


def test_keys_depend_only_on_protocol_and_classes() -> None:
    """Also without any detection, where all but the recalls are undefined or zero."""
    empty = detap.evaluate(
        detap.read_ground_truth(str(QUICKSTART / "instances.json")),
        detap.Detections.from_arrays(image=[], label=[], boxes=[], score=[]),
    )
    values = result_of(1).metrics("val/", by_class=True)
    assert list(empty.metrics("val/", by_class=True)) == list(values)
    assert list(values)[:2] == ["val/AP", "val/AP50"]
    assert values["val/AP50"] == 0.9229922992299231
    names = {"bird", "cat", "dog"}
    assert {key.split("/")[2] for key in values if key.startswith("val/class/")} == names


def test_values_are_those_of_the_summary_and_the_classes() -> None:
    result = result_of(1)
    assert result.metrics() == result.summary
    values = result.metrics(by_class=True)
    for label, name in enumerate(result.classes):
        assert values[f"class/{name}/AP50"] == result.by_class["AP50"][label]


def test_the_page_of_a_result_has_its_metrics() -> None:
    pytest.importorskip("jinja2")
    page = result_of(1).to_page()
    assert page.startswith("<!doctype html>")
    assert "0.6994" in page


# --- trackers


def test_wandb(tmp_path: Path) -> None:
    """The file of an offline run has JSON text of each value."""
    pytest.importorskip("wandb", reason="wandb is absent")
    run_example("wandb_log.py", tmp_path, WANDB_MODE="offline", WANDB_SILENT="true")
    (record,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    data = record.read_bytes()
    for epoch in range(2):
        for name, value in result_of(epoch).metrics("val/", by_class=True).items():
            assert name.encode() in data
            if not isnan(value):
                assert json.dumps(value).encode() in data, name
    assert b"report.html" in data
    (curves,) = tmp_path.glob("wandb/offline-run-*/files/media/table/val/*.json")
    assert {row[1] for row in json.loads(curves.read_text())["data"]} == {"bird", "cat", "dog"}


def test_mlflow(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is absent")
    store = {"MLFLOW_TRACKING_URI": f"file:{tmp_path}/mlruns", "MLFLOW_ALLOW_FILE_STORE": "true"}
    run_example("mlflow_log.py", tmp_path, **store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        client = mlflow.MlflowClient(store["MLFLOW_TRACKING_URI"])
        (logged,) = client.search_runs(["0"])
        for name, value in result_of(1).metrics("val/", by_class=True).items():
            assert logged.data.metrics[name] == pytest.approx(value, abs=0, nan_ok=True)
            history = client.get_metric_history(logged.info.run_id, name)
            expected = [result_of(n).metrics("val/", by_class=True)[name] for n in range(2)]
            assert [entry.step for entry in history] == [0, 1]
            assert [entry.value for entry in history] == pytest.approx(expected, abs=0, nan_ok=True)
        artifacts = {entry.path for entry in client.list_artifacts(logged.info.run_id)}
    assert artifacts == {"report.html", "precision-recall.png"}


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is absent")
    pytest.importorskip("tensorboard", reason="TensorBoard is absent")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run_example("tensorboard_log.py", tmp_path, "runs")
    events = EventAccumulator(str(tmp_path / "runs"))
    events.Reload()
    for name, value in result_of(1).metrics("val/", by_class=True).items():
        scalars = events.Scalars(name)
        assert [scalar.step for scalar in scalars] == [0, 1]
        assert scalars[1].value == pytest.approx(value, rel=1e-6, nan_ok=True)  # float32
    assert len(events.Images("val/precision-recall")) == 2


# --- DVC


def program(name: str) -> str:
    """Return a program of this environment, or skip the test."""
    path = shutil.which(name, path=os.path.dirname(sys.executable))
    if path is None:
        pytest.skip(f"{name} is absent")
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with the example and the results of an early epoch."""
    for source in (TRACKING / "dvc.yaml", QUICKSTART / "instances.json"):
        shutil.copy(source, tmp_path)
    shutil.copy(QUICKSTART / EPOCHS[0], tmp_path / "results.json")
    run(["git", "init", "-q"], tmp_path)
    return tmp_path


def test_dvc(repository: Path) -> None:
    dvc = program("dvc")
    scripts = os.path.dirname(sys.executable)
    path = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "DVC_NO_ANALYTICS": "1"}
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "epoch 0"]
    run([dvc, "init", "-q"], repository, **path)
    run([dvc, "repro"], repository, **path)
    run(["git", "add", "-A"], repository)
    run(git, repository)
    shutil.copy(QUICKSTART / EPOCHS[1], repository / "results.json")
    run([dvc, "repro"], repository, **path)
    changes = json.loads(run([dvc, "metrics", "diff", "--json"], repository, **path))
    metrics = [result_of(epoch).metrics(by_class=True) for epoch in range(2)]
    changed: dict[str, Any] = changes["metrics.json"]
    for key, change in changed.items():
        old, new = (values[key.replace(".", "/")] for values in metrics)
        assert (change["old"], change["new"]) == (old, new), key
    assert {"AP", "AP50", "class.bird.AP"} <= set(changed)
    run([dvc, "plots", "diff", "HEAD"], repository, **path)
    page = (repository / "dvc_plots" / "index.html").read_text("utf-8")
    assert "classes.csv" in page
    assert "precision-recall.png" in page
