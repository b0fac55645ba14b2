"""Produce to a partition with three replicas: acks, time-outs, and the loss of the leadership."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.handlers.context import Pending, UnanswerableError
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.handlers.data_node import NOW_MS, T_ID, make_batch
from tests.handlers.replicated_node import LAG_MS, LEADER_EPOCH, ReplicatedNode
from tests.kafkacompat.metadata.deferreds import has_fired, outcome

ALL, LEADER, NONE = -1, 1, 0
TWO = LogConfig(min_insync_replicas=2)
TIMEOUT_MS = 1500


def make_request(*records: bytes, acks: int = ALL, timeout_ms: int = TIMEOUT_MS) -> ProduceRequest:
    """The first batch for partition 0, the next for 1."""
    data = [PartitionProduceData(index=index, records=batch) for index, batch in enumerate(records)]
    topics = [TopicProduceData(name="t", topic_id=T_ID, partition_data=data)]
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics)


def send_request(node: ReplicatedNode, asked: ProduceRequest | None = None, version: int = 9) -> Any:
    return node.send(asked or make_request(make_batch()), version)


def read_answers(node: ReplicatedNode, sent: Any, version: int = 9) -> list[PartitionProduceResponse]:
    response: ProduceResponse = node.read(sent, ProduceResponse, version)
    return response.responses[0].partition_responses


def code_and_offset(node: ReplicatedNode, sent: Any) -> tuple[int, int]:
    (partition,) = read_answers(node, sent)
    return partition.error_code, partition.base_offset


def test_acks_of_the_leader_wait_for_no_replica() -> None:
    node = ReplicatedNode()
    assert code_and_offset(node, send_request(node, make_request(make_batch(), acks=LEADER))) == (0, 0)
    assert send_request(node, make_request(make_batch(), acks=NONE)) is None
    assert (node.partition.log.log_end_offset, node.partition.high_watermark.offset) == (2, 0)


def test_acks_of_all_wait_for_the_whole_in_sync_set() -> None:
    node = ReplicatedNode()
    sent = send_request(node)
    assert isinstance(sent, Pending)
    assert not sent.in_order  # the connection goes on
    node.fetch(1, replica=2)
    assert not has_fired(sent.response)
    node.fetch(0, replica=3)
    assert not has_fired(sent.response)
    node.fetch(1, replica=3)
    assert code_and_offset(node, sent) == (0, 0)
    assert node.node.clock.getDelayedCalls() == []


def test_requests_are_answered_as_far_as_the_replicas_have_got() -> None:
    node = ReplicatedNode()
    sent = [send_request(node) for _ in range(1000)]
    node.fetch(1000, replica=2)
    node.fetch(400, replica=3)
    assert [has_fired(pending.response) for pending in sent] == [True] * 400 + [False] * 600
    node.fetch(1000, replica=3)
    assert [code_and_offset(node, pending) for pending in sent] == [(0, offset) for offset in range(1000)]


def test_a_partition_of_one_replica_in_the_request_waits_for_nothing() -> None:
    node = ReplicatedNode()
    sent = send_request(node, make_request(make_batch(), make_batch()))
    assert not has_fired(sent.response)
    for replica in (2, 3):
        node.fetch(1, replica=replica)
    assert [(answer.error_code, answer.base_offset) for answer in read_answers(node, sent)] == [(0, 0), (0, 0)]


def test_at_the_time_out_the_records_stay() -> None:
    node = ReplicatedNode()
    sent = send_request(node)
    node.fetch(1, replica=2)
    node.node.clock.advance(TIMEOUT_MS / 1000 - 0.001)
    assert not has_fired(sent.response)
    node.node.clock.advance(0.002)
    assert code_and_offset(node, sent) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    node.fetch(1, replica=3)
    assert node.partition.high_watermark.offset == 1
    # The next request works although the last one was given up.
    after = send_request(node)
    for replica in (2, 3):
        node.fetch(2, replica=replica)
    assert code_and_offset(node, after) == (0, 1)


def test_no_time_to_wait_is_no_time() -> None:
    node = ReplicatedNode()
    sent = send_request(node, make_request(make_batch(), timeout_ms=0))
    node.node.clock.advance(0)
    assert code_and_offset(node, sent) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_too_small_an_in_sync_set_refuses_before_the_append() -> None:
    node = ReplicatedNode(TWO, in_sync=(1,))
    assert code_and_offset(node, send_request(node)) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
    assert node.partition.log.log_end_offset == 0
    assert code_and_offset(node, send_request(node, make_request(make_batch(), acks=LEADER))) == (0, 0)
    assert node.partition.high_watermark.offset == 0  # it stands still


def test_more_in_sync_replicas_than_there_are_replicas_are_not_needed() -> None:
    node = ReplicatedNode(LogConfig(min_insync_replicas=5))
    sent = send_request(node, make_request(make_batch(), make_batch()))
    for replica in (2, 3):
        node.fetch(1, replica=replica)
    assert [answer.error_code for answer in read_answers(node, sent)] == [0, 0]


def test_a_set_that_shrinks_below_the_minimum_refuses_after_the_append() -> None:
    node = ReplicatedNode(TWO, in_sync=(1, 2))
    sent = send_request(node, make_request(make_batch(), timeout_ms=10 * LAG_MS))
    node.node.clock.advance(LAG_MS / 1000 + 1)
    node.partition.check_in_sync(node.node.now_ms)
    assert node.updates.proposed() == [[1]]
    assert not has_fired(sent.response)
    node.updates.commit()
    assert code_and_offset(node, sent) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)
    assert node.partition.log.log_end_offset == 1


def test_a_set_that_shrinks_lets_the_others_go_on() -> None:
    node = ReplicatedNode(TWO)
    sent = send_request(node, make_request(make_batch(), timeout_ms=10 * LAG_MS))
    node.node.clock.advance(LAG_MS / 1000)
    node.fetch(1, replica=2)
    node.node.clock.advance(1)
    node.partition.check_in_sync(node.node.now_ms)
    assert node.updates.proposed() == [[1, 2]]
    assert not has_fired(sent.response)  # until the controller says so, the third counts
    node.updates.commit()
    assert code_and_offset(node, sent) == (0, 0)


def test_a_batch_sent_again_waits_for_the_first_one() -> None:
    node = ReplicatedNode()
    first, second = (
        build_batch([(NOW_MS, b"k", b"v", [])], producer_id=7, producer_epoch=0, base_sequence=sequence)
        for sequence in (0, 1)
    )
    sent = [send_request(node, make_request(batch)) for batch in (first, second, first)]
    for replica in (2, 3):
        node.fetch(1, replica=replica)
    assert [has_fired(pending.response) for pending in sent] == [True, False, True]
    assert code_and_offset(node, sent[2]) == (0, 0)
    assert code_and_offset(node, send_request(node, make_request(first))) == (0, 0)


def test_a_leader_that_resigns_answers_waiting_produces() -> None:
    node = ReplicatedNode()
    sent = send_request(node, version=10)
    node.follow(2)
    response = node.read(sent, ProduceResponse, 10)
    (partition,) = response.responses[0].partition_responses
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.current_leader.leader_id == 2
    assert node.partition.log.log_end_offset == 1


@pytest.mark.parametrize(("version", "named"), [(9, False), (10, True), (12, True), (13, True)])
def test_a_follower_names_the_leader(version: int, named: bool) -> None:
    node = ReplicatedNode()
    node.follow(3, LEADER_EPOCH + 4)
    response = node.ask(make_request(make_batch()), ProduceResponse, version)
    (partition,) = response.responses[0].partition_responses
    assert (partition.error_code, partition.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    leader = partition.current_leader
    assert (leader.leader_id, leader.leader_epoch) == ((3, LEADER_EPOCH + 4) if named else (-1, -1))
    endpoints = [
        (endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) for endpoint in response.node_endpoints
    ]
    assert endpoints == ([(3, "host-3", 9003, "rack-3")] if named else [])
    assert node.partition.log.log_end_offset == 0


def test_a_follower_closes_the_connection_where_it_may_not_answer() -> None:
    node = ReplicatedNode()
    node.follow()
    with pytest.raises(UnanswerableError):
        send_request(node, make_request(make_batch(), acks=NONE))


def test_an_unknown_leader_is_not_named() -> None:
    node = ReplicatedNode()
    node.follow(9)
    response = node.ask(make_request(make_batch()), ProduceResponse, 10)
    assert response.responses[0].partition_responses[0].current_leader.leader_id == 9
    assert response.node_endpoints == []


def test_a_batch_that_waits_for_a_segment_holds_up_the_next_only_until_it_is_in_the_log() -> None:
    node = ReplicatedNode(LogConfig(segment_bytes=len(make_batch())))
    send_request(node)
    sent = send_request(node)
    assert (sent.in_order, has_fired(sent.settled)) == (True, False)
    node.node.work()
    assert has_fired(sent.settled)
    assert not has_fired(sent.response)
    for replica in (2, 3):
        node.fetch(2, replica=replica)
    assert code_and_offset(node, sent) == (0, 1)


def test_a_batch_in_line_is_refused_with_the_leadership() -> None:
    node = ReplicatedNode(LogConfig(segment_bytes=len(make_batch())))
    send_request(node)
    sent = send_request(node)
    node.follow()
    assert code_and_offset(node, sent) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    node.node.work()
    assert node.partition.log.log_end_offset == 1


def test_acks_all_counts_only_synced_batches_if_configured() -> None:
    node = ReplicatedNode(syncs_always=True)
    sent = send_request(node)
    for replica in (2, 3):
        node.fetch(1, replica=replica)
    assert (node.partition.high_watermark.offset, has_fired(sent.response)) == (0, False)
    node.node.sync()
    assert node.partition.high_watermark.offset == 1
    assert code_and_offset(node, sent) == (0, 0)
    slow = send_request(node)
    node.node.sync()
    assert not has_fired(slow.response)
    for replica in (2, 3):
        node.fetch(2, replica=replica)
    assert code_and_offset(node, slow) == (0, 1)


def test_a_deleted_partition_refuses_waiting_produces() -> None:
    node = ReplicatedNode()
    sent = send_request(node)
    (topic,) = node.services.metadata.image.topics.values()
    node.delete(topic)
    assert code_and_offset(node, sent) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)


def test_when_the_other_replicas_are_taken_away_nothing_waits() -> None:
    node = ReplicatedNode()
    sent = send_request(node)
    node.lead(replicas=(1,), in_sync=(1,), partition_epoch=2)
    assert code_and_offset(node, sent) == (0, 0)
    assert code_and_offset(node, send_request(node)) == (0, 1)
    assert node.partition.high_watermark.offset == 2


def test_the_records_of_coordinators_wait_for_the_in_sync_set() -> None:
    node = ReplicatedNode()
    appended = node.partition.append_to_all(make_batch(), NOW_MS, from_client=False)
    assert not isinstance(appended, tuple)
    assert not has_fired(appended)
    for replica in (2, 3):
        node.fetch(1, replica=replica)
    assert outcome(appended).base_offset == 0
