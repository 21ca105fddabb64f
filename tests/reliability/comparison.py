"""The COCO parts of the corpus with other evaluators, judged like detap."""

import json
import resource
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import peers
from tests.reliability import coco_cases, mask_cases
from tests.reliability.cases import Case, Scored
from tests.reliability.runner import Worker, prepare, run_process

ASKED = ("pycocotools", "faster-coco-eval", "hotcoco", "vernier", "ultrafast-pycocotools")

VERDICTS = {
    "correct": "the expected number, or an error that names the file or the record",
    "unclear": "an error that names neither",
    "refused": "an error for valid input",
    "crash": "a crash or a hang",
    "wrong": "silently wrong: a number for invalid input, or another number",
}
"""Verdicts on a case, the last being the worst."""

TOLERANCE = 1e-6
SECONDS = 30
MEMORY = 6 << 30

_PLACES = ("annotations[", "images[", "categories[", "record", "line ", "column", "index", "byte ")


PARTS = {"boxes": coco_cases.CASES, "masks": mask_cases.CASES}
"""The parts compared, each in its own table."""


def cases(part: str) -> list[Case]:
    """Return the cases of a part that other evaluators can run."""
    return [case for case in PARTS[part] if case.for_peers and not case.options]


def verdict_of_peer(case: Case, peer: peers.Peer, work: Path) -> str:
    """Run one case with another evaluator and return the verdict.

    Other evaluators need not warn: if a metric is expected, only the metric decides.
    """
    folder = work / "case"
    prepare(case, folder)
    kind = f"coco-{case.iou_type}" if case.iou_type else "coco"
    line = peer.checked(Path(case.gt), Path(case.dt), kind)
    ended = run_process(line, folder, work / "output", seconds=SECONDS, memory=MEMORY)
    said = (work / "output" / "stderr").read_text("utf-8", "replace")
    numbers: peers.Numbers | None = None
    if ended["status"] == 0:
        try:
            numbers = peer.read((work / "output" / "stdout").read_text("utf-8", "replace"))
        except (ValueError, IndexError, KeyError):
            return "crash"
    if ended["late"] or ended["status"] < 0:
        return "crash"
    return judge(case, None if numbers is None else numbers[0], said)


def judge(case: Case, average_precision: float | None, said: str) -> str:
    """Return the verdict on a metric (None if undefined), or on stderr, if that has an error."""
    failed = bool(said.strip()) and average_precision is None
    if isinstance(case.expect, Scored):
        expected = case.expect.summary["AP"]
        if expected is None or average_precision is None:
            if expected is None and average_precision is None and not failed:
                return "correct"
            return "refused" if failed else "wrong"
        return "correct" if abs(expected - average_precision) <= TOLERANCE else "wrong"
    if not failed:
        return "wrong"
    last = said.strip().splitlines()[-1]
    names = (Path(case.expect.file).name, *_PLACES)
    return "correct" if any(name in last for name in names) else "unclear"


def verdict_of_detap(case: Case, worker: Worker, work: Path) -> str:
    """Run one case with detap and judge it by the same rule."""
    outcome = worker.run(case, work)
    if outcome.late or outcome.status not in (0, 2):
        return "crash"
    said = outcome.stderr.decode("utf-8", "replace") if outcome.status else ""
    number = None
    if not outcome.status:
        number = json.loads(outcome.report or b"{}")["summary"]["AP"]
    return judge(case, number, said)


def compare(part: str, tell: Callable[[str], None]) -> dict[str, dict[str, str]]:
    """Return every verdict on a part, by evaluator and case."""
    peers.prepare()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    verdicts: dict[str, dict[str, str]] = {"detap": {}}
    worker = Worker()
    for case in cases(part):
        with tempfile.TemporaryDirectory() as work:
            verdicts["detap"][case.id] = verdict_of_detap(case, worker, Path(work))
    worker.close()
    for name in ASKED:
        verdicts[name] = {}
        for case in cases(part):
            with tempfile.TemporaryDirectory() as work:
                verdicts[name][case.id] = verdict_of_peer(case, peers.PEERS[name], Path(work))
        tell(f"{name}: {dict(Counter(verdicts[name].values()))}")
    return verdicts


def table(detections: dict[str, dict[str, str]], versions: dict[str, str]) -> Iterator[str]:
    """Return the lines of a part's table in docs/reliability.md."""
    yield "| evaluator | version | " + " | ".join(VERDICTS) + " |"
    yield "|---|---|" + "---:|" * len(VERDICTS)
    for name, verdicts in detections.items():
        counts = Counter(verdicts.values())
        cells = [name, versions.get(name, ""), *(str(counts[key]) for key in VERDICTS)]
        yield "| " + " | ".join(cells) + " |"
