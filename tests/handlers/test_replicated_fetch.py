"""Fetches of followers, and of consumers from a partition with three replicas."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import read_header, split_batches
from tests.handlers.data_node import EPOCH, T_ID, make_batch
from tests.handlers.replicated_node import LAG_MS, LEADER_EPOCH, ReplicatedNode
from tests.kafkacompat.metadata.deferreds import has_fired

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def make_consumer_request(
    node: ReplicatedNode, offset: int = 0, *, version: int = 12, wait_ms: int = 0, rack: str = "", **kw: Any
) -> FetchRequest:
    """A consumer's Fetch of t-0."""
    wanted = FetchPartition(**{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1_000_000, **kw})
    topics = [FetchTopic(topic="t", topic_id=T_ID, partitions=[wanted])]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=10_000_000, rack_id=rack, topics=topics)


def fetch_as_consumer(node: ReplicatedNode, offset: int = 0, *, version: int = 12, **kw: Any) -> PartitionData:
    response = node.ask(make_consumer_request(node, offset, version=version, **kw), FetchResponse, version)
    return response.responses[0].partitions[0]


def list_offsets(data: PartitionData) -> list[int]:
    return [read_header(batch).base_offset for batch in split_batches(data.records)]  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [4, 9, 12, 14, 15, 17])
def test_a_follower_reads_up_to_the_logs_end(version: int) -> None:
    node = ReplicatedNode()
    node.write(3)
    data = node.fetch(1, replica=2, version=version, epoch=LEADER_EPOCH if version >= 9 else -1)
    assert (data.error_code, data.high_watermark, list_offsets(data)) == (0, 0, [1, 2])
    assert data.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("version", [4, 12, 17])
def test_a_client_of_another_listener_is_no_follower(version: int) -> None:
    """CVE-2018-1288: it would read what is not committed, and let records count as replicated."""
    node = ReplicatedNode()
    node.lead()
    node.write(3)
    services: Any = node.services
    services.cluster, services.enclosed = object(), None
    leading: Any = node.partition.state.leading
    refused = node.fetch(3, replica=2, version=version)
    assert (refused.error_code, refused.records) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, b"")
    assert leading.followers[2].end_offset != 3
    services.enclosed = object()
    assert node.fetch(3, replica=2, version=version).error_code == 0
    assert leading.followers[2].end_offset == 3


def test_a_consumer_reads_up_to_the_high_watermark() -> None:
    node = ReplicatedNode()
    node.write(3)
    assert list_offsets(fetch_as_consumer(node)) == []
    node.fetch(3, replica=2)
    data = node.fetch(2, replica=3)
    assert data.high_watermark == 2  # the fetch itself has moved it
    data = fetch_as_consumer(node)
    assert (data.high_watermark, list_offsets(data)) == (2, [0, 1])


def test_the_high_watermark_finds_its_place_in_older_segments() -> None:
    node = ReplicatedNode(LogConfig(segment_bytes=2 * len(make_batch())))
    node.write(9)
    node.fetch(9, replica=2)
    for end in (1, 2, 5, 8, 9):
        node.fetch(end, replica=3)
        node.node.work()
        assert node.partition.high_watermark.offset == end
        assert [list_offsets(fetch_as_consumer(node, at)) for at in range(end)] == [
            [at, at + 1][: min(2 - at % 2, end - at)] for at in range(end)
        ]


@pytest.mark.parametrize(
    ("replica", "version", "epoch", "broker_epoch", "code"),
    [
        (2, 17, LEADER_EPOCH, 102, ErrorCode.NONE),
        (2, 17, LEADER_EPOCH, -1, ErrorCode.NONE),
        (2, 17, LEADER_EPOCH - 1, 102, ErrorCode.FENCED_LEADER_EPOCH),
        (2, 17, LEADER_EPOCH + 1, 102, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, 17, LEADER_EPOCH, 99, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (4, 17, LEADER_EPOCH, -1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (1, 17, LEADER_EPOCH, 101, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (4, 12, -1, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (2, 12, -1, -1, ErrorCode.NONE),
    ],
)
def test_only_the_present_life_of_an_assigned_replica_counts(
    replica: int, version: int, epoch: int, broker_epoch: int, code: ErrorCode
) -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    node.write()
    data = node.fetch(1, replica=replica, version=version, epoch=epoch, broker_epoch=broker_epoch)
    assert data.error_code == code
    assert node.partition.high_watermark.offset == (0 if code else 1)


@pytest.mark.parametrize("offset", [2, -1])
def test_an_offset_outside_the_log_does_not_count(offset: int) -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    node.write()
    assert node.fetch(offset, replica=2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert node.partition.state.leading.followers[2].end_offset == -1  # type: ignore[union-attr]


def test_a_follower_whose_log_diverges_learns_where() -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    node.write(2)
    # Epoch EPOCH + 1 is LEADER_EPOCH; the follower has records of EPOCH beyond where this leader's epoch began.
    data = node.fetch(1, replica=2, last_fetched_epoch=EPOCH)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset, list_offsets(data)) == (EPOCH, 0, [])
    assert node.partition.high_watermark.offset == 0
    data = node.fetch(1, replica=2, last_fetched_epoch=LEADER_EPOCH)
    assert (data.diverging_epoch.epoch, list_offsets(data)) == (-1, [1])
    assert node.partition.high_watermark.offset == 1


def test_a_follower_of_a_single_replica_is_not_known() -> None:
    node = ReplicatedNode()
    request = node.fetch_request(0, replica=2, epoch=EPOCH)
    request.topics[0].partitions[0].partition = 1
    response = node.ask(request, FetchResponse, 17)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


# Waiting


def test_a_followers_fetch_waits_for_the_next_append() -> None:
    node = ReplicatedNode()
    sent = node.send(node.fetch_request(0, replica=2, wait_ms=500), 17)
    node.node.clock.advance(0.1)
    assert not has_fired(sent.response)
    node.write()
    node.node.clock.advance(0)
    response = node.read(sent, FetchResponse, 17)
    assert list_offsets(response.responses[0].partitions[0]) == [0]


def test_a_waiting_fetch_counts_once_when_it_arrives() -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    sent = node.send(node.fetch_request(0, replica=2, wait_ms=500), 17)
    arrived_ms = node.node.now_ms
    node.node.clock.advance(0.3)
    node.write()
    node.node.clock.advance(0)
    assert has_fired(sent.response)
    node.read(sent, FetchResponse, 17)
    follower = node.partition.state.leading.followers[2]  # type: ignore[union-attr]
    assert (follower.fetched_ms, follower.caught_up_ms) == (arrived_ms, arrived_ms)


def test_a_fetch_whose_arrival_lets_the_leader_append_does_not_wait() -> None:
    """A coordinator writes its next record as soon as the followers have the one before."""
    node = ReplicatedNode(in_sync=(1, 2))
    node.write()
    replicated = node.partition.progress.wait_for_replicas(1)
    assert replicated is not None
    replicated.addCallback(lambda _: node.write())
    sent = node.send(node.fetch_request(1, replica=2, wait_ms=500), 17)
    node.node.clock.advance(0)
    response = node.read(sent, FetchResponse, 17)
    assert list_offsets(response.responses[0].partitions[0]) == [1]


def test_the_high_watermark_alone_does_not_end_a_followers_wait() -> None:
    node = ReplicatedNode()
    node.write()
    sent = node.send(node.fetch_request(1, replica=2, wait_ms=500), 17)
    node.fetch(1, replica=3)
    node.node.clock.advance(0.4)
    assert node.partition.high_watermark.offset == 1
    assert not has_fired(sent.response)
    node.node.clock.advance(0.2)
    response = node.read(sent, FetchResponse, 17)
    assert response.responses[0].partitions[0].high_watermark == 1


def test_a_consumers_fetch_waits_for_the_high_watermark() -> None:
    node = ReplicatedNode()
    sent = node.send(make_consumer_request(node, wait_ms=500), 12)
    node.write()
    node.node.clock.advance(0)
    assert not has_fired(sent.response)
    node.fetch(1, replica=2)
    node.fetch(1, replica=3)
    node.node.clock.advance(0)
    response = node.read(sent, FetchResponse, 12)
    assert list_offsets(response.responses[0].partitions[0]) == [0]


def test_a_change_of_the_role_ends_every_wait() -> None:
    node = ReplicatedNode()
    waiting = [
        node.send(node.fetch_request(0, replica=2, wait_ms=500), 17),
        node.send(make_consumer_request(node, wait_ms=500), 10),
    ]
    node.follow()
    node.node.clock.advance(0)
    for sent, version in zip(waiting, (17, 10), strict=True):
        response = node.read(sent, FetchResponse, version)
        code = response.responses[0].partitions[0].error_code
        assert code == (ErrorCode.FENCED_LEADER_EPOCH if version == 17 else ErrorCode.NOT_LEADER_OR_FOLLOWER)


# The in-sync set


def test_a_follower_that_catches_up_joins() -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    node.write(2)
    node.fetch(2, replica=2)
    node.fetch(1, replica=3)
    assert node.updates.proposed() == []
    node.fetch(2, replica=3)
    (proposal,) = node.updates.waiting
    assert (sorted(proposal.new_set), proposal.leader_epoch, proposal.partition_epoch) == ([1, 2, 3], LEADER_EPOCH, 1)
    assert proposal.broker_epochs == {1: -1, 2: 102, 3: 103}
    node.write()
    node.fetch(3, replica=2)
    assert node.partition.high_watermark.offset == 2  # the third counts although no replica has confirmed it
    node.updates.commit()
    assert sorted(node.partition.state.leading.in_sync.committed) == [1, 2, 3]  # type: ignore[union-attr]
    assert node.partition.state.partition_epoch == 2


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_rejected_follower_is_proposed_again_at_its_next_fetch(code: ErrorCode) -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    node.fetch(0, replica=3)
    node.updates.refuse(code)
    assert node.updates.proposed() == []
    node.fetch(0, replica=3)
    assert node.updates.proposed() == [[1, 2, 3]]


def test_after_a_fenced_proposal_both_sets_count_until_there_is_news() -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    node.fetch(0, replica=3)
    node.updates.refuse(ErrorCode.INVALID_UPDATE_VERSION)
    node.fetch(0, replica=3)
    node.partition.check_in_sync(node.node.now_ms)
    assert node.updates.proposed() == []
    assert node.partition.state.leading.in_sync.counted == {1, 2, 3}  # type: ignore[union-attr]
    assert not node.lead(in_sync=(1, 2), partition_epoch=2)
    node.fetch(0, replica=3)
    assert node.updates.proposed() == [[1, 2, 3]]


def test_a_proposal_whose_answer_is_lost_is_repeated_at_the_next_check() -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    node.fetch(0, replica=3)
    node.updates.refuse()
    node.fetch(0, replica=3)
    assert node.updates.proposed() == []
    node.partition.check_in_sync(node.node.now_ms)
    assert node.updates.proposed() == [[1, 2, 3]]
    node.partition.check_in_sync(node.node.now_ms)
    assert node.updates.proposed() == [[1, 2, 3]]


def test_an_answer_to_an_older_proposal_is_ignored() -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    node.fetch(0, replica=3)
    assert node.lead(epoch=LEADER_EPOCH + 1, in_sync=(1, 2), partition_epoch=5)
    node.updates.commit()
    assert sorted(node.partition.state.leading.in_sync.counted) == [1, 2]  # type: ignore[union-attr]


def test_an_answer_for_another_leader_epoch_is_ignored() -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    node.fetch(0, replica=3)
    node.updates.commit(leader_epoch=LEADER_EPOCH + 1)
    assert sorted(node.partition.state.leading.in_sync.committed) == [1, 2]  # type: ignore[union-attr]


def test_a_dead_broker_does_not_join() -> None:
    node = ReplicatedNode(in_sync=(1, 2))
    del node.broker_epochs[3]
    node.fetch(0, replica=3)
    assert node.updates.proposed() == []


def test_followers_that_stop_leave_and_the_rest_goes_on() -> None:
    node = ReplicatedNode()
    node.write()
    node.fetch(1, replica=2)
    node.node.clock.advance(LAG_MS / 1000 + 1)
    node.partition.check_in_sync(node.node.now_ms)
    assert node.updates.proposed() == [[1, 2]]
    node.updates.commit()
    assert node.partition.high_watermark.offset == 1


# Elections


def test_a_new_leader_does_not_know_its_high_watermark_until_the_followers_have_fetched() -> None:
    node = ReplicatedNode()
    node.write(2)
    for replica in (2, 3):
        node.fetch(1, replica=replica)
    node.follow(2, LEADER_EPOCH + 1)
    assert node.lead(epoch=LEADER_EPOCH + 2, in_sync=(1, 2), partition_epoch=3)
    assert node.partition.high_watermark.offset == 1
    assert node.partition.log.leader_epochs.latest == LEADER_EPOCH + 2
    node.fetch(2, replica=2, epoch=LEADER_EPOCH + 2)
    assert node.partition.high_watermark.offset == 2


@pytest.mark.parametrize(("epoch", "partition_epoch"), [(LEADER_EPOCH - 1, 9), (LEADER_EPOCH + 1, 0)])
def test_an_older_epoch_changes_nothing(epoch: int, partition_epoch: int) -> None:
    node = ReplicatedNode()
    assert not node.lead(epoch=epoch, in_sync=(1,), partition_epoch=partition_epoch)
    assert not node.partition.become_follower(2, epoch, partition_epoch)
    assert node.partition.is_leader
    assert node.partition.leader_epoch == LEADER_EPOCH


# Consumers of followers


@pytest.mark.parametrize(("version", "code"), [(10, ErrorCode.NOT_LEADER_OR_FOLLOWER), (11, 0), (17, 0)])
def test_a_follower_answers_consumers_from_version_11_on(version: int, code: int) -> None:
    node = ReplicatedNode()
    node.write(2)
    for replica in (2, 3):
        node.fetch(1, replica=replica)
    node.follow()
    data = fetch_as_consumer(node, version=version)
    assert data.error_code == code
    assert (code or list_offsets(data)) == (code or [0])


def test_above_its_high_watermark_a_follower_lets_consumers_wait() -> None:
    node = ReplicatedNode()
    node.write(2)
    node.follow()
    sent = node.send(make_consumer_request(node, 1, wait_ms=500), 12)
    assert not has_fired(sent.response)
    node.partition.progress.show(node.partition.log.end_position())
    node.node.clock.advance(0)
    response = node.read(sent, FetchResponse, 12)
    assert list_offsets(response.responses[0].partitions[0]) == [1]
    assert fetch_as_consumer(node, 3).error_code == ErrorCode.OFFSET_NOT_AVAILABLE


def test_a_replica_without_a_leader_refuses_fetches() -> None:
    node = ReplicatedNode()
    node.write(1)
    node.follow(-1)
    assert fetch_as_consumer(node).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.fetch(0, replica=2, epoch=LEADER_EPOCH + 1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("version", "named"), [(15, False), (16, True), (18, True)])
def test_a_refusal_names_the_leader(version: int, named: bool) -> None:
    node = ReplicatedNode()
    node.follow(3, LEADER_EPOCH + 2)
    response = node.ask(node.fetch_request(0, replica=2, version=version), FetchResponse, version)
    (data,) = response.responses[0].partitions
    assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert data.current_leader.leader_id == (3 if named else -1)
    assert data.current_leader.leader_epoch == (LEADER_EPOCH + 2 if named else -1)
    assert [endpoint.node_id for endpoint in response.node_endpoints] == ([3] if named else [])


# The nearest replica


def make_near_node(selector: str = "") -> ReplicatedNode:
    node = ReplicatedNode(in_sync=(1, 2), replica_selector_class=selector)
    node.write(2)
    node.fetch(2, replica=2)
    node.fetch(0, replica=3)
    return node


@pytest.mark.parametrize(
    ("rack", "version", "nearest"), [("rack-2", 11, 2), ("rack-3", 12, -1), ("rack-1", 12, -1), ("", 12, -1)]
)
def test_the_leader_names_an_in_sync_follower_in_the_consumers_rack(rack: str, version: int, nearest: int) -> None:
    node = make_near_node(SELECTOR)
    sent = node.send(make_consumer_request(node, version=version, wait_ms=500, rack=rack), version)
    response = node.read(sent, FetchResponse, version)
    (data,) = response.responses[0].partitions
    assert (data.error_code, data.preferred_read_replica) == (0, nearest)
    assert (list_offsets(data) == []) is (nearest == 2)
    assert data.high_watermark == 2


def test_without_a_selector_no_preferred_replica_is_named() -> None:
    node = make_near_node()
    data = fetch_as_consumer(node, rack="rack-2")
    assert (data.preferred_read_replica, list_offsets(data)) == (-1, [0, 1])


def test_a_fenced_consumer_is_not_sent_to_a_follower() -> None:
    node = make_near_node(SELECTOR)
    data = fetch_as_consumer(node, rack="rack-2", current_leader_epoch=LEADER_EPOCH - 1)
    assert (data.error_code, data.preferred_read_replica) == (ErrorCode.FENCED_LEADER_EPOCH, -1)
