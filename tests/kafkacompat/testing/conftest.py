"""What the tests of brokers for tests share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_installed_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sessions of pytester load the plugin that they name only: an installed one would be a second, and others take time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
