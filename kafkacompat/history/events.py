"""The record of a history: what clients asked for, what they were answered and what they read, a line of JSON each.

Times are of the machine's monotonic clock, which all its processes share. What is asked for is recorded before it is
asked, and what is answered after it is known: so an answer that is older than a question was given before it.
A client has one process, named `<identity>.<incarnation>`: who takes its place after its end is the same with the next
number. What has no answer may be either.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, get_args

Isolation = str
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
ISOLATIONS = (READ_UNCOMMITTED, READ_COMMITTED)


class Place(NamedTuple):
    """A partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Send(NamedTuple):
    """A client is about to send the value `<client>:<number>`; its numbers ascend.

    *transaction* is the client's number of it, or None. *source* is (topic, partition, offset) of the record that the
    value is made of.
    """

    time_ns: int
    client: str
    number: int
    place: Place
    transaction: int | None = None
    source: tuple[str, int, int] | None = None


class Acknowledged(NamedTuple):
    """A value is stored, at an offset, or at -1 if that was not told."""

    time_ns: int
    client: str
    number: int
    offset: int


class End(NamedTuple):
    """A client is about to ask for the commit or the abort of a transaction."""

    time_ns: int
    client: str
    transaction: int
    commit: bool


class Ended(NamedTuple):
    """The transaction is committed or aborted."""

    time_ns: int
    client: str
    transaction: int
    committed: bool


class Positioned(NamedTuple):
    """A consumer reads a partition from an offset on: what it has read before does not bind it any longer."""

    time_ns: int
    client: str
    place: Place
    offset: int


class Read(NamedTuple):
    """Records of one partition that a consumer was given, as (offset, value)."""

    time_ns: int
    client: str
    isolation: Isolation
    place: Place
    records: list[tuple[int, str]]


class Commit(NamedTuple):
    """A client is about to commit an offset for a group, by itself or in a transaction. Numbers are the client's."""

    time_ns: int
    client: str
    number: int
    group: str
    place: Place
    offset: int
    transaction: int | None = None


class CommitAcknowledged(NamedTuple):
    """The commit is stored; if it is part of a transaction, that has to end yet."""

    time_ns: int
    client: str
    number: int


class Fetched(NamedTuple):
    """What a client, asking at *asked_ns*, was told to be a group's committed offset: -1 if there is none."""

    time_ns: int
    client: str
    group: str
    place: Place
    offset: int
    asked_ns: int


class Finished(NamedTuple):
    """A reader has read a partition from its beginning to *offset*; when all others had stopped it ended at *end_offset*.

    Of those of an isolation the last one tells what is there in the end.
    """

    time_ns: int
    client: str
    isolation: Isolation
    place: Place
    offset: int
    end_offset: int


class Listed(NamedTuple):
    """What a client, asking at *asked_ns*, was told to be the end of a partition for readers at its isolation."""

    time_ns: int
    client: str
    isolation: Isolation
    place: Place
    end_offset: int
    asked_ns: int


class Restarted(NamedTuple):
    """The broker was killed at *killed_ns* or a little later, and is there again."""

    time_ns: int
    client: str
    killed_ns: int


Event = (
    Send
    | Acknowledged
    | End
    | Ended
    | Positioned
    | Read
    | Commit
    | CommitAcknowledged
    | Fetched
    | Finished
    | Listed
    | Restarted
)
_OF_NAME: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}


class HistoryError(Exception):
    """A file is no history, or not a whole one."""


def line_of(event: Event) -> bytes:
    """An event as a line, with its end."""
    fields = {"event": type(event).__name__, **event._asdict()}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def event_of(line: bytes) -> Event:
    """The event that a line tells; raises HistoryError."""
    try:
        fields = json.loads(line)
        kind = _OF_NAME[fields.pop("event")]
        for name, read in _READ.items():
            if fields.get(name) is not None:
                fields[name] = read(fields[name])
        return kind(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise HistoryError(f"{line[:100]!r} is no event of a history: {problem!r}") from problem


def _place(fields: tuple[str, int]) -> Place:
    topic, partition = fields
    return Place(str(topic), int(partition))


def _records(pairs: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(int(offset), sys.intern(value)) for offset, value in pairs]


_READ: dict[str, Callable[[object], object]] = {"place": _place, "records": _records, "source": tuple}  # type: ignore[dict-item]


def read_history(path: Path) -> Iterator[Event]:
    """The events of a file in their order; raises HistoryError, OSError."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield event_of(line)
            except HistoryError as problem:
                raise HistoryError(f"{path}, line {number}: {problem}") from problem


def merge_parts(parts: Iterable[Path], target: Path) -> int:
    """Join what each client recorded to one history in the order of time; return the number of events.

    A client that was killed may have left half a line, which tells nothing.
    """
    events = sorted((event for path in parts for event in _part(path)), key=lambda event: event.time_ns)
    with target.open("wb") as merged:
        merged.writelines(map(line_of, events))
    return len(events)


def _part(path: Path) -> Iterator[Event]:
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield event_of(line)
