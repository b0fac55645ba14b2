"""Writing transaction markers to partitions: those of this broker's coordinator, and those that WriteTxnMarkers brings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.timers import Clock, now_ms, yield_in_turns
from kafkacompat.transactions.transaction import TopicPartition
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

MarkerCodes: TypeAlias = "dict[TopicPartition, ErrorCode]"


class MarkedPartition(Protocol):
    """A partition that a marker is written to; `Partition` implements it."""

    def append_marker(self, marker: Marker, now_ms: int) -> AppendResult | Deferred[AppendResult]:
        """Write a marker. Raises KafkaError, or the Deferred fails with it."""
        ...


EndOffsets: TypeAlias = "Callable[[int, int, bool, Callable[[], object]], Deferred[ErrorCode]]"


class MarkerWriter:
    """Writes markers. ``find`` returns a partition of this broker or raises KafkaError (`ReplicaManager.find`).

    ``end_transaction`` appends the markers for the offsets topic, in order with the commits. Its arguments are the partition, the
    producer id, whether the transaction commits, and a function that appends the marker: see `GroupCoordinator`.
    """

    def __init__(
        self,
        clock: Clock,
        find: Callable[[str, int], MarkedPartition],
        end_transaction: EndOffsets,
    ) -> None:
        self._clock = clock
        self._find = find
        self._end_transaction = end_transaction

    def write(self, marker: Marker, partitions: Collection[TopicPartition]) -> Deferred[MarkerCodes]:
        """Write a marker to partitions of this broker. Fires with the code of each partition, and never fails."""
        return Deferred.fromCoroutine(self._write(marker, partitions))

    def send(self, marker: Marker, partitions: Collection[TopicPartition]) -> Sequence[Deferred[MarkerCodes]]:
        """See MarkerTransport: all partitions are this broker's."""
        return [self.write(marker, partitions)]

    async def _write(self, marker: Marker, partitions: Collection[TopicPartition]) -> MarkerCodes:
        under_way: list[tuple[TopicPartition, ErrorCode | Deferred[ErrorCode]]] = []
        async for partition in yield_in_turns(self._clock, partitions):
            under_way.append((partition, self._write_to(marker, partition)))
        return {
            partition: await outcome if isinstance(outcome, Deferred) else outcome for partition, outcome in under_way
        }

    def _write_to(self, marker: Marker, partition: TopicPartition) -> ErrorCode | Deferred[ErrorCode]:
        topic, index = partition
        try:
            append = partial(self._find(topic, index).append_marker, marker, now_ms(self._clock))
            if topic == OFFSETS_TOPIC:
                return self._end_transaction(index, marker.producer_id, marker.is_commit, append)
            appended = append()
        except Exception as problem:
            return _code_of(problem)
        if not isinstance(appended, Deferred):
            return ErrorCode.NONE
        return appended.addCallbacks(lambda _: ErrorCode.NONE, lambda failure: _code_of(failure.value))


def _code_of(problem: BaseException | None) -> ErrorCode:
    if isinstance(problem, KafkaError):
        return problem.code
    log.error("Failed to write a transaction marker", exc_info=problem)
    return ErrorCode.UNKNOWN_SERVER_ERROR
