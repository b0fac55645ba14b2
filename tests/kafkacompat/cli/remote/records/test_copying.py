"""Records from the reader to the output, and outputs that end or fail."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest

from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.cli.remote.records.consume_run import copy_records
from kafkacompat.cli.remote.records.line_format import format_values
from tests.kafkacompat.cli.remote.records.fake_client import FakeMessage


class StubReader:
    """Yields two batches, and then raises *problem* if there is one."""

    def __init__(self, problem: BaseException | None = None) -> None:
        self._problem = problem
        self.sizes: list[tuple[int, int]] = []

    def read(self) -> Iterator[list[FakeMessage]]:
        yield [FakeMessage(b"a"), FakeMessage(b"b")]
        yield [FakeMessage(b"cd")]
        if self._problem is not None:
            raise self._problem

    def resize(self, batch_bytes: int, count: int) -> None:
        self.sizes.append((batch_bytes, count))


class FailingOutput(io.BytesIO):
    """Takes one write."""

    def __init__(self, problem: OSError) -> None:
        super().__init__()
        self._problem = problem

    def write(self, data: Any) -> int:
        if self.tell():
            raise self._problem
        return super().write(data)


def test_each_batch_is_stored_after_it_is_written() -> None:
    reader: Any = StubReader()
    stream, stored = io.BytesIO(), []
    assert copy_records(reader, format_values, stream, lambda batch: stored.append((len(batch), stream.tell()))) == 0
    assert stream.getvalue() == b"a\nb\ncd\n"
    assert stored == [(2, 4), (1, 7)]
    assert reader.sizes == [(4, 2), (3, 1)]


def test_an_interrupt_has_its_exit_code() -> None:
    reader: Any = StubReader(KeyboardInterrupt())
    assert copy_records(reader, format_values, io.BytesIO(), None) == 130


def test_a_full_disk_is_one_sentence_and_nothing_more_is_stored() -> None:
    reader: Any = StubReader()
    stored: list[int] = []
    full = FailingOutput(OSError(28, "No space left on device"))
    with pytest.raises(RemoteError, match=r"^the output cannot be written: the disk is full$"):
        copy_records(reader, format_values, full, lambda batch: stored.append(len(batch)))
    assert stored == [2]


def test_a_closed_pipe_goes_on_to_what_ends_the_command_quietly() -> None:
    reader: Any = StubReader()
    with pytest.raises(BrokenPipeError):
        copy_records(reader, format_values, FailingOutput(BrokenPipeError(32, "Broken pipe")), None)
