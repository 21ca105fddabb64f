"""No public name disappears without a line in the changes, and no preset changes."""

import json
from typing import Any

import pytest

from docs import public

RECORD: dict[str, Any] = json.loads(public.RECORD.read_text("utf-8"))
CHANGES = (public.ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.fixture(scope="module")
def interface() -> dict[str, list[str]]:
    return public.interface()


def test_no_name_is_gone_without_a_line_in_the_changes(interface: dict[str, list[str]]) -> None:
    gone = public.gone(RECORD["names"], interface)
    assert public.unmentioned(gone, CHANGES) == []


def test_every_name_is_recorded(interface: dict[str, list[str]]) -> None:
    recorded = {kind: RECORD["names"][kind] for kind in interface}
    assert interface == recorded, "run python -m docs.public"


def test_the_same_of_modules_that_need_torch() -> None:
    pytest.importorskip("torch", reason="PyTorch is absent")
    current = public.torch_interface()
    assert public.unmentioned(public.gone(RECORD["names"], current), CHANGES) == []
    assert set(current["torch"]) <= set(RECORD["names"]["torch"]), "run python -m docs.public"


def test_no_preset_changes() -> None:
    """Its fields decide its numbers; a changed rule is a new preset."""
    assert public.changed_presets(RECORD["presets"], public.presets()) == []


def test_a_new_field_does_not_change_presets() -> None:
    recorded: dict[str, Any] = {"": {"a": 1}, "coco": {}}
    assert public.changed_presets(recorded, {"": {"a": 1, "b": 2}, "coco": {}}) == []
    assert public.changed_presets(recorded, {"": {"a": 1}, "coco": {"a": 2}}) == ["coco.a"]
    assert public.changed_presets(recorded, {"": {"a": 2}, "coco": {"a": 1}}) == []


def test_a_name_that_is_gone_is_reported() -> None:
    current = {"python": ["detap.evaluate"], "json": ["report.kind"]}
    recorded = {"python": ["detap.evaluate", "detap.score"], "torch": ["detap.torch.x"]}
    assert public.gone(recorded, current) == ["detap.score"]
    changes = (
        "# Changes\n\n## 2.0.0\n\n- `detap.score` is `detap.evaluate`.\n\n## 1.0.0\n\n- `detap.y`\n"
    )
    assert public.unmentioned(["detap.score"], changes) == []
    assert public.unmentioned(["detap.y"], changes) == ["detap.y"]


def test_what_is_removed_stands_for_its_members() -> None:
    changes = "## 2.0.0\n\n**Removed**\n\n- `detap.A`\n\n**Scoring**\n\n- `detap.B`\n"
    gone = ["detap.A.x", "detap.A(y)", "detap.B.x"]
    assert public.unmentioned(gone, f"# Changes\n\n{changes}") == ["detap.B.x"]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("python", "detap.evaluate(protocol)"),
        ("python", "detap.Result.summary"),
        ("python", "detap.Result.metrics(by_class)"),
        ("python", "detap.compat.pycocotools.install(package)"),
        ("commands", "detap eval --fail-under"),
        ("commands", "detap baseline update"),
        ("json", "report.summary"),
        ("json", "report.classes[].AP"),
        ("json", "settings.fail-under"),
        ("presets", "coco"),
        ("output formats", "dvc"),
        ("versions", "schema 2"),
    ],
)
def test_the_interface_has(interface: dict[str, list[str]], kind: str, name: str) -> None:
    assert name in interface[kind]
