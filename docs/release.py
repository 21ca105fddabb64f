"""Write the values of release.toml and the version into docs, examples and metadata.

``python docs/release.py`` checks that a release may be published: no value is a placeholder, and
every file has the values and the version. Uses only the standard library.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

PLACEHOLDER = re.compile(r"OWNER|REPOSITORY|\.example\b")

_USES = (r"(uses: )\S+/detap@v\S+", "{owner}/detap@v{version}")
_HOOK = (r"(- repo: )\S+(?=\n    rev: )", "{repository}")
_REVISION = (r"(    rev: v)\S+", "{version}")

LINES = {
    "CITATION.cff": (
        (r"(\nversion: )\S+", "{version}"),
        (r"(\nrepository-code: )\S+", "{repository}"),
        (r"(\nurl: )\S+", "{pages}"),
    ),
    "conda/recipe.yaml": (
        (r"(\n  version: )\S+", '"{version}"'),
        (r"(\n  homepage: )\S+", "{pages}"),
        (r"(\n  repository: )\S+", "{repository}"),
        (r"(\n    - )\S+(?=\n*$)", "{owner}"),
    ),
    "detap/report/schemas.py": ((r"(\nPAGES = )\S+", '"{pages}"'),),
    "docs/ci.md": (_USES, _HOOK, _REVISION),
    "examples/ci/github-action.yml": (_USES,),
    "examples/ci/pre-commit-check.yaml": (_HOOK, _REVISION),
    "pyproject.toml": (
        (r"(\nversion = )\S+", '"{version}"'),
        (r"(\nHomepage = )\S+", '"{pages}"'),
        (r"(\nSource = )\S+", '"{repository}"'),
    ),
}
"""By file, a pattern of the text before each value, and the value."""


def values(root: Path = ROOT) -> dict[str, str]:
    """Return the values of release.toml and the version."""
    settings = tomllib.loads((root / "release.toml").read_text("utf-8"))
    code = (root / "detap" / "_version.py").read_text("utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', code, re.MULTILINE)
    return {**settings, "version": version}


def filled(name: str, text: str, given: dict[str, str]) -> str:
    """Return the text of a file with the values.

    Raises
    ------
    ValueError
        If the file has no line for a value.
    """
    for pattern, template in LINES.get(name, ()):
        value = template.format(**given).replace("\\", r"\\")
        text, count = re.subn(pattern, rf"\g<1>{value}", text)
        if not count:
            raise ValueError(f"{name} has no {pattern}")
    return text


def problems(root: Path = ROOT) -> list[str]:
    """Return the reasons against a release."""
    given = values(root)
    reasons = [
        f"release.toml: {key} is the placeholder {value}"
        for key, value in given.items()
        if PLACEHOLDER.search(value)
    ]
    for name in LINES:
        text = (root / name).read_text("utf-8")
        if filled(name, text, given) != text:
            reasons.append(f"{name} is out of date; run python -m docs.derive")
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    newest = re.findall(r"^## (\S+)", changes, re.MULTILINE)[0]
    if newest != given["version"]:
        reasons.append(f"CHANGELOG.md: the newest section is {newest}, not {given['version']}")
    return reasons


if __name__ == "__main__":
    reasons = problems()
    for reason in reasons:
        print(reason, file=sys.stderr)
    sys.exit(bool(reasons))
