"""Fetch: regions of the logs, waiting, sessions, topic ids."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.handlers.context import Pending
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch, read_header, split_batches
from tests.handlers.data_node import EPOCH, NOW_MS, T_ID, U_ID, DataNode, make_batch
from tests.kafkacompat.metadata.deferreds import has_fired
from tests.kafkacompat.partitions.node import topic

SIZE = len(make_batch())


def make_partition(offset: int = 0, index: int = 0, **kw: Any) -> FetchPartition:
    return FetchPartition(**{"partition": index, "fetch_offset": offset, "partition_max_bytes": 1_000_000, **kw})


def make_request(*partitions: FetchPartition, name: str = "t", topic_id: bytes = T_ID, **kw: Any) -> FetchRequest:
    """A Fetch of partitions of one topic; it does not wait unless *kw* says so."""
    topics = [FetchTopic(topic=name, topic_id=topic_id, partitions=list(partitions))] if partitions else []
    return FetchRequest(**{"min_bytes": 1, "max_bytes": 10_000_000, "topics": topics, **kw})


def ask(node: DataNode, asked: FetchRequest, version: int = 12) -> FetchResponse:
    return node.ask(asked, FetchResponse, version)


def list_offsets(response: FetchResponse) -> list[tuple[str | bytes, int, list[int]]]:
    """(topic, partition, base offset of each whole batch)."""
    return [
        (
            topic.topic or topic.topic_id,
            partition.partition_index,
            [read_header(batch).base_offset for batch in split_batches(partition.records)],  # type: ignore[arg-type]
        )
        for topic in response.responses
        for partition in topic.partitions
    ]


def list_codes(response: FetchResponse) -> list[int]:
    return [partition.error_code for topic in response.responses for partition in topic.partitions]


@pytest.mark.parametrize("version", [4, 5, 7, 11, 12, 13, 18])
def test_batches_are_sent_as_they_lie_in_the_log(version: int) -> None:
    node = DataNode()
    for _ in range(3):
        node.append("t", 1)
    response = ask(node, make_request(make_partition(1, index=1)), version)
    name = T_ID if version >= 13 else "t"
    assert list_offsets(response) == [(name, 1, [1, 2])]
    (data,) = response.responses[0].partitions
    assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 3, 3)
    assert data.log_start_offset == (0 if version >= 5 else -1)
    assert data.aborted_transactions is None
    assert response.session_id == 0
    assert node.node.files.open_handles == 1  # The log's own handle; those of sent regions are released.


def test_partitions_are_grouped_by_topic_in_the_order_asked() -> None:
    node = DataNode()
    for name, index in (("t", 0), ("t", 1), ("u", 0)):
        node.append(name, index)
    asked = make_request(make_partition(index=1), make_partition())
    asked.topics.append(FetchTopic(topic="u", partitions=[make_partition()]))
    assert list_offsets(ask(node, asked)) == [("t", 1, [0]), ("t", 0, [0]), ("u", 0, [0])]


def test_read_committed_gets_an_empty_list_without_aborted_transactions() -> None:
    node = DataNode()
    node.append("t", 0)
    response = ask(
        node,
        make_request(
            make_partition(), make_partition(1), make_partition(9, index=1), make_partition(index=7), isolation_level=1
        ),
    )
    assert [partition.aborted_transactions for partition in response.responses[0].partitions] == [[], [], None, []]


def test_read_committed_ends_at_an_open_transaction_and_lists_aborted_ones() -> None:
    node = DataNode()
    write_transactional(node, 7)
    node.append("t", 0)
    first = ask(node, make_request(make_partition(), isolation_level=1, session_epoch=0), 7)
    (data,) = first.responses[0].partitions
    assert (data.high_watermark, data.last_stable_offset, data.records, data.aborted_transactions) == (2, 0, b"", [])
    assert list_offsets(ask(node, make_request(make_partition()))) == [("t", 0, [0, 1])]
    end_transaction(node, 7, commit=False)
    asked = make_request(isolation_level=1, session_id=first.session_id, session_epoch=1)
    response = ask(node, asked, 7)
    assert list_offsets(response) == [("t", 0, [0, 1, 2])]
    (data,) = response.responses[0].partitions
    assert (data.high_watermark, data.last_stable_offset) == (3, 3)
    assert [(transaction.producer_id, transaction.first_offset) for transaction in data.aborted_transactions or ()] == [
        (7, 0)
    ]
    assert ask(node, make_request(make_partition())).responses[0].partitions[0].aborted_transactions is None


def test_old_readers_know_no_transactions() -> None:
    node = DataNode()
    write_transactional(node, 7)
    pending = node.send(make_request(make_partition()), 3)
    node.node.work()
    (data,) = node.read(pending, FetchResponse, 3).responses[0].partitions
    assert data.high_watermark == 1 and data.records


def write_transactional(node: DataNode, producer_id: int) -> None:
    """A batch of a transaction."""
    record: Any = (NOW_MS, b"k", b"v", ())
    sent = build_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
    node.node.replicas.find("t", 0).append(sent, NOW_MS, guard=NOT_VERIFIED)


def end_transaction(node: DataNode, producer_id: int, *, commit: bool) -> None:
    """Its end."""
    node.node.replicas.find("t", 0).append_marker(Marker(producer_id, 0, 0, commit, 0), NOW_MS)


# Errors


def test_an_offset_out_of_range_fails_its_partition_alone() -> None:
    node = DataNode()
    node.append("t", 1)
    response = ask(node, make_request(make_partition(7), make_partition(index=1), max_wait_ms=500))
    assert list_codes(response) == [ErrorCode.OFFSET_OUT_OF_RANGE, 0]
    refused = response.responses[0].partitions[0]
    assert (refused.high_watermark, refused.last_stable_offset, refused.log_start_offset) == (-1, -1, -1)
    assert refused.records == b""
    assert list_offsets(response)[1] == ("t", 1, [0])


def test_an_absent_topic_is_unknown_by_name_and_by_id() -> None:
    node = DataNode()
    assert list_codes(ask(node, make_request(make_partition(), name="absent"), 12)) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    assert list_codes(ask(node, make_request(make_partition(), topic_id=b"x" * 16), 13)) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert list_codes(ask(node, make_request(make_partition(index=2)), 13)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(EPOCH, 0), (EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH), (EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_epochs_are_compared_from_version_9(epoch: int, code: int) -> None:
    node = DataNode()
    asked = make_request(make_partition(current_leader_epoch=epoch))
    assert list_codes(ask(node, asked, 9)) == [code]
    assert list_codes(ask(node, asked, 8)) == [0]


def test_a_fetch_returns_the_diverging_epoch_at_once() -> None:
    node = DataNode()
    node.append("t", 0)
    response = ask(node, make_request(make_partition(5, last_fetched_epoch=EPOCH), max_wait_ms=500))
    (data,) = response.responses[0].partitions
    assert (data.error_code, data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, EPOCH, 1)
    assert data.records == b""


# Limits and waiting


def test_a_fetch_waits_for_data_and_may_be_given_up() -> None:
    node = DataNode()
    pending = node.send(make_request(make_partition(), max_wait_ms=500), 12)
    assert isinstance(pending, Pending)
    assert (pending.abandonable, pending.in_order) == (True, False)
    node.append("t", 0)
    node.node.clock.advance(0)
    assert list_offsets(node.read(pending, FetchResponse, 12)) == [("t", 0, [0])]


def test_time_is_up_after_max_wait_ms() -> None:
    node = DataNode()
    pending = node.send(make_request(make_partition(), max_wait_ms=500), 12)
    node.node.clock.advance(0.25)
    assert not has_fired(pending.response)
    node.node.clock.advance(0.25)
    assert list_offsets(node.read(pending, FetchResponse, 12)) == [("t", 0, [])]


def test_min_bytes_beyond_max_bytes_cannot_be_waited_for() -> None:
    node = DataNode()
    for _ in range(3):
        node.append("t", 0)
    response = node.send(make_request(make_partition(), min_bytes=10 * SIZE, max_bytes=2 * SIZE, max_wait_ms=500), 12)
    assert list_offsets(node.read(response, FetchResponse, 12)) == [("t", 0, [0, 1])]


def test_the_brokers_own_limit_holds_too() -> None:
    node = DataNode(fetch_max_bytes="1024")
    for _ in range(20):
        node.append("t", 0)
    response = node.send(make_request(make_partition(), min_bytes=5000, max_wait_ms=500), 12)
    data: Any = node.read(response, FetchResponse, 12).responses[0].partitions[0].records
    assert len(data) == 1024


def test_a_topic_deleted_while_a_fetch_waits_ends_the_wait() -> None:
    node = DataNode()
    pending = node.send(make_request(make_partition(), max_wait_ms=500), 12)
    node.delete(topic("t", 2, T_ID))
    node.node.clock.advance(0)
    assert list_codes(node.read(pending, FetchResponse, 12)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


# Sessions


class Session:
    """A client that goes on with its session."""

    def __init__(self, version: int, *partitions: FetchPartition) -> None:
        self.node, self.version = DataNode(), version
        first = ask(self.node, make_request(*partitions, session_epoch=0), version)
        self.first, self.session_id, self.epoch = first, first.session_id, 0

    def next(self, *partitions: FetchPartition, forgotten: tuple[int, ...] = (), **kw: Any) -> FetchResponse:
        self.epoch += 1
        forget = [ForgottenTopic(topic="t", topic_id=T_ID, partitions=list(forgotten))] if forgotten else []
        asked = make_request(
            *partitions, session_id=self.session_id, session_epoch=self.epoch, forgotten_topics_data=forget, **kw
        )
        return ask(self.node, asked, self.version)


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_a_session_returns_only_changed_partitions(version: int) -> None:
    session = Session(version, make_partition(), make_partition(index=1))
    assert session.session_id > 0
    name = T_ID if version >= 13 else "t"
    assert list_offsets(session.first) == [(name, 0, []), (name, 1, [])]
    empty = session.next()
    assert (empty.session_id, list_offsets(empty)) == (session.session_id, [])
    session.node.append("t", 1)
    assert list_offsets(session.next()) == [(name, 1, [0])]
    assert list_offsets(session.next(make_partition(1, index=1))) == []


def test_a_session_tells_a_new_beginning_of_a_log() -> None:
    session = Session(12, make_partition(1))
    assert list_codes(session.first) == [ErrorCode.OFFSET_OUT_OF_RANGE]
    for _ in range(2):
        session.node.append("t", 0)
    session.next()
    assert list_offsets(session.next(make_partition(2))) == []
    session.node.node.replicas.find("t", 0).log.trimmer.advance_log_start_offset(1)
    response = session.next()
    assert [partition.log_start_offset for partition in response.responses[0].partitions] == [1]


def test_an_error_in_a_session_is_returned_until_it_is_gone() -> None:
    session = Session(12, make_partition(), make_partition(index=5))
    assert list_codes(session.first) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    for _ in range(2):
        again = session.next(max_wait_ms=500)
        assert [(partition.partition_index, partition.error_code) for partition in again.responses[0].partitions] == [
            (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        ]
    session.node.node.open(topic("t", 6, T_ID))
    assert list_offsets(session.next()) == [("t", 5, [])]
    assert list_offsets(session.next()) == []


def test_a_partition_that_returned_data_moves_to_the_end_of_the_session() -> None:
    session = Session(12, make_partition(), make_partition(index=1))
    for index in (0, 1):
        for _ in range(3):
            session.node.append("t", index)
    assert list_offsets(session.next(max_bytes=SIZE)) == [("t", 0, [0]), ("t", 1, [])]
    assert [offsets for _, index, offsets in list_offsets(session.next(max_bytes=SIZE)) if index == 1] == [[0]]


def test_a_session_forgets_partitions_and_ends_with_the_last() -> None:
    session = Session(12, make_partition(), make_partition(index=1))
    for index in (0, 1):
        session.node.append("t", index)
    assert list_offsets(session.next(forgotten=(0,))) == [("t", 1, [0])]
    last = session.next(forgotten=(1,))
    assert (last.error_code, last.session_id, last.responses) == (0, 0, [])
    assert session.next().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_wrong_sessions_are_refused_as_a_whole() -> None:
    session = Session(12, make_partition())

    def refused(version: int, **kw: Any) -> int:
        response = ask(session.node, make_request(make_partition(), **kw), version)
        assert (response.session_id, response.responses) == (0, [])
        return response.error_code

    known = session.session_id
    assert refused(12, session_id=known + 1, session_epoch=1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert refused(12, session_id=known, session_epoch=2) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert refused(13, session_id=known, session_epoch=1) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_is_closed_by_its_final_epoch() -> None:
    session = Session(12, make_partition())
    closed = ask(session.node, make_request(make_partition(), session_id=session.session_id, session_epoch=-1))
    assert (closed.session_id, list_offsets(closed)) == (0, [("t", 0, [])])
    assert len(session.node.sessions) == 0


def test_a_topic_made_again_is_another_one_by_its_id() -> None:
    session = Session(13, make_partition())
    session.node.delete(topic("t", 2, T_ID))
    session.node.node.open(topic("t", 2, b"n" * 16))
    response = session.next()
    assert list_codes(response) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert response.responses[0].topic_id == T_ID != U_ID
