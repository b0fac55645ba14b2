"""Moves of leaders: the replica that is chosen, and the requests that make it the leader."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.task import Clock

from kafkacompat.faults.leaders import ANY, ATTEMPTS, PAUSE_S, LeaderMoves
from kafkacompat.handlers import HANDLERS
from kafkacompat.metadata.image import PartitionImage
from kafkacompat.wire.apis.alter_partition_reassignments import AlterPartitionReassignmentsRequest


class Cluster:
    """The partition t-0 on the brokers 1 to 4; broker 3 is out of sync. *elects* says whether elections have an effect."""

    handlers = HANDLERS

    def __init__(self, *, elects: bool = True) -> None:
        self.clock = Clock()
        self.metadata: Any = self
        self.image: Any = self
        self.elects = elects
        self.requests: list[Any] = []
        self.state = PartitionImage(0, 1, 0, (1, 2, 3, 4), (1, 2, 4), 0)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        return self.state if (topic, index) == ("t", 0) else None

    def dispatch(self, incoming: Any, context: Any) -> Any:
        self.requests.append(incoming.body)
        if isinstance(incoming.body, AlterPartitionReassignmentsRequest):
            (topic,) = incoming.body.topics
            self.state = self.state._replace(replicas=tuple(topic.partitions[0].replicas or ()))
        elif self.elects:
            self.state = self.state._replace(leader=self.state.replicas[0])
        return SimpleNamespace()

    def move(self, broker: int, topic: str = "t") -> None:
        dispatcher: Any = self
        LeaderMoves(dispatcher, dispatcher).begin(topic, 0, broker)


@pytest.mark.parametrize(("broker", "replicas"), [(ANY, (2, 1, 3, 4)), (4, (4, 1, 2, 3))])
def test_the_chosen_replica_becomes_the_preferred_one_and_the_leader(broker: int, replicas: tuple[int, ...]) -> None:
    cluster = Cluster()
    cluster.move(broker)
    assert (cluster.state.replicas, cluster.state.leader) == (replicas, replicas[0])
    assert len(cluster.requests) == 2
    assert cluster.clock.getDelayedCalls() == []


@pytest.mark.parametrize(
    ("topic", "broker", "sentence"),
    [
        ("t", 3, "t-0 has no in-sync follower on broker 3"),
        ("t", 1, "t-0 has no in-sync follower on broker 1"),
        ("other", ANY, "there is no partition other-0"),
    ],
)
def test_a_leader_that_cannot_move_is_a_line_in_the_log(
    topic: str, broker: int, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    with caplog.at_level(logging.WARNING):
        cluster.move(broker, topic)
    assert [record.getMessage() for record in caplog.records] == [f"Fault move_leader: {sentence}"]
    assert cluster.requests == []


def test_a_move_ends_after_some_attempts(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(elects=False)
    cluster.move(ANY)
    cluster.clock.pump([PAUSE_S] * ATTEMPTS)
    assert "broker 2 did not become the leader of t-0" in caplog.text
    assert len(cluster.requests) == 1 + ATTEMPTS
    assert cluster.clock.getDelayedCalls() == []
