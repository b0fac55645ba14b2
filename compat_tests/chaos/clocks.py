"""Clocks of brokers that are set apart from the machine's, by a small library (`clock.c`) that is loaded into them.

libfaketime is not used: Python's sleeps fail in a process whose offset changes (0.9.10).
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from compat_tests.brokers import Broker
from spark_integration.runtime.maven import BUILD, build_once

SOURCE = Path(__file__).with_name("clock.c")
LIBRARY = "libclock.so"
OFFSET_BYTES = 8


def has_compiler() -> bool:
    """Return whether the library can be built."""
    return shutil.which("cc") is not None


def settle_clock(broker: Broker) -> Path:
    """Let a broker have a clock of its own; return the file with its offset from the machine's clock."""
    broker.folder.mkdir(parents=True, exist_ok=True)
    clock = broker.folder / "clock"
    clock.write_bytes(bytes(OFFSET_BYTES))
    broker.prefix = [*broker.prefix, "env", f"LD_PRELOAD={_build_library()}", f"CLOCK_OFFSET_FILE={clock}"]
    return clock


def write_clock(path: Path, offset_s: int) -> None:
    """Set a clock; it counts at once."""
    with path.open("r+b", buffering=0) as file:
        file.write(offset_s.to_bytes(OFFSET_BYTES, "little", signed=True))


def _build_library() -> Path:
    """Return the library, built once for each content of the source."""
    folder = BUILD / "clock" / hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    build_once(folder, _compile)
    return folder / LIBRARY


def _compile(folder: Path) -> None:
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(folder / LIBRARY), str(SOURCE)], check=True)
