"""Each nasty topic is what its description says, and has the shape that it is named after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from twisted.internet.defer import succeed

from kafkacompat.testing.nasty import NastyTopicError
from kafkacompat.testing.nasty.formats import build_message_set
from kafkacompat.transactions.answers import ProducerAnswer
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.legacy_log import convert_entries
from kafkacompat.wire.message_set import read_message_set
from kafkacompat.wire.record_batch import read_header
from tests.kafkacompat.testing.nasty.support import MemoryKafka, check_topic, read_batches


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[MemoryKafka]:
    running = MemoryKafka(tmp_path)
    yield running
    running.stop()


def test_transactions_leave_gaps(kafka: MemoryKafka) -> None:
    topic = kafka.nasty.transaction_gaps("t", transactions=6)
    check_topic(kafka, topic)
    headers = [header for header, _ in read_batches(kafka.partition("t"))]
    assert [header.is_control for header in headers[:12]] == [False, True] * 6
    assert headers[-1].is_control
    assert len(topic.read_uncommitted) == 10
    assert [record.offset for record in topic.read_committed] == [0, 2, 6, 8, 12, 14, 15]


def test_an_aborted_tail_has_no_committed_record(kafka: MemoryKafka) -> None:
    topic = kafka.nasty.aborted_tail("t", transactions=2, records=300)
    check_topic(kafka, topic)
    assert [record.offset for record in topic.read_committed] == list(range(10))
    assert len(topic.read_uncommitted) == 610
    assert topic.end_offsets == {0: 612}


def test_compaction_leaves_holes(kafka: MemoryKafka) -> None:
    topic = kafka.nasty.compacted_holes("t")
    check_topic(kafka, topic)
    headers = [header for header, _ in read_batches(kafka.partition("t"))]
    assert headers[0].base_offset == 10  # the first batch has gone; the second has lost its beginning
    assert topic.read_committed[0].offset == 16
    assert None in [record.value for record in topic.read_committed]
    assert max(gap.last - gap.first + 1 for gap in topic.missing) == 900
    assert any(header.record_count < header.last_offset_delta + 1 for header in headers)


def test_an_empty_batch_stays_in_the_middle_and_near_the_end(kafka: MemoryKafka) -> None:
    topic = kafka.nasty.empty_batch("t")
    check_topic(kafka, topic)
    headers = [header for header, _ in read_batches(kafka.partition("t"))]
    empty = [header for header in headers if not header.record_count]
    assert [(header.base_offset, header.last_offset) for header in empty] == [(3, 7), (15, 19)]
    assert all(header.producer_id >= 0 for header in empty)
    assert headers[-1].is_control


def test_timestamps_are_out_of_order(kafka: MemoryKafka) -> None:
    topic = kafka.nasty.out_of_order_timestamps("t")
    check_topic(kafka, topic)
    # Two segments end after the second and the fourth batch; the record of 2100 begins another, as its timestamp is decades later.
    assert [segment.base_offset for segment in kafka.partition("t").log.segments] == [0, 6, 8, 10]
    timestamps = [record.timestamp for record in topic.read_committed]
    assert timestamps != sorted(timestamps)
    assert topic.lookups[-1].offset is None
    assert topic.max_timestamp_offsets == {0: 8}


def test_timestamps_are_of_both_types(kafka: MemoryKafka) -> None:
    topic = kafka.nasty.mixed_timestamp_types("t")
    check_topic(kafka, topic)
    kinds = [record.timestamp_type for record in topic.read_committed]
    assert kinds == (["CreateTime"] * 10 + ["LogAppendTime"] * 10) * 2


def test_formats_are_stored_as_a_takeover_stores_them(kafka: MemoryKafka) -> None:
    topic = kafka.nasty.mixed_formats("t")
    check_topic(kafka, topic)
    batches = [batch for _, batch in read_batches(kafka.partition("t"))]
    assert len(batches) == 10
    for number, (magic, codec) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
        records = topic.read_committed[5 * number : 5 * number + 5]
        base_ms = topic.read_committed[10].timestamp - 10
        rows = [(base_ms + record.offset, record.key, record.value, ()) for record in records]
        (converted,) = convert_entries(read_message_set(build_message_set(rows, magic, codec)), 1 << 20)
        stored, taken_over = read_header(batches[number]), read_header(converted)
        assert stored.attributes == taken_over.attributes
        assert stored.base_timestamp == taken_over.base_timestamp
        assert stored.max_timestamp == taken_over.max_timestamp
        assert all(record.timestamp == -1 for record in records) == (magic == 0)


@pytest.mark.parametrize("batch_bytes", [1000, 1_048_588])
def test_a_record_is_as_large_as_it_may_be(kafka: MemoryKafka, batch_bytes: int) -> None:
    topic = kafka.nasty.largest_record("t", batch_bytes=batch_bytes)
    check_topic(kafka, topic)
    sizes = [header.size_bytes for header, _ in read_batches(kafka.partition("t"))]
    assert sizes.count(batch_bytes) == 4
    assert max(sizes) == batch_bytes


def test_retention_jumps(kafka: MemoryKafka) -> None:
    jumping = kafka.nasty.retention_jump("t", records=400)
    check_topic(kafka, jumping.before)
    after = jumping.jump()
    assert after.log_start_offsets == {0: 300}
    check_topic(kafka, after)
    with pytest.raises(NastyTopicError, match="has jumped already"):
        jumping.jump()
    check_topic(kafka, jumping.jump(350))  # inside a batch
    with pytest.raises(NastyTopicError, match="cannot jump to 340: the log of 't' has the offsets 350 to 400"):
        jumping.jump(340)


def test_the_log_start_overtakes_consumers(kafka: MemoryKafka) -> None:
    jumping = kafka.nasty.retention_jump("t", records=40)
    after = jumping.overtake()
    assert after.log_start_offsets == {0: 190}
    check_topic(kafka, after)
    check_topic(kafka, jumping.jump(200))
    with pytest.raises(NastyTopicError, match=r"^records=99 is too small; choose 100 or more$"):
        jumping.overtake(99)


def test_a_log_loses_its_end_and_gets_another(kafka: MemoryKafka) -> None:
    losing = kafka.nasty.unclean_truncation("t")
    check_topic(kafka, losing.before)
    epoch = kafka.partition("t").leader_epoch
    after = losing.truncate()
    check_topic(kafka, after)
    partition = kafka.partition("t")
    assert partition.leader_epoch == epoch + 1
    assert partition.end_of_epoch(epoch) == (epoch, 10)
    image = kafka.broker.metadata.image.partition("t", 0)
    assert image is not None
    assert image.leader_epoch == epoch + 1
    assert [record.offset for record in after.read_committed] == list(range(25))
    assert after.read_committed[10].value != losing.before.read_committed[10].value
    with pytest.raises(NastyTopicError, match="was truncated already"):
        losing.truncate()


def test_many_partitions(kafka: MemoryKafka) -> None:
    topic = kafka.nasty.many_partitions("t", partitions=50)
    check_topic(kafka, topic)
    assert len(topic.end_offsets) == 50
    assert {record.partition for record in topic.read_committed} == {0, 25, 49}


def test_a_coordinator_that_stays_busy_is_an_error(kafka: MemoryKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = ProducerAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)
    monkeypatch.setattr(kafka.broker.coordinators.transactions, "initialize", lambda *_: succeed(busy))
    with pytest.raises(
        NastyTopicError, match=r"^transactional id 't-a' cannot be initialized: CONCURRENT_TRANSACTIONS$"
    ):
        kafka.nasty.transaction_gaps("t")


def test_bad_input_is_refused_in_a_sentence(kafka: MemoryKafka) -> None:
    kafka.nasty.mixed_formats("t")
    with pytest.raises(NastyTopicError, match=r"^topic 't' cannot be created: .*exists already"):
        kafka.nasty.empty_batch("t")
    with pytest.raises(NastyTopicError, match=r"^partitions=10001 is not valid; choose 1 to 10000$"):
        kafka.nasty.many_partitions("u", partitions=10_001)
    with pytest.raises(NastyTopicError, match=r"^kept=7 is not valid; choose a multiple of 5"):
        kafka.nasty.unclean_truncation("u", kept=7)
