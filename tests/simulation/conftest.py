"""What holds for all tests of the simulation."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def restore_log_lines() -> Iterator[None]:
    """Let later tests in this process see log lines again: the command and its runs switch them off."""
    yield
    logging.disable(logging.NOTSET)
