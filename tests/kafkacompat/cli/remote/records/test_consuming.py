"""Reading batches: ends, counts, groups, and brokers that are gone."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, TopicPartition

from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.cli.remote.records.consuming import LARGEST_BATCH, RecordReader, store_offsets
from kafkacompat.cli.remote.records.failures import BROKERLESS_S, BrokerWatch
from kafkacompat.cli.requests import NoResponseError
from tests.kafkacompat.cli.remote.records.fake_client import FakeConsumer, FakeMessage, make_end


class Time:
    def __init__(self) -> None:
        self.now_s = 0.0

    def read(self) -> float:
        return self.now_s


def make_reader(
    consumer: FakeConsumer, *, ends: dict[int, int] | None, most: int | None = None, time: Time | None = None
) -> RecordReader:
    watch = BrokerWatch("kafka:9092", (time or Time()).read)
    return RecordReader(confluent_kafka, consumer, watch, ends=ends, most=most)


def make_records(partition: int, *offsets: int) -> list[FakeMessage]:
    return [FakeMessage(b"%d-%d" % (partition, offset), partition=partition, offset=offset) for offset in offsets]


def read_values(reader: RecordReader) -> list[bytes]:
    return [message.value() for batch in reader.read() for message in batch]


def test_each_partition_ends_where_it_ended_at_the_start() -> None:
    consumer = FakeConsumer(
        [make_records(0, 0, 1) + make_records(1, 5), make_records(1, 6, 7, 8), make_records(0, 2, 3)]
    )
    reader = make_reader(consumer, ends={0: 3, 1: 7})
    reader.assign("t", {0: 0, 1: 5})
    assert read_values(reader) == [b"0-0", b"0-1", b"1-5", b"1-6", b"0-2"]
    assert consumer.assigned == {0: 0, 1: 5}
    assert consumer.paused == [1, 0]


def test_an_end_after_a_hole_ends_the_partition() -> None:
    """The last offsets may be those of a transaction's end or of compacted records."""
    consumer = FakeConsumer([[*make_records(0, 0), make_end(0, 9)]])
    reader = make_reader(consumer, ends={0: 9})
    reader.assign("t", {0: 0})
    assert read_values(reader) == [b"0-0"]


def test_a_jump_over_the_end_leaves_out_newer_records() -> None:
    consumer = FakeConsumer([make_records(0, 0, 20)])
    reader = make_reader(consumer, ends={0: 9})
    reader.assign("t", {0: 0})
    assert read_values(reader) == [b"0-0"]


def test_nothing_is_read_without_partitions() -> None:
    consumer = FakeConsumer([])
    reader = make_reader(consumer, ends={})
    reader.assign("t", {})
    assert read_values(reader) == []
    assert consumer.requested == []


def test_following_passes_ends_and_stops_at_a_count() -> None:
    consumer = FakeConsumer([[*make_records(0, 0), make_end(0, 1)], [], make_records(0, 1, 2, 3)])
    reader = make_reader(consumer, ends=None, most=3)
    reader.assign("t", {0: 0})
    assert read_values(reader) == [b"0-0", b"0-1", b"0-2"]
    assert consumer.requested == [3, 2, 2]


def test_batches_are_as_large_as_the_memory_allows() -> None:
    consumer = FakeConsumer([make_records(0, 0), make_records(0, 1), make_records(0, 2)])
    reader = make_reader(consumer, ends={0: 3})
    reader.assign("t", {0: 0})
    for batch, size_bytes in zip(reader.read(), (100, 4 << 20, 100 << 20), strict=True):
        reader.resize(size_bytes, len(batch))
    assert consumer.requested[1:] == [LARGEST_BATCH, 2]


def subscribe(consumer: FakeConsumer, ends: dict[int, int]) -> RecordReader:
    reader = make_reader(consumer, ends=ends)
    reader.subscribe("t")
    return reader


def assign(consumer: FakeConsumer, *partitions: int) -> None:
    assert consumer.on_assign is not None
    consumer.on_assign(consumer, [TopicPartition("t", partition) for partition in partitions])


def test_a_group_ends_with_the_partitions_that_it_assigns_even_through_a_rebalance() -> None:
    consumer = FakeConsumer([[], make_records(0, 4), [], [make_end(0, 6)], [make_end(1, 7)]])
    reader = subscribe(consumer, {0: 6, 1: 7, 2: 100})

    def rebalance(number: int) -> None:
        if number == 1:
            assign(consumer, 0)
        if number == 2:
            assert consumer.on_revoke is not None
            consumer.on_revoke(consumer, [TopicPartition("t", 0)])
        if number == 3:
            assign(consumer, 0, 1)

    consumer.before_batch = rebalance
    assert read_values(reader) == [b"0-4"]
    assert len(consumer.requested) == 5


def test_a_group_whose_other_members_have_all_partitions_reads_nothing() -> None:
    consumer = FakeConsumer([])
    reader = subscribe(consumer, {0: 5})
    consumer.before_batch = lambda number: assign(consumer)
    assert read_values(reader) == []


def test_written_records_are_stored_as_read() -> None:
    consumer = FakeConsumer([])
    store_offsets(confluent_kafka, consumer, "t", make_records(0, 3, 4) + make_records(2, 9))
    assert consumer.stored == {0: 5, 2: 10}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "topic t cannot be read: the user of --command-config lacks the right"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "topic t cannot be read: the topic does not exist any more"),
        (KafkaError._AUTO_OFFSET_RESET, "topic t cannot be read: "),
    ],
)
def test_an_error_of_a_partition_ends_the_command(code: int, words: str) -> None:
    reader = make_reader(FakeConsumer([[FakeMessage(error=code)]]), ends=None)
    reader.assign("t", {0: 0})
    with pytest.raises(RemoteError) as problem:
        read_values(reader)
    assert str(problem.value).startswith(words)


def read_without_brokers(consumer: FakeConsumer, *, is_reachable: bool) -> tuple[list[bytes], float]:
    time = Time()
    watch = BrokerWatch("kafka:9092", time.read)
    reader = RecordReader(confluent_kafka, consumer, watch, ends=None, most=1)
    reader.assign("t", {0: 0})

    def pass_time(number: int) -> None:
        if number == 0:
            watch.note_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
        time.now_s += 10
        consumer.is_reachable = is_reachable

    consumer.before_batch = pass_time
    return read_values(reader), time.now_s


def test_a_broker_that_stays_away_ends_the_command() -> None:
    with pytest.raises(NoResponseError, match=f"^kafka:9092 is unreachable for {BROKERLESS_S:g} s, so run"):
        read_without_brokers(FakeConsumer([]), is_reachable=False)


def test_a_broker_that_comes_back_does_not() -> None:
    batches: list[Any] = [[], [], [], [], [], [], make_records(0, 0)]
    assert read_without_brokers(FakeConsumer(batches), is_reachable=True) == ([b"0-0"], 70.0)


def test_a_login_that_is_refused_later_ends_the_command() -> None:
    watch = BrokerWatch("kafka:9092", Time().read)
    watch.note_error(KafkaError(KafkaError._AUTHENTICATION))
    with pytest.raises(RemoteError, match="the connection to kafka:9092 failed for good"):
        watch.check(lambda _: None)
