"""The site built by `make site` has every page, name, command and option."""

import re
from html import unescape
from pathlib import Path

import click
import pytest

import detap
from detap.cli import group
from detap.protocols import PRESETS
from detap.protocols.detection import Protocol
from detap.protocols.fields import protocol_fields

SITE = Path(__file__).parents[2] / "build" / "site"

FIRST = SITE / "index.html"
OF_OPTIONS = ("commands/eval", "commands/config", "limits", "protocols")

pytestmark = pytest.mark.skipif(
    not FIRST.exists()
    or FIRST.stat().st_mtime
    < max(page.stat().st_mtime for page in (SITE.parents[1] / "docs").rglob("*.md")),
    reason="the site is not built, or older than its pages: make site",
)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Return the text of each page."""
    return {
        str(page.relative_to(SITE)): unescape(re.sub(r"<[^>]+>", "", page.read_text("utf-8")))
        for page in sorted(SITE.rglob("*.html"))
    }


def test_every_page_of_the_docs_is_in_the_site(pages: dict[str, str]) -> None:
    docs = SITE.parents[1] / "docs"
    expected = {str(page.relative_to(docs).with_suffix(".html")) for page in docs.rglob("*.md")}
    assert expected <= pages.keys()


def test_every_page_is_reachable_from_the_first() -> None:
    seen: set[Path] = set()
    queue = [FIRST]
    while queue:
        page = queue.pop()
        if page in seen or not page.exists():
            continue
        seen.add(page)
        for target in re.findall(r'href="([^"#:]+\.html)', page.read_text("utf-8")):
            queue.append((page.parent / target).resolve())
    docs = SITE.parents[1] / "docs"
    expected = {SITE / page.relative_to(docs).with_suffix(".html") for page in docs.rglob("*.md")}
    assert expected <= seen


def test_no_link_is_dead() -> None:
    for page in SITE.rglob("*.html"):
        text = page.read_text("utf-8")
        for target in re.findall(r'(?:href|src)="([^"]+)"', text):
            path, _, anchor = unescape(target).partition("#")
            if re.match(r"[a-z]+:|//", path):
                continue
            goal = (page.parent / path.partition("?")[0]).resolve() if path else page
            assert goal.exists(), f"{page.name}: {target}"
            if anchor and goal.suffix == ".html":
                assert f'id="{anchor}"' in goal.read_text("utf-8"), f"{page.name}: {target}"


def test_every_public_name_is_in_the_site(pages: dict[str, str]) -> None:
    reference = (SITE / "reference.html").read_text("utf-8")
    names = [name for name in detap.__all__ if not name.startswith("_")]
    assert names
    for name in names:
        assert f'id="detap.{name}"' in reference, f"detap.{name}"


def test_every_command_and_option_is_in_the_site(pages: dict[str, str]) -> None:
    context = click.Context(group)
    for name in group.list_commands(context):
        page = "".join(pages[f"{shared}.html"] for shared in (f"commands/{name}", *OF_OPTIONS))
        command = group.get_command(context, name)
        assert command is not None
        inner = command.commands.values() if isinstance(command, click.Group) else [command]
        for each in inner:
            for parameter in each.params:
                for spelling in parameter.opts:
                    assert not spelling.startswith("--") or spelling in page, f"{name} {spelling}"


def test_every_preset_field_and_note_is_in_the_site(pages: dict[str, str]) -> None:
    for name in PRESETS:
        assert name in pages["presets.html"]
    for axis in protocol_fields(Protocol):
        assert (axis.option or axis.name) in pages["protocols.html"]
    noted = re.findall(r"^\| `([a-z-]+)`", (SITE.parents[1] / "docs/notes.md").read_text(), re.M)
    assert noted
    for code in noted:
        assert code in pages["notes.html"]
