"""What several test modules ask for."""

from __future__ import annotations

import pytest

from kafkacompat.storage.log import copy as log_copy
from kafkacompat.upkeep import moving


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let even a short log take several steps."""
    monkeypatch.setattr(moving, "STEP_BYTES", 400)
    monkeypatch.setattr(moving, "PAUSE_BELOW_BYTES", 300)
    monkeypatch.setattr(log_copy, "CHUNK_BYTES", 300)
    monkeypatch.setattr(log_copy, "SYNC_BYTES", 700)
