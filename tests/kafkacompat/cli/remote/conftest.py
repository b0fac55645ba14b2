"""The broker that the commands of this folder are run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafkacompat.cli.remote.world import RemoteWorld


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteWorld:
    """A started broker."""
    return RemoteWorld(tmp_path, monkeypatch)
