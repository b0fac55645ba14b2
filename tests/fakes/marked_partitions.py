"""Partitions in memory that take records and transaction markers, at once, later or never, as a test wishes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.wire.errors import ErrorCode, KafkaError


class Record(NamedTuple):
    """A record of a transaction."""

    value: object
    producer_id: int
    producer_epoch: int


@dataclass
class FakePartition:
    """Keeps ``markers``, and which records are ``open``, ``committed`` and ``aborted``."""

    markers: list[Marker] = field(default_factory=list)
    open: list[Record] = field(default_factory=list)
    committed: list[object] = field(default_factory=list)
    aborted: list[object] = field(default_factory=list)
    epochs: dict[int, int] = field(default_factory=dict)
    coordinator_epochs: dict[int, int] = field(default_factory=dict)
    refuse_with: ErrorCode | None = None
    hold: bool = False
    held: list[tuple[Marker, Deferred[AppendResult]]] = field(default_factory=list)

    def write(self, value: object, producer_id: int, producer_epoch: int) -> bool:
        """Take a record of an open transaction; False when its producer is fenced."""
        if producer_epoch < self.epochs.get(producer_id, -1):
            return False
        self.epochs[producer_id] = producer_epoch
        self.open.append(Record(value, producer_id, producer_epoch))
        return True

    def append_marker(self, marker: Marker, now_ms: int) -> AppendResult | Deferred[AppendResult]:
        if self.refuse_with is not None:
            raise KafkaError(self.refuse_with, "the test refuses")
        if self.hold:
            self.held.append((marker, Deferred()))
            return self.held[-1][1]
        return self._take(marker)

    def release(self) -> None:
        """Append the held markers."""
        self.hold = False
        held, self.held = self.held, []
        for marker, answer in held:
            answer.callback(self._take(marker))

    def _take(self, marker: Marker) -> AppendResult:
        self._check(marker)
        self.markers.append(marker)
        self.epochs[marker.producer_id] = marker.producer_epoch
        self.coordinator_epochs[marker.producer_id] = marker.coordinator_epoch
        ended = [record for record in self.open if record.producer_id == marker.producer_id]
        self.open = [record for record in self.open if record.producer_id != marker.producer_id]
        (self.committed if marker.is_commit else self.aborted).extend(record.value for record in ended)
        return None  # type: ignore[return-value]  # no caller reads it

    def _check(self, marker: Marker) -> None:
        epoch = self.epochs.get(marker.producer_id, -1)
        is_open = any(record.producer_id == marker.producer_id for record in self.open)
        is_repeat = marker.producer_epoch == epoch and not is_open
        too_old = marker.producer_epoch <= epoch if marker.transaction_version >= 2 else marker.producer_epoch < epoch
        if too_old and not is_repeat:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, f"{marker.producer_epoch} is older than {epoch}")
        if marker.coordinator_epoch < self.coordinator_epochs.get(marker.producer_id, -1):
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, "there is a newer coordinator")


class FakePartitions:
    """Partitions by topic and number, which come to be when they are asked for; ``deleted`` are no more."""

    def __init__(self) -> None:
        self.all: defaultdict[tuple[str, int], FakePartition] = defaultdict(FakePartition)
        self.deleted: set[tuple[str, int]] = set()

    def find(self, topic: str, partition: int) -> FakePartition:
        if self.is_deleted(topic, partition):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {topic}-{partition}")
        return self.all[topic, partition]

    def is_deleted(self, topic: str, partition: int) -> bool:
        return (topic, partition) in self.deleted
