"""Changes and their outcomes as values; reads `modules.toml` and `survivors.toml`."""

import json
import subprocess
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLACE = ROOT / "build" / "mutate"


Lines = dict[str, tuple[int, int]]
"""By module: number of lines that its tests run, and of its lines of code."""


@dataclass(frozen=True)
class Outcome:
    """One change and whether a test failed for it."""

    module: str
    function: str  # or, for a change chosen by hand, its name
    change: str
    killed: bool
    endless: bool = False  # killed by the clock

    @property
    def key(self) -> tuple[str, str]:
        """The key of the reason in `survivors.toml`: no path, so that files may move."""
        return self.function, self.change


@dataclass(frozen=True)
class Group:
    """Modules that are changed, and the tests that are run for each change."""

    name: str
    tests: list[str]
    files: list[str]  # patterns
    without: list[str] = field(default_factory=list)  # patterns of `files` that are not changed

    def modules(self, root: Path) -> list[str]:
        """Return the paths of the modules, sorted."""
        left_out = {file for pattern in self.without for file in root.glob(pattern)}
        chosen = {file for pattern in self.files for file in root.glob(pattern)} - left_out
        return sorted(str(file.relative_to(root)) for file in chosen)


def settings(name: str) -> dict[str, Any]:
    """Return a table of this folder."""
    with (HERE / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


def groups() -> list[Group]:
    """Return the groups of `modules.toml`."""
    return [Group(**group) for group in settings("modules")["group"]]


def reasons() -> dict[tuple[str, str], str]:
    """Return the reasons of the survivors, by function and change."""
    listed = settings("survivors").get("survivor", [])
    return {(entry["function"], entry["change"]): entry["reason"] for entry in listed}


def copy_checkout(name: str) -> Path:
    """Copy what git knows of, and the compiled modules; times stay, so that none is compiled."""
    copy = PLACE / name
    subprocess.run(["rm", "-rf", str(copy)], check=True)
    copy.mkdir(parents=True)
    listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    known = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    files = {file.decode() for file in known if file}
    files |= {str(file.relative_to(ROOT)) for file in (ROOT / "detap").rglob("_*.*")}
    present = [file for file in sorted(files) if (ROOT / file).is_file()]
    copied = ["cp", "--parents", "--preserve=mode,timestamps", "-t", str(copy), *present]
    subprocess.run(copied, cwd=ROOT, check=True)
    return copy


def keep(name: str, outcomes: list[Outcome]) -> None:
    """Keep the outcomes of one group, for the page."""
    _write(name, [asdict(outcome) for outcome in outcomes])


def kept(name: str) -> list[Outcome]:
    """Return the outcomes of a group's last run, none if there was no run."""
    return [Outcome(**one) for one in _read(name, [])]


def keep_lines(name: str, lines: Lines) -> None:
    """Keep the lines that the tests of one group run, for the page."""
    _write(f"{name}.lines", lines)


def kept_lines(name: str) -> Lines:
    """Return the lines that the tests of a group ran last, none if there was no run."""
    return {module: (run, total) for module, (run, total) in _read(f"{name}.lines", {}).items()}


def _write(name: str, value: object) -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    (PLACE / f"{name}.json").write_text(json.dumps(value, indent=1))


def _read(name: str, default: Any) -> Any:
    file = PLACE / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else default
