"""Several data sets in one report, and gates on their means."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap import Result, UsageError, evaluate, protocol
from detap.analysis.bootstrap import Draws, draw_weights, leave_out, resampled
from detap.analysis.data_sets import data_sets
from tests.cli.conftest import Ended, Run
from tests.coco import results_of, truth_of
from tests.schemas import saved

BOX = [0, 0, 50, 50]
HALF = 51 / 101  # the AP of one of two objects: precision 1 at the recalls 0, 0.01, ..., 0.5
MEAN = (1 + HALF + 0) / 3


def write_set(folder: Path, images: int, detected: int, *, crowd: bool = False) -> None:
    """Write images of one cat each (or of ignored crowds), of which some are detected."""
    folder.mkdir(parents=True)
    rows = [(image, 1, BOX) for image in range(1, images + 1)]
    truth = truth_of(rows, {1: "cat"}, range(1, images + 1), crowd=crowd)
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results_of(rows[:detected])))


FILE = """
[all]
gt = "all/gt.json"
dt = "all/dt.json"
group = "good"

[half]
gt = "half/gt.json"
dt = "half/dt.json"
group = "good"

[none]
gt = "none/gt.json"
dt = "none/dt.json"
"""


@pytest.fixture
def folder(cwd: Path) -> Path:
    """Write sets of 10 images with 10, 5 and 0 detected cats, and their file."""
    for name, detected in (("all", 10), ("half", 5), ("none", 0)):
        write_set(cwd / "data" / name, 10, detected)
    (cwd / "data" / "sets.toml").write_text(FILE)
    return cwd


CALL = ("eval", "--data-sets", "data/sets.toml")


def report(detap: Run, *arguments: str, status: int = 0) -> tuple[dict[str, Any], Ended]:
    return saved(detap, *arguments, kind="data_sets", statuses=(status,))


def evaluated(*names: str) -> dict[str, Result]:
    return {
        name: evaluate(f"data/{name}/gt.json", f"data/{name}/dt.json")
        for name in names or ("all", "half", "none")
    }


@pytest.mark.usefixtures("folder")
def test_means_by_hand(detap: Run) -> None:
    """Paths are relative to the file; equal class names are separate classes."""
    record, ended = report(detap, *CALL)
    assert record["summary"]["AP"] == pytest.approx(MEAN)
    rows = record["data_sets"]
    assert [row["name"] for row in rows] == ["all", "half", "none"]
    assert [row["AP"] for row in rows] == pytest.approx([1, HALF, 0])
    assert [row["group"] for row in rows] == ["good", "good", None]
    assert [(row["images"], row["ground_truths"], row["detections"]) for row in rows] == [
        (10, 10, 10),
        (10, 10, 5),
        (10, 10, 0),
    ]
    ap = record["statistics"]["AP"]
    assert (ap["median"], ap["data_sets"], ap["left_out"]) == (pytest.approx(HALF), 3, [])
    assert ap["minimum"] == {"data_set": "none", "value": 0}
    assert ap["maximum"] == {"data_set": "all", "value": pytest.approx(1)}
    assert record["groups"].keys() == {"good"}
    assert record["groups"]["good"]["data_sets"] == 2
    assert record["groups"]["good"]["summary"]["AP"] == pytest.approx((1 + HALF) / 2)
    assert {item["data_set"] for item in record["inputs"]} == {"all", "half", "none"}
    assert record["signature"].startswith("protocol:coco|detap:")
    lines = ended.out.splitlines()
    assert lines[0] == "Mean AP over 3 data sets: 0.5017"
    assert lines[2].split() == ["data", "set", "group", "AP", "AP50", "images", "ground", "truths"]
    assert re.search(r"^mean +. +0\.5017 ", ended.out, re.MULTILINE)
    assert re.search(r"^AP +0\.5017 +0\.5050 +0\.0000 +none +3$", ended.out, re.MULTILINE)
    assert re.search(r"^good +0\.7525 ", ended.out, re.MULTILINE)


@pytest.mark.usefixtures("folder")
def test_python_gives_the_same(detap: Run) -> None:
    record, _ = report(detap, *CALL, "--confidence", "0.9", "--min-ground-truths", "1")
    results = evaluated()
    ours = data_sets(
        results, groups={"all": "good", "half": "good"}, confidence=0.9, min_ground_truths=1
    )
    assert ours.mean("AP") == record["summary"]["AP"]
    assert list(ours.interval("AP")) == record["intervals"]["summary"]["AP"]
    assert list(ours.interval("AP", "half")) == record["intervals"]["data_sets"]["half"]["AP"]
    assert ours.mean("AP", "good") == record["groups"]["good"]["summary"]["AP"]
    assert ours.mean("AP90") == pytest.approx(MEAN)
    assert ours.signature == record["signature"]
    assert repr(ours) == "DataSets(3 data sets, mean AP=0.5017)"
    assert "Mean AP over 3 data sets" in str(ours)
    with pytest.raises(KeyError, match="AP9"):
        ours.mean("AP9")


def test_errors_in_python(folder: Path) -> None:
    del folder
    results = evaluated("all", "half")
    with pytest.raises(UsageError, match="no data set: results is empty"):
        data_sets({})
    with pytest.raises(UsageError, match="groups: no data set is named 'nil'"):
        data_sets(results, groups={"nil": "x"})
    with pytest.raises(UsageError, match="confidence 2 is outside"):
        data_sets(results, confidence=2)
    other = evaluate("data/none/gt.json", "data/none/dt.json", "voc2012")
    with pytest.raises(UsageError, match="'all' and 'none' have different protocols"):
        data_sets({**results, "none": other})


@pytest.mark.usefixtures("folder")
def test_a_set_without_the_metric_is_left_out(detap: Run) -> None:
    write_set(Path("data/empty"), 4, 2, crowd=True)
    Path("data/sets.toml").write_text(f'{FILE}[empty]\ngt="empty/gt.json"\ndt="empty/dt.json"\n')
    record, ended = report(detap, *CALL)
    assert record["data_sets"][3]["AP"] is None
    assert record["summary"]["AP"] == pytest.approx(MEAN)
    assert record["statistics"]["AP"]["data_sets"] == 3
    assert record["statistics"]["AP"]["left_out"] == ["empty"]
    assert record["summary"]["APs"] is None  # no cat is small
    assert record["statistics"]["APs"]["minimum"] == {"data_set": None, "value": None}
    assert ended.out.startswith("Mean AP over 3 of 4 data sets: 0.5017\n")
    assert "[data-sets-left-out]" in ended.err
    assert detap(*CALL, "--fail-under", "set:empty.AP=0").status == 1  # undefined
    assert detap(*CALL, "--fail-under", "min-set.AP=0").status == 0


@pytest.mark.usefixtures("folder")
def test_a_missing_set_is_an_error_unless_allowed(detap: Run) -> None:
    Path("data/none/dt.json").unlink()
    ended = detap(*CALL)
    assert (ended.status, ended.err) == (
        2,
        "Error: data/none/dt.json: data set 'none': no such file or directory; check the path, or "
        "pass --allow-missing\n",
    )
    record, ended = report(detap, *CALL, "--allow-missing")
    assert record["missing"] == ["none"]
    assert record["summary"]["AP"] == pytest.approx((1 + HALF) / 2)
    assert ended.out.startswith("Mean AP over 2 data sets: 0.7525; 1 missing\n")
    assert "missing data sets are left out of the means: none [data-sets-missing]" in ended.err
    assert detap(*CALL, "--allow-missing", "--strict").status == 2
    for name in ("all", "half"):
        Path(f"data/{name}/gt.json").unlink()
    ended = detap(*CALL, "--allow-missing")
    assert (ended.status, ended.err) == (
        2,
        "Error: data/all/gt.json: data set 'all': no such file or directory (3 data sets are "
        "missing); check the path\n",
    )


def write_reports(detap: Run, *arguments: str, names: str = "all half none") -> None:
    Path("reports").mkdir(exist_ok=True)
    for name in names.split():
        files = ("--gt", f"data/{name}/gt.json", "--dt", f"data/{name}/dt.json")
        assert detap("eval", *files, *arguments, "-o", f"reports/{name}.json").status == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("paths", [["reports/*.json"], ["reports"], ["data/reports.toml"]])
def test_reports_already_made(detap: Run, paths: list[str]) -> None:
    write_reports(detap)
    names = ("all", "half", "none")
    tables = [f'[{name}]\nreport = "../reports/{name}.json"\n' for name in names]
    Path("data/reports.toml").write_text("".join(tables))
    whole, _ = report(detap, *CALL)
    record, _ = report(detap, "eval", "--data-sets", *paths)
    assert record["summary"] == whole["summary"]
    keys = ("name", "AP", "AP50", "images", "ground_truths", "detections")
    assert [[row[key] for key in keys] for row in record["data_sets"]] == [
        [row[key] for key in keys] for row in whole["data_sets"]
    ]
    assert record["inputs"] == whole["inputs"]
    gates = ("--fail-under", "min-set.AP50=0.1", "--fail-under", "mean-set.AP=0.5")
    assert detap("eval", "--data-sets", *paths, *gates).status == 1


@pytest.mark.usefixtures("folder")
def test_reports_and_files_together(detap: Run) -> None:
    write_reports(detap)
    Path("data/sets.toml").write_text(FILE.partition("[none]")[0] + '[none]\nreport="n.json"\n')
    Path("data/n.json").write_text(Path("reports/none.json").read_text())
    record, _ = report(detap, *CALL)
    assert record["summary"]["AP"] == pytest.approx(MEAN)
    ended = detap(*CALL, "--fail-under", "AP90=0.1")  # a mean over fewer sets would pass
    assert (ended.status, "unknown metric 'AP90'" in ended.err) == (2, True)
    ended = detap(*CALL, "--confidence", "0.9")
    assert ended.err == (
        "Error: data/sets.toml: [none]: a report cannot be resampled; give gt and dt, or remove "
        "--confidence\n"
    )


@pytest.mark.usefixtures("folder")
def test_other_protocols_are_refused(detap: Run) -> None:
    write_reports(detap)
    write_reports(detap, "--iou", "0.5", names="half")
    ended = detap("eval", "--data-sets", "reports")
    message = (
        "Error: data sets 'all' (coco) and 'half' (coco|iou:0.5) have different protocols; "
        "evaluate all with one --protocol\n"
    )
    assert ended.status == 2
    assert re.sub(r"coco\|[^)]*", "coco|iou:0.5", ended.err) == message
    Path("data/sets.toml").write_text(FILE.partition("[half]")[0] + '[half]\nreport="h.json"\n')
    Path("data/h.json").write_text(Path("reports/half.json").read_text())
    assert "have different protocols" in detap(*CALL).err
    assert detap(*CALL, "--iou", "0.5").status == 0
    write_reports(detap, names="half")
    record = json.loads(Path("reports/half.json").read_text())
    record["protocol"]["score_decimals"] = 3  # as if the preset had another version's field
    Path("reports/half.json").write_text(json.dumps(record))
    assert "(coco|detap:" in detap("eval", "--data-sets", "reports").err


@pytest.mark.parametrize(
    ("limit", "status", "message"),
    [
        ("mean-set.AP=0.5", 0, ""),
        ("0.5", 0, ""),
        ("AP=0.51", 1, "AP 0.5017, required >= 0.51"),
        ("mean-set.AP=0.51", 1, "mean-set.AP 0.5017, required >= 0.51"),
        ("min-set.AP50=0.1", 1, "min-set.AP50 (none) 0.0000, required >= 0.1"),
        ("set:half.AP50=0.5", 0, ""),
        ("set:half.AP50=0.6", 1, "set:half.AP50 0.5050, required >= 0.6"),
        ("set:half.AP90=0.6", 1, "set:half.AP90 0.5050, required >= 0.6"),
        ("mean-set.AP90=0.6", 1, "mean-set.AP90 0.5017, required >= 0.6"),
        ("set:*.AP=0.6", 1, "set:none.AP 0.0000, required >= 0.6"),
        ("set:hlf.AP=0.6", 2, "unknown set 'hlf'; did you mean 'half'?"),
        ("mean-set.APP=0.6", 2, "unknown metric 'mean-set.APP'"),
        ("set:half.APP=0.6", 2, "unknown set metric 'APP'"),
        ("mean-set.MR-2=0.6", 2, "lower is better"),
        ("class:cat.AP=0.6", 2, "unknown metric 'class:cat.AP'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_gates(detap: Run, limit: str, status: int, message: str) -> None:
    ended = detap(*CALL, "--fail-under", limit)
    assert ended.status == status, ended.err
    assert message in ended.err


@pytest.mark.usefixtures("folder")
def test_drops_from_an_earlier_report(detap: Run) -> None:
    before, _ = report(detap, *CALL)
    Path("base.json").write_text(json.dumps(before))
    drop = ("--baseline", "base.json", "--max-drop", "mean-set.AP=0.1")
    assert detap(*CALL, *drop, "--max-drop", "set:*.AP=0.1", "--max-drop", "AP=0").status == 0
    write_set(Path("data/new"), 10, 0)
    Path("data/new/dt.json").rename("data/all/dt.json")
    ended = detap(*CALL, *drop, "--max-drop", "set:*.AP=0.1")
    assert ended.status == 1
    assert "gate failed: mean-set.AP dropped by 0.3333 (0.5017 to 0.1683)" in ended.err
    assert "gate failed: set:all.AP dropped by 1.0000" in ended.err
    Path("data/sets.toml").write_text(FILE.partition("[none]")[0])
    assert "is not comparable: ground truth: sha256" in detap(*CALL, *drop).err


def test_the_interval_of_the_mean(folder: Path) -> None:
    """Data set i is drawn with seed + i, independently; the mean is of each draw."""
    del folder
    for name, detected in (("a", 40), ("b", 20)):
        write_set(Path("data") / name, 60, detected)
    results = evaluated("a", "b")
    ours = data_sets(results, confidence=0.9, resamples=300, seed=5)
    draws = [
        resampled(result, leave_out(draw_weights(60, 300, 5 + i)), ["AR100"])
        for i, result in enumerate(results.values())
    ]
    first, second = (one.of("AR100") for one in draws)
    both = [first.left_out + 1 / 3, second.left_out + 2 / 3]  # the other set is whole
    means = Draws((first.drawn + second.drawn) / 2, np.concatenate(both) / 2)
    expected = means.interval(0.9)
    assert ours.interval("AR100") == pytest.approx(expected, abs=1e-12)
    assert (
        ours.interval("AR100", "a")
        == results["a"].intervals(0.9, resamples=300, seed=5).summary["AR100"]
    )
    # Standard errors: sqrt(2/9 / 60) and half of sqrt(2) times that, as the draws are independent.
    low, high = ours.interval("AR100", "a")
    mean_low, mean_high = ours.interval("AR100")
    assert (mean_high - mean_low) / (high - low) == pytest.approx(2**-0.5, abs=0.1)


@pytest.mark.usefixtures("folder")
def test_intervals_in_the_report(detap: Run) -> None:
    record, ended = report(
        detap,
        *(*CALL, "--confidence", "0.95", "--min-ground-truths", "10", "-o", "r.csv"),
        *("--fail-under", "mean-set.AP=0.4", "--fail-under", "set:half.AP90=0.4"),
    )
    assert record["intervals"]["data_sets"]["none"]["AP"] == [0, 0]
    low, high = record["intervals"]["summary"]["AP"]
    assert low < MEAN < high
    gates = {check["name"]: check for check in record["gates"]["checks"]}
    assert gates["mean-set.AP"]["interval"] == [low, high]
    assert re.search(r"95% CI \[.*\] contains the limit", gates["set:half.AP90"]["message"])
    assert re.search(r"^data set +group +AP +CI low +CI high ", ended.out, re.MULTILINE)
    assert "95% CI: bootstrap, 1,000 resamples of the images of each data set" in ended.out
    assert "AP_low" not in record["data_sets"][0]
    with Path("r.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert float(rows[1]["AP50_low"]) < HALF < float(rows[1]["AP50_high"])
    few, _ = report(detap, *CALL, "--confidence", "0.95", "--fail-under", "set:half.AP=0.1")
    assert few["gates"]["checks"][0]["message"] == f"set:half.AP {HALF:.4f}, required >= 0.1"
    assert few["intervals"]["data_sets"]["half"]["AP"] == [None, None]  # 10 cats
    assert few["intervals"]["summary"]["AP"] == [low, high]  # 30 cats


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--errors"], "--errors does not apply to --data-sets"),
        (["--slices", "x.json"], "--slices does not apply to --data-sets"),
        (["--images", "1"], "--images does not apply to --data-sets"),
        (["--baseline-detections", "x"], "--baseline-detections does not apply to --data-sets"),
        (["--gt", "x.json"], "--gt does not apply to --data-sets"),
        (["gt.json", "dt.json"], "--gt does not apply to --data-sets"),
        (["-o", "x.html"], "a report of data sets has no HTML page; use json or markdown"),
        (["--data-sets", "x.json"], "--data-sets takes one TOML file, or JSON reports"),
        (["--max-drop", "0"], "--max-drop requires --baseline"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_options_that_do_not_apply(detap: Run, arguments: list[str], message: str) -> None:
    assert f"Error: {message}" in detap(*CALL, *arguments).refused()


def test_allow_missing_requires_data_sets(detap: Run) -> None:
    ended = detap("eval", "gt.json", "dt.json", "--allow-missing")
    assert ended.err == "Error: --allow-missing requires --data-sets\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--data-sets: the file has no data set; add [NAME] and give gt and dt, or report"),
        ("[a", "data/sets.toml: is not TOML: "),
        ("gt = 'x'", "data/sets.toml: 'gt' is not a table"),
        ("[a]\ngt = 'x'", "data/sets.toml: [a]: no dt; give gt and dt, or report"),
        ("[a]\ngtt = 'x'", "data/sets.toml: [a]: unknown setting 'gtt'; did you mean gt?"),
        ("[a]\nprotocol = 'coco'", "data/sets.toml: [a]: unknown setting 'protocol'"),
        ("[a]\nreport = 'x'\ngt = 'y'", "data/sets.toml: [a]: report excludes gt"),
        ("['']\nreport = 'x'", "data/sets.toml: a data set has no name"),
        ("[a]\ngt = 1.5\ndt = []", "data/sets.toml: [a]: no dt; give gt and dt, or report"),
        ("[a]\nreport = 'x.json'", "data/x.json: data set 'a': no such file or directory"),
        ("[a]\nreport = 'all/gt.json'", "data/all/gt.json: not a detap report"),
        (
            "[a]\ngt = 'all/gt.json'\ndt = 'all/dt.json'\nformat = 'coca'",
            "data/sets.toml: [a]: format: 'coca' is not one of",
        ),
        (
            "[a]\ngt = 'all/gt.json'\ndt = 'all/dt.json'\nimages = '77'",
            "data/sets.toml: [a]: ",
        ),
    ],
)
@pytest.mark.usefixtures("folder")
def test_errors_in_the_file(detap: Run, text: str, message: str) -> None:
    Path("data/sets.toml").write_text(text)
    assert detap(*CALL).refused().startswith(f"Error: {message}")


@pytest.mark.usefixtures("folder")
def test_reports_of_one_name_or_another_kind(detap: Run) -> None:
    write_reports(detap)
    Path("more").mkdir()
    Path("more/all.json").write_text(Path("reports/all.json").read_text())
    ended = detap("eval", "--data-sets", "reports", "--data-sets", "more")
    assert ended.err == (
        "Error: --data-sets: more/all.json and reports/all.json have one name, 'all'; rename a "
        "file, or name the data sets in a TOML file\n"
    )
    report(detap, *CALL)
    ended = detap("eval", "--data-sets", "r.json")
    assert ended.err == (
        "Error: r.json: a report of kind data sets; use the JSON report of detap eval\n"
    )


@pytest.mark.usefixtures("folder")
def test_settings_of_a_set_and_of_all(detap: Run) -> None:
    """Images are chosen per data set; the protocol is common."""
    Path("data/sets.toml").write_text(f"{FILE}images = ['1', '2']\n")
    record, _ = report(detap, *CALL, "--protocol", "voc2012")
    assert record["data_sets"][2]["images"] == 2
    assert record["protocol"]["name"] == "voc2012"
    assert next(iter(record["summary"])) == "mAP"
    assert record["summary"]["mAP"] == pytest.approx(0.5)  # all points: 1, 0.5 and 0
    Path("detap.toml").write_text('gt = "x.json"\ndt = "y.json"\nerrors = true\niou = 0.5\n')
    record, _ = report(detap, *CALL)
    assert record["protocol"]["iou_thresholds"] == [0.5]


@pytest.mark.usefixtures("folder")
def test_a_metric_where_lower_is_better(detap: Run) -> None:
    record, _ = report(detap, *CALL, "--metrics", "MR-2")
    rates = [row["MR-2"] for row in record["data_sets"]]
    assert rates == pytest.approx([0, 0.5, 1])
    assert record["summary"]["MR-2"] == pytest.approx(0.5)
    assert detap(*CALL, "--metrics", "MR-2", "--fail-over", "mean-set.MR-2=0.6").status == 0
    assert detap(*CALL, "--metrics", "MR-2", "--fail-over", "set:none.MR-2=0.6").status == 1
    ended = detap(*CALL, "--fail-over", "max-set.MR-2=0.6")
    assert "gate failed: max-set.MR-2 (none) 1.0000, required <= 0.6" in ended.err
    assert detap(*CALL, "--fail-under", "mean-set.recall@fppi=0.1=0.4").status == 0
    assert detap(*CALL, "--fail-under", "set:half.recall@fppi=0.1=0.6").status == 1
    results = {
        name: evaluate(
            f"data/{name}/gt.json",
            f"data/{name}/dt.json",
            replace(protocol("coco"), metrics=("MR-2",)),
        )
        for name in ("all", "none")
    }
    assert data_sets(results).mean("MR-2") == pytest.approx(0.5)


REAL = """
[coco-val2014-100]
gt = "coco-val2014-100/instances_val2014_100.json"
dt = "coco-val2014-100/instances_val2014_fakebbox100_results.json"
[voc-100]
gt = "voc-100/gt/coco_v1/instances_default.json"
dt = "voc-100/dt/coco_aligned_to_gt_v1.json"
[cartucho-85]
gt = "cartucho-85/groundtruths_coco.json"
dt = "cartucho-85/detections_coco.json"
"""


def test_real_data_sets(detap: Run, tmp_path: Path, real_data: Path) -> None:
    """The expected means are of pycocotools' values."""
    path = real_data / "measures" / "sets_expected.json"
    if not path.exists():
        pytest.skip(f"no {path.name} in the real data")
    expected = json.loads(path.read_text())
    (tmp_path / "sets.toml").write_text(re.sub(r'= "', f'= "{real_data}/', REAL).replace("\\", "/"))
    ended = detap("eval", "--data-sets", tmp_path / "sets.toml", "-o", tmp_path / "r.json")
    assert ended.status == 0, ended.err
    record = json.loads((tmp_path / "r.json").read_text())
    assert {row["name"]: row["AP"] for row in record["data_sets"]} == pytest.approx(
        expected["AP"], abs=1e-12
    )
    ap = record["statistics"]["AP"]
    values = (ap["mean"], ap["median"], ap["minimum"]["value"])
    reference = (expected["mean"], expected["median"], expected["minimum"][1])
    assert values == pytest.approx(reference, abs=1e-12)
    assert ap["minimum"]["data_set"] == expected["minimum"][0]
