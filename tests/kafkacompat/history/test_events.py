"""Histories as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.history.events import HistoryError, decode_event, encode_event, merge_parts, read_history
from tests.kafkacompat.history.simulation import sound_history


def test_every_event_is_read_as_it_was_written() -> None:
    for event in sound_history(3):
        read = decode_event(encode_event(event))
        assert (type(read), read) == (type(event), event)


def test_what_clients_recorded_is_joined_in_the_order_of_time(tmp_path: Path) -> None:
    events = sound_history(4)
    parts = [tmp_path / name for name in ("a", "b", "c")]
    for number, part in enumerate(parts):
        part.write_bytes(b"".join(map(encode_event, events[number::3])))
    with parts[1].open("ab") as killed:
        killed.write(encode_event(events[0])[:-5])
    assert merge_parts(parts, tmp_path / "all") == len(events)
    assert list(read_history(tmp_path / "all")) == events


@pytest.mark.parametrize("line", [b"", b"{}", b"[1]", b'{"event":"Nothing"}', b'{"event":"End","time_ns":1}', b"\xff"])
def test_a_line_that_is_no_event_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "history"
    path.write_bytes(encode_event(sound_history(1)[0]) + line + b"\n")
    with pytest.raises(HistoryError, match="history, line 2: "):
        list(read_history(path))
