"""Description of the machine."""

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path


def describe() -> dict[str, str]:
    """Return the properties of this machine, without its name."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": processor(),
        "cores": str(cores()),
        "memory": memory(),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "C library": " ".join(platform.libc_ver()).strip() or "unknown",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "load before": load(),
    }


def cores() -> int:
    """Return the number of cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    name = _field("/proc/cpuinfo", "model name")
    virtual = " (virtual)" if "hypervisor" in _field("/proc/cpuinfo", "flags").split() else ""
    return (name or platform.processor() or "unknown") + virtual


def memory() -> str:
    total = _field("/proc/meminfo", "MemTotal")
    return f"{int(total.split()[0]) / 2**20:.0f} GiB" if total else "unknown"


def load() -> str:
    """Return the load average of the last minute."""
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"


def _field(path: str, name: str) -> str:
    if sys.platform != "linux":
        return ""
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
