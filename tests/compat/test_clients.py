"""The script that runs real clients, without any: it says so, and reports no difference."""

import sys
from pathlib import Path

from tests.compat import clients
from tests.conftest import ROOT
from tests.processes import finished


def test_missing_clients_are_reported(real_data: Path, tmp_path: Path) -> None:
    names = [name for name, client in clients.CLIENTS.items() if client.folder != "."]
    script = [sys.executable, str(ROOT / "tests" / "compat" / "clients.py"), str(tmp_path)]
    chosen = [word for name in names for word in ("--only", name)]
    done = finished([*script, "--data", str(real_data), *chosen])
    assert done.stdout.splitlines() == [
        f"{name}: cannot run: no folder {tmp_path / clients.CLIENTS[name].folder}" for name in names
    ]
