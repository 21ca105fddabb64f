"""Partials kept in a folder: an interrupted run resumes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended, detap
from tests.cli.test_shards import JSON, PAIRS, SHARDS, WHOLE, numbers, shards

__all__ = ["detap", "shards"]

Run = Callable[..., Ended]


def resumed(detap: Run, files: tuple[str, ...] = SHARDS) -> Ended:
    return detap("eval", *files, "--resume", "kept", *JSON)


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of evaluated inputs, filled during runs."""
    from detap.engines import shards as tasks

    seen: list[str] = []
    evaluate = tasks.evaluate_shard

    def noted(shard: tasks.Shard, *rest: object, **options: object) -> object:
        seen.append(shard.name)
        return evaluate(shard, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(tasks, "evaluate_shard", noted)
    return seen


@pytest.mark.parametrize("files", [SHARDS, PAIRS], ids=["one-truth", "pairs"])
def test_kept_partials_are_not_evaluated_again(
    shards: Path, detap: Run, evaluated: list[str], files: tuple[str, ...]
) -> None:
    first = resumed(detap, files)
    assert numbers(first) == numbers(detap("eval", *WHOLE, *JSON))
    paths = sorted(path for path in evaluated if path.startswith("dts/"))
    assert paths == [f"dts/{n}.json" for n in range(len(paths))]
    assert len(list(Path("kept").iterdir())) == len(paths)
    evaluated.clear()
    again = resumed(detap, files)
    assert again.out == first.out
    assert not [path for path in evaluated if path.startswith("dts/")]


def test_an_input_that_changed_is_evaluated_again(
    shards: Path, detap: Run, evaluated: list[str]
) -> None:
    resumed(detap)
    evaluated.clear()
    Path("dts/2.json").write_text("[]")
    ended = resumed(detap)
    assert [path for path in evaluated if path.startswith("dts/")] == ["dts/2.json"]
    assert numbers(ended) == numbers(detap("eval", *SHARDS, *JSON))


@pytest.mark.parametrize("options", [("--iou", "0.5"), ("--images", "1,2,3"), ("--as-is",)])
def test_changed_options_are_evaluated_again(
    shards: Path, detap: Run, evaluated: list[str], options: tuple[str, ...]
) -> None:
    resumed(detap)
    evaluated.clear()
    ended = detap("eval", *SHARDS, "--resume", "kept", *options, *JSON)
    assert len([path for path in evaluated if path.startswith("dts/")]) == 5
    assert numbers(ended) == numbers(detap("eval", *SHARDS, *options, *JSON))


def test_another_ground_truth_is_evaluated_again(
    shards: Path, detap: Run, evaluated: list[str]
) -> None:
    resumed(detap)
    evaluated.clear()
    text = Path("gt.json").read_text()
    Path("gt.json").write_text(text.replace('"iscrowd": 0', '"iscrowd": 1', 3))
    ended = resumed(detap)
    assert len([path for path in evaluated if path.startswith("dts/")]) == 5
    assert numbers(ended) == numbers(detap("eval", *WHOLE, *JSON))


def test_a_damaged_partial_is_recomputed(shards: Path, detap: Run) -> None:
    first = resumed(detap)
    for path in Path("kept").iterdir():
        path.write_bytes(path.read_bytes()[:-40])
    assert resumed(detap).out == first.out


def test_an_invalid_folder_is_refused_first(shards: Path, detap: Run) -> None:
    ended = detap("eval", *SHARDS, "--resume", "gt.json")
    assert ended.status == 2
    assert ended.err == "Error: gt.json: is not a folder: File exists\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--errors",), "--errors needs all boxes in one process; remove --resume"),
        (("--analysis",), "--analysis needs all boxes in one process; remove --resume"),
        (("--merge-images",), "--merge-images needs all boxes in one process"),
        (("-o", "report.html"), "the report page needs all boxes in one process"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_need_all_boxes_are_refused(
    shards: Path, detap: Run, options: tuple[str, ...], message: str
) -> None:
    ended = detap("eval", *SHARDS, "--resume", "kept", *options)
    assert ended.status == 2
    assert message in ended.err


@pytest.mark.parametrize("option", [("--resume", "kept"), ("--engine", "dask")], ids=" ".join)
def test_stdin_cannot_be_resumed(shards: Path, detap: Run, option: tuple[str, ...]) -> None:
    ended = detap("eval", "--gt", "gt.json", "--dt", "-", *option)
    assert ended.status == 2
    assert f"{option[0]} cannot read from stdin, because inputs may be read again" in ended.err
