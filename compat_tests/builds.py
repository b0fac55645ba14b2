"""Wheels of this checkout and of older commits, installed into folders of their own, and brokers that run them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from compat_tests.brokers import ROOT, Broker, KafkacompatBroker
from compat_tests.clusters import KafkacompatCluster

BUILD_SECONDS = 600
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "*.so", "__pycache__", ".*_cache")
OFFLINE = ("--no-index", "--no-deps", "--disable-pip-version-check", "-q")
"""The packages that the wheel needs are those of this environment."""


def is_commit_here(commit: str) -> bool:
    """Return whether this checkout has the commit; a shallow clone may lack it, and a source package has none."""
    try:
        done = subprocess.run(
            ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, check=False
        )
    except FileNotFoundError:
        return False
    return done.returncode == 0


def install_commit(commit: str, folder: Path) -> Path:
    """Build the wheel of a commit and install it below *folder*; return where its packages are."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder / "source", filter="tar")
    return _install(folder)


def install_checkout(folder: Path) -> Path:
    """Build the wheel of this checkout and install it below *folder*; return where its packages are."""
    shutil.copytree(ROOT, folder / "source", symlinks=True, ignore=NOT_COPIED)
    return _install(folder)


def _install(folder: Path) -> Path:
    wheels, installed = folder / "wheels", folder / "installed"
    _run_pip(["wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", str(wheels), str(folder / "source")])
    (wheel,) = wheels.glob("*.whl")
    _run_pip(["install", *OFFLINE, "--target", str(installed), str(wheel)])
    return installed


def _run_pip(arguments: Sequence[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", *arguments],
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


class InstalledBroker(KafkacompatBroker):
    """A broker of an installed wheel; ``installed`` may change between two starts."""

    installed: Path

    def command(self) -> Sequence[str]:
        """Run the program of the wheel, for which neither the checkout nor the working directory is on the path."""
        return [sys.executable, str(self.installed / "bin" / "kafkacompat"), *super().command()[3:]]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.installed), "PYTHONDONTWRITEBYTECODE": ""}


class InstalledCluster(KafkacompatCluster):
    """Three brokers of an installed wheel. Each broker may change to another wheel."""

    def __init__(self, folder: Path, installed: Path) -> None:
        super().__init__(folder)
        self.brokers = {node: _of_wheel(broker, installed) for node, broker in self.brokers.items()}

    def roll(self, node: int, installed: Path, **properties: str) -> None:
        """Stop a broker and start it from another wheel, with further properties or other values of them."""
        broker = self.brokers[node]
        assert isinstance(broker, InstalledBroker)
        self.stop_node(node)
        broker.installed = installed
        broker.properties.update({name.replace("_", "."): value for name, value in properties.items()})
        self.start_node(node)


def _of_wheel(broker: Broker, installed: Path) -> Broker:
    replacement = InstalledBroker(broker.folder, broker.properties)
    replacement.port, replacement.installed = broker.port, installed
    return replacement
