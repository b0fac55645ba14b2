"""Reads batches of records by librdkafka until the end, a count, or an interrupt.

A million records take as many steps in Python, so that nothing here is done for each record that can be done for a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.cli.remote.records.failures import BrokerWatch, explain_error

POLL_S = 0.05
FIRST_BATCH, LARGEST_BATCH = 500, 1000
"""Larger ones are slower, because they do not stay in the caches of the processor."""
BATCH_BYTES = 8 << 20
"""A batch of records should not take more memory than this."""

Batch = list[Any]
"""Messages of librdkafka, all of them records."""


class RecordReader:
    """Reads records from a consumer of librdkafka whose partitions are assigned, or which is subscribed.

    ``ends`` holds the offset at which reading a partition ends, and a partition that is not in it has no record to read;
    None reads for ever. ``most`` limits the count of records.
    """

    def __init__(
        self, library: Any, consumer: Any, watch: BrokerWatch, *, ends: Mapping[int, int] | None, most: int | None
    ) -> None:
        self._library = library
        self._consumer = consumer
        self._watch = watch
        self._ends = ends
        self._left = most
        self._batch_size = FIRST_BATCH
        self._topic = ""
        self._assigned: set[int] | None = None
        self._finished: set[int] = set()

    def assign(self, topic: str, starts: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on."""
        self._topic = topic
        self._assigned = set(starts)
        partition = self._library.TopicPartition
        self._consumer.assign([partition(topic, number, offset) for number, offset in starts.items()])

    def subscribe(self, topic: str) -> None:
        """Read the partitions that the consumer's group assigns to it."""
        self._topic = topic
        self._consumer.subscribe([topic], on_assign=self._note_assigned, on_revoke=self._note_revoked)

    def _note_assigned(self, _: Any, partitions: list[Any]) -> None:
        self._assigned = (self._assigned or set()) | {partition.partition for partition in partitions}

    def _note_revoked(self, _: Any, partitions: list[Any]) -> None:
        left = (self._assigned or set()) - {partition.partition for partition in partitions}
        # None until the group has assigned others: without that a rebalance would look like the end.
        self._assigned = left or None

    def resize(self, batch_bytes: int, count: int) -> None:
        """Choose the size of the next batches by that of one, whose output takes *batch_bytes*."""
        self._batch_size = max(1, min(LARGEST_BATCH, BATCH_BYTES * count // max(1, batch_bytes)))

    def read(self) -> Iterator[Batch]:
        """Yield batches of at least one record; raises RemoteError."""
        while not self._is_done():
            wanted = self._batch_size if self._left is None else min(self._batch_size, self._left)
            messages = self._consumer.consume(wanted, POLL_S)
            if not messages:
                self._watch.check(self._probe)
                continue
            self._watch.note_life()
            batch = self._drop_events(messages)
            if batch and self._ends is not None:
                batch = self._cut_at_ends(batch, self._ends)
            if batch:
                if self._left is not None:
                    self._left -= len(batch)
                yield batch

    def _is_done(self) -> bool:
        if self._left == 0:
            return True
        return self._ends is not None and self._assigned is not None and self._assigned <= self._finished

    def _probe(self, timeout_s: float) -> object:
        return self._consumer.list_topics(self._topic, timeout_s)

    def _drop_events(self, messages: Batch) -> Batch:
        """Return the messages that are records, and take note of those that are not; raises RemoteError."""
        events = [message for message in messages if message.error() is not None]
        if not events:
            return messages
        for event in events:
            self._note_event(event)
        return [message for message in messages if message.error() is None]

    def _note_event(self, event: Any) -> None:
        error = event.error()
        if error.code() == self._library.KafkaError._PARTITION_EOF:
            if self._ends is not None:
                self._finish(event.partition())
        elif not error.retriable() and error.name() != "_MAX_POLL_EXCEEDED":
            raise RemoteError(f"topic {self._topic} cannot be read: {explain_error(error)}")

    def _cut_at_ends(self, batch: Batch, ends: Mapping[int, int]) -> Batch:
        """Drop the records that were appended after the start, and finish the partitions that have reached their ends."""
        last = find_last_offsets(batch)
        for partition, offset in last.items():
            if offset >= ends.get(partition, 0) - 1:
                self._finish(partition)
        if all(offset < ends.get(partition, 0) for partition, offset in last.items()):
            return batch
        return [message for message in batch if message.offset() < ends.get(message.partition(), 0)]

    def _finish(self, partition: int) -> None:
        if partition not in self._finished:
            self._finished.add(partition)
            # A partition that the group has just moved elsewhere needs no pause.
            with suppress(self._library.KafkaException):
                self._consumer.pause([self._library.TopicPartition(self._topic, partition)])


def find_last_offsets(batch: Batch) -> dict[int, int]:
    """Return the offset of the last record of each partition; the records of a partition are in order."""
    return {message.partition(): message.offset() for message in batch}


def store_offsets(library: Any, consumer: Any, topic: str, batch: Batch) -> None:
    """Let the consumer commit that its group has read a batch."""
    partition = library.TopicPartition
    offsets = [partition(topic, number, offset + 1) for number, offset in find_last_offsets(batch).items()]
    # The group may have moved a partition in the meantime; its new owner reads these records again.
    with suppress(library.KafkaException):
        consumer.store_offsets(offsets=offsets)
