"""Several inputs on the command line: reading, errors and reports."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_shards import numbers
from tests.shards import JSON, WHOLE, case

TRUTH = ("--gt", "gt.json")


@pytest.mark.parametrize(
    ("gt", "dt"),
    [
        (["gt.json"], ["dts/*.json"]),
        (["gt.json"], ["dts"]),
        (["gts"], [f"dts/{part}.json" for part in (3, 2, 0, 4, 1)]),
        (["gts/*.json"], ["dt.json"]),
        (["gts/1.json", "gts/[02-9].json"], ["dts/*"]),
    ],
)
@pytest.mark.usefixtures("shards")
def test_shards_give_the_report_of_one_file(detap: Run, gt: list[str], dt: list[str]) -> None:
    one = detap("eval", *WHOLE, *JSON)
    sides = (("--gt", gt), ("--dt", dt))
    given = [word for option, paths in sides for path in paths for word in (option, path)]
    several = detap("eval", *given, *JSON)
    assert numbers(several) == numbers(one)
    assert several.err == one.err
    inputs = [entry for entry in several.report()["inputs"] if entry["role"] == "detections"]
    assert len(inputs) == (1 if dt == ["dt.json"] else 5)
    assert [entry["path"] for entry in inputs] == sorted(entry["path"] for entry in inputs)


@pytest.mark.usefixtures("shards")
def test_other_commands_accept_shards(detap: Run) -> None:
    for first, *more in (("compare", "--resamples", "0"), ("check",), ("show", "1")):
        detections = ("dts/*.json", "dt.json") if first == "compare" else ("--dt", "dts")
        several = detap(first, *more, *detections, *TRUTH).passed()
        whole = tuple("dt.json" if word.startswith("dts") else word for word in detections)
        assert several.out == detap(first, *more, *whole, *TRUTH).out
    detap("report", *TRUTH, "--dt", "dts", "-o", "page.html").passed()
    detap("eval", *WHOLE, "--baseline-detections", "dts/*.json", "--max-drop", "0").passed()


@pytest.mark.usefixtures("shards")
def test_no_report_overwrites_a_shard(detap: Run) -> None:
    gate = ("--dt", "dt.json", "--max-drop", "0")
    for given in (("--dt", "dts"), ("--baseline-detections", "dts", *gate)):
        said = detap("eval", *TRUTH, *given, "-o", "dts/1.json").refused()
        assert "is an input; use another name for the report" in said


@pytest.mark.usefixtures("shards")
def test_slices_by_attribute_read_every_ground_truth(detap: Run) -> None:
    report = detap("eval", "--gt", "gts", "--dt", "dts", "--slice-by", "light", *JSON).report()
    assert list(report["slices"]) == ["light=day", "light=night"]


@pytest.mark.usefixtures("shards")
def test_an_image_in_two_shards_needs_merge_images(detap: Run) -> None:
    records = case()[1]
    assert records[0]["image_id"] == records[1]["image_id"] == 1
    Path("two").mkdir()
    for name, rows in (("1", records[:1]), ("2", records[1:])):
        Path(f"two/{name}.json").write_text(json.dumps(rows))
    given = ("eval", *TRUTH, "--dt", "two")
    said = detap(*given).refused()
    assert said.startswith(
        "Error: two/2.json: image 1 is also in two/1.json; put each image in one"
    )
    merged = detap(*given, "--merge-images", *JSON)
    assert numbers(merged) == numbers(detap("eval", *WHOLE, *JSON))


@pytest.mark.usefixtures("shards")
def test_the_environment_lists_inputs_one_per_line(
    detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DETAP_GT", "gt.json")
    monkeypatch.setenv("DETAP_DT", "dts/1.json\ndts/2.json")
    assert len(detap("eval", *JSON).report()["inputs"]) == 3


@pytest.mark.usefixtures("shards")
def test_settings_list_inputs_or_give_a_pattern(
    detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("runs").mkdir()
    monkeypatch.chdir("runs")
    for dt, count in (('"dts/*.json"', 5), ('["dts/1.json", "dts/2.json"]', 2), ('"dts"', 5)):
        Path("../detap.toml").write_text(f'gt = "gt.json"\ndt = {dt}\n')
        assert len(detap("eval", *JSON).report()["inputs"]) == 1 + count
