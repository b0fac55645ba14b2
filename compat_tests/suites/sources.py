"""Where the tests of each suite come from: a source package of PyPI, or a clone that the caller names."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "suites"
PACKAGES = FOLDER / "packages"
"""Packages that only suites need."""


FIRST_REAL_TIME = (4, 2)
"""The first release of PySpark that has the trigger ``realTime``."""


class MissingSourceError(Exception):
    """The tests of a suite are not available; the message is one sentence."""


def fetch_kafka_python(clone: Path | None) -> Path:
    """Return a folder with the tests of the installed kafka-python, from its source package or from *clone*."""
    if clone is not None:
        return _copy(clone, FOLDER / "kafka-python", "kafka", "test", "pyproject.toml")
    name = f"kafka_python-{version('kafka-python')}"
    folder = FOLDER / name
    if not folder.exists():
        requirement = f"kafka-python=={version('kafka-python')}"
        _run_pip("download", "--no-deps", "--no-binary", "kafka-python", "--dest", FOLDER, requirement)
        with tarfile.open(FOLDER / f"{name}.tar.gz") as archive:
            archive.extractall(FOLDER, filter="data")
    # Without this file `test` would be a package of Python itself.
    (folder / "test" / "__init__.py").touch()
    return folder


def fetch_aiokafka(clone: Path | None) -> Path:
    """Return a folder with the tests of *clone*: no package on PyPI has them. Raises MissingSourceError without a clone."""
    if clone is None:
        raise MissingSourceError(
            "the tests of aiokafka are in no package of PyPI: clone its repository, and name the folder by --aiokafka"
        )
    install_packages("pytest-asyncio", "async-timeout")
    return _copy(clone, FOLDER / "aiokafka", "tests", "pyproject.toml")


def fetch_pyspark(clone: Path | None) -> Path:
    """Return a folder with the Kafka test file of Spark's repository: no package on PyPI has it. Raises MissingSourceError."""
    if clone is None:
        raise MissingSourceError(
            "the tests of PySpark are in no package of PyPI: clone Spark's repository, and name the folder by --pyspark"
        )
    if tuple(map(int, version("pyspark").split(".")[:2])) < FIRST_REAL_TIME:
        raise MissingSourceError(
            f"PySpark {version('pyspark')} has no real-time mode, which its test uses: install 4.2 or newer"
        )
    return _copy(clone / "python/pyspark/sql/tests/streaming", FOLDER / "pyspark", "test_streaming_kafka_rtm.py")


def install_packages(*names: str) -> None:
    """Install packages that only suites need into a folder of their own."""
    if not all((PACKAGES / name.replace("-", "_")).exists() for name in names):
        _run_pip("install", "--no-deps", "--target", PACKAGES, *names)


def _copy(clone: Path, target: Path, *names: str) -> Path:
    """Copy files and folders of a clone, without the package beside them, which is not built there."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in names:
        if not (clone / name).exists():
            raise MissingSourceError(f"{clone} is no clone of this suite: it has no {name}")
        copy = shutil.copytree if (clone / name).is_dir() else shutil.copy
        copy(clone / name, target / name)
    return target


def _run_pip(*arguments: object) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "pip", *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise MissingSourceError(f"pip {arguments[0]} {arguments[-1]} has failed: {done.stderr.strip()[-300:]}")
