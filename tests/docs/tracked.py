"""The files of the project, as git lists them."""

from functools import cache

import pytest

from tests.conftest import ROOT
from tests.processes import finished


@cache
def project_files(*patterns: str) -> tuple[str, ...]:
    """Return the files that match, also those not added yet; skip the test without a checkout."""
    command = ["git", "ls-files", "-coz", "--exclude-standard", *patterns]
    try:
        listed = finished(command, None, cwd=ROOT)
    except FileNotFoundError:
        pytest.skip(
            "git is not installed: the files of the project are not known", allow_module_level=True
        )
    names = tuple(name for name in listed.stdout.split("\0") if (ROOT / name).is_file())
    if not names:
        pytest.skip(
            "not a git checkout: the files of the project are not known", allow_module_level=True
        )
    return names
