"""action.yml: its steps run as GitHub would run them, with a local server as API."""

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from detap import __version__
from docs.release import values
from tests.coco import results_of, truth_of
from tests.conftest import ROOT
from tests.processes import finished

yaml = pytest.importorskip("yaml", reason="PyYAML is absent: pip install 'detap[around]'")

ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
WORKFLOWS = [
    *sorted((ROOT / ".github" / "workflows").glob("*.yml")),
    *sorted((ROOT / "examples" / "ci").glob("github*.yml")),
]
MARK = "<!-- detap: detap -->"


class Api(BaseHTTPRequestHandler):
    """The part of GitHub's API that comments need."""

    server: "Service"

    def _answer(self, status: int, content: object) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _take(self) -> str:
        self.server.asked.append(f"{self.command} {self.path}")
        assert self.headers["Authorization"] == "Bearer secret"
        length = int(self.headers["Content-Length"] or 0)
        return str(json.loads(self.rfile.read(length) or b"{}").get("body"))

    def do_GET(self) -> None:
        self._take()
        parts = urlsplit(self.path)
        if parts.path == "/user":
            self._answer(*self.server.user)
            return
        assert parts.path == "/repos/us/ours/issues/7/comments"
        query = {name: int(values[0]) for name, values in parse_qs(parts.query).items()}
        first = (query["page"] - 1) * query["per_page"]
        self._answer(200, self.server.comments[first : first + query["per_page"]])

    def do_POST(self) -> None:
        body = self._take()
        assert self.path == "/repos/us/ours/issues/7/comments"
        if self.server.forbidden:
            self._answer(403, {"message": "Resource not accessible by integration"})
            return
        self.server.comments.append(comment(len(self.server.comments), body))
        self._answer(201, self.server.comments[-1])

    def do_PATCH(self) -> None:
        body = self._take()
        number = int(self.path.removeprefix("/repos/us/ours/issues/comments/"))
        self.server.comments[number]["body"] = body
        self._answer(200, self.server.comments[number])

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def comment(number: int, body: str, login: str = "github-actions[bot]") -> dict[str, Any]:
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"id": number, "body": body, "user": {"login": login, "type": kind}}


class Service(ThreadingHTTPServer):
    """A fake of GitHub's API and its recorded requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Api)
        self.comments: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.forbidden = False
        self.user: tuple[int, dict[str, str]] = (403, {})


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@dataclass
class Runner:
    """A job runner: a folder, its environment, and the outputs of its steps."""

    folder: Path
    service: Service
    event: Mapping[str, Any] = field(default_factory=lambda: {"pull_request": {"number": 7}})
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    uploaded: list[dict[str, str]] = field(default_factory=list)
    log: str = ""

    @property
    def summary(self) -> str:
        return (self.folder / "step-summary.md").read_text("utf-8")

    def run(self, **inputs: str) -> int:
        """Run the action with these inputs; return the exit status of the job."""
        taken = {name: str(entry["default"]) for name, entry in ACTION["inputs"].items()}
        taken |= {"token": "secret", **{name.replace("_", "-"): v for name, v in inputs.items()}}
        self.outputs, self.uploaded, worst = {}, [], 0
        (self.folder / "step-summary.md").write_text("")
        for step in STEPS:
            if step.get("id") == "install":  # see test_the_action_installs_...
                self.outputs["install"] = {"python": sys.executable}
            elif worst and "if" not in step:
                continue  # one that has failed ends the job, but for those that ask
            elif self._holds(step.get("if", "${{ true }}"), taken):
                worst = self._step(step, taken) or worst
        return worst

    def _value(self, expression: str, inputs: Mapping[str, str]) -> str:
        kind, _, name = expression.partition(".")
        if kind == "inputs":
            return inputs[name]
        step = re.fullmatch(r"steps\.(\w+)\.outputs\.(\w+)", expression)
        assert step is not None, expression
        return self.outputs.get(step[1], {}).get(step[2], "")

    def _holds(self, condition: str, inputs: Mapping[str, str]) -> bool:
        (expression,) = EXPRESSION.findall(condition)
        for part in expression.split(" && "):
            if part in ("true", "!cancelled()"):
                continue
            match = re.fullmatch(r"(\S+) (==|!=) '(\w*)'", part)
            assert match is not None, part
            if (self._value(match[1], inputs) == match[3]) != (match[2] == "=="):
                return False
        return True

    def _filled(self, text: str, inputs: Mapping[str, str]) -> str:
        return EXPRESSION.sub(lambda match: self._value(match[1], inputs), text)

    def _step(self, step: Mapping[str, Any], inputs: Mapping[str, str]) -> int:
        if "uses" in step:
            filled = {name: self._filled(v, inputs) for name, v in step["with"].items()}
            if "upload" in step["uses"]:
                self.uploaded.append(filled)
            return 0
        output = self.folder / "outputs"
        output.write_text("")
        ended = finished(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            None,
            cwd=self.folder / self._filled(step.get("working-directory", "."), inputs),
            env={
                **{name: v for name, v in os.environ.items() if not name.startswith("GITHUB_")},
                **self._environment(output),
                **{name: self._filled(v, inputs) for name, v in step["env"].items()},
            },
            encoding="utf-8",
            timeout=120,
        )
        self.log += ended.stdout + ended.stderr
        outputs = re.findall(r"^(\w+)<<(\w+)\n(.*?)\n\2$", output.read_text("utf-8"), re.M | re.S)
        self.outputs[step["id"]] = {name: value for name, _, value in outputs}
        return ended.returncode

    def _environment(self, output: Path) -> dict[str, str]:
        event = self.folder / "event.json"
        event.write_text(json.dumps(self.event))
        host, port = self.service.server_address[:2]
        return {
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.folder / "step-summary.md"),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_API_URL": f"http://{host!s}:{port}",
            "GITHUB_SERVER_URL": "https://service.example",
            "GITHUB_REPOSITORY": "us/ours",
            "GITHUB_RUN_ID": "99",
            "RUNNER_TEMP": str(self.folder),
        }


@pytest.fixture
def runner(tmp_path: Path, service: Service) -> Runner:
    folder = shutil.copytree(ROOT / "fixtures" / "quickstart" / "coco", tmp_path / "work place")
    return Runner(Path(folder), service)


GIVEN = {"gt": "instances.json", "dt": "results.json", "page": "false"}


def test_a_detector_that_passes(runner: Runner) -> None:
    assert runner.run(**GIVEN, fail_under="AP50=0.85\nmin-class.AP=0.4\n") == 0
    outputs = runner.outputs["evaluate"]
    assert outputs["status"] == "passed"
    # fixtures/quickstart/why.md
    record = json.loads(Path(outputs["report"]).read_text())
    assert outputs["primary_metric"] == f"AP {record['summary']['AP']:.4f}"
    assert float(outputs["value"]) == record["summary"]["AP"]
    assert runner.summary.startswith("## detap: 2 of 2 gates passed\n")
    assert runner.uploaded == [{"name": "detap", "path": str(Path(outputs["report"]).parent)}]
    assert runner.service.asked == []  # no comment unless asked for
    assert "::notice title=detap" in runner.log


def test_a_failed_gate_fails_the_job_after_all_steps(runner: Runner) -> None:
    status = runner.run(**GIVEN, fail_under="0.99", comment="true")
    assert (status, runner.outputs["evaluate"]["status"]) == (1, "failed")
    assert "::error" in runner.log
    assert "FAILED" in runner.summary
    assert len(runner.uploaded) == 1
    (written,) = runner.service.comments
    link = "[Full report](https://service.example/us/ours/actions/runs/99)"
    assert written["body"] == f"{MARK}\n{runner.summary}\n{link}\n"


def test_a_comment_on_1203_failed_gates_is_short_enough_for_github(runner: Runner) -> None:
    numbers = range(1, 1204)  # as many as LVIS has
    names = {n: f"category {n} of a long name" for n in numbers}
    truth = truth_of([(1, n, [0, 0, 9, 9]) for n in numbers], names, [1], size=(99, 99))
    (runner.folder / "many.json").write_text(json.dumps(truth))
    miss = results_of([(1, 1, [50, 50, 9, 9])])
    (runner.folder / "none.json").write_text(json.dumps(miss))
    inputs = {**GIVEN, "gt": "many.json", "dt": "none.json"}
    assert runner.run(**inputs, fail_under="class:*.AP=0.5", comment="true") == 1
    (written,) = runner.service.comments
    assert len(written["body"]) <= 65_536
    assert "1203 of 1203 gates failed" in written["body"]
    assert "more gates in the JSON report: " in written["body"]
    assert written["body"].endswith(
        "\n[Full report](https://service.example/us/ours/actions/runs/99)\n"
    )


SHADOWS = [
    "detap/__main__.py",
    "click.py",
    "json.py",
    "venv.py",
    "pip.py",
    "service.py",
    "evaluate.py",
]
SHADOW = 'open("executed", "w").close()\nraise SystemExit(0)\n'


@pytest.mark.parametrize("path", [".", ""])  # an empty entry is the working directory, too
def test_code_of_the_evaluated_repository_is_not_executed(
    path: str, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SHADOWS:
        file = runner.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(SHADOW)
    monkeypatch.setenv("PYTHONPATH", path)
    assert runner.run(**GIVEN, fail_under="0.99", comment="true") == 1
    assert runner.outputs["evaluate"]["status"] == "failed"
    assert len(runner.service.comments) == 1
    assert not (runner.folder / "executed").exists()


def test_without_a_report_the_status_is_not_passed(runner: Runner) -> None:
    status = runner.run(**GIVEN, fail_under="0.99", args="--help", comment="true")
    assert (status, runner.outputs["evaluate"]["status"]) == (2, "error")
    assert (
        "::error title=detap::detap ended with status 0 and without a report that says so: "
        "no result; remove options such as --help from args"
    ) in runner.log
    assert "no result" in runner.service.comments[0]["body"]
    assert runner.run(**GIVEN, fail_under="0.99", comment="true") == 1  # the hint was followed


@pytest.mark.parametrize(
    ("status", "record", "expected"),
    [
        (0, None, "error"),
        (1, None, "error"),
        (0, {"gates": {"passed": False}}, "error"),
        (1, {"gates": {"passed": True}}, "error"),
        (1, {}, "error"),
        (0, {}, "passed"),  # no gate was asked for
        (0, {"gates": {"passed": True}}, "passed"),
        (1, {"gates": {"passed": False}}, "failed"),
        (3, {"gates": {"passed": True}}, "error"),
    ],
)
def test_the_outcome_needs_agreement_of_report_and_exit_status(
    status: int, record: dict[str, Any] | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "action")
    assert importlib.import_module("evaluate").outcome(status, record) == expected


def test_the_comment_is_updated_and_not_repeated(runner: Runner) -> None:
    runner.service.comments = [comment(n, f"about {n}", "someone") for n in range(150)]
    runner.run(**GIVEN, fail_under="0.99", comment="true")
    assert "1 of 1 gates failed" in runner.service.comments[150]["body"]
    runner.run(**GIVEN, fail_under="0.01", comment="true")
    assert len(runner.service.comments) == 151
    assert runner.service.comments[150]["body"].startswith(f"{MARK}\n## detap: 1 of 1 gates passed")
    assert runner.service.asked[-1] == "PATCH /repos/us/ours/issues/comments/150"
    # Of another job there is another one.
    runner.run(**GIVEN, comment="true", name="night -->")
    assert runner.service.comments[151]["body"].startswith("<!-- detap: night%20--%3E -->\n")
    assert len(runner.service.comments) == 152


def test_a_comment_of_a_person_is_not_changed(runner: Runner) -> None:
    theirs = comment(0, f"{MARK}\nall is well", "someone")
    runner.service.comments = [theirs, {**theirs, "id": 1, "user": None}]
    runner.run(**GIVEN, comment="true")
    assert runner.service.comments[0]["body"] == f"{MARK}\nall is well"
    assert len(runner.service.comments) == 3


def test_with_a_token_of_a_person_their_comment_is_updated(runner: Runner) -> None:
    runner.service.comments = [comment(0, f"{MARK}\nbefore", "me")]
    runner.service.user = (200, {"login": "me"})
    runner.run(**GIVEN, comment="true")
    assert len(runner.service.comments) == 1
    assert "before" not in runner.service.comments[0]["body"]


def test_a_comment_that_may_not_be_written_is_a_warning(runner: Runner) -> None:
    runner.service.forbidden = True
    assert runner.run(**GIVEN, comment="true") == 0
    assert "::warning title=detap::the comment could not be written (HTTP 403" in runner.log
    assert "pull-requests: write" in runner.log


def test_without_a_pull_request_there_is_no_comment(runner: Runner) -> None:
    runner.event = {"ref": "refs/heads/main"}
    assert runner.run(**GIVEN, comment="true") == 0
    assert runner.service.asked == []


def test_an_error_replaces_an_old_comment(runner: Runner) -> None:
    runner.service.comments = [comment(0, f"{MARK}\n## detap: 9 of 9 gates passed")]
    status = runner.run(**{**GIVEN, "dt": "absent.json"}, comment="true")
    assert (status, runner.outputs["evaluate"]["status"]) == (2, "error")
    assert runner.uploaded == []
    body = runner.service.comments[0]["body"]
    assert "no result" in body
    assert "https://service.example/us/ours/actions/runs/99" in body
    assert runner.run(**GIVEN, args="--iou '0.5") == 2
    assert "::error title=detap::args: No closing quotation" in runner.log


def test_a_baseline_and_all_other_inputs_reach_the_command(runner: Runner) -> None:
    runner.run(**GIVEN)
    shutil.copy(runner.outputs["evaluate"]["report"], runner.folder / "base line.json")
    given = {**GIVEN, "dt": "results-worse.json", "max_drop": "AP=0.01"}
    assert runner.run(**given, baseline="base line.json") == 1
    given["baseline_detections"] = "results.json"
    assert runner.run(**given, confidence="0.95", format="coco", protocol="coco") in (0, 1)
    record = json.loads(Path(runner.outputs["evaluate"]["report"]).read_text())
    assert record["power"]["level"] == 0.95


def test_settings_are_read_from_the_file(runner: Runner) -> None:
    (runner.folder / "detap.toml").write_text(
        'gt = "instances.json"\n[targets.day]\ndt = "results.json"\nfail-under = 0.99\n'
    )
    assert runner.run(page="false", target="day") == 1


def test_names_and_inputs_are_never_executed(runner: Runner) -> None:
    evil = "$(touch evil) `touch evil`; touch evil"
    assert runner.run(**{**GIVEN, "gt": evil}, args="--iou '$(touch evil)'") == 2
    assert not (runner.folder / "evil").exists()
    for step in STEPS:
        assert "${{" not in step.get("run", "")


def test_the_page_is_made_if_requested(runner: Runner) -> None:
    pytest.importorskip("jinja2")
    assert runner.run(**{**GIVEN, "page": "true"}) == 0
    assert Path(runner.outputs["evaluate"]["page"]).read_text("utf-8").startswith("<!doctype html>")


def test_the_example_of_the_docs_passes_and_its_table_has_every_input(runner: Runner) -> None:
    text = (ROOT / "examples" / "ci" / "github-action.yml").read_text("utf-8")
    *_, step = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    assert step["uses"] == f"{values()['owner']}/detap@v{__version__}"
    inputs = {name: str(value).replace("True", "true") for name, value in step["with"].items()}
    assert runner.run(**inputs, page="false") == 0
    assert len(runner.service.comments) == 1
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    table = page.partition("| input |")[2].partition("\n\n")[0]
    firsts = " ".join(line.split("|")[1] for line in table.splitlines()[2:])
    assert set(re.findall("`(.+?)`", firsts)) == set(ACTION["inputs"])


def test_every_input_is_used_and_every_output_is_set(runner: Runner) -> None:
    text = json.dumps(ACTION["runs"])
    for name in ACTION["inputs"]:
        assert f"inputs.{name} " in text, name
    runner.run(**GIVEN)
    for entry in ACTION["outputs"].values():
        match = re.fullmatch(r"\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}", entry["value"])
        assert match is not None
        assert match[2] in runner.outputs[match[1]]


@pytest.mark.parametrize(("asked", "installed"), [("", __version__), ("7.8", "7.8")])
def test_the_action_installs_its_own_version_or_the_one_named(
    asked: str, installed: str, tmp_path: Path
) -> None:
    wheel = f"detap-{installed}"
    with zipfile.ZipFile(tmp_path / f"{wheel}-py3-none-any.whl", "w") as file:
        about = f"{wheel}.dist-info"
        file.writestr("detap.py", "")
        file.writestr(
            f"{about}/METADATA",
            f"Metadata-Version: 2.1\nName: detap\nVersion: {installed}\nProvides-Extra: report\n",
        )
        file.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{about}/RECORD", "")
    output = tmp_path / "outputs"
    for name in SHADOWS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SHADOW)
    (step,) = (step for step in STEPS if step.get("id") == "install")
    command = step["run"].removeprefix("python")
    subprocess.run(
        f"{shlex.quote(sys.executable)}{command}",
        shell=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "RUNNER_TEMP": str(tmp_path),
            "INPUT_VERSION": asked,
            "INPUT_PAGE": "true",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(tmp_path),
        },
        check=True,
        timeout=120,
    )
    assert not (tmp_path / "executed").exists()
    python = output.read_text().splitlines()[1]
    code = "from importlib.metadata import version; print(version('detap'))"
    # Elsewhere than in the checkout, whose own metadata would be found first.
    printed = finished([python, "-I", "-c", code], cwd=tmp_path)
    assert printed.stdout.strip() == installed


def test_the_steps_match_the_public_schema() -> None:
    pytest.importorskip("check_jsonschema", reason="absent: pip install 'detap[around]'")
    for schema, files in (
        ("github-actions", [ROOT / "action.yml"]),
        ("github-workflows", WORKFLOWS),
    ):
        finished(
            [
                sys.executable,
                "-m",
                "check_jsonschema",
                "--builtin-schema",
                f"vendor.{schema}",
                *files,
            ]
        )
