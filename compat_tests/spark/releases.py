"""Pythons with other releases of Spark: a virtual environment under ``build/spark`` for each, made when asked for."""

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
# The oldest and the newest that the extra `spark` allows, and the newest of what lies between.
RELEASES = ("3.5.8", "4.1.3", "4.2.1")


def python_of(release: str) -> Path:
    """Return the Python of an environment with pyspark *release*, this project (its checkout) and its extras.

    Changed extras have a new environment. Raises subprocess.CalledProcessError when pip fails, with its words.
    """
    digest = hashlib.sha256(requirements().encode()).hexdigest()[:12]
    target = BUILD / "spark" / f"{release}-{digest}"
    build_once(target, lambda partial: _install(partial, release))
    return target / "bin" / "python"


def tables() -> list[str]:
    """Return the formats of tables that there are jars of for the Spark of this Python."""
    release = packages.RELEASES[packages.minor_release(packages.find_installation().spark)]
    return [package for package in release.packages if package != "kafka"]


def requirements() -> str:
    """Return what setup.cfg says that the project and the extras need."""
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    extras = parser["options.extras_require"]
    return "".join([parser["options"]["install_requires"], *(extras[name] for name in EXTRAS)])


def _install(folder: Path, release: str) -> None:
    _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run([*pip, "-e", f"{ROOT}[{','.join(EXTRAS)}]", f"pyspark=={release}"])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL)
