"""The machine and the versions with which the figures were measured."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import kafkacompat
from spark_integration.runtime.maven import find_program


def describe_machine() -> dict[str, str]:
    """Return date, machine and versions."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "processor": f"{_cpu_model()}, {os.cpu_count()} cores",
        "memory": f"{_memory_gigabytes():.0f} GB",
        "kernel": f"{platform.system()} {_cut_suffix(platform.release())}",
        "Python": platform.python_version(),
        "Twisted": version("twisted"),
        "kafkacompat": kafkacompat.__version__,
        "Java": _java_version(),
        "Apache Kafka": "4.3.1, KRaft, one node, heap 1 GB, kafka-server-start.sh's JVM options",
    }


def _cut_suffix(kernel: str) -> str:
    """Return a kernel's version without the suffix of its builder."""
    return kernel.partition("-")[0]


def _cpu_model() -> str:
    match = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return match[1] if match else platform.machine()


def _memory_gigabytes() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


def _java_version() -> str:
    done = subprocess.run([find_program("java"), "-version"], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[0]
