"""Node's streams of @platformatic/kafka: a transactional job from topic to topic, killed in the middle."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.frameworks.copying import check_killed_copy
from compat_tests.frameworks.programme import FOLDER, Programme
from spark_integration.runtime.maven import BUILD, build_once, find_program

pytestmark = pytest.mark.frameworks

# The newest release that runs on Node 20.
PACKAGES = {"@platformatic/kafka": "1.35.0"}
SOURCE = FOLDER / "node" / "stream_job.mjs"
INSTALL_SECONDS = 300


def test_streams(broker: Broker, name: str, tmp_path: Path) -> None:
    command = [find_program("node"), str(install_job()), broker.bootstrap, name]
    check_killed_copy(broker, name, lambda: Programme(command, tmp_path / "log"))


def install_job() -> Path:
    """Return the path of the job beside its packages, which npm installs the first time."""
    content = json.dumps(PACKAGES).encode() + SOURCE.read_bytes()
    target = BUILD / "frameworks" / f"node-{hashlib.sha256(content).hexdigest()[:12]}"

    def install(partial: Path) -> None:
        (partial / "package.json").write_text(json.dumps({"private": True, "dependencies": PACKAGES}))
        (partial / SOURCE.name).write_bytes(SOURCE.read_bytes())
        command = [find_program("npm"), "install", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(command, cwd=partial, check=True, timeout=INSTALL_SECONDS)

    build_once(target, install)
    return target / SOURCE.name
