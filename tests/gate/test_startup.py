"""Runs without gates do not import them."""

import pytest

from tests.cli.conftest import Files, coco
from tests.cli.test_startup import HEAVY, imported_by

__all__ = ["coco"]

GATES = {
    "detap.gates.checks",
    "detap.gates.detection",
    "detap.gates.power",
    "detap.analysis.power",
    "detap.analysis.bootstrap",
    "detap.gates.baseline",
    "detap.evaluation.slices",
}


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "--help"],
        ["baseline", "--help"],
        ["baseline", "update", "--help"],
        ["config", "--help"],
        ["config", "--isolated"],
    ],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    assert imported_by(*arguments) & (HEAVY | GATES | {"tomllib", "fractions"}) == set()


def test_eval_without_gates_imports_no_gate_module(coco: Files) -> None:
    modules = imported_by(*coco.arguments)
    assert (
        modules & (GATES | {"detap.analysis.comparison", "tomllib", "fractions", "xml.sax"})
        == set()
    )


def test_baselines_need_no_numpy(tmp_path: object, coco: Files) -> None:
    report = str(coco.folder / "report.json")
    imported_by(*coco.arguments, "-o", report)
    base = str(coco.folder / "base.json")
    assert imported_by("baseline", "update", base, report) & HEAVY == set()
