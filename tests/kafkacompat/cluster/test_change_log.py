"""The lines of a broker's log about leaders, in-sync sets and the controller."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from twisted.internet.task import Clock

from kafkacompat.cluster.change_log import LINES_A_SECOND, ClusterChangeLog
from kafkacompat.metadata.image import MetadataImage, PartitionImage, TopicImage
from tests.kafkacompat.three_brokers.support import Cluster

NAME = "kafkacompat.cluster.change_log"


def build_image(*partitions: PartitionImage, topic_id: bytes = b"i" * 16, controller: int = 1) -> MetadataImage:
    topics = {"orders": TopicImage("orders", topic_id, partitions)}
    return replace(MetadataImage(controller_id=controller), topics=topics)


def partition(index: int, leader: int, epoch: int, isr: tuple[int, ...], partition_epoch: int = 7) -> PartitionImage:
    return PartitionImage(index, leader, epoch, (1, 2, 3), isr, partition_epoch)


FIRST = partition(0, 1, 4, (1, 2, 3))


def note(clock: Clock, *images: MetadataImage) -> ClusterChangeLog:
    changes = ClusterChangeLog(clock)
    for old, new in pairwise(images):
        changes.note_update(old, new, ["orders", "gone"])
    return changes


@pytest.mark.parametrize(
    ("after", "line"),
    [
        (partition(0, 2, 5, (3, 2)), "orders-0: broker 2 leads in epoch 5 (in sync: 2, 3)"),
        (partition(0, 1, 4, (1, 2), 8), "orders-0: broker 1 leads in epoch 4 (in sync: 1, 2)"),
        (partition(0, -1, 5, (1,)), "orders-0: no broker leads in epoch 5 (in sync: 1)"),
        (FIRST._replace(offline_replicas=(3,)), None),
        (FIRST, None),
    ],
)
def test_a_change_is_one_line(after: PartitionImage, line: str | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", NAME)
    note(Clock(), build_image(FIRST), build_image(after))
    assert caplog.messages == ([] if line is None else [line])


def test_what_is_new_is_no_change(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", NAME)
    unknown = partition(0, -1, -1, (), -1)
    note(Clock(), MetadataImage(controller_id=1), build_image(unknown), build_image(FIRST), build_image(FIRST, FIRST))
    note(Clock(), build_image(FIRST), build_image(partition(0, 3, 0, (3,)), topic_id=b"j" * 16))
    assert caplog.messages == []


def test_a_new_controller_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", NAME)
    note(Clock(), build_image(), build_image(controller=3), build_image(controller=3))
    assert caplog.messages == ["Broker 3 is the controller"]


def test_a_flood_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", NAME)
    clock = Clock()
    states = [build_image(*(partition(index, leader, leader, (leader,)) for index in range(1000))) for leader in (1, 2)]
    changes = note(clock, *states)
    assert len(caplog.messages) == LINES_A_SECOND
    clock.advance(0.5)
    changes.note_update(states[0], states[1], ["orders"])
    assert len(caplog.messages) == LINES_A_SECOND
    clock.advance(0.5)
    left_out = 2000 - LINES_A_SECOND
    assert caplog.messages[LINES_A_SECOND:] == [
        f"Left out {left_out} more changes of leaders and in-sync sets in a second"
    ]
    changes.note_update(states[0], states[1], ["orders"])
    assert len(caplog.messages) == 2 * LINES_A_SECOND + 1


def test_each_broker_of_a_cluster_logs_a_failover(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.create("orders", assignment={0: [1, 2, 3]})
    cluster.wait_for_leader("orders")
    cluster.advance(1)
    caplog.clear()
    caplog.set_level("INFO", NAME)
    cluster.kill(1)
    leader = cluster.wait_for_leader("orders", but=[1])
    lines = [record.getMessage() for record in caplog.records if record.name == NAME]
    assert lines.count(f"orders-0: broker {leader} leads in epoch 1 (in sync: 2, 3)") == 2
