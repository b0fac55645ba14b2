"""Consumers: readers that follow the partitions, members of a group that come and go, and the last readers."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kafkacompat.history.client import (
    CLASSIC,
    CONSUMER,
    MIXED,
    HistoryClient,
    ReplacementNeededError,
    is_not_fatal,
    now_ns,
)
from kafkacompat.history.events import (
    READ_UNCOMMITTED,
    Commit,
    CommitAcknowledged,
    Fetched,
    Finished,
    HistoryPartition,
    Listed,
    Positioned,
    Read,
)

MOST_AT_ONCE = 200
CALL_S = 5.0
COMMITTED_SHARE = 0.5
LEFT_SHARE = 0.02
LONGEST_READING_S = 90.0
SECONDS_AN_END = 1.0
"""Time between two requests of a reader for the end of a partition."""

_REPORT_ENDS = {"enable.partition.eof": True}


class RecordedConsumer:
    """A consumer whose positions and records are recorded."""

    def __init__(self, client: HistoryClient, group: str, isolation: str, **config: Any) -> None:
        self._client = client
        self._group = group
        self._isolation = isolation
        settings = {
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "check.crcs": True,
        }
        self.consumer = Consumer({**client.config, **settings, **config})
        self._is_incremental = config.get("group.protocol") == CONSUMER
        self._commits = 0
        self.reached: dict[HistoryPartition, int] = {}
        """With `enable.partition.eof`, the last end that the consumer met in each partition."""

    def close(self) -> None:
        """Close the consumer, which leaves its group."""
        self.consumer.close()

    def start_at(self, places: Iterable[tuple[HistoryPartition, int]]) -> None:
        """Read partitions from offsets on."""
        positions = list(places)
        for place, offset in positions:
            self._client.record(Positioned(now_ns(), self._client.name, place, offset))
        partitions = [TopicPartition(*place, offset) for place, offset in positions]
        if not self._is_incremental:
            self.consumer.assign(partitions)
            return
        if known := [partition for partition in partitions if partition in self.consumer.assignment()]:
            self.consumer.incremental_unassign(known)
        self.consumer.incremental_assign(partitions)

    def subscribe(self, topic: str) -> None:
        """Take part in the group."""

        def assigned(_: Any, partitions: list[Any]) -> None:
            self.start_at(
                self.fetch_committed_offsets(
                    [HistoryPartition(partition.topic, partition.partition) for partition in partitions]
                )
            )

        self.consumer.subscribe([topic], on_assign=assigned)

    def fetch_committed_offsets(self, places: Iterable[HistoryPartition]) -> list[tuple[HistoryPartition, int]]:
        """Fetch the group's committed offsets; 0 where nothing is committed."""
        asked_ns = now_ns()
        partitions = [TopicPartition(*place) for place in places]
        positions = []
        for committed in self._client.retry(partial(self._fetch_committed, partitions), is_not_fatal):
            place, offset = HistoryPartition(committed.topic, committed.partition), max(committed.offset, -1)
            self._client.record(Fetched(now_ns(), self._client.name, self._group, place, offset, asked_ns))
            positions.append((place, max(offset, 0)))
        return positions

    def _fetch_committed(self, partitions: list[Any]) -> list[Any]:
        committed: list[Any] = self.consumer.committed(partitions, CALL_S)
        for partition in committed:
            if partition.error is not None:
                raise KafkaException(partition.error)
        return committed

    def rewind(self) -> None:
        """Read again from the group's committed offsets."""
        if places := [HistoryPartition(assigned.topic, assigned.partition) for assigned in self.consumer.assignment()]:
            self.start_at(self.fetch_committed_offsets(places))

    def list_end(self, place: HistoryPartition, timeout_s: float) -> int:
        """List the end of a partition for this isolation level; raises KafkaException."""
        asked_ns = now_ns()
        end = int(self.consumer.get_watermark_offsets(TopicPartition(*place), timeout_s)[1])
        self._client.record(Listed(now_ns(), self._client.name, self._isolation, place, end, asked_ns))
        return end

    def read(self, at_most: int = MOST_AT_ONCE) -> list[Any]:
        """Consume messages and record them."""
        messages = []
        by_place: defaultdict[HistoryPartition, list[tuple[int, str]]] = defaultdict(list)
        for message in self.consumer.consume(at_most, 0.2):
            place = HistoryPartition(message.topic(), message.partition())
            if (error := message.error()) is None:
                messages.append(message)
                by_place[place].append((message.offset(), (message.value() or b"").decode("utf-8", "replace")))
            elif error.code() == KafkaError._PARTITION_EOF:
                self.reached[place] = message.offset()
            elif error.fatal():
                raise ReplacementNeededError(str(error))
        for place, records in by_place.items():
            self._client.record(Read(now_ns(), self._client.name, self._isolation, place, records))
        return messages

    def record_commits(self, messages: Iterable[Any], transaction: int | None = None) -> tuple[list[Any], range]:
        """Record commits after messages before they are sent; returns the positions and the numbers of the commits."""
        offsets: dict[HistoryPartition, int] = {}
        for message in messages:
            offsets[HistoryPartition(message.topic(), message.partition())] = message.offset() + 1
        first = self._commits
        for place, offset in offsets.items():
            self._client.record(
                Commit(now_ns(), self._client.name, self._commits, self._group, place, offset, transaction)
            )
            self._commits += 1
        return [TopicPartition(*place, offset) for place, offset in offsets.items()], range(first, self._commits)

    def record_acknowledged_commits(self, numbers: Iterable[int]) -> None:
        """Record that commits were acknowledged."""
        for number in numbers:
            self._client.record(CommitAcknowledged(now_ns(), self._client.name, number))


def build_group_config(client: HistoryClient) -> dict[str, Any]:
    """Build the settings of a member of a group."""
    chosen = client.orders.group_protocol
    if (client.random.choice((CLASSIC, CONSUMER)) if chosen == MIXED else chosen) == CONSUMER:
        return {"group.protocol": CONSUMER}
    timeout_ms = client.orders.session_timeout_ms
    return {"group.protocol": CLASSIC, "session.timeout.ms": timeout_ms, "heartbeat.interval.ms": timeout_ms // 4}


def run_reader(client: HistoryClient) -> None:
    """Read all partitions from their beginnings while producers write, and at the end of the run to their ends."""
    places = _list_partitions(client)
    group = f"{client.orders.topic_prefix}-{client.name}"
    with closing(RecordedConsumer(client, group, client.orders.isolation, **_REPORT_ENDS)) as reading:
        reading.start_at((place, 0) for place in places)
        asked_at = 0.0
        while client.should_continue():
            reading.read()
            if time.monotonic() > asked_at + SECONDS_AN_END:
                # While the broker is down there is no answer.
                with suppress(KafkaException):
                    reading.list_end(client.random.choice(places), SECONDS_AN_END)
                asked_at = time.monotonic()
        _read_to_the_ends(client, reading, places)


def _list_partitions(client: HistoryClient) -> list[HistoryPartition]:
    """List the partitions that readers read."""
    return client.names.record_partitions() + (client.names.copy_partitions() if client.orders.transactional else [])


def _read_to_the_ends(client: HistoryClient, reading: RecordedConsumer, places: list[HistoryPartition]) -> None:
    """Continue *reading* to the present ends of the partitions at read_uncommitted, which are after aborted records, too."""
    with closing(
        RecordedConsumer(client, f"{client.orders.topic_prefix}-{client.name}-ends", READ_UNCOMMITTED)
    ) as asking:
        goals = {place: int(client.retry(partial(asking.list_end, place, CALL_S), is_not_fatal)) for place in places}
    deadline = time.monotonic() + LONGEST_READING_S
    while any(reading.reached.get(place, 0) < goals[place] for place in places) and time.monotonic() < deadline:
        reading.read()
    for place in places:
        reached = reading.reached.get(place, 0)
        client.record(Finished(now_ns(), client.name, client.orders.isolation, place, reached, goals[place]))


def run_member(client: HistoryClient) -> None:
    """Be a member of a group that commits the offsets of its reads, leaves at random and joins again."""
    while client.should_continue():
        reading = RecordedConsumer(client, client.names.members, READ_UNCOMMITTED, **build_group_config(client))
        with closing(reading):
            reading.subscribe(client.names.records)
            while client.should_continue() and client.random.random() >= LEFT_SHARE:
                messages = reading.read()
                if messages and client.random.random() < COMMITTED_SHARE:
                    _commit(reading, messages)


def _commit(reading: RecordedConsumer, messages: list[Any]) -> None:
    offsets, numbers = reading.record_commits(messages)
    try:
        committed = reading.consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException:
        return  # the broker may be down, or the group in its next generation: whether it is committed is unknown
    if all(partition.error is None for partition in committed):
        reading.record_acknowledged_commits(numbers)


def run_last_reader(client: HistoryClient) -> None:
    """Read every partition to its end, and fetch the groups' committed offsets."""
    isolation, names, places = client.orders.isolation, client.names, _list_partitions(client)
    groups = [names.members] + ([names.copiers] if client.orders.transactional else [])
    for group in groups if isolation != READ_UNCOMMITTED else ():
        with closing(RecordedConsumer(client, group, isolation)) as asking:
            asking.fetch_committed_offsets(names.record_partitions())
    group = f"{client.orders.topic_prefix}-{client.name}"
    with closing(RecordedConsumer(client, group, isolation, **_REPORT_ENDS)) as reading:
        reading.start_at((place, 0) for place in places)
        _read_to_the_ends(client, reading, places)
