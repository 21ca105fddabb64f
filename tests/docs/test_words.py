"""The program and its docs use the field's words: coined ones stay out."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT
from tests.docs.tracked import project_files

FORMER = ("docs/json.md", "tests/docs/test_words.py")
"""Files that list former names."""

COINED = re.compile(
    r"\b(neut|neutral|absorb(s|ing)?|told|strangers?|culprits?|aside|dealt out|doubts|contests?"
    r"|besides?|(?<!, )whence|seldom|likewise)\b",
    re.IGNORECASE,
)
IN_PAGES = re.compile(r"\b([Hh]ouse|[Rr]oom|[Dd]oor|(?<!mr-)[Ff]loor|[Hh]inge|window)s?\b")
IDENTIFIERS = {"found", "due", "wanted", "told", "place", "called", "stand"}
OPENING = re.compile(
    r"(Return|Yield) (what|how|which|whether|where|why|whose)\b"
    r"|Tell whether\b|(What|Which|Whether|How|Where|Who)\b"
)
MAX_WORDS = 33_990


PROGRAM = project_files("detap/*.py", "detap/*.pyx", "detap/*.pxd", "detap/*.js", "detap/*.j2")
PAGES = project_files("docs/*.md")
COMPILED = [name for name in PROGRAM if name.endswith((".pyx", ".pxd"))]
PYTHON = [name for name in PROGRAM if name.endswith(".py")]
OTHERS = project_files(
    *(
        "tests/*.py",
        "fuzz/*.py",
        "benchmarks/*.py",
        "benchmarks/*.sh",
        "examples/*.py",
        "action/*.py",
        "mutation/*.py",
    ),
    *("action.yml", ".github/*.yml", "benchmarks/README.md", "fixtures/*why.md"),
)
"""Tests and tools."""
TOOLS = [name for name in OTHERS if name.endswith(".py")]


def matches(name: str, pattern: re.Pattern[str]) -> list[str]:
    lines = enumerate((ROOT / name).read_text("utf-8").splitlines(), 1)
    return [f"{name}:{n}: {line.strip()}" for n, line in lines if pattern.search(line)]


@pytest.mark.parametrize(
    "name", [n for n in (*PROGRAM, *PAGES, *OTHERS, "README.md") if n not in FORMER]
)
def test_no_coined_word(name: str) -> None:
    assert matches(name, COINED) == []


@pytest.mark.parametrize("name", [n for n in (*PAGES, "README.md") if n not in FORMER])
def test_no_page_uses_building_metaphors(name: str) -> None:
    assert matches(name, IN_PAGES) == []


def names_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.value.lineno, node.arg


@pytest.mark.parametrize("name", [*PYTHON, *TOOLS])
def test_no_identifier_without_content(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text("utf-8"))
    assert [f"{name}:{n}: {word}" for n, word in names_of(tree) if word in IDENTIFIERS] == []


@pytest.mark.parametrize("name", COMPILED)
def test_no_compiled_identifier_without_content(name: str) -> None:
    words = re.compile(rf"\b({'|'.join(IDENTIFIERS)})\b")
    code = (ROOT / name).read_text("utf-8")
    code = re.sub(r'"""(.|\n)*?"""|#.*|"[^"\n]*"', "", code)
    assert words.findall(code) == []


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every docstring, of attributes and constants too."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            continue
        for statement in node.body:
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, value.value


@pytest.mark.parametrize("name", [*PYTHON, *TOOLS])
def test_docstrings_begin_with_a_verb_or_noun(name: str) -> None:
    texts = docstrings(ast.parse((ROOT / name).read_text("utf-8")))
    assert [f"{name}:{n}: {text[:60]}" for n, text in texts if OPENING.match(text)] == []


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_docstrings_begin_with_a_verb_or_noun(name: str) -> None:
    texts = re.findall(r'"""((?:.|\n)*?)"""', (ROOT / name).read_text("utf-8"))
    assert [text[:60] for text in texts if OPENING.match(text)] == []


@pytest.mark.parametrize("name", [*PYTHON, *COMPILED])
def test_raises_and_parameters_say_if(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    entries = re.findall(
        r"^ +Raises\n +-+\n((?: +\S.*\n|\n(?= +\w+(?:, \w+)*\n +\S))+)", text, re.M
    )
    assert [
        line.strip()
        for entry in entries
        for line in entry.split("\n")
        if re.match(r" +Where\b", line)
    ] == []


def test_the_docs_are_short() -> None:
    words = {name: len((ROOT / name).read_text("utf-8").split()) for name in PAGES}
    assert sum(words.values()) <= MAX_WORDS, dict(sorted(words.items(), key=lambda item: -item[1]))
