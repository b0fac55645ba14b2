"""The modules that are imported before the first request for them."""

from __future__ import annotations

import pytest

from kafkacompat import handlers
from kafkacompat.handlers import ASKED_FIRST, Handler, load_consumer_apis


def test_the_apis_of_a_consumer_are_loaded_one_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {key: Handler(key, handler.versions) for key, handler in handlers.HANDLERS.items()}
    monkeypatch.setattr(handlers, "HANDLERS", table)
    compiled: list[tuple[str, int]] = []
    for compiler in ("find_reader", "find_stepwise_writer"):
        monkeypatch.setattr(handlers, compiler, lambda message, version: compiled.append((message.__name__, version)))
    loaded = [[key for key, handler in table.items() if "handle" in vars(handler)] for _ in load_consumer_apis()]
    assert [len(keys) for keys in loaded] == list(range(1, len(ASKED_FIRST) + 1))
    assert loaded[-1] == sorted(ASKED_FIRST)
    assert compiled[:2] == [("MetadataRequest", 13), ("MetadataResponse", 13)]
