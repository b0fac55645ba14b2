"""Partitions over fetchers: leaders and epochs that change."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.config import BrokerConfig
from kafkacompat.partitions.replication_quota import RateWindow, ReplicationQuota
from kafkacompat.replication.replica_fetcher_manager import ReplicaFetcherManager, choose_fetcher
from kafkacompat.replication.settings import FetchSettings
from kafkacompat.wire.apis.fetch import FetchRequest
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.replication.network import Link
from tests.kafkacompat.replication.replica_log import ReplicaLog
from tests.kafkacompat.replication.serving import ServingBroker, Versions

FOLLOWER = 1


class World:
    """Two leaders, and a manager."""

    def __init__(self, **settings: int) -> None:
        self.clock = Clock()
        self.leaders = {node_id: ServingBroker(Versions(), Random(node_id)) for node_id in (2, 3)}
        self.links: dict[int, Link] = {}
        quota = ReplicationQuota(FOLLOWER, RateWindow(self.clock, 11, 1000))
        self.manager = ReplicaFetcherManager(
            self.connect,
            FetchSettings(FOLLOWER, **settings),  # type: ignore[arg-type]
            self.clock,
            quota,
            lambda: 5,
        )

    def connect(self, number: int) -> Link:
        assert number not in self.links
        self.links[number] = Link(self.clock, self.leaders)
        return self.links[number]

    def run(self, seconds: float = 2.0) -> None:
        for _ in range(int(seconds / 0.005)):
            self.clock.advance(0.005)

    def lead(self, node_id: int, log: ReplicaLog, leader_epoch: int) -> None:
        for leader in self.leaders.values():
            leader.led.pop((log.topic, log.index), None)
        self.leaders[node_id].lead(log, leader_epoch)


def is_fired(deferred: Deferred[None]) -> bool:
    fired: list[object] = []
    deferred.addCallback(fired.append)
    return bool(fired)


def test_partitions_are_spread_as_in_kafka() -> None:
    # Utils.abs(31 * "orders".hashCode() + partition) % 3
    assert [choose_fetcher("orders", index, 3) for index in range(4)] == [2, 1, 0, 2]
    assert {choose_fetcher(f"topic-{index}", 0, 4) for index in range(50)} == {0, 1, 2, 3}


@pytest.mark.parametrize("fetcher_count", [1, 3])
def test_partitions_of_two_leaders_are_followed(fetcher_count: int) -> None:
    world = World(fetcher_count=fetcher_count)
    pairs = [(ReplicaLog("t", index), ReplicaLog("t", index)) for index in range(6)]
    for index, (theirs, ours) in enumerate(pairs):
        theirs.produce(1, f"value {index}")
        theirs.high_watermark = 5
        world.lead(2 + index % 2, theirs, 1)
        world.manager.follow(ours, 2 + index % 2, 1)
    world.run()
    assert all(ours.batches == theirs.batches for theirs, ours in pairs)
    assert len(world.links) == fetcher_count
    # Each link carries one request to each of the two leaders at most.
    assert all(link.most_in_flight <= 2 for link in world.links.values())


def test_a_new_epoch_moves_a_partition_to_its_new_leader() -> None:
    world = World()
    first, second, ours = ReplicaLog(), ReplicaLog(), ReplicaLog()
    first.produce(1, "a", "b")
    second.produce(1, "a")
    world.lead(2, first, 1)
    world.manager.follow(ours, 2, 1)
    world.run()
    assert ours.batches == first.batches
    second.produce(2, "c")
    world.lead(3, second, 2)
    world.manager.follow(ours, 3, 2)
    world.run()
    assert ours.batches == second.batches


def test_the_same_epoch_again_changes_nothing() -> None:
    world = World()
    theirs, ours = ReplicaLog(), ReplicaLog()
    world.lead(2, theirs, 1)
    world.manager.follow(ours, 2, 1)
    world.run()
    sent = len(world.leaders[2].requests)
    world.manager.follow(ours, 2, 1)
    world.run(0.2)
    assert len(world.leaders[2].requests) <= sent + 1
    requests = [request for request in world.leaders[2].requests if isinstance(request, FetchRequest)]
    assert all(not request.topics for request in requests[1:])


def test_a_failed_partition_waits_for_its_next_epoch() -> None:
    world = World()
    theirs, ours = ReplicaLog(), ReplicaLog()
    theirs.produce(1, "a")
    world.lead(2, theirs, 2)
    world.leaders[2].errors["t", 0] = ErrorCode.FENCED_LEADER_EPOCH
    world.manager.follow(ours, 2, 1)
    world.run()
    sent = len(world.leaders[2].requests)
    world.run()
    assert (len(world.leaders[2].requests), ours.batches) == (sent, [])
    world.leaders[2].errors.clear()
    world.manager.follow(ours, 2, 2)
    world.run()
    assert ours.batches == theirs.batches


def test_a_stopped_partition_is_at_rest_once_its_change_has_ended() -> None:
    world = World()
    ends: list[Callable[[], None]] = []
    theirs, ours = ReplicaLog(), ReplicaLog(finish=ends.append)
    theirs.produce(1, "a")
    world.lead(2, theirs, 1)
    world.manager.follow(ours, 2, 1)
    world.run()
    stopped = world.manager.stop("t", 0)
    assert not is_fired(stopped)
    ends.pop()()
    assert is_fired(stopped)
    assert is_fired(world.manager.stop("t", 0))
    theirs.produce(1, "b")
    world.run()
    assert ends == []


def test_a_new_epoch_begins_when_the_change_of_the_earlier_one_has_ended() -> None:
    world = World()
    ends: list[Callable[[], None]] = []
    first, second, ours = ReplicaLog(), ReplicaLog(), ReplicaLog(finish=ends.append)
    first.produce(1, "a")
    second.produce(2, "b")
    world.lead(2, first, 1)
    world.manager.follow(ours, 2, 1)
    world.run()
    world.lead(3, second, 2)
    world.manager.follow(ours, 3, 2)
    world.manager.follow(ours, 3, 3)
    world.lead(3, second, 3)
    world.run()
    assert (len(ends), world.leaders[3].requests) == (1, [])
    stopped = world.manager.stop_all()
    assert not is_fired(stopped)
    world.manager.follow(ours, 3, 3)
    ends.pop()()
    assert is_fired(stopped)
    for _ in range(3):
        world.run()
        if ends:
            ends.pop()()
    assert ours.batches == second.batches


def test_after_stop_all_nothing_is_sent() -> None:
    world = World()
    theirs, ours = ReplicaLog(), ReplicaLog()
    world.lead(2, theirs, 1)
    world.manager.follow(ours, 2, 1)
    world.run(0.1)
    assert is_fired(world.manager.stop_all())
    sent = len(world.leaders[2].requests)
    theirs.produce(1, "a")
    world.run()
    assert (len(world.leaders[2].requests), ours.batches) == (sent, [])
    assert world.clock.getDelayedCalls() == []


def test_another_number_of_fetchers_takes_the_partitions_over() -> None:
    world = World()
    pairs = [(ReplicaLog("t", index), ReplicaLog("t", index)) for index in range(6)]
    for theirs, ours in pairs:
        world.lead(2, theirs, 1)
        world.manager.follow(ours, 2, 1)
    world.run()
    world.manager.resize(3)
    assert set(world.links) == {0, 1, 2}
    for theirs, _ in pairs:
        theirs.produce(1, "a")
    world.run()
    assert all(ours.batches == theirs.batches for theirs, ours in pairs)
    world.manager.resize(3)
    assert set(world.links) == {0, 1, 2}


def test_settings_are_those_of_the_properties() -> None:
    config = BrokerConfig({"node.id": "4"})
    settings = FetchSettings.read(config, truncates_on_fetch=True)
    assert settings == FetchSettings(config.node_id)
