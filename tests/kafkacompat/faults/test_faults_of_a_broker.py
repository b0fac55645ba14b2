"""A broker with faults: what its clients receive, and what it has carried out."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.faults.active import FaultCounts
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from kafkacompat.wire.apis.list_groups import ListGroupsRequest
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.batch_header import CRC_END, read_header
from kafkacompat.wire.checksum import crc32c
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.faults.world import FaultyWorld, make_fetch, make_produce

DAY_MS = 24 * 3600 * 1000

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyWorld]:
    made = FaultyWorld(tmp_path_factory.mktemp("broker"))
    yield made
    made.end()


@pytest.fixture
def world(shared: FaultyWorld) -> Iterator[FaultyWorld]:
    """The broker without faults, and with a new topic."""
    shared.use_new_topic()
    yield shared
    shared.faults.clear()
    shared.leave()
    shared.clock.advance(20)
    shared.turn()
    assert shared.broker.server.budget.held_bytes == 0


def produced(response: Any) -> dict[int, int]:
    """Return the error of each partition."""
    return {data.index: data.error_code for topic in response.responses for data in topic.partition_responses}


def fetched(response: Any) -> dict[int, tuple[int, bytes]]:
    """Return the error and the records of each partition."""
    return {
        data.partition_index: (data.error_code, bytes(data.records or b""))
        for topic in response.responses
        for data in topic.partitions
    }


def has_right_crc(batch: bytes) -> bool:
    return read_header(batch).crc == crc32c(batch[CRC_END:])


def end_offset(world: FaultyWorld, index: int) -> int:
    response = world.ask_raw(make_fetch(world.topic, index, max_wait_ms=0), 4)
    return int(response.responses[0].partitions[0].high_watermark)


@pytest.mark.parametrize("version", [3, 9, 12])
def test_an_error_answers_for_the_chosen_partition_and_the_others_are_served(world: FaultyWorld, version: int) -> None:
    world.faults.add(api="Produce", topic=world.topic, partition=1, error="NOT_LEADER_OR_FOLLOWER", times=1)
    client = world.connect()
    response = world.ask_raw(make_produce(world.topic, 0, 1), version, client)
    assert produced(response) == {0: 0, 1: NOT_LEADER}
    assert len(response.responses) == 1
    assert (end_offset(world, 0), end_offset(world, 1)) == (1, 0)
    assert produced(world.ask_raw(make_produce(world.topic, 0, 1), version, client)) == {0: 0, 1: 0}
    assert (end_offset(world, 0), end_offset(world, 1)) == (2, 1)
    assert world.faults.counts == {1: FaultCounts(2, 1)}


def test_topics_that_requests_name_by_id_match_by_name(world: FaultyWorld) -> None:
    world.faults.add(api="Produce", topic=world.topic, error="KAFKA_STORAGE_ERROR", times=1)
    request = make_produce("", 0)
    request.topic_data[0].topic_id = world.topic_id
    assert produced(world.ask(request)) == {0: ErrorCode.KAFKA_STORAGE_ERROR}
    assert produced(world.ask(request)) == {0: 0}


def test_an_error_for_a_request_that_was_carried_out(world: FaultyWorld) -> None:
    world.faults.add(api="Produce", topic=world.topic, partition=0, error="REQUEST_TIMED_OUT", carry_out=True)
    response = world.ask_raw(make_produce(world.topic, 0, 1), 9)
    assert produced(response) == {0: ErrorCode.REQUEST_TIMED_OUT, 1: 0}
    assert response.responses[0].partition_responses[0].base_offset == -1
    assert (end_offset(world, 0), end_offset(world, 1)) == (1, 1)


def test_a_produce_without_acks_that_is_rejected_ends_the_connection(world: FaultyWorld) -> None:
    world.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER")
    client = world.connect()
    client.send(make_produce(world.topic, 0, acks=0), 9)
    world.turn()
    assert client.is_closed
    assert end_offset(world, 0) == 0


def test_an_error_of_an_api_without_topics(world: FaultyWorld) -> None:
    world.faults.add(api="Heartbeat", error="REBALANCE_IN_PROGRESS")
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert world.ask(request).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_fetch_fails_by_partition_at_once(world: FaultyWorld) -> None:
    world.ask_raw(make_produce(world.topic, 0), 9)
    world.faults.add(api="Fetch", topic=world.topic, partition=1, error="NOT_LEADER_OR_FOLLOWER", times=1)
    began = world.clock.seconds()
    answers = fetched(world.ask_raw(make_fetch(world.topic, 1, max_wait_ms=5000), 11))
    assert answers == {1: (NOT_LEADER, b"")}
    assert world.clock.seconds() - began < 1
    answers = fetched(world.ask_raw(make_fetch(world.topic, 0, 1), 11))
    assert [code for code, _ in answers.values()] == [0, 0]
    assert answers[0][1]


def test_a_fetch_that_continues_a_session_fails_for_partitions_that_it_does_not_name(world: FaultyWorld) -> None:
    client = world.connect()
    first = world.ask_raw(make_fetch(world.topic, 0, 1, max_wait_ms=0, session_epoch=0), 11, client)
    assert first.session_id != 0
    world.faults.add(api="Fetch", topic=world.topic, partition=1, error="OFFSET_OUT_OF_RANGE", times=1)
    session = {"session_id": first.session_id}
    second = world.ask_raw(make_fetch(world.topic, max_wait_ms=5000, **session, session_epoch=1), 11, client)
    assert fetched(second) == {1: (ErrorCode.OFFSET_OUT_OF_RANGE, b"")}
    assert second.session_id == first.session_id
    world.ask_raw(make_produce(world.topic, 1), 9)
    third = world.ask_raw(make_fetch(world.topic, **session, session_epoch=2), 11, client)
    assert fetched(third)[1][0] == 0 and fetched(third)[1][1]


def test_metadata_fails_by_topic_and_creates_nothing(world: FaultyWorld) -> None:
    world.faults.add(api="Metadata", topic="new", error="LEADER_NOT_AVAILABLE", times=1)
    wanted = [MetadataRequestTopic(name=name) for name in (world.topic, "new")]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=True)
    answer = world.ask_raw(request, 9)
    assert {topic.name: topic.error_code for topic in answer.topics} == {
        world.topic: 0,
        "new": ErrorCode.LEADER_NOT_AVAILABLE,
    }
    assert answer.brokers
    assert "new" not in world.broker.metadata.image.topics


def test_a_delay_holds_the_response_and_keeps_the_order(world: FaultyWorld) -> None:
    world.faults.add(api="Produce", delay_ms=3000, times=1)
    client = world.connect()
    client.send(make_produce(world.topic, 0), 9)
    client.send(HeartbeatRequest(group_id="g", member_id="m"), 4)
    world.turn()
    assert end_offset(world, 0) == 1
    assert client.take_frame() is None
    world.clock.advance(3)
    world.turn()
    frames = [client.take_frame(), client.take_frame()]
    assert [frame[:4] for frame in frames if frame is not None] == [b"\0\0\0\1", b"\0\0\0\2"]


def test_a_dropped_response_never_arrives_and_the_request_was_carried_out(world: FaultyWorld) -> None:
    world.faults.add(api="Produce", drop=True, times=1)
    client = world.connect()
    client.send(make_produce(world.topic, 0), 9)
    world.clock.advance(100)
    world.turn()
    assert client.received == b"" and not client.is_closed
    assert end_offset(world, 0) == 1
    world.leave()
    assert world.broker.server.budget.held_bytes == 0


def test_a_dropped_request_was_not_carried_out(world: FaultyWorld) -> None:
    world.faults.add(api="Produce", drop=True, carry_out=False)
    client = world.connect()
    client.send(make_produce(world.topic, 0), 9)
    world.turn()
    assert client.received == b"" and not client.is_closed
    assert end_offset(world, 0) == 0


@pytest.mark.parametrize("carry_out", [False, True])
def test_a_disconnected_client_receives_nothing(world: FaultyWorld, carry_out: bool) -> None:
    world.faults.add(api="Produce", disconnect=True, carry_out=carry_out)
    client = world.connect()
    client.send(make_produce(world.topic, 0), 9)
    world.turn()
    assert client.is_closed and client.received == b""
    assert end_offset(world, 0) == carry_out


def test_a_response_is_cut_in_its_frame_and_nothing_follows(world: FaultyWorld) -> None:
    whole = world.connect()
    whole.send(ListGroupsRequest(), 4)
    world.turn()
    world.faults.add(api="ListGroups", cut_after_bytes=7)
    client = world.connect()
    for _ in range(3):
        client.send(ListGroupsRequest(), 4)
    world.turn()
    assert client.received == whole.received[:7]
    assert client.is_closed


def test_a_response_is_sent_twice(world: FaultyWorld) -> None:
    world.faults.add(api="ListGroups", duplicate=True, times=1)
    client = world.connect()
    client.send(ListGroupsRequest(), 4)
    client.send(ListGroupsRequest(), 4)
    world.turn()
    frames = [client.take_frame() for _ in range(3)]
    assert frames[0] == frames[1] is not None
    assert [frame[:4] for frame in frames if frame is not None] == [b"\0\0\0\1", b"\0\0\0\1", b"\0\0\0\2"]
    assert client.received == b""


def test_a_checksum_is_wrong_in_one_response(world: FaultyWorld) -> None:
    world.faults.add(topic=world.topic, corrupt_crc=True, times=1)
    # Responses without records do not count.
    world.ask_raw(make_fetch(world.topic, 0), 11)
    world.ask_raw(make_produce(world.topic, 0, 1), 9)
    world.faults.add(api="Fetch", delay_ms=5)
    damaged, whole = (fetched(world.ask_raw(make_fetch(world.topic, 0, 1), 11)) for _ in range(2))
    for index in (0, 1):
        assert damaged[index][0] == 0
        assert damaged[index][1] != whole[index][1]
        assert len(damaged[index][1]) == len(whole[index][1])
        assert [has_right_crc(answer[index][1]) for answer in (damaged, whole)] == [False, True]


def test_the_last_batch_of_a_response_is_truncated(world: FaultyWorld) -> None:
    for _ in range(2):
        world.ask_raw(make_produce(world.topic, 0, value=b"v" * 100), 9)
    world.faults.add(topic=world.topic, truncate_batch=True, times=1)
    cut, whole = (fetched(world.ask_raw(make_fetch(world.topic, 0), 11))[0][1] for _ in range(2))
    first_bytes = read_header(whole).size_bytes
    assert first_bytes < len(cut) < len(whole) == 2 * first_bytes
    assert whole.startswith(cut)


def test_messages_of_old_formats_are_damaged_too(world: FaultyWorld) -> None:
    world.ask_raw(make_produce(world.topic, 0), 9)
    request = make_fetch(world.topic, 0)
    for fault in ("corrupt_crc", "truncate_batch"):
        world.faults.add(api="Fetch", versions="0-3", topic=world.topic, times=1, **{fault: True})
    corrupted, truncated, whole = (fetched(world.ask_raw(request, 2))[0][1] for _ in range(3))
    # Offset, size, checksum, magic.
    assert whole[16] == 1
    assert (corrupted[:12], corrupted[16:]) == (whole[:12], whole[16:])
    assert [zlib.crc32(message[16:]).to_bytes(4, "big") == message[12:16] for message in (corrupted, whole)] == [
        *(False, True)
    ]
    assert truncated == whole[: len(whole) // 2]


def test_a_throttled_client_reads_its_time_and_is_not_read_from(world: FaultyWorld) -> None:
    world.faults.add(api="Produce", throttle_ms=2000, times=1)
    client = world.connect()
    assert world.ask_raw(make_produce(world.topic, 0), 9, client).throttle_time_ms == 2000
    client.send(ListGroupsRequest(), 4)
    world.turn()
    assert client.received == b""
    world.clock.advance(2)
    world.turn()
    assert client.received != b""


def test_a_paused_broker_accepts_connections_and_answers_nothing(world: FaultyWorld) -> None:
    world.faults.add(client_id="raw", pause_ms=10_000)
    client = world.connect()
    client.send(ListGroupsRequest(), 4)
    world.turn()
    other = world.connect()
    other.send(make_produce(world.topic, 0), 9)
    other.send(ListGroupsRequest(), 4)
    world.clock.advance(5)
    world.turn()
    assert (client.received, other.received) == (b"", b"")
    world.clock.advance(5)
    world.turn()
    assert client.take_frame() is not None
    assert [(other.take_frame() or b"")[:4] for _ in range(2)] == [b"\0\0\0\1", b"\0\0\0\2"]
    assert world.faults.counts == {1: FaultCounts(3, 1)}


def test_the_removal_of_all_rules_ends_a_pause(world: FaultyWorld) -> None:
    world.faults.add(client_id="raw", pause_ms=3_600_000)
    client = world.connect()
    client.send(ListGroupsRequest(), 4)
    world.turn()
    assert client.received == b""
    world.faults.clear()
    world.turn()
    assert client.take_frame() is not None


def test_a_request_that_is_dropped_after_a_pause_leaves_with_its_client(world: FaultyWorld) -> None:
    world.faults.add(api="ListGroups", pause_ms=1_000)
    world.faults.add(api="Produce", drop=True)
    world.connect().send(ListGroupsRequest(), 4)
    world.turn()
    client = world.connect()
    client.send(make_produce(world.topic, 0), 9)
    world.turn()
    world.clock.advance(1)
    world.turn()
    assert end_offset(world, 0) == 1
    client.leave()
    world.turn()
    assert world.broker.server.budget.held_bytes == 0


def test_a_paused_broker_carries_out_the_requests_of_clients_that_have_left(world: FaultyWorld) -> None:
    world.faults.add(client_id="raw", pause_ms=1_000)
    client = world.connect()
    client.send(make_produce(world.topic, 0), 9)
    world.turn()
    client.leave()
    world.clock.advance(1)
    world.turn()
    assert end_offset(world, 0) == 1


def test_a_broker_that_stops_ends_its_pause(tmp_path: Path) -> None:
    world = FaultyWorld(tmp_path)
    world.faults.add(client_id="raw", pause_ms=DAY_MS)
    client = world.connect()
    client.send(ListGroupsRequest(), 4)
    world.turn()
    began = world.clock.seconds()
    world.end()
    assert client.take_frame() is not None
    assert world.clock.seconds() - began < 1


def test_a_paused_broker_keeps_a_bounded_number_of_bytes(world: FaultyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkacompat.faults.pause.MOST_WAITING_BYTES", 2_500)
    world.faults.add(client_id="raw", pause_ms=10_000)
    clients = [world.connect() for _ in range(3)]
    for client in clients:
        client.send(make_produce(world.topic, 0, value=b"v" * 1_000), 9)
    world.turn()
    assert [client.is_closed for client in clients] == [False, False, True]
    world.clock.advance(10)
    world.turn()
    assert end_offset(world, 0) == 2


def test_rules_choose_by_client(world: FaultyWorld) -> None:
    world.faults.add(client_id="victim-*", error="REBALANCE_IN_PROGRESS")
    request = HeartbeatRequest(group_id="g", member_id="m")
    victim = world.run(world.open("victim-1").request(world.address, "requests", request, timeout_s=10))
    other = world.run(world.open("other").request(world.address, "requests", request, timeout_s=10))
    assert victim.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert other.error_code == ErrorCode.NOT_COORDINATOR


def test_rules_choose_by_user_and_listener(world: FaultyWorld) -> None:
    world.faults.add(principal="User:*", listener="OTHER", error="REBALANCE_IN_PROGRESS")
    world.faults.add(principal="User:ANONYMOUS", listener="PLAINTEXT", error="ILLEGAL_GENERATION")
    assert world.ask(HeartbeatRequest(group_id="g", member_id="m")).error_code == ErrorCode.ILLEGAL_GENERATION


def test_the_same_requests_in_the_same_order_meet_the_same_faults(world: FaultyWorld) -> None:
    def play() -> list[int]:
        world.faults.clear(seed=4)
        world.faults.add(api="Heartbeat", error="COORDINATOR_LOAD_IN_PROGRESS", share=0.5)
        return [world.ask(HeartbeatRequest(group_id="g", member_id="m")).error_code for _ in range(30)]

    first = play()
    assert play() == first
    assert set(first) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}


def test_a_large_request_is_compared_by_its_topics(world: FaultyWorld) -> None:
    world.faults.add(api="Produce", topic=world.topic, error="MESSAGE_TOO_LARGE")
    assert produced(world.ask_raw(make_produce(world.topic, 0, value=b"v" * 10_000), 9)) == {
        0: ErrorCode.MESSAGE_TOO_LARGE
    }


def test_a_client_that_leaves_during_a_delay_leaves_nothing_behind(world: FaultyWorld) -> None:
    world.ask_raw(make_produce(world.topic, 0, value=b"v" * 200_000), 9)
    world.faults.add(api="Fetch", delay_ms=5000)
    client = world.connect()
    client.send(make_fetch(world.topic, 0), 11)
    world.turn()
    client.leave()
    world.clock.advance(6)
    world.turn()
    assert world.broker.server.budget.held_bytes == 0


def test_a_delay_ends_with_the_connection_also_for_a_request_that_must_complete(world: FaultyWorld) -> None:
    world.faults.add(api="CreateTopics", delay_ms=DAY_MS)
    client = world.connect()
    client.send(CreateTopicsRequest(topics=[CreatableTopic(name="late", num_partitions=1, replication_factor=1)]), 7)
    client.leave()
    world.turn()
    assert "late" in world.broker.metadata.image.topics
    calls: list[Any] = list(world.clock.getDelayedCalls())
    assert max(call.getTime() for call in calls) < world.clock.seconds() + DAY_MS / 2000
