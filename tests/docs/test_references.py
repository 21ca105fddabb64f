"""Files, modules and options mentioned in docs, comments and docstrings exist."""

import ast
import io
import re
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from detap.evaluation.detection import Result
from tests.conftest import ROOT
from tests.docs.test_docs import COMMANDS
from tests.docs.tracked import project_files

ELSEWHERE = {
    "base.py": "Ultralytics",
    "compute_JI.py": "CrowdDet",
    "detect_test.py": "Scalabel",
    "dota_evaluation_task1.py": "DOTA",
    "evaluation.py": "WIDER FACE",
    "label_file.py": "LabelMe",
    "xml_to_csv.py": "raccoon_dataset",
    "oid_hierarchical_labels_expansion.py": "Open Images",
    "per_image_evaluation.py": "Open Images",
    "results.py": "Ultralytics",
    "spots.md": "the example of CONTRIBUTING.md",
    "spots.py": "the example of CONTRIBUTING.md",
    "utils.py": "Ultralytics",
}
"""Files of other projects that are named as the source of a rule."""

PRIVATE_ELSEWHERE = {"_evaluate_box_proposals": "Detectron2"}
"""Private names of other projects that are mentioned."""

OUR_PAGES = {
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "mutation/README.md",
    "benchmarks/README.md",
}
"""Pages that are about this repository alone."""

_FILE = re.compile(
    r"(?<![\w/.$~{-])(?:(?:[\w-]+/)*[\w-]+\.(?:pyx|pxd|pyi|py)|(?:[\w-]+/)+[\w-]+\.(?:md|toml))\b"
)
_NAME = re.compile(r"(?<![\w.-])detap(?:\.\w+)+")
_PRIVATE = re.compile(r"`(?:\w+\.)*(_[a-z]\w*)")
_WORD = re.compile(r"\b_[a-z]\w*")
_ROLE = re.compile(r":(?:func|class|data|exc):`~?(\w+)`")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
_NO_MODULES = ("detap.toml", "detap.targets", "detap.fish", "detap.formats.spots")


@cache
def endings() -> frozenset[str]:
    """Return every path that may refer to a file: from the root or from any folder."""
    return frozenset(
        name.split("/", depth)[-1]
        for name in project_files()
        for depth in range(name.count("/") + 1)
    )


@cache
def prose_of(name: str) -> str:
    """Return a page, or the comments and docstrings of a source."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".md"):
        return text
    if not name.endswith(".py"):
        return "\n".join(re.findall(r'#.*$|"""(?:.|\n)*?"""', text, re.MULTILINE))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    texts = [
        node.value.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    return "\n".join([*comments, *texts])


def sources() -> list[str]:
    kinds = (".md", ".py", ".pyx", ".pxd")
    return [name for name in project_files() if name.endswith(kinds) and name != "CHANGELOG.md"]


@cache
def defined(path: Path) -> frozenset[str]:
    """Return the names that a source defines (also in classes) or imports."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return frozenset(re.findall(r"\b(?:class|def|inline \w+|struct) (\w+)", text))
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return frozenset(names)


@cache
def exists(dotted: str) -> bool:
    """Return True if a dotted name is a module or a name in one."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        file = Path(ROOT, *parts[:count])
        files = [*file.parent.glob(f"{file.name}.p*")]
        if file.is_dir():  # what a package offers may be made in any file of it
            files += file.rglob("*.p*")
        code = [path for path in files if path.suffix in {".py", ".pyx", ".pxd"}]
        if code:
            return set(parts[count:]) <= frozenset().union(*map(defined, code))
    return False


def test_mentioned_files_exist() -> None:
    """User pages also mention files of other projects; there, only our own folders are checked."""
    folders = {name.partition("/")[0] for name in project_files() if "/" in name}
    missing = {
        f"{name}: {file}"
        for name in sources()
        for file in _FILE.findall(prose_of(name))
        if file not in endings()
        and file.rpartition("/")[2] not in ELSEWHERE
        and (not name.endswith(".md") or name in OUR_PAGES or file.partition("/")[0] in folders)
    }
    assert not missing


def test_mentioned_modules_exist() -> None:
    missing = {
        f"{name}: {dotted}"
        for name in sources()
        for dotted in _NAME.findall(prose_of(name))
        if not dotted.startswith(_NO_MODULES) and not exists(dotted)
    }
    assert not missing


def test_every_target_of_the_makefile_is_explained() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
    assert targets
    assert sorted(targets) == sorted(makefile.split(".PHONY:")[1].splitlines()[0].split())
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert sorted(targets) == sorted(re.findall(r"`make ([a-z-]+)`", table))


def test_mentioned_private_names_exist() -> None:
    """Names as in the code; mutation/README.md has those of the day of its run."""
    uses = Counter(Path(name).stem for name in project_files()) + Counter([*PRIVATE_ELSEWHERE])
    for name in sources():
        if not name.endswith(".md"):
            uses.update(_WORD.findall((ROOT / name).read_text("utf-8")))
            uses.subtract(_WORD.findall(prose_of(name)))
    missing = {
        f"{name}: {private}"
        for name in sources()
        for private in _PRIVATE.findall(prose_of(name))
        if uses[private] < 1 and name != "mutation/README.md"
    }
    assert not missing


def test_docstrings_refer_to_names_of_their_module() -> None:
    """Names of other modules are written in full, as ``:func:`detap.evaluate```."""
    missing = {
        f"{name}: {role}"
        for name in sources()
        if name.startswith("detap/") and name.endswith(".py")
        for role in _ROLE.findall(prose_of(name))
        if role not in defined(ROOT / name)
    }
    assert not missing


def test_documented_parameters_exist() -> None:
    stale = [
        f"{file.name}: {function.name}: {name}"
        for file in sorted((ROOT / "detap").rglob("*.py"))
        for function in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(function, ast.FunctionDef)
        for name in documented_parameters(ast.get_docstring(function) or "")
        if name not in {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    ]
    assert stale == []


def documented_parameters(docstring: str) -> list[str]:
    """Return the names in the section of parameters."""
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", docstring, re.S)
    lines = section[1].splitlines() if section else []
    heads = [line.split(" : ")[0] for line in lines if line[:1].strip()]
    return [name.strip(" *") for head in heads for name in head.split(",")]


def test_documented_parameters_are_found() -> None:
    docstring = (
        "Do.\n\nParameters\n----------\na, b : int\n    More.\n*c\n\nReturns\n-------\nd\n    End."
    )
    assert documented_parameters(docstring) == ["a", "b", "c"]


def test_options_mentioned_in_the_program_exist() -> None:
    """In comments and docstrings; other tests check options of the docs by command."""
    known = {"--help", "--help-all", "--version"}
    for _, command in COMMANDS:
        for parameter in command.params:
            known |= {*parameter.opts, *parameter.secondary_opts}
    missing = {
        f"{name}: {option}"
        for name in sources()
        if name.startswith("detap/")
        for option in _OPTION.findall(prose_of(name))
        if option not in known
    }
    assert not missing


@pytest.mark.parametrize(
    ("dotted", "there"),
    [
        ("detap.io.limits.Limits", True),
        ("detap.io.limits.Bounds", False),
        ("detap.io.nothing", False),
        ("detap.nothing.at_all", False),
    ],
)
def test_a_name_is_looked_up(dotted: str, there: bool) -> None:
    assert exists(dotted) == there


ATTRIBUTES = {*dir(Result), *Result.__dataclass_fields__}


def test_the_table_of_results_names_their_attributes() -> None:
    section = (ROOT / "docs/api.md").read_text("utf-8").partition("## Result\n")[2]
    lines = section.partition("###")[0].splitlines()
    rows = [line.split("|")[1] for line in lines if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`(\w+)[`(.]", row)]
    assert len(names) > 25
    assert [name for name in names if name not in ATTRIBUTES] == []


def test_what_k_leaves_out_is_a_test() -> None:
    """A renamed test would be run where it cannot pass."""
    texts = [(ROOT / name).read_text("utf-8") for name in ("Makefile", "mutation/modules.toml")]
    left_out = {name for text in texts for name in re.findall(r"\bnot (\w+_\w+)", text)}
    tests = {
        path: re.findall(r"^ *def (test_\w+)", (ROOT / path).read_text("utf-8"), re.MULTILINE)
        for path in project_files("tests/*.py")
    }
    known = [*tests, *(name for names in tests.values() for name in names)]
    assert len(left_out) > 10
    assert [name for name in sorted(left_out) if not any(name in one for one in known)] == []
