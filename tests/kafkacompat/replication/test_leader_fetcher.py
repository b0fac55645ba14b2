"""A fetcher and its leader, request by request."""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.partitions.replication_quota import RateWindow, ReplicationQuota
from kafkacompat.replication.fetch_state import DELAYED, FAILED
from kafkacompat.replication.followed_partition import FollowedPartition
from kafkacompat.replication.follower import FollowerReplica, PartitionKey
from kafkacompat.replication.leader_fetcher import BUSY_S, SHORT_ROUND_BYTES, LeaderFetcher
from kafkacompat.replication.partition_fetch import PartitionFetch
from kafkacompat.replication.settings import FetchSettings
from kafkacompat.wire.apis.fetch import FetchRequest
from kafkacompat.wire.apis.list_offsets import ListOffsetsRequest
from kafkacompat.wire.apis.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Request, Response
from tests.fakes.busy_clock import BusyClock
from tests.kafkacompat.replication.network import Link
from tests.kafkacompat.replication.replica_log import ReplicaLog
from tests.kafkacompat.replication.serving import ServingBroker, Versions

LEADER = 2
FOLLOWER = 1
BROKER_EPOCH = 77
NEWEST = Versions()


class World:
    """A leader with logs, and a fetcher that follows them."""

    def __init__(self, versions: Versions = NEWEST, *, session_slots: int = 10, **settings: int) -> None:
        self.clock = Clock()
        self.leader = ServingBroker(versions, Random(1), session_slots=session_slots)
        self.link = Link(self.clock, {LEADER: self.leader})
        self.quota = ReplicationQuota(FOLLOWER, RateWindow(self.clock, 11, 1000))
        self.settings = FetchSettings(FOLLOWER, **settings)  # type: ignore[arg-type]
        self.fetcher = LeaderFetcher(LEADER, self.link, self.settings, self.clock, self.quota, lambda: BROKER_EPOCH)
        self.followed: dict[PartitionKey, FollowedPartition] = {}

    def follow(self, log: FollowerReplica, leader_epoch: int = 1) -> FollowedPartition:
        fetch = PartitionFetch(
            log,
            leader_epoch,
            truncates_on_fetch=self.settings.truncates_on_fetch,
            backoff_s=self.settings.backoff_s,
        )
        followed = FollowedPartition(fetch)
        self.fetcher.add(followed)
        self.followed[followed.key] = followed
        return followed

    def pair(self, topic: str = "t", index: int = 0) -> tuple[ReplicaLog, ReplicaLog]:
        """Return a leader's and a follower's log, which is followed."""
        theirs, ours = ReplicaLog(topic, index), ReplicaLog(topic, index)
        self.leader.lead(theirs, 1)
        self.follow(ours)
        return theirs, ours

    def run(self, seconds: float = 5.0, step_s: float = 0.002) -> None:
        for _ in range(int(seconds / step_s)):
            self.clock.advance(step_s)

    def fetches(self) -> list[FetchRequest]:
        return [request for request in self.leader.requests if isinstance(request, FetchRequest)]

    def kinds(self) -> list[type[Request]]:
        return [type(request) for request in self.leader.requests]


@pytest.mark.parametrize("fetch_version", range(4, 18))
def test_every_version_of_fetch_brings_the_log(fetch_version: int) -> None:
    world = World(Versions(fetch=fetch_version), truncates_on_fetch=fetch_version >= 12)
    logs = [world.pair("t", 0), world.pair("t", 1), world.pair("u", 0)]
    for theirs, _ in logs:
        theirs.produce(1, "a", "b", count=2)
        theirs.high_watermark = 3
    world.run()
    logs[0][0].produce(1, "c")
    world.run()
    for theirs, ours in logs:
        assert ours.batches == theirs.batches
        assert ours.high_watermark == 3
    assert world.link.most_in_flight == 1
    # In a session the leader receives each partition once, and then only changes.
    named = [sum(len(topic.partitions) for topic in request.topics) for request in world.fetches()]
    assert (set(named[2:]) == {0, 1}) == (fetch_version >= 7)


def test_a_request_has_kafkas_fields() -> None:
    world = World(wait_max_ms=123, min_bytes=2, response_max_bytes=3000, partition_max_bytes=1000)
    theirs, ours = world.pair()
    theirs.produce(1, "a")
    ours.produce(1, "a")
    world.run(0.1)
    request = world.fetches()[0]
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (FOLLOWER, BROKER_EPOCH)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (123, 2, 3000)
    partition = request.topics[0].partitions[0]
    assert (partition.current_leader_epoch, partition.last_fetched_epoch, partition.fetch_offset) == (1, 1, 1)
    assert (partition.log_start_offset, partition.partition_max_bytes) == (0, 1000)


def test_before_version_15_the_replica_is_named_in_the_old_place() -> None:
    world = World(Versions(fetch=14))
    world.pair()
    world.run(0.1)
    assert world.fetches()[0].replica_id == FOLLOWER


@pytest.mark.parametrize("epoch_version", range(5))
@pytest.mark.parametrize("fetch_version", [5, 11, 17])
def test_before_fetch_12_the_leader_is_asked_where_the_logs_diverge(fetch_version: int, epoch_version: int) -> None:
    world = World(Versions(fetch=fetch_version, epochs=epoch_version), truncates_on_fetch=False)
    theirs, ours = ReplicaLog(), ReplicaLog()
    theirs.produce(1, "a", "b")
    theirs.produce(3, "c")
    ours.produce(1, "a", "b", "x", "y")
    world.leader.lead(theirs, 4)
    world.follow(ours, 4)
    world.run(1)
    assert ours.batches == theirs.batches
    assert ours.changes == [("truncate", 2), ("append", 1)]
    assert world.kinds()[:2] == [OffsetForLeaderEpochRequest, FetchRequest]


def test_with_fetch_12_a_diverging_log_is_cut_by_the_answer_to_a_fetch() -> None:
    world = World()
    theirs, ours = ReplicaLog(), ReplicaLog()
    theirs.produce(1, "a", "b")
    theirs.produce(3, "c")
    ours.produce(1, "a", "b", "x")
    ours.produce(2, "y")
    world.leader.lead(theirs, 4)
    world.follow(ours, 4)
    world.run(1)
    assert ours.batches == theirs.batches
    assert set(world.kinds()) == {FetchRequest}


@pytest.mark.parametrize("offsets_version", range(9))
def test_a_log_that_ends_before_the_leaders_start_starts_over(offsets_version: int) -> None:
    world = World(Versions(offsets=offsets_version))
    theirs, ours = ReplicaLog(), ReplicaLog()
    theirs.produce(1, *"abcdef")
    theirs.delete_records(4)
    world.leader.lead(theirs, 1)
    world.follow(ours)
    world.run(1)
    assert ours.changes[0] == ("start over", 4)
    assert (ours.batches, ours.log_start_offset) == (theirs.batches, 4)


def test_a_log_that_ends_after_the_leaders_is_cut() -> None:
    world = World()
    theirs, ours = ReplicaLog(), ReplicaLog()
    theirs.produce(5, "a")
    theirs.end_offset_for_epoch = lambda epoch: (-1, -1)  # type: ignore[method-assign]
    ours.produce(1, *"abc")
    world.leader.lead(theirs, 6)
    world.follow(ours, 6)
    world.run(5)
    assert ListOffsetsRequest in world.kinds()
    assert ours.changes == [("truncate", 1)]
    # The leader goes on to refuse the offset, and is not asked in a hurry.
    assert len(world.leader.requests) < 30


# Errors


def test_an_error_of_one_partition_leaves_the_others_alone() -> None:
    world = World(backoff_ms=1000)
    (theirs, ours), (other, copy) = world.pair("t", 0), world.pair("t", 1)
    world.leader.errors["t", 0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    theirs.produce(1, "a")
    other.produce(1, "b")
    world.run(0.9)
    assert (len(ours.batches), copy.batches) == (0, other.batches)
    asked = [request for request in world.fetches() if any(topic.partitions for topic in request.topics)]
    assert len(asked) <= 3  # the partition is not fetched during its pause
    del world.leader.errors["t", 0]
    world.run(2)
    assert ours.batches == theirs.batches


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH])
def test_a_fenced_partition_waits_for_its_next_epoch(error: ErrorCode) -> None:
    world = World()
    theirs, ours = world.pair()
    world.leader.errors["t", 0] = error
    world.run(1)
    followed = world.followed["t", 0]
    assert followed.fetch.state is FAILED
    sent = len(world.leader.requests)
    world.run(5)
    assert len(world.leader.requests) == sent
    world.leader.errors.clear()
    theirs.produce(1, "a")
    world.leader.lead(theirs, 2)
    world.fetcher.remove(followed)
    world.follow(ours, 2)
    world.run(1)
    assert ours.batches == theirs.batches


@pytest.mark.parametrize(
    ("problem", "heals"),
    [
        (KafkaError(ErrorCode.CORRUPT_MESSAGE), True),
        (KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), True),
        (RuntimeError("a programming error"), False),
    ],
)
def test_an_append_that_fails_concerns_its_partition_only(problem: Exception, heals: bool) -> None:
    world = World(backoff_ms=100)
    (theirs, ours), (other, copy) = world.pair("t", 0), world.pair("t", 1)
    theirs.produce(1, "a")
    other.produce(1, "b")
    ours.problem = problem
    world.run(0.05)
    assert (len(ours.batches), copy.batches) == (0, other.batches)
    world.run(2)
    assert (ours.batches == theirs.batches) == heals


def test_a_partition_whose_log_cannot_be_read_leaves_the_others_alone(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    (_, ours), (other, copy) = world.pair("t", 0), world.pair("t", 1)

    def fail(epoch: int) -> tuple[int, int]:
        raise OSError("the disk is gone")

    ours.end_offset_for_epoch = fail  # type: ignore[method-assign]
    ours.produce(0, "x")
    other.produce(1, "b")
    world.run(1)
    assert world.followed["t", 0].fetch.state is FAILED
    assert copy.batches == other.batches
    assert "cannot be followed" in caplog.text


def test_a_leader_that_is_away_is_tried_again_after_a_pause(caplog: pytest.LogCaptureFixture) -> None:
    world = World(backoff_ms=1000)
    theirs, ours = world.pair()
    theirs.produce(1, "a")
    del world.link.brokers[LEADER]
    with caplog.at_level(logging.INFO):
        world.run(5)
        assert 3 <= world.fetcher.request_count <= 5
        world.link.brokers[LEADER] = world.leader
        world.run(2)
    assert ours.batches == theirs.batches
    assert caplog.messages == [
        "Fetching from node 2 failed, trying again every 1000 ms: node 2 did not answer",
        "Fetching from node 2 works again",
    ]


def test_a_leader_that_was_restarted_gets_a_new_session_at_once() -> None:
    world = World(wait_max_ms=10)
    theirs, ours = world.pair()
    world.run(1)
    restarted = ServingBroker(Versions(), Random(2))
    restarted.lead(theirs, 1)
    world.link.brokers[LEADER] = restarted
    theirs.produce(1, "a")
    world.run(0.1)
    assert ours.batches == theirs.batches
    epochs = [request.session_epoch for request in restarted.requests if isinstance(request, FetchRequest)]
    assert epochs[1:3] == [0, 1]


def test_a_leader_that_refuses_every_session_is_not_asked_in_a_hurry() -> None:
    world = World(backoff_ms=1000)
    world.pair()

    def refuse(*_: object, **__: object) -> object:
        raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    world.leader.sessions.find_context = refuse  # type: ignore[assignment, method-assign]
    world.run(5)
    assert world.fetcher.request_count <= 6


def test_an_answer_for_another_partition_ends_the_session(caplog: pytest.LogCaptureFixture) -> None:
    world = World(Versions(fetch=12), backoff_ms=1000)
    theirs, ours = world.pair()
    world.leader._name = lambda topic: "u"  # type: ignore[method-assign]
    world.leader.lead(ReplicaLog("u"), 1)
    world.run(3)
    assert world.fetcher.request_count <= 4
    assert "different partitions" in caplog.text
    del world.leader._name
    theirs.produce(1, "a")
    world.run(2)
    assert ours.batches == theirs.batches


def test_a_partition_without_an_answer_is_asked_about_again_after_a_pause() -> None:
    world = World(truncates_on_fetch=False, backoff_ms=1000)
    theirs, ours = ReplicaLog(), ReplicaLog()
    ours.produce(1, "a")
    world.leader.lead(theirs, 2)
    del world.link.brokers[LEADER]
    followed = world.follow(ours, 2)
    world.run(0.5)
    assert followed.fetch.state is DELAYED
    world.link.brokers[LEADER] = world.leader
    theirs.produce(2, "b")
    world.run(3)
    assert ours.batches == theirs.batches


# Order and pace


@pytest.mark.parametrize("session_slots", [0, 10])
def test_no_partition_starves_when_responses_are_full(session_slots: int) -> None:
    world = World(session_slots=session_slots, response_max_bytes=100, partition_max_bytes=100, wait_max_ms=10)
    logs = [world.pair("t", index) for index in range(5)]
    for theirs, _ in logs:
        theirs.produce(1, *["x" * 60] * 40)
    seen: list[int] = []
    for _ in range(40):
        world.run(0.02)
        seen = [len(ours.batches) for _, ours in logs]
        assert max(seen) - min(seen) <= 2
        if max(seen) > 5:
            break
    assert min(seen) >= 4


def test_the_next_fetch_waits_until_the_logs_are_changed_but_not_for_long() -> None:
    world = World(wait_max_ms=500)
    ends: list[Callable[[], None]] = []
    theirs, slow = ReplicaLog("t", 0), ReplicaLog("t", 0, finish=ends.append)
    other, copy = ReplicaLog("t", 1), ReplicaLog("t", 1)
    for log in (theirs, other):
        world.leader.lead(log, 1)
        log.produce(1, "a")
    world.follow(slow)
    world.follow(copy)
    world.run(0.1)
    assert (world.fetcher.request_count, len(ends)) == (1, 1)
    other.produce(1, "b")
    world.run(1)
    # The slow log is left out, and the other one goes on.
    assert copy.batches == other.batches
    assert ("t", 0) not in world.fetcher._session._sent
    ends.pop()()
    theirs.produce(1, "b")
    world.run(2)
    assert slow.batches == theirs.batches


def test_only_what_is_on_the_disk_is_reported() -> None:
    world = World(wait_max_ms=500)
    ends: list[Callable[[], None]] = []
    theirs, ours = ReplicaLog(), ReplicaLog(finish=ends.append, syncs=True)
    world.leader.lead(theirs, 1)
    theirs.produce(1, "a")
    world.follow(ours)
    world.run(3)
    assert (ours.log_end_offset, ours.synced_end_offset) == (1, 0)
    assert world.leader.positions["t", 0] == {FOLLOWER: 0}
    ends.pop()()
    world.run(1)
    assert world.leader.positions["t", 0] == {FOLLOWER: 1}


def test_partitions_added_in_one_turn_share_the_first_request() -> None:
    world = World()
    for index in range(3):
        world.pair("t", index)
    world.run(0.1)
    assert [len(topic.partitions) for topic in world.fetches()[0].topics] == [3]
    for index in range(3, 6):
        world.pair("t", index)
    world.run(1)
    added = [len(topic.partitions) for request in world.fetches()[1:] for topic in request.topics]
    assert added[0] == 3


def test_a_stopped_partition_takes_no_answer() -> None:
    world = World()
    theirs, ours = world.pair()
    theirs.produce(1, "a")
    world.clock.advance(0)
    assert world.link.in_flight == 1
    world.fetcher.remove(world.followed["t", 0])
    world.run(1)
    assert ours.batches == []
    assert world.fetcher.request_count == 1


def test_a_stopped_fetcher_drops_its_request() -> None:
    world = World()
    theirs, ours = world.pair()
    theirs.produce(1, "a")
    world.clock.advance(0)
    world.fetcher.stop()
    assert world.link.in_flight == 0
    world.run(1)
    assert (ours.batches, world.fetcher.request_count) == ([], 1)


def refollow_while_an_answer_is_on_its_way(world: World, theirs: ReplicaLog, ours: ReplicaLog) -> None:
    """Begin epoch 2 after the leader answered in epoch 1, and before the follower received the answer."""
    served = len(world.leader.requests)
    while len(world.leader.requests) == served:
        world.clock.advance(0.0005)
    world.leader.lead(theirs, 2)
    world.fetcher.remove(world.followed["t", 0])
    world.follow(ours, 2)


def test_an_answer_of_an_earlier_epoch_is_not_taken() -> None:
    world = World(wait_max_ms=10)
    theirs, ours = world.pair()
    theirs.produce(1, "a")
    world.run(0.1)
    theirs.sync()
    after_election = theirs.crash(Random(1))
    after_election.produce(2, "c")
    theirs.produce(1, "b")
    refollow_while_an_answer_is_on_its_way(world, after_election, ours)
    world.run(1)
    assert ours.batches == after_election.batches
    assert ours.changes == [("append", 1), ("append", 1)]


def test_what_an_earlier_epoch_did_not_hear_is_said_again() -> None:
    world = World(wait_max_ms=10)
    theirs, ours = world.pair()
    theirs.produce(1, "a")
    world.run(0.1)
    theirs.high_watermark = 1
    refollow_while_an_answer_is_on_its_way(world, theirs, ours)
    world.run(1)
    assert ours.high_watermark == 1


def test_a_partition_that_catches_up_takes_small_pieces_while_another_one_is_busy() -> None:
    most_bytes = 1 << 20
    world = World(wait_max_ms=10, partition_max_bytes=most_bytes)
    (busy, copy), (late, other) = world.pair("t", 0), world.pair("t", 1)
    busy.produce(1, "first")
    late.produce(1, *["x" * 50_000] * 400)
    for log in (busy, late):
        log.high_watermark = log.log_end_offset
    for number in range(5):
        world.run(0.01)
        busy.produce(1, f"{number}")
        busy.high_watermark = busy.log_end_offset
    world.run(0.01)
    assert copy.batches == busy.batches
    assert 0 < len(other.batches) < len(late.batches)
    # Both are behind at first. Then one of them is in sync, and keeps the full size.
    limits = [read_limits(request) for request in world.fetches()]
    assert limits[0] == dict.fromkeys([0, 1], SHORT_ROUND_BYTES // 2)
    assert {limit[1] for limit in limits[1:]} == {SHORT_ROUND_BYTES}
    assert {limit[0] for limit in limits[1:] if 0 in limit} == {most_bytes}
    world.run(BUSY_S + 1)
    assert other.batches == late.batches


def test_a_partition_that_catches_up_takes_large_pieces_while_the_others_are_idle() -> None:
    most_bytes = 1 << 20
    world = World(wait_max_ms=10, partition_max_bytes=most_bytes)
    _, (late, other) = world.pair("t", 0), world.pair("t", 1)
    world.run(BUSY_S + 1)
    late.produce(1, *["x" * 50_000] * 100)
    late.high_watermark = late.log_end_offset
    world.run(1)
    assert other.batches == late.batches
    assert [limits for request in world.fetches() if (limits := read_limits(request))][-1] == {1: most_bytes}


def read_limits(request: FetchRequest) -> dict[int, int]:
    """Return the limits of the partitions that a request names, by their numbers."""
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    return {partition.partition: partition.partition_max_bytes for partition in partitions}


# Throttles (KIP-73)


def test_throttled_partitions_keep_to_the_rate_and_others_do_not() -> None:
    world = World(wait_max_ms=20, partition_max_bytes=1000, backoff_ms=100)
    world.quota.set_throttled("t", ("0:1",))
    world.quota.rate = 1000
    (slow, copy), (fast, other) = world.pair("t", 0), world.pair("t", 1)
    for log in (slow, fast):
        log.produce(1, *["x" * 400] * 60)
        log.high_watermark = log.log_end_offset
    world.run(5)
    assert other.batches == fast.batches
    throttled_bytes = sum(map(len, copy.batches))
    assert 3000 <= throttled_bytes <= 8000
    world.run(40)
    assert copy.batches == slow.batches


def test_a_throttled_partition_that_is_in_sync_is_not_held_up() -> None:
    world = World(wait_max_ms=20, backoff_ms=100)
    world.quota.set_throttled("t", ("*",))
    world.quota.rate = 1
    theirs, ours = world.pair()
    for value in "abc":
        theirs.produce(1, value)
        world.run(0.2)
    assert ours.batches == theirs.batches


# Turns


def test_many_partitions_are_fetched_in_turns() -> None:
    clock = BusyClock()
    leader = ServingBroker(Versions(), Random(1))
    sent: list[tuple[Request, Deferred[Response]]] = []

    class Silent:
        def send(self, node_id: int, request: Request, timeout_s: float) -> Deferred[Response]:
            sent.append((request, Deferred()))
            return sent[-1][1]

    quota = ReplicationQuota(FOLLOWER, RateWindow(clock, 11, 1000))
    fetcher = LeaderFetcher(LEADER, Silent(), FetchSettings(FOLLOWER), clock, quota, lambda: 1)
    logs = [ReplicaLog("t", index) for index in range(400)]
    for log in logs:
        fetcher.add(FollowedPartition(PartitionFetch(log, 1, truncates_on_fetch=True, backoff_s=1)))
        theirs = ReplicaLog("t", log.index)
        theirs.produce(1, "a")
        leader.lead(theirs, 1)
    turns = 0
    while not sent:
        turns += clock.turn()
    assert turns > 400 / 8
    request, answered = sent[0]
    answered.callback(leader.serve(request))
    while len(sent) == 1:
        turns += clock.turn()
    assert turns > 3 * 400 / 8
    assert all(log.log_end_offset == 1 for log in logs)
