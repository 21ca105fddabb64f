"""``detap baseline``: stored metrics rise, and fall only on request."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from detap.analysis.recorded import reading_differences
from detap.errors import InputError
from detap.gates.baseline import (
    differences,
    raise_baseline,
    read_baseline,
    slice_differences,
)
from detap.report import schema
from tests.cli.conftest import Files, Run, instances, results, write_coco


@pytest.fixture
def reports(cwd: Path, detap: Run) -> Path:
    """Write the reports of three detectors: good, without the dog, without the cat."""
    write_coco(cwd)
    for name, label in (("good", 0), ("no-dog", 2), ("no-cat", 1)):
        kept = [detection for detection in results() if detection["category_id"] != label]
        (cwd / "dt.json").write_text(json.dumps(kept))
        call = ("eval", "--gt", "instances.json", "--dt", "dt.json", "-q", "-o", f"{name}.json")
        assert detap(*call).status == 0
    return cwd


def load(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def ap_of(record: dict[str, Any]) -> dict[str, float]:
    return {row["name"]: row["AP"] for row in record["classes"]}


def test_a_first_report_becomes_the_baseline(reports: Path, detap: Run) -> None:
    ended = detap("baseline", "update", "base.json", "good.json")
    assert (ended.status, ended.out) == (0, "base.json is new\n")
    assert load(reports / "base.json") == load(reports / "good.json")


def test_each_metric_rises_separately_and_none_falls(reports: Path, detap: Run) -> None:
    detap("baseline", "update", "base.json", "no-dog.json")
    before = load(reports / "base.json")
    ended = detap("baseline", "update", "base.json", "no-cat.json").passed()
    record = load(reports / "base.json")
    then, now = load(reports / "no-dog.json"), load(reports / "no-cat.json")
    for name, value in record["summary"].items():
        pair = [other["summary"][name] for other in (then, now)]
        assert value == max((number for number in pair if number is not None), default=None)
    assert ap_of(record)["dog"] == ap_of(now)["dog"] > ap_of(then)["dog"]
    assert ap_of(record)["cat"] == ap_of(then)["cat"] > ap_of(now)["cat"]
    assert "class:cat.AP" in record["retained_metrics"]
    assert "class:dog.AP: 0.0 -> 0.9999999999999998 (+1.0000)" in ended.out
    assert "numbers are lower in the new report; the baseline keeps its own" in ended.out
    assert (
        before["classes"][0]["detections"] != record["classes"][0]["detections"]
    )  # counts are new
    Draft202012Validator(schema()).validate(record)


def test_a_raised_baseline_is_a_baseline(reports: Path, detap: Run) -> None:
    for name in ("no-dog.json", "no-cat.json"):
        detap("baseline", "update", "base.json", name)
    (reports / "dt.json").write_text(json.dumps(results()))
    call = ("eval", "--gt", "instances.json", "--dt", "dt.json", "--baseline", "base.json")
    assert detap(*call, "--max-drop", "class:*.AP=0").status == 0
    kept = [detection for detection in results() if detection["category_id"] != 1]
    (reports / "dt.json").write_text(json.dumps(kept))
    assert detap(*call, "--max-drop", "class:*.AP=0").status == 1


def test_a_fall_needs_allow_drop(reports: Path, detap: Run) -> None:
    detap("baseline", "update", "base.json", "good.json")
    same = (reports / "base.json").read_bytes()
    ended = detap("baseline", "update", "base.json", "good.json")
    assert ended.out == "nothing changed\n"
    ended = detap("baseline", "update", "base.json", "no-dog.json")
    assert ended.out.startswith("no number rose\n")
    assert ap_of(load(reports / "base.json"))["dog"] > 0.9
    ended = detap("baseline", "update", "base.json", "no-dog.json", "--allow-drop", "--dry-run")
    assert "class:dog.AP: 0.9999999999999998 -> 0.0 (-1.0000)" in ended.out
    assert ap_of(load(reports / "base.json"))["dog"] > 0.9
    detap("baseline", "update", "base.json", "no-dog.json", "--allow-drop")
    assert ap_of(load(reports / "base.json"))["dog"] == 0
    assert same != (reports / "base.json").read_bytes()


def test_another_ground_truth_is_rejected_unless_allowed(reports: Path, detap: Run) -> None:
    detap("baseline", "update", "base.json", "good.json")
    truth = instances()
    truth["annotations"][0]["bbox"] = [0, 0, 99, 100]
    (reports / "instances.json").write_text(json.dumps(truth))
    detap("eval", "--gt", "instances.json", "--dt", "dt.json", "-q", "-o", "other.json")
    said = detap("baseline", "update", "base.json", "other.json").refused()
    assert "ground truth: sha256" in said
    assert load(reports / "base.json") == load(reports / "good.json")
    ended = detap("baseline", "update", "base.json", "other.json", "--allow-mismatch")
    assert ended.out == "replaced: the new report is of another ground truth or protocol\n"
    assert load(reports / "base.json") == load(reports / "other.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a JSON report"),
        ("[]", "not a detap report"),
        ("{}", "not a detap report"),
        ('{"schema_version": 1}', "schema version 1, expected 2; regenerate it with this version"),
        ('{"schema_version": 2, "kind": "detection"}', "missing or invalid values"),
        ('{"schema_version": 2, "summary": {"AP": NaN}}', "NaN is not valid JSON"),
        ("[" * 100_000, "not a JSON report"),
    ],
)
def test_a_file_that_is_not_a_report_is_rejected(
    reports: Path, detap: Run, content: str, message: str
) -> None:
    (reports / "bad.json").write_text(content)
    for call in (("base.json", "bad.json"), ("bad.json", "good.json")):
        said = detap("baseline", "update", *call).refused()
        assert "bad.json" in said
        assert message in said
    assert (reports / "bad.json").read_text() == content


def test_a_baseline_may_not_be_a_pipe_or_the_report(reports: Path, detap: Run) -> None:
    assert detap("baseline", "update", "-", "good.json").status == 2
    assert detap("baseline", "update", "good.json", "good.json").status == 2


# --- may two reports be compared, without any file


def record(**changes: Any) -> dict[str, Any]:
    plain = {
        "kind": "detection",
        "protocol": {"name": "coco", "tie_break": "image"},
        "inputs": [
            {"role": "ground_truth", "sha256": "a" * 64},
            {"role": "detections", "sha256": "b" * 64},
        ],
        "summary": {"AP": 0.5, "APs": None},
        "classes": [{"name": "cat", "id": 1, "AP": 0.5, "false_positives": 3}],
    }
    return {**plain, **changes}


def inputs(digest: str | None, role: str = "ground_truth") -> list[dict[str, Any]]:
    return [{"role": role, "sha256": digest}]


POINT = {"score_threshold": 0.5, "overall": {"F1": 0.5}, "classes": [{"name": "cat", "F1": 0.5}]}
NIGHT = {
    "images": 2,
    "images_sha256": "c" * 64,
    "summary": {"AP": 0.5},
    "classes": [{"name": "cat", "AP": 0.5}],
}
CHOSEN = {"classes": ["cat"], "images": 1, "images_sha256": "d" * 64}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"detap_version": "0.1.0", "signature": "protocol:coco"},
        {"kind": "retrieval", "queries": []},
        {"summary": {"AP": None}},
        {"classes": [{"name": "cat", "id": "c", "AP": None}]},
        {"inputs": [{"role": "detections", "path": "a", "sha256": None, "records": 0, "files": 1}]},
        {"gates": None},
        {"gates": {"passed": True, "warned": 0}},
        {"selection": None},
        {"selection": {}},
        {"selection": CHOSEN},
        {"retained_metrics": ["AP"]},
        {"slices": {"night": NIGHT}},
        {"operating_point": POINT},
        {"operating_point": {**POINT, "score_threshold": None}},
    ],
)
def test_a_report_is_read_as_written(tmp_path: Path, changes: dict[str, Any]) -> None:
    path, written = tmp_path / "r.json", record(schema_version=2, **changes)
    path.write_text(json.dumps(written))
    assert read_baseline(str(path)) == written


INVALID: dict[str, list[Any]] = {
    "kind": ["other", None, "retrieval"],  # the last is without queries
    "detap_version": [1],
    "signature": [None],
    "protocol": ["coco"],
    "summary": [None, [], {}, {"AP": "0.5"}, {"AP": True}, {"AP": 10**400}, {"AP": []}],
    "classes": [None, {}, [1], [{"AP": 0.5}], [{"name": 1}], [{"name": "cat", "AP": "x"}]],
    "inputs": [
        *(None, {}, [None], [[]], [{"records": 1 << 62}]),
        *([{name: 1}] for name in ("role", "path", "sha256")),
        *([{name: count}] for name in ("records", "files") for count in (-1, True, "1", 1.5)),
    ],
    "gates": [
        *([], True, {}),
        *({"passed": True, "warned": value} for value in (-1, None, True)),
        *({"passed": value, "warned": 0} for value in (None, "no", 1)),
    ],
    "selection": [
        *([], 1, {"classes": "cat"}, {"classes": [1]}),
        *({"images": -1}, {"images": "1"}, {"images_sha256": 1}),
    ],
    "retained_metrics": [None, "AP", [1]],
    "slices": [None, [], {"night": None}, *({"night": {**NIGHT, name: -1}} for name in NIGHT)],
    "operating_point": [None, [], {}, *({**POINT, name: "x"} for name in POINT)],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in INVALID.items() for value in values],
)
def test_a_report_with_an_invalid_value_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**record(schema_version=2), name: value}))
    with pytest.raises(InputError, match="report with missing or invalid values"):
        read_baseline(str(path))


TIES = {"protocol": {"name": "coco", "tie_break": "file"}}
NO_TIES = {"protocol": {"name": "coco"}}  # as a report that does not know the axis
BY_FILE = 'protocol: tie break (baseline: "image"; current: "file")'
BY_IMAGE = 'protocol: tie break (baseline: "file"; current: "image")'


@pytest.mark.parametrize(
    ("now", "then", "message"),
    [
        ({}, {}, None),
        ({"inputs": inputs("a" * 64)}, {}, None),  # what the detections are is no matter
        ({"inputs": inputs("c" * 64)}, {}, "ground truth: sha256 (baseline: aaaaaaaaaaaa...; c"),
        ({"inputs": inputs(None)}, {}, "ground truth: no sha256 in the current report"),
        ({}, {"inputs": inputs(None)}, "ground truth: no sha256 in the baseline"),
        # Nothing says that the two are of one ground truth.
        (
            {"inputs": inputs(None)},
            {"inputs": inputs(None)},
            "ground truth: no sha256 in the baseline",
        ),
        ({"inputs": []}, {"inputs": []}, "ground truth: no sha256 in the baseline"),
        ({"inputs": []}, {}, "ground truth: no sha256 in the current report"),
        ({"kind": "retrieval"}, {}, "kind (baseline: detection; current: retrieval)"),
        (TIES, {}, BY_FILE),
        (NO_TIES, {}, BY_FILE),  # it is as by default
        ({}, NO_TIES, BY_IMAGE),
        ({"protocol": {"name": "coco", "tie_break": "image", "min_score": None}}, {}, None),
        (
            {"protocol": {"name": "coco", "tie_break": "image", "iou_thresholds": [0.3]}},
            {},
            "protocol: iou thresholds (baseline: [0.5]; current: [0.3])",
        ),
        # Signatures name the protocols, without selection and version; equal ones do not.
        (
            {
                "protocol": {"name": "voc2012", "tie_break": "file"},
                "signature": "protocol:voc2012|images:1-of-2-6b86b273|tie-break:file|detap:0.2",
            },
            {"signature": "protocol:coco|detap:0.1"},
            "protocol (baseline: coco; current: voc2012|tie-break:file)",
        ),
        (
            {"protocol": {"tie_break": "file"}, "signature": "protocol:coco|detap:0.2"},
            {"signature": "protocol:coco|detap:0.1"},
            BY_FILE,
        ),
        (
            {"selection": {"signature": ["images:1-of-2-6b86b273"]}},
            {},
            "selection (baseline: all classes and images; current: images:1-of-2-6b86b273)",
        ),
        (
            {},
            {"selection": {"signature": ["classes:1-of-2-6b86b273"]}},
            "selection (baseline: classes:1-of-2-6b86b273; current: all classes and images)",
        ),
        (
            {"selection": {"images": 1}},
            {"selection": {"images": 2}},
            'selection (baseline: without a signature, {"images": 2}; current',
        ),
    ],
)
def test_differences_of_two_reports(now: Any, then: Any, message: str | None) -> None:
    differing = differences(record(**now), record(**then))
    assert len(differing) == (message is not None)
    if message is not None:
        assert differing[0].startswith(message)


def test_slices_are_equal_if_they_have_the_same_images() -> None:
    def night(digest: str | None, images: int) -> dict[str, Any]:
        return record(slices={"night": {"images": images, "images_sha256": digest}})

    assert slice_differences(night("a", 2), night("a", 2), ["night"]) == []
    assert slice_differences(night("a", 2), night("b", 2), []) == []
    assert slice_differences(night("a", 2), night("b", 3), ["night"]) == [
        "slice 'night': different images (baseline: 3; current: 2)"
    ]
    for now, then in ((None, "a"), ("a", None), (None, None)):
        assert slice_differences(night(now, 2), night(then, 2), ["night"]) == [
            "slice 'night': no sha256 of its images"
        ]


def rows(ap: float | None, positives: int = 3, **more: Any) -> dict[str, Any]:
    row = {"name": "cat", "id": 1, "AP": ap, "false_positives": positives, **more}
    return record(summary={"AP": ap}, classes=[row])


@pytest.mark.parametrize(
    ("old", "new", "kept", "changes"),
    [
        (0.5, 0.6, 0.6, [("AP", 0.5, 0.6), ("class:cat.AP", 0.5, 0.6)]),
        (0.5, 0.4, 0.5, []),
        (0.5, None, 0.5, []),
        (0.5, 0.5, 0.5, []),
        # Rounding neither rises nor falls; what is kept is the larger.
        (0.5, 0.5 - 2**-54, 0.5, []),
        (0.5, 0.5 + 2**-53, 0.5 + 2**-53, []),
    ],
)
def test_raising_a_baseline(old: float, new: float | None, kept: float, changes: list[Any]) -> None:
    before, after = rows(old, positives=3), rows(new, positives=9)
    raised, raises = raise_baseline(before, after)
    assert raised["summary"] == {"AP": kept}
    assert raised["classes"][0]["AP"] == kept
    assert raised["classes"][0]["false_positives"] == 9  # counts are today's
    assert raises == changes
    fell = new is None or new < old - 1e-12
    assert raised.get("retained_metrics", []) == (["AP", "class:cat.AP"] if fell else [])
    raised, raises = raise_baseline(before, after, allow_drop=True)
    assert raised["summary"] == {"AP": new}
    assert bool(raises) == (fell or bool(changes))


def test_raising_the_metrics_of_a_slice() -> None:
    before = {**rows(0.5), "slices": {"night": rows(0.5), "day": rows(0.5)}}
    after = {**rows(0.6), "slices": {"night": rows(0.4), "fog": rows(0.1)}}
    raised, raises = raise_baseline(before, after)
    assert raised["slices"]["night"]["summary"] == {"AP": 0.5}
    assert raised["slices"]["fog"]["summary"] == {"AP": 0.1}
    assert raised["retained_metrics"] == ["slice:night.AP", "slice:night.class:cat.AP"]
    assert [name for name, _, _ in raises] == ["AP", "class:cat.AP"]
    # Those of the new report, itself a baseline, are not those of this one.
    again, _ = raise_baseline(rows(0.5), {**rows(0.6), "retained_metrics": ["AP"]})
    assert "retained_metrics" not in again


def test_classes_are_matched_by_name_and_id() -> None:
    before = record(classes=[{"name": "cat", "id": 2, "AP": 0.9}])
    raised, _ = raise_baseline(before, rows(0.1))
    assert raised["classes"][0]["AP"] == 0.1


def at_threshold(score: float | None, recall: float, fppi: float = 1.0) -> dict[str, Any]:
    overall = {"recall": recall, "score": score, "false-positives-per-image": fppi}
    return {"score_threshold": score, "overall": overall, "classes": [{"name": "cat", **overall}]}


def test_raising_metrics_at_a_score_threshold() -> None:
    before = {**rows(0.5), "operating_point": at_threshold(0.3, 0.9)}
    after = {**rows(0.5), "operating_point": at_threshold(0.3, 0.8)}
    raised, raises = raise_baseline(before, after)
    assert raised["operating_point"] == at_threshold(0.3, 0.9)
    assert (raised["retained_metrics"], raises) == (["recall", "class:cat.recall"], [])
    # False positives are today's, as counts are: fewer with fewer detections.
    more = {**rows(0.5), "operating_point": at_threshold(0.3, 0.9, 2.0)}
    assert raise_baseline(before, more) == (more, [])
    # At another threshold, or where one report has none, they are as they are.
    other = {**rows(0.5), "operating_point": at_threshold(0.4, 0.8)}
    assert raise_baseline(before, other) == (other, [])
    assert raise_baseline(rows(0.5), after) == (after, [])
    assert raise_baseline(before, rows(0.5)) == (rows(0.5), [])


@pytest.mark.parametrize("name", ["class:cat.AP", "class:*.AP", "slice:all.class:cat.AP"])
def test_classes_with_shifted_ids_are_matched_by_name(
    coco: Files, detap: Run, tmp_path: Path, name: str
) -> None:
    tags = tmp_path / "tags.json"
    tags.write_text('{"all": [1, 2]}')
    slices = ["--slices", str(tags)]
    base = tmp_path / "base.json"
    assert detap(*coco.arguments, *slices, "-o", base).status == 0
    for path in (coco.gt, coco.dt):
        record = json.loads(path.read_text())
        rows = record if isinstance(record, list) else record["annotations"]
        for row in rows:
            row["category_id"] += 90
        for category in [] if isinstance(record, list) else record["categories"]:
            category["id"] += 90
        path.write_text(json.dumps(record))
    call = [*coco.arguments, *slices, "--baseline", base, "--allow-mismatch"]
    checks = detap(*call, "--max-drop", f"{name}=0", "--output-format", "json").report()["gates"][
        "checks"
    ]
    # Of two cats one is found first: 51 of 101 levels.
    cat = next(check for check in checks if "class:cat" in check["name"])
    assert (cat["baseline"], cat["drop"]) == (pytest.approx(51 / 101), 0)


def of_class(folder: Path, number: int) -> Path:
    """Write the good report with an AP of 1 for one class of six, and 0 for the others."""
    record = load(folder / "good.json")
    row = record["classes"][0]
    record["classes"] = [
        {**row, "name": f"c{index}", "id": index, "AP": float(index == number)}
        for index in range(6)
    ]
    path = folder / f"r{number}.json"
    path.write_text(json.dumps(record))
    return path


def updating(folder: Path, number: int) -> subprocess.Popen[bytes]:
    """Start a process that updates the baseline from a report."""
    command = [sys.executable, "-m", "detap", "baseline", "update", "base.json"]
    return subprocess.Popen(
        [*command, of_class(folder, number)], cwd=folder, stdout=subprocess.DEVNULL
    )


def test_concurrent_updates_keep_every_raise(reports: Path) -> None:
    running = [updating(reports, number) for number in range(6)]
    assert [process.wait(timeout=60) for process in running] == [0] * 6
    assert ap_of(load(reports / "base.json")) == {f"c{number}": 1.0 for number in range(6)}


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no locks on Windows")
def test_an_update_waits_for_another(reports: Path) -> None:
    import fcntl

    base = reports / "base.json"
    base.write_bytes(of_class(reports, 0).read_bytes())
    folder = os.open(reports, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    process = updating(reports, 1)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=2)
    base.write_bytes(of_class(reports, 2).read_bytes())
    os.close(folder)
    assert process.wait(timeout=60) == 0
    assert ap_of(load(base)) == {f"c{number}": float(number in (1, 2)) for number in range(6)}


def test_reading_options_that_differ() -> None:
    """Values of several inputs are joined; `as_is` changes no result."""

    def read_with(*options: dict[str, Any] | None) -> dict[str, Any]:
        return {"inputs": [{"reading": given} for given in options]}

    now = read_with(
        {"gt_boxes": "xyxy", "as_is": True}, {"gt_boxes": "xywh", "label_base": 1}, None
    )
    then = read_with({"gt_boxes": "xyxy", "label_base": 1, "image_sizes": "a.csv"})
    assert reading_differences(now, now) == reading_differences(then, then) == []
    assert reading_differences(now, then) == [
        "--gt-boxes (baseline: xyxy; current: xywh, xyxy)",
        "--image-sizes (baseline: a.csv; current: not given)",
    ]
    assert reading_differences(then, now) == [
        "--gt-boxes (baseline: xywh, xyxy; current: xyxy)",
        "--image-sizes (baseline: not given; current: a.csv)",
    ]
    one, two = (
        record(selection={"signature": parts}) for parts in (["a:1-of-2", "b:1-of-3"], ["a:1-of-2"])
    )
    assert differences(one, two) == ["selection (baseline: a:1-of-2; current: a:1-of-2 b:1-of-3)"]
