"""Which broker receives what when an image follows on another."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from kafkacompat.cluster.decisions.broadcasts import (
    Broadcast,
    LeaderAndIsrRow,
    Moment,
    StopReplicaRow,
    plan_broadcast,
)
from kafkacompat.cluster.decisions.broker_changes import handle_broker_failure, handle_broker_start, shut_down_broker
from kafkacompat.cluster.decisions.reassignment import complete_reassignments, reassign_partitions
from kafkacompat.cluster.decisions.situation import ReplicaStop, Situation, TopicPartition
from kafkacompat.cluster.decisions.topic_deletion import queue_deletions
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import MetadataImage, PartitionImage
from tests.kafkacompat.cluster.decisions.clusters import NOBODY, T0, brokers, build_image, partition, stateless

THREE = (1, 2, 3)
Sent = dict[int, list[tuple[str, int, bool]]]


def plan(
    old: MetadataImage,
    new: MetadataImage,
    before: Situation = NOBODY,
    after: Situation = NOBODY,
    *,
    started: Collection[int] = (),
    queried: Collection[int] = (),
    stops: Iterable[ReplicaStop] = (),
) -> Broadcast:
    return plan_broadcast(Moment(old, before), Moment(new, after), started=started, queried=queried, stops=stops)


def leader_and_isr(broadcast: Broadcast) -> Sent:
    """Topic, partition and whether it is new, by the brokers that receive any."""
    return {
        orders.broker.node_id: [(row.topic, row.partition.partition, row.is_new) for row in orders.leader_and_isr]
        for orders in broadcast.orders
        if orders.leader_and_isr
    }


def stop_replica(broadcast: Broadcast) -> dict[int, tuple[StopReplicaRow, ...]]:
    return {orders.broker.node_id: orders.stop_replica for orders in broadcast.orders if orders.stop_replica}


def metadata(broadcast: Broadcast) -> list[tuple[str, int, int, tuple[int, ...]]]:
    """Topic, partition, leader and offline replicas."""
    return [
        (row.topic, row.partition.partition, row.partition.leader, row.offline_replicas) for row in broadcast.metadata
    ]


def test_nothing_is_sent_when_nothing_changes() -> None:
    image = build_image(THREE, t=[partition(1, THREE, THREE)])
    broadcast = plan(image, image)
    assert not leader_and_isr(broadcast) and not stop_replica(broadcast)
    assert not broadcast.metadata and not broadcast.brokers_changed
    assert [orders.broker.node_id for orders in broadcast.orders] == [1, 2, 3]
    assert {(orders.first_metadata, orders.is_full) for orders in broadcast.orders} == {(None, False)}


def test_a_new_topic_goes_to_its_replicas_as_new_and_to_all_as_metadata() -> None:
    first = partition(1, (1, 9), (1,))._replace(partition_epoch=0)
    second = partition(2, (2, 1), (2, 1))._replace(partition_epoch=0)
    new = build_image(THREE, t=[first, second, stateless((9,))])
    broadcast = plan(build_image(THREE), new)
    assert leader_and_isr(broadcast) == {1: [("t", 0, True), ("t", 1, True)], 2: [("t", 1, True)]}
    assert metadata(broadcast) == [("t", 0, 1, (9,)), ("t", 1, 2, ())]
    row = broadcast.orders[1].leader_and_isr[0]
    topic = new.topics["t"]
    assert row == LeaderAndIsrRow("t", topic.topic_id, topic.partitions[1], is_new=True)


def test_a_topic_that_was_left_out_is_not_new() -> None:
    new = build_image((1,), t=[partition(1, (1,), (1,))])
    assert leader_and_isr(plan(build_image((1,)), new)) == {1: [("t", 0, False)]}


def test_a_topic_without_an_id_is_mentioned_to_no_broker() -> None:
    new = build_image(THREE, t=[partition(1, THREE, THREE)])
    nameless = new.with_topics({"t": new.topics["t"]._replace(topic_id=bytes(16))})
    broadcast = plan(nameless, nameless, started=THREE)
    assert (leader_and_isr(broadcast), metadata(broadcast)) == ({}, [])
    assert all(orders.is_full and orders.first_metadata == () for orders in broadcast.orders)


def test_the_first_leader_of_a_partition_makes_it_new() -> None:
    broadcast = plan(build_image(THREE, t=[stateless((2,))]), build_image(THREE, t=[partition(2, (2,), (2,), epoch=0)]))
    assert leader_and_isr(broadcast) == {2: [("t", 0, True)]}


def test_a_change_of_the_in_sync_set_alone_is_only_metadata() -> None:
    before = partition(1, THREE, (1, 2))
    new = build_image(THREE, t=[before._replace(in_sync_replicas=THREE, partition_epoch=8)])
    broadcast = plan(build_image(THREE, t=[before]), new)
    assert leader_and_isr(broadcast) == {}
    assert metadata(broadcast) == [("t", 0, 1, ())]


def test_a_failure_goes_to_the_replicas_that_are_left() -> None:
    old = build_image(THREE, t=[partition(1, (1, 2), (1, 2)), partition(3, (3, 1), (3,)), partition(3, (3,), (3,))])
    draft = MetadataDraft(replace(old, brokers=brokers((2, 3))))
    handle_broker_failure(draft, NOBODY, [1])
    broadcast = plan(old, draft.build_image())
    assert leader_and_isr(broadcast) == {2: [("t", 0, False)]}
    # The replica that is gone is offline, also where it was not in sync.
    assert metadata(broadcast) == [("t", 0, 2, (1,)), ("t", 1, 3, (1,))]
    assert broadcast.brokers_changed


def test_a_broker_that_starts_receives_metadata_first_and_all_its_replicas() -> None:
    partitions = [partition(2, (1, 2), (2,)), partition(-1, (1,), (1,)), partition(3, (3,), (3,)), stateless((1,))]
    old = build_image((2, 3), t=partitions)
    draft = MetadataDraft(replace(old, brokers=brokers(THREE)))
    handle_broker_start(draft, NOBODY, [1])
    broadcast = plan(old, draft.build_image(), started=[1])
    orders = broadcast.orders[0]
    assert orders.is_full and orders.first_metadata is not None
    assert [(row.partition.partition, row.partition.leader) for row in orders.first_metadata] == [
        (0, 2),
        (1, -1),
        (2, 3),
    ]
    assert leader_and_isr(broadcast) == {1: [("t", 0, False), ("t", 1, False), ("t", 3, True)]}
    # Others learn that its replicas are online, and the new leaders only now.
    assert metadata(broadcast) == [("t", 0, 2, ()), ("t", 1, 1, ()), ("t", 3, 1, ())]
    assert broadcast.brokers_changed and not broadcast.orders[1].is_full


def test_metadata_for_a_broker_that_starts_names_no_leader_that_bounced_or_failed() -> None:
    old = build_image(THREE, t=[partition(1, (1,), (1,)), partition(3, (3,), (3,)), partition(2, (2,), (2,))])
    new = replace(old, brokers=brokers({1: 200, 2: 102}))
    orders = plan(old, new, started=[1]).orders[0]
    assert orders.first_metadata is not None
    assert [row.partition.leader for row in orders.first_metadata] == [-1, -1, 2]


def test_a_full_request_is_sent_even_without_replicas() -> None:
    orders = plan(build_image((2,)), build_image((1, 2)), started=[1]).orders[0]
    assert (orders.leader_and_isr, orders.is_full, orders.first_metadata) == ((), True, ())


def test_a_new_controller_sends_everything_to_all() -> None:
    image = build_image((1, 2), t=[partition(1, (1, 2), (1, 2)), partition(2, (2,), (2,))])
    broadcast = plan(image, image, started=[1, 2])
    assert leader_and_isr(broadcast) == {1: [("t", 0, False)], 2: [("t", 0, False), ("t", 1, False)]}
    assert all(orders.is_full and len(orders.first_metadata or ()) == 2 for orders in broadcast.orders)


def test_a_queried_broker_receives_all_its_replicas_but_no_full_request() -> None:
    image = build_image((1, 2), t=[partition(1, (1, 2), (1, 2)), partition(2, (2,), (2,))])
    broadcast = plan(image, image, queried=[1])
    assert leader_and_isr(broadcast) == {1: [("t", 0, False)]}
    assert not broadcast.orders[0].is_full and not broadcast.metadata


def test_a_reassignment_creates_replicas_and_deletes_them() -> None:
    old = build_image((1, 2, 3, 4), t=[partition(1, (1, 2), (1, 2))])
    draft = MetadataDraft(old)
    reassign_partitions(draft, NOBODY, {T0: [3, 2]})
    moving = draft.build_image()
    broadcast = plan(old, moving)
    assert leader_and_isr(broadcast) == {1: [("t", 0, False)], 2: [("t", 0, False)], 3: [("t", 0, True)]}
    assert stop_replica(broadcast) == {}
    synced = _with_partition(moving, moving.topics["t"].partitions[0]._replace(in_sync_replicas=THREE))
    draft = MetadataDraft(synced)
    complete_reassignments(draft, NOBODY)
    broadcast = plan(synced, draft.build_image())
    assert leader_and_isr(broadcast) == {2: [("t", 0, False)], 3: [("t", 0, False)]}
    assert stop_replica(broadcast) == {1: (StopReplicaRow("t", 0, 7, delete=True),)}
    assert metadata(broadcast) == [("t", 0, 3, ())]


def _with_partition(image: MetadataImage, changed: PartitionImage) -> MetadataImage:
    return image.with_topics({"t": image.topics["t"]._replace(partitions=(changed,))})


def test_a_replica_that_is_in_sync_already_is_not_created_again() -> None:
    moving = partition(1, (3, 1), (1, 3), adding=(3,), removing=(1,))
    broadcast = plan(build_image(THREE, t=[moving]), build_image(THREE, t=[moving._replace(leader=3, leader_epoch=6)]))
    assert leader_and_isr(broadcast) == {1: [("t", 0, False)], 3: [("t", 0, False)]}


def test_a_shutdown_stops_followers_and_tells_leaders_to_follow() -> None:
    old = build_image((1, 2), t=[partition(1, (1, 2), (1, 2)), partition(2, (1, 2), (1, 2))])
    draft = MetadataDraft(old)
    decision, _ = shut_down_broker(draft, NOBODY, 1)
    broadcast = plan(old, draft.build_image(), NOBODY, decision.situation, stops=decision.stops)
    assert leader_and_isr(broadcast)[1] == [("t", 0, False), ("t", 1, False)]
    assert stop_replica(broadcast) == {1: (StopReplicaRow("t", 1, 6, delete=False),)}
    assert metadata(broadcast) == [("t", 0, 2, (1,)), ("t", 1, 2, (1,))]


def test_a_topic_that_is_deleted_has_no_leader_anywhere() -> None:
    old = build_image((1, 2), t=[partition(1, (1, 2), (1, 2))], u=[partition(1, (1,), (1,))])
    draft = MetadataDraft(old)
    decision = queue_deletions(draft, NOBODY, ["t"])
    broadcast = plan(old, draft.build_image(), NOBODY, decision.situation, stops=decision.stops)
    assert metadata(broadcast) == [("t", 0, -2, ())]
    row = StopReplicaRow("t", 0, -2, delete=True)
    assert stop_replica(broadcast) == {1: (row,), 2: (row,)}
    # A broker that starts meanwhile still learns of its replica, so that it does not take it for a stray one.
    image = draft.build_image()
    later = plan(image, image, decision.situation, decision.situation, started=[2])
    assert leader_and_isr(later) == {2: [("t", 0, False)]}
    assert [row.topic for row in later.orders[1].first_metadata or ()] == ["u"]


def test_a_deletion_wins_over_a_stop_and_only_registered_brokers_have_orders() -> None:
    image = build_image((1,), t=[partition(1, (1, 2), (1,))])
    stops = [
        ReplicaStop(1, T0, delete=True),
        ReplicaStop(1, T0),
        ReplicaStop(2, T0),
        ReplicaStop(1, TopicPartition("x", 0)),
    ]
    rows = (StopReplicaRow("t", 0, 5, delete=True), StopReplicaRow("x", 0, -1, delete=False))
    assert stop_replica(plan(image, image, stops=stops)) == {1: rows}


def test_a_replica_in_a_failed_directory_is_offline() -> None:
    image = build_image((1, 2), t=[partition(1, (1, 2), (1,))])
    assert metadata(plan(image, image, NOBODY, Situation(offline_replicas={2: frozenset({T0})}))) == [("t", 0, 1, (2,))]


def test_a_topic_created_again_under_its_name_is_new() -> None:
    old = build_image((1,), t=[partition(1, (1,), (1,))._replace(partition_epoch=0)])
    topic = old.topics["t"]._replace(topic_id=b"another id 16 by")
    broadcast = plan(old, old.with_topics({"t": topic}))
    assert leader_and_isr(broadcast) == {1: [("t", 0, True)]}
    assert stop_replica(broadcast) == {}
