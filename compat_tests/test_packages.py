"""The wheel and the source package: both install without the checkout, and serve in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from compat_tests.brokers import ROOT
from compat_tests.builds import NOT_COPIED
from compat_tests.raw_client import RawClient
from compat_tests.test_bad_input import create_topic, produce, stored_values
from kafkacompat.wire.record_batch import build_batch

pytestmark = pytest.mark.packages
INSTALL_SECONDS = 600
OTHER_PYTHONS = [version for version in ("3.10", "3.11", "3.12", "3.13") if version != f"3.{sys.version_info.minor}"]


@pytest.fixture(autouse=True)
def _only_ours(broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("these are our packages")


def _run_command(command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None) -> str:
    """Run a command to its end and return its output; AssertionError with the output if it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=_make_environment(variables),
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _make_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which no Python finds the checkout."""
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, **(variables or {})}


@dataclass(frozen=True)
class Packages:
    """The two files that `python -m build` made."""

    wheel: Path
    source: Path


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    folder = tmp_path_factory.mktemp("packages")
    shutil.copytree(ROOT, folder / "checkout", symlinks=True, ignore=NOT_COPIED)
    _run_command([sys.executable, "-m", "build", "--outdir", folder / "dist", "checkout"], folder)
    (wheel,), (source,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return Packages(wheel, source)


def _install_package(python: str, package: Path, folder: Path, **variables: str) -> Path:
    """Install *package* into a new virtual environment in *folder* and return the folder of its programs."""
    _run_command([python, "-m", "venv", folder / "environment"], folder)
    programs = folder / "environment" / "bin"
    _run_command([programs / "python", "-m", "pip", "install", "-q", package], folder, variables)
    return programs


@contextmanager
def _run_server(programs: Path, folder: Path) -> Iterator[int]:
    """Serve in *folder*, with no configuration but the port, which is returned."""
    folder.mkdir()
    command: list[str | Path] = [programs / "kafkacompat", "serve", "--override", "listeners=PLAINTEXT://127.0.0.1:0"]
    with (folder / "stderr").open("w") as errors:
        process = subprocess.Popen(
            command, cwd=folder, env=_make_environment(), stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert process.stdout is not None
    try:
        ready = re.search(r"PLAINTEXT://127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert ready is not None, (folder / "stderr").read_text()
        yield int(ready[1])
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0
        process.stdout.close()


def _check_installed(programs: Path, folder: Path, form: str) -> None:
    """Produce to an installed broker and fetch from it, with that form of the walk, and look for modules beside the packages."""
    assert f"record walk {form}" in _run_command([programs / "kafkacompat", "--version"], folder)
    with _run_server(programs, folder / "empty") as port, RawClient(port) as client:
        create_topic(client, "topic")
        assert produce(client, "topic", build_batch([(0, b"key", b"value", [])])) == 0
        assert stored_values(client, "topic") == [b"value"]
    assert f"record walk {form}" in (folder / "empty" / "stderr").read_text()
    installed = _run_command(
        [programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"], folder
    ).strip()
    assert {"kafkacompat", "spark_integration"} <= (names := {path.name for path in Path(installed).iterdir()})
    assert not names & {"wire", "storage", "handlers", "tests", "compat_tests", "bench"}


def test_the_wheel_serves(packages: Packages, tmp_path: Path) -> None:
    _check_installed(_install_package(sys.executable, packages.wheel, tmp_path), tmp_path, "compiled")


def test_the_source_package_serves_where_there_is_no_compiler(packages: Packages, tmp_path: Path) -> None:
    programs = _install_package(sys.executable, packages.source, tmp_path, CC="/nonexistent/compiler")
    _check_installed(programs, tmp_path, "plain (not compiled for this Python)")


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_the_source_package_serves_on_other_pythons(packages: Packages, tmp_path: Path, version: str) -> None:
    _check_installed(_install_package(_other_python(version), packages.source, tmp_path), tmp_path, "compiled")


def _other_python(version: str) -> str:
    """Return a Python of that version: one on the PATH that runs, or one that pyenv keeps."""
    candidates = [Path(executable)] if (executable := shutil.which(f"python{version}")) else []
    candidates += sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"), reverse=True)
    for candidate in candidates:
        if subprocess.run([candidate, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return str(candidate)
    pytest.skip(f"this machine has no Python {version}")
