"""What a worker process says, and how a computation that gives its results one by one is ended."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.workers import child
from kafkacompat.workers.child import END, ITEM, PROBLEM, RESULT, STREAM


def answer_calls(monkeypatch: pytest.MonkeyPatch, input_bytes: bytes, given: Any) -> list[tuple[int, Any]]:
    """Return the answers to *input_bytes* of a process whose functions all are *given*, without its first message."""

    class Standard:
        def __init__(self, data: bytes = b"") -> None:
            self.buffer = io.BytesIO(data)

    out = Standard()
    monkeypatch.setattr(child.sys, "stdin", Standard(input_bytes))  # type: ignore[attr-defined]
    monkeypatch.setattr(child.sys, "stdout", out)  # type: ignore[attr-defined]
    monkeypatch.setattr(child.signal, "signal", lambda *_: None)  # type: ignore[attr-defined]
    monkeypatch.setattr(child.os, "nice", lambda _: 0)  # type: ignore[attr-defined]
    imported: list[str] = []

    def function(name: str) -> Any:
        imported.append(name)
        return given

    monkeypatch.setattr(child, "import_function", function)
    child.main()
    out.buffer.seek(0)
    answers = []
    while out.buffer.tell() < len(out.buffer.getvalue()):
        answers.append(pickle.load(out.buffer))
    assert imported[: len(child.FUNCTIONS)] == list(child.FUNCTIONS)
    assert answers.pop(0) == (RESULT, None)
    return answers


CALL = pickle.dumps(("any", (2,)))


def test_a_function_gives_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer_calls(monkeypatch, CALL * 2, lambda number: 2 * number) == [(RESULT, 4)] * 2


def test_an_iterator_computes_only_requested_items(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []

    def count(number: int) -> Iterator[int]:
        for item in range(number):
            computed.append(item)
            yield item

    whole = [(STREAM, None), (ITEM, 0), (ITEM, 1), (END, None)]
    assert answer_calls(monkeypatch, CALL + b"\n\n\n" + CALL + b"\n", count) == [*whole, (STREAM, None), (ITEM, 0)]
    assert computed == [0, 1, 0]


def test_an_iterator_may_fail_and_the_next_call_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> Iterator[int]:
        yield number
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "no more")

    *before, (kind, problem), after = answer_calls(monkeypatch, CALL + b"\n\n" + CALL, refuse)
    assert (before, kind, after) == ([(STREAM, None), (ITEM, 2)], PROBLEM, (STREAM, None))
    assert "no more" in str(problem)


def test_every_function_is_there() -> None:
    for name in child.FUNCTIONS:
        assert callable(child.import_function(name))
