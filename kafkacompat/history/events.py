"""The events of a history: the requests of clients, their results and the records that they read, one line of JSON each.

Times are those of the machine's monotonic clock, which all processes share. A client records a request before it sends it, and
a result after it has received it. So a result that is older than a request was received before that request was sent.
A client is one process, named `<identity>.<incarnation>`; its replacement has the same identity and the next incarnation. A
request without a recorded result may have succeeded or failed.
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


class HistoryPartition(NamedTuple):
    """A partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Send(NamedTuple):
    """A client is about to send the value `<client>:<number>`; its numbers ascend.

    *transaction* is the client's number of its transaction, or None. *source* is the (topic, partition, offset) of the record
    that the value copies.
    """

    time_ns: int
    client: str
    number: int
    place: HistoryPartition
    transaction: int | None = None
    source: tuple[str, int, int] | None = None


class Acknowledged(NamedTuple):
    """The broker acknowledged a value at an offset, which is -1 if the response has none."""

    time_ns: int
    client: str
    number: int
    offset: int


class End(NamedTuple):
    """A client is about to request the commit or the abort of a transaction."""

    time_ns: int
    client: str
    transaction: int
    commit: bool


class Ended(NamedTuple):
    """The broker acknowledged the commit or the abort of a transaction."""

    time_ns: int
    client: str
    transaction: int
    committed: bool


class Positioned(NamedTuple):
    """A consumer starts to read a partition at an offset; its earlier reads are another run."""

    time_ns: int
    client: str
    place: HistoryPartition
    offset: int


class Read(NamedTuple):
    """Records of one partition that a consumer received, as (offset, value)."""

    time_ns: int
    client: str
    isolation: Isolation
    place: HistoryPartition
    records: list[tuple[int, str]]


class Commit(NamedTuple):
    """A client is about to commit an offset for a group, alone or in a transaction; the client numbers its commits."""

    time_ns: int
    client: str
    number: int
    group: str
    place: HistoryPartition
    offset: int
    transaction: int | None = None


class CommitAcknowledged(NamedTuple):
    """The broker acknowledged a commit of an offset; a transaction that it belongs to has not ended yet."""

    time_ns: int
    client: str
    number: int


class Fetched(NamedTuple):
    """A client that sent its request at *asked_ns* received a group's committed offset, -1 if there is none."""

    time_ns: int
    client: str
    group: str
    place: HistoryPartition
    offset: int
    asked_ns: int


class Finished(NamedTuple):
    """A reader has read a partition from its beginning to *offset*.

    When all producers had stopped, the partition ended at *end_offset*. The last reader of each isolation level decides which
    records are in the partition in the end.
    """

    time_ns: int
    client: str
    isolation: Isolation
    place: HistoryPartition
    offset: int
    end_offset: int


class Listed(NamedTuple):
    """A client that sent its request at *asked_ns* received the end of a partition for readers at its isolation level."""

    time_ns: int
    client: str
    isolation: Isolation
    place: HistoryPartition
    end_offset: int
    asked_ns: int


class Restarted(NamedTuple):
    """The broker was killed at *killed_ns* or a little later, and serves again."""

    time_ns: int
    client: str
    killed_ns: int


class Faulted(NamedTuple):
    """A fault of the kind *fault* began on *target* at *begun_ns* and had ended at *time_ns*."""

    time_ns: int
    client: str
    fault: str
    target: str
    begun_ns: int


class Worked(NamedTuple):
    """All clients were at work from *begun_ns* to *time_ns*, apart from those that the run killed."""

    time_ns: int
    client: str
    begun_ns: int


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
    | Faulted
    | Worked
)
_EVENT_TYPES: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}


class HistoryError(Exception):
    """A file is not a complete history."""


def encode_event(event: Event) -> bytes:
    """Encode an event as a line of JSON with its line end."""
    fields = {"event": type(event).__name__, **event._asdict()}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode_event(line: bytes) -> Event:
    """Decode the event of a line; raises HistoryError."""
    try:
        fields = json.loads(line)
        kind = _EVENT_TYPES[fields.pop("event")]
        for name, decode in _FIELD_DECODERS.items():
            if fields.get(name) is not None:
                fields[name] = decode(fields[name])
        return kind(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise HistoryError(f"{line[:100]!r} is not an event of a history: {problem!r}") from problem


def _decode_place(fields: tuple[str, int]) -> HistoryPartition:
    topic, partition = fields
    return HistoryPartition(str(topic), int(partition))


def _decode_records(pairs: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(int(offset), sys.intern(value)) for offset, value in pairs]


_FIELD_DECODERS: dict[str, Callable[[object], object]] = {
    "place": _decode_place,  # type: ignore[dict-item]
    "records": _decode_records,  # type: ignore[dict-item]
    "source": tuple,  # type: ignore[dict-item]
}


def read_history(path: Path) -> Iterator[Event]:
    """Yield the events of a file in their order; raises HistoryError and OSError."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield decode_event(line)
            except HistoryError as problem:
                raise HistoryError(f"{path}, line {number}: {problem}") from problem


def merge_parts(parts: Iterable[Path], target: Path) -> int:
    """Merge the files of all clients into one history in the order of time; returns the number of events.

    A killed client may have left half a line, which is ignored.
    """
    events = sorted((event for path in parts for event in _read_part(path)), key=lambda event: event.time_ns)
    with target.open("wb") as merged:
        merged.writelines(map(encode_event, events))
    return len(events)


def _read_part(path: Path) -> Iterator[Event]:
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield decode_event(line)
