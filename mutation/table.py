"""What is changed and what came of it, as values; `modules.toml` and `survivors.toml` are read."""

import json
import subprocess
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLACE = ROOT / "build" / "mutate"


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
        """What a reason is found by: no path, so that files may move."""
        return self.function, self.change


@dataclass(frozen=True)
class Group:
    """Modules that are held to the same tests."""

    name: str
    tests: list[str]
    modules: dict[str, list[str]]


def settings(name: str) -> dict[str, Any]:
    """Return a table of this folder."""
    with (HERE / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


def groups() -> list[Group]:
    """Return the groups of `modules.toml`."""
    return [Group(**group) for group in settings("modules")["group"]]


def reasons() -> dict[tuple[str, str], str]:
    """Return why a survivor may survive, by function and change."""
    listed = settings("survivors").get("survivor", [])
    return {(entry["function"], entry["change"]): entry["reason"] for entry in listed}


def copy_checkout(name: str) -> Path:
    """Copy what git knows of, and the compiled modules; times stay, so that none is compiled."""
    place = PLACE / name
    subprocess.run(["rm", "-rf", str(place)], check=True)
    place.mkdir(parents=True)
    listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    known = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    files = {file.decode() for file in known if file}
    files |= {str(file.relative_to(ROOT)) for file in (ROOT / "detap").rglob("_*.*")}
    present = [file for file in sorted(files) if (ROOT / file).is_file()]
    copied = ["cp", "--parents", "--preserve=mode,timestamps", "-t", str(place), *present]
    subprocess.run(copied, cwd=ROOT, check=True)
    return place


def keep(name: str, outcomes: list[Outcome]) -> None:
    """Keep what came of one group, for the page."""
    PLACE.mkdir(parents=True, exist_ok=True)
    text = json.dumps([asdict(outcome) for outcome in outcomes], indent=1)
    (PLACE / f"{name}.json").write_text(text)


def kept(name: str) -> list[Outcome]:
    """Return what came of one group when it was last tried; nothing where it never was."""
    file = PLACE / f"{name}.json"
    return [Outcome(**one) for one in json.loads(file.read_text())] if file.exists() else []
