"""Facts and CPU usage of the machine that runs the benchmarks."""

from __future__ import annotations

import os
import platform
from pathlib import Path

CpuTimes = tuple[int, int]  # total, idle


def facts() -> dict[str, object]:
    memory = Path("/proc/meminfo").read_text()
    return {
        "cores": os.cpu_count(),
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "memory_mib": mib(memory, "MemTotal"),
        "available_mib": mib(memory, "MemAvailable"),
        "load_before": os.getloadavg()[0],
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def available_mib() -> int:
    return mib(Path("/proc/meminfo").read_text(), "MemAvailable")


def cpu_times() -> CpuTimes:
    return read_cpu_times(Path("/proc/stat").read_text())


def busy_percent(before: CpuTimes, after: CpuTimes) -> float:
    """CPU usage of the machine between two samples; 100 is all cores."""
    passed, idle = after[0] - before[0], after[1] - before[1]
    return 100 * (passed - idle) / passed if passed else 0.0


def read_cpu_times(stat: str) -> CpuTimes:
    """Parse /proc/stat. Guest time is left out because user time includes it."""
    fields = [int(field) for field in stat.splitlines()[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]  # idle and iowait


def mib(meminfo: str, name: str) -> int:
    line = next(line for line in meminfo.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) // 1024


def cpu_model(cpuinfo: str) -> str:
    names = (line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name"))
    return next(names, platform.machine())
