"""The machine, in the words that a reader needs to judge a time."""

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path


def describe() -> dict[str, str]:
    """Return what this machine is, without anything that names it."""
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
    """Return how many cores this process may use."""
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
    """Return how busy the machine was in the last minute, in processes ready to run."""
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"


def _field(path: str, name: str) -> str:
    if sys.platform != "linux":
        return ""
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
