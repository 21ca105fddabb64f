"""Several inputs on the command line: reading, errors and reports."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended, Files, Run, instances, results, write_coco


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Write the case of this folder as one file per image and as a whole."""
    write_coco(tmp_path)
    whole = instances()
    for image in (1, 2):
        of_image = [r for r in results() if r["image_id"] == image]
        truth = {
            **whole,
            "images": [r for r in whole["images"] if r["id"] == image],
            "annotations": [r for r in whole["annotations"] if r["image_id"] == image],
        }
        for side, content in (("dt", of_image), ("gt", truth)):
            (tmp_path / side).mkdir(exist_ok=True)
            (tmp_path / side / f"{image}.json").write_text(json.dumps(content))
    return tmp_path


def numbers(ended: Ended) -> dict[str, Any]:
    """Return a JSON report without its list of inputs."""
    assert ended.status == 0, ended.err
    return {key: value for key, value in json.loads(ended.out).items() if key != "inputs"}


@pytest.mark.parametrize(
    ("gt", "dt"),
    [
        (["instances.json"], ["dt/*.json"]),
        (["instances.json"], ["dt"]),
        (["gt"], ["dt/2.json", "dt/1.json"]),
        (["gt/*.json"], ["results.json"]),
        (["gt/1.json", "gt/[2-9].json"], ["dt/*"]),
    ],
)
def test_shards_give_the_report_of_one_file(
    shards: Path, detap: Run, gt: list[str], dt: list[str]
) -> None:
    json_ = ("--output-format", "json")
    one = detap("eval", "--gt", shards / "instances.json", "--dt", shards / "results.json", *json_)
    given = [
        word
        for option, paths in (("--gt", gt), ("--dt", dt))
        for path in paths
        for word in (option, shards / path)
    ]
    several = detap("eval", *given, *json_)
    assert numbers(several) == numbers(one)
    assert several.err == one.err
    inputs = [entry for entry in json.loads(several.out)["inputs"] if entry["role"] == "detections"]
    assert len(inputs) == (1 if dt == ["results.json"] else 2)
    assert [entry["path"] for entry in inputs] == sorted(entry["path"] for entry in inputs)


def test_other_commands_accept_shards(shards: Path, detap: Run) -> None:
    whole = shards / "results.json"
    gt = ("--gt", shards / "instances.json")
    compared = detap("compare", f"{shards}/dt/*.json", whole, *gt, "--resamples", 0).passed()
    same = detap("compare", whole, whole, *gt, "--resamples", 0)
    assert compared.out == same.out
    checked = [detap("check", *gt, "--dt", dt) for dt in (shards / "dt", whole)]
    assert [ended.status for ended in checked] == [0, 0]
    assert checked[0].out == checked[1].out
    shown = [detap("show", "1", *gt, "--dt", dt) for dt in (shards / "dt", whole)]
    assert shown[0].out == shown[1].out
    assert detap("report", *gt, "--dt", shards / "dt", "-o", shards / "page.html").status == 0


def test_baseline_detections_may_be_in_shards(shards: Path, detap: Run) -> None:
    assert (
        detap(
            *("eval", "--gt", shards / "instances.json", "--dt", shards / "results.json"),
            *("--baseline-detections", f"{shards}/dt/*.json", "--max-drop", "0"),
        ).status
        == 0
    )


def test_no_report_overwrites_a_shard(shards: Path, detap: Run) -> None:
    target = shards / "dt" / "1.json"
    for option, path in (("--dt", shards / "dt"), ("--baseline-detections", shards / "dt")):
        rest = () if option == "--dt" else ("--dt", shards / "results.json", "--max-drop", "0")
        said = detap(
            *("eval", "--gt", shards / "instances.json", option, path, *rest, "-o", target)
        ).refused()
        assert "is an input; use another name for the report" in said


def test_slices_by_attribute_read_every_ground_truth(shards: Path, detap: Run) -> None:
    for image in (1, 2):
        path = shards / "gt" / f"{image}.json"
        record = json.loads(path.read_text())
        record["images"][0]["camera"] = f"c{image}"
        path.write_text(json.dumps(record))
    ended = detap(
        *("eval", "--gt", shards / "gt", "--dt", shards / "dt", "--slice-by", "camera"),
        *("--output-format", "json"),
    )
    assert list(json.loads(ended.out)["slices"]) == ["camera=c1", "camera=c2"]


def test_an_image_in_two_shards_needs_merge_images(shards: Path, detap: Run) -> None:
    first, second = shards / "dt" / "1.json", shards / "dt" / "2.json"
    records = results()
    first.write_text(json.dumps(records[:2]))
    second.write_text(json.dumps(records[2:]))
    given = ("eval", "--gt", shards / "instances.json", "--dt", shards / "dt")
    json_ = ("--output-format", "json")
    said = detap(*given).refused()
    assert said == (
        f"Error: {second}: image 1 is also in {first}; put each image in one input, pass "
        "merge_images=True (--merge-images) if their boxes differ, or compare the files of "
        "several detectors: detap compare FILES --gt GT\n"
    )
    one = detap("eval", "--gt", shards / "instances.json", "--dt", shards / "results.json", *json_)
    assert numbers(detap(*given, "--merge-images", *json_)) == numbers(one)


def test_the_environment_lists_inputs_one_per_line(
    shards: Path, detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DETAP_GT", str(shards / "instances.json"))
    monkeypatch.setenv("DETAP_DT", f"{shards}/dt/1.json\n{shards}/dt/2.json")
    assert len(detap("eval", "--output-format", "json").report()["inputs"]) == 3


def test_settings_list_inputs_or_give_a_pattern(
    shards: Path, detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shards / "runs").mkdir()
    monkeypatch.chdir(shards / "runs")
    for dt in ('"dt/*.json"', '["dt/1.json", "dt/2.json"]', '"dt"'):
        (shards / "detap.toml").write_text(f'gt = "instances.json"\ndt = {dt}\n')
        ended = detap("eval", "--output-format", "json")
        assert len(json.loads(ended.out)["inputs"]) == 3, ended.err


def test_a_pattern_that_matches_nothing_is_an_input_error(coco: Files, detap: Run) -> None:
    said = detap("eval", "--gt", coco.gt, "--dt", f"{coco.folder}/none/*.json").refused()
    assert said == (
        f"Error: {coco.folder}/none/*.json: matches no file; check the pattern and the working "
        "directory\n"
    )
