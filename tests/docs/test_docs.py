"""The docs against the program and against themselves."""

import re
import tempfile
from pathlib import Path

import click
import pytest

from detap.cli import group
from detap.cli.command import full_help
from tests.docs.tracked import project_files

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def without_code(text: str) -> str:
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in HEADING.findall(text)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_targets(page: Path) -> None:
    for target in LINK.findall(without_code(page.read_text("utf-8"))):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), f"{page.name} links to {target}, which is not there"
        if anchor:
            assert anchor in anchors(goal), f"{page.name} links to {target}: no such heading"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    queue = [ROOT / "README.md"]
    while queue:
        page = queue.pop()
        if page in seen:
            continue
        seen.add(page)
        for target in LINK.findall(page.read_text("utf-8")):
            goal = (page.parent / target.partition("#")[0]).resolve()
            if goal.suffix == ".md" and goal.exists():
                queue.append(goal)
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")}
    pages.discard(ROOT / "docs" / "index.md")  # the first page of the site, as README is here
    assert pages - seen == set(), "no link leads from the README to these pages"


def commands(command: click.Command, path: tuple[str, ...]) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [("-".join(path), command)]
    context = click.Context(command)
    lines = []
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        lines += commands(inner, (*path, name))
    return lines


COMMANDS = commands(group, ())


def page_of(name: str) -> str:
    """Return the docs of a command; commands of a group may share a page."""
    folder = ROOT / "docs" / "commands"
    for candidate in (name, name.partition("-")[0]):
        if (folder / f"{candidate}.md").exists():
            return (folder / f"{candidate}.md").read_text("utf-8")
    raise AssertionError(f"docs/commands has no page for {name}")


SHARED = {"eval.md", "config.md", "../limits.md", "../protocols.md"}
"""Pages with options that several commands have, as linked from docs/commands."""


def pages_of(name: str) -> str:
    """Return the docs of a command with the linked pages of shared options."""
    folder = ROOT / "docs" / "commands"
    pages, queue = {"": page_of(name)}, [page_of(name)]
    while queue:
        linked = {target.partition("#")[0] for target in LINK.findall(queue.pop())}
        new = {path: (folder / path).read_text("utf-8") for path in linked & SHARED - pages.keys()}
        pages |= new
        queue += new.values()
    return "\n".join(pages.values())


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_every_option_is_in_the_docs_and_in_the_help(name: str, command: click.Command) -> None:
    page = pages_of(name)
    help_text = full_help(click.Context(command, info_name=name))
    for parameter in command.params:
        for spelling in (*parameter.opts, *parameter.secondary_opts):
            if spelling.startswith("--"):
                assert f"`{spelling}" in page, f"{spelling} of {name} is not in its pages"
                assert spelling in help_text


def test_a_row_that_lists_choices_lists_all() -> None:
    page = page_of("eval")
    options = [option for option in dict(COMMANDS)["eval"].params if option.opts[0][:2] == "--"]
    assert "--engine" in [option.opts[0] for option in options]
    for option in options:
        row = re.search(rf"^\| (?:`-\w`, )?`{option.opts[0]}`([^|]*)\|", page, re.MULTILINE)
        listed = set(re.findall(r"`(.+?)`", row[1])) if row else set()
        choices = set(getattr(option.type, "choices", ()))
        assert not listed & choices or choices <= listed, option.opts[0]


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_the_docs_mention_no_unknown_option(name: str, command: click.Command) -> None:
    del command
    group_name = name.partition("-")[0]
    known = {"--help", "--help-all", "--version"}
    for other, inner in COMMANDS:
        if other.partition("-")[0] == group_name:
            for parameter in inner.params:
                known |= {*parameter.opts, *parameter.secondary_opts}
    rows = re.findall(r"^\| `(--[a-z0-9-]+)", page_of(name), re.MULTILINE)
    assert [row for row in rows if row not in known] == []


def test_every_note_is_explained() -> None:
    """Codes are literals in the source, so they can be searched."""
    page = (ROOT / "docs" / "notes.md").read_text("utf-8")
    codes = set()
    for source in (ROOT / "detap").rglob("*.py"):
        codes |= set(re.findall(r"\bNote\(\s*\"([a-z0-9-]+)\"", source.read_text("utf-8")))
    assert codes, "no note found: has the way they are made changed?"
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []


def test_every_exit_status_is_in_the_readme_or_its_docs() -> None:
    page = (ROOT / "docs" / "commands" / "eval.md").read_text("utf-8")
    for status in (0, 1, 2, 3, 130, 143):
        assert re.search(rf"\| {status} +\|", page), f"exit status {status} is not in eval.md"


def test_no_registry_host_and_no_path_of_a_machine() -> None:
    hosts = ["py" + "pi.org", "python" + "hosted", "registry." + "npmjs", "deb." + "debian.org"]
    # Every machine has the folder of temporary files, which examples may name.
    is_own = len(ROOT.parts) > 2 and ROOT.parent != Path(tempfile.gettempdir())
    checkout = f"{ROOT.parent}/" if is_own else str(ROOT)
    for name in project_files():
        text = (ROOT / name).read_bytes().decode("utf-8", "replace")
        for word in (*hosts, checkout):
            assert word not in text, f"{name} names {word}"
