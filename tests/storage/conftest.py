"""Fixtures: tests with `store` run on the disk, on the disk with portable calls, and in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.storage.files.operating_system import OsFiles
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import Store


@pytest.fixture(params=["disk", "portable", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A file system and an empty folder in it."""
    if request.param == "memory":
        return memory_store()
    return Store(OsFiles(portable=request.param == "portable"), str(tmp_path))


@pytest.fixture
def memory() -> Store:
    """A file system in memory, for tests that make it fail."""
    return memory_store()


def memory_store() -> Store:
    """Create a file system in memory with a synced empty folder."""
    files = MemoryFiles()
    files.make_directory("/logs")
    files.sync_directory("/")
    return Store(files, "/logs")
