"""Why a topic lacks offsets: each hole is looked up in the broker's log."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from spark_integration.audit.log_batches import LogBatch, ReadLogBatches
from spark_integration.topics.offsets import TopicPartition

MARKER, COMPACTED, UNEXPLAINED, UNEXAMINED = "marker", "compacted", "unexplained", "unexamined"


class OffsetHole(NamedTuple):
    """Offsets without a record, `first` to `last`, and the kind of the hole."""

    topic: str
    partition: int
    first: int
    last: int
    kind: str = UNEXAMINED

    @property
    def offsets(self) -> int:
        """The number of offsets."""
        return self.last - self.first + 1


def explain_holes(
    holes: Iterable[OffsetHole], read: ReadLogBatches, compacted_topics: Collection[str]
) -> Iterator[OffsetHole]:
    """Split *holes*, which come in order, by what the log holds there.

    A control batch is a transaction's marker. A batch of records that covers an offset without a record was compacted.
    If no batch covers an offset, a compacted topic may have lost it to compaction; in any other topic it is
    unexplained.
    """
    known: deque[LogBatch] = deque()
    place: TopicPartition | None = None
    for hole in holes:
        here = TopicPartition(hole.topic, hole.partition)
        if here != place:
            place = here
            known.clear()
        position = hole.first
        while position <= hole.last:
            if not _drop_before(known, position):
                known.extend(read(here, position) or ())
            if not _drop_before(known, position):
                yield hole._replace(first=position)
                break
            part = _first_part(hole, position, known[0], hole.topic in compacted_topics)
            yield part
            position = part.last + 1


def _drop_before(known: deque[LogBatch], position: int) -> bool:
    """Drop the batches before *position*; return whether a batch is left that tells what lies there."""
    while known and known[0].last < position:
        known.popleft()
    return bool(known)


def _first_part(hole: OffsetHole, position: int, batch: LogBatch, is_compacted: bool) -> OffsetHole:
    """Return the first part of the hole, from *position* on, that is of one kind; *batch* is the first not before it."""
    if position < batch.first:
        kind = COMPACTED if is_compacted else UNEXPLAINED
        return hole._replace(first=position, last=min(hole.last, batch.first - 1), kind=kind)
    kind = MARKER if batch.is_control else COMPACTED
    return hole._replace(first=position, last=min(hole.last, batch.last), kind=kind)
