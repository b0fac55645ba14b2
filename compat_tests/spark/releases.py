"""Pythons with other releases of Spark: a virtual environment under ``build/spark`` for each, created on demand."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from configparser import ConfigParser
from pathlib import Path

from spark_integration.runtime import packages
from spark_integration.runtime.maven import BUILD, build_once

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("spark", "test", "demo")
INSTALL_SECONDS = 900
# The oldest and the newest release that the extra `spark` allows, and the newest of each minor release between.
RELEASES = ("3.5.8", "4.1.3", "4.2.1")


def python_of(release: str) -> Path:
    """Return the Python of an environment with pyspark *release*, this checkout and its extras.

    If the extras change, a new environment is made. Raises subprocess.CalledProcessError if pip fails, with its output.
    """
    digest = hashlib.sha256(read_requirements().encode()).hexdigest()[:12]
    target = BUILD / "spark" / f"{release}-{digest}"
    build_once(target, lambda partial: _install_release(partial, release))
    return target / "bin" / "python"


def table_formats() -> list[str]:
    """Return the formats of tables for which the Spark of this Python has jars."""
    release = packages.RELEASES[packages.minor_release(packages.find_installation().spark)]
    return [package for package in release.packages if package != "kafka"]


def read_requirements() -> str:
    """Return the requirements of the project and its extras in setup.cfg."""
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    extras = parser["options.extras_require"]
    return "".join([parser["options"]["install_requires"], *(extras[name] for name in EXTRAS)])


def _install_release(folder: Path, release: str) -> None:
    _run_command([sys.executable, "-m", "venv", str(folder)])
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run_command([*pip, "-e", f"{ROOT}[{','.join(EXTRAS)}]", f"pyspark=={release}"])


def _run_command(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL)
