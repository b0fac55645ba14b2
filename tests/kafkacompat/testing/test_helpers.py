"""Helpers that create topics, produce, read, and wait for groups, without any client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

import kafkacompat.testing
from kafkacompat.testing import BrokerError, Record, RunningBroker
from kafkacompat.testing.expectations import find_missing
from kafkacompat.testing.nodes import Nodes
from kafkacompat.testing.reading import PartitionBatches, TopicReader
from kafkacompat.testing.rows import hash_key
from kafkacompat.testing.topics import append, ensure_topic
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkacompat.wire.batch_records import build_batch
from kafkacompat.wire.errors import ErrorCode


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with kafkacompat.testing.broker() as running:
        yield running


def test_rows_of_all_forms_are_read_back(broker: RunningBroker) -> None:
    broker.create_topic("forms", partitions=2)
    rows = [
        "text",
        b"\xff",
        None,
        ("key", "value"),
        {"key": "k", "value": b"v", "headers": {"h": "1"}, "partition": 1, "timestamp": 1_600_000_000_123},
    ]
    broker.produce("forms", rows, partition=0)
    broker.produce("forms", [rows[4]])
    read = broker.records("forms", 6)
    assert [record.value for record in read] == [b"text", b"\xff", None, b"value", b"v", b"v"]
    assert read[3].key == b"key"
    assert read[-1] == Record("forms", 1, 0, 1_600_000_000_123, b"k", b"v", [("h", b"1")])


def test_a_missing_topic_is_created(broker: RunningBroker) -> None:
    broker.produce("missing", ["a"])
    assert [record.value for record in broker.records("missing")] == [b"a"]
    assert broker.records("still missing") == []


def test_a_topic_that_a_client_creates_at_the_same_time_is_no_error(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("racing", partitions=2)
    find_topic, first = Nodes.find_topic, [None]
    monkeypatch.setattr(Nodes, "find_topic", lambda nodes, name: first.pop() if first else find_topic(nodes, name))
    assert broker.call(ensure_topic, broker._nodes, "racing") == 2


def test_keys_choose_partitions_as_in_java(broker: RunningBroker) -> None:
    # The values of Kafka's UtilsTest.
    assert hash_key(b"21") == 2**32 - 973932308
    assert hash_key(b"foobar") == 2**32 - 790332482
    assert hash_key(b"a-little-bit-long-string") == 2**32 - 985981536
    broker.create_topic("keyed", partitions=3)
    broker.produce("keyed", [(f"{number % 7}", f"{number}") for number in range(70)])
    partitions: dict[bytes | None, set[int]] = {}
    for record in broker.records("keyed", 70):
        partitions.setdefault(record.key, set()).add(record.partition)
    assert len(partitions) == 7
    assert all(len(chosen) == 1 for chosen in partitions.values())
    broker.create_topic("turns", partitions=3)
    broker.produce("turns", ["a", "b", "c", "d"])
    assert [record.partition for record in broker.records("turns")] == [0, 0, 1, 2]


def test_many_and_large_rows(broker: RunningBroker) -> None:
    broker.produce("many", (str(number) for number in range(12_000)))
    assert [record.value for record in broker.records("many", 12_000)] == [b"%d" % number for number in range(12_000)]
    broker.produce("large", [b"x" * 700_000] * 5)
    assert sum(len(record.value or b"") for record in broker.records("large", 5)) == 3_500_000


def test_errors_are_sentences(broker: RunningBroker) -> None:
    broker.create_topic("errors", partitions=2)
    for act, words in (
        (lambda: broker.create_topic("errors"), "topic errors cannot be created: TOPIC_ALREADY_EXISTS"),
        (lambda: broker.create_topic("other", retention_mss=1), "topic other cannot be created: INVALID_CONFIG"),
        (lambda: broker.create_topic("other", replicas=3), "INVALID_REPLICATION_FACTOR"),
        (
            lambda: broker.produce("errors", ["a"], partition=2),
            r"partition 2 of topic errors .* \(it has 2 partitions\)",
        ),
        (lambda: broker.produce("errors", [b"x" * 2_000_000]), "MESSAGE_TOO_LARGE"),
        (lambda: broker.produce("errors", [{"id": 1}]), "a row has 'id', but a dictionary has key, value"),
        (lambda: broker.produce("errors", [{"partition": "1"}]), "a partition is '1': give its number"),
        (lambda: broker.produce("errors", [{"headers": ["h"]}]), r"headers are \['h'\]: give a dictionary"),
        (lambda: broker.produce("errors", [1]), "a key or a value is 1, of type int"),  # type: ignore[list-item]
        (lambda: broker.produce("errors", "text"), "rows='text' is one row"),
        (lambda: broker.produce("errors", 5), "rows=5 has the wrong type, int: give a list of rows"),  # type: ignore[arg-type]
        (lambda: broker.produce("errors", ["a"], partition="0"), "partition='0' has the wrong type, str"),  # type: ignore[arg-type]
        (lambda: broker.create_topic("other", partitions="2"), "partitions='2' has the wrong type, str: give a number"),  # type: ignore[arg-type]
        (lambda: broker.delete_topic(b"errors"), "topic=b'errors' has the wrong type, bytes: give a name"),  # type: ignore[arg-type]
        (lambda: broker.records("errors", "1"), "n='1' has the wrong type"),  # type: ignore[arg-type]
        (lambda: broker.assert_produced("errors", within="1"), "within='1' has the wrong type, str: give seconds"),  # type: ignore[arg-type]
        (lambda: broker.wait_for_lag("g", None), "lag=None has the wrong type, NoneType"),  # type: ignore[arg-type]
        (lambda: broker.records("errors", isolation_level="committed"), "give read_uncommitted or read_committed"),
    ):
        with pytest.raises(BrokerError, match=words):
            act()


def test_assertions_show_what_is_there(broker: RunningBroker) -> None:
    broker.produce("shown", [("k", "v"), "w"])
    broker.assert_produced("shown")
    with pytest.raises(AssertionError, match="has not got"):
        broker.assert_produced("shown", "v", ("k", "v"), within=0)
    broker.assert_produced("shown", "w", ("k", "v"), exactly=True)
    broker.assert_produced("shown", lambda record: record.value == b"w", {"key": "k"})
    with pytest.raises(AssertionError) as failure:
        broker.assert_produced("shown", "x", within=0.01)
    assert str(failure.value) == (
        "topic shown has not got 'x' after 0.01 s:\n  0@0: key b'k' value b'v'\n  0@1: value b'w'"
    )
    with pytest.raises(AssertionError, match="topic shown has 2 records, not 1"):
        broker.assert_produced("shown", "w", exactly=True)
    with pytest.raises(AssertionError, match=r"topic shown has 2 of 3 records after 0\.01 s"):
        broker.records("shown", 3, within=0.01)
    with pytest.raises(AssertionError, match=r"topic nothing has not got a record after 0\.01 s: it is empty"):
        broker.assert_produced("nothing", within=0.01)


def commit(broker: RunningBroker, group: str, topic: str, offset: int) -> None:
    """Commit an offset, as a consumer without members does."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])])
    broker.call(broker._node.request, FindCoordinatorRequest(coordinator_keys=[group]))
    response = broker.call(broker._node.request, request, 8)
    assert response.topics[0].partitions[0].error_code == 0


def test_the_lag_of_a_group(broker: RunningBroker) -> None:
    broker.produce("lagging", [f"{number}" for number in range(5)])
    with pytest.raises(AssertionError, match="it has committed no offset"):
        broker.wait_for_lag("readers", within=0.01)
    commit(broker, "readers", "lagging", 2)
    broker.wait_for_lag("readers", 3)
    with pytest.raises(AssertionError) as failure:
        broker.wait_for_lag("readers", within=0.01)
    assert str(failure.value) == (
        "the lag of group readers is above 0 after 0.01 s:\n  lagging-0: offset 2 committed of 5, 3 records remain"
    )
    commit(broker, "readers", "lagging", 5)
    broker.wait_for_lag("readers")


def test_transactions_of_a_producer(broker: RunningBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(10)
    for value, end in ((b"committed", producer.commit_transaction), (b"aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("transactions", value, partition=0)
        producer.flush(10)
        end()
    producer.begin_transaction()
    producer.produce("transactions", b"open", partition=0)
    producer.flush(10)
    everything = [record.value for record in broker.records("transactions", 3)]
    assert everything == [b"committed", b"aborted", b"open"]
    committed = broker.records("transactions", 1, isolation_level="read_committed")
    assert [record.value for record in committed] == [b"committed"]
    # The offsets of markers and of aborted records are no lag; the open transaction is.
    commit(broker, "committed", "transactions", 1)
    broker.wait_for_lag("committed", 1)
    producer.abort_transaction()
    broker.wait_for_lag("committed", 0)


def test_the_clock_of_the_brokers() -> None:
    with kafkacompat.testing.broker(log_retention_check_interval_ms=60_000) as kafka:
        kafka.create_topic("old", retention_ms=3_600_000, segment_ms=60_000)
        kafka.produce("old", ["a"])
        before_ms = kafka.clock.now_ms
        kafka.clock.advance(minutes=10)
        kafka.produce("old", ["b"])
        kafka.clock.advance(hours=2)
        assert kafka.clock.now_ms - before_ms >= 130 * 60_000
        assert kafka.records("old") == []
        kafka.produce("old", ["c"])
        assert [record.offset for record in kafka.records("old", 1)] == [2]


def test_a_topic_that_grows_all_the_time_is_read_up_to_its_end(broker: RunningBroker) -> None:
    broker.produce("growing", ["a"])
    fetch = TopicReader.fetch

    async def grow_and_fetch(reader: TopicReader, wait_s: float) -> list[PartitionBatches]:
        batch = build_batch([(1, None, b"more", [])])
        await append(broker._nodes, "growing", {0: batch})
        return await fetch(reader, wait_s)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TopicReader, "fetch", grow_and_fetch)
        assert [record.value for record in broker.records("growing")] == [b"a", b"more"]
        assert len(broker.records("growing", 5)) >= 5


def test_an_append_whose_records_may_be_in_the_log_is_not_repeated(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("once")
    answers = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NONE]

    async def answer(*_: object) -> tuple[ErrorCode, str]:
        return answers.pop(0), ""

    monkeypatch.setattr("kafkacompat.testing.topics._append_batch", answer)
    with pytest.raises(BrokerError, match="rejects records: NOT_ENOUGH_REPLICAS_AFTER_APPEND"):
        broker.produce("once", ["a"])
    assert answers == [ErrorCode.NONE]


def test_rows_that_match_little_leave_other_rows_their_records() -> None:
    records = [Record("t", 0, 0, 0, b"k", b"x", []), Record("t", 0, 1, 0, None, b"x", [])]
    assert find_missing([lambda _: True, ("k", "x")], records) == []
    assert find_missing(["x", ("k", "x")], records) == []
    assert find_missing(["y", ("k", "x"), "z"], records) == ["'y'", "'z'"]
