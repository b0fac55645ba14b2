"""Leaders that die, stop and return: nothing acknowledged is lost."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.three_brokers.support import LAG_S, NODES, Cluster


def produce_some(cluster: Cluster, topic: str, values: list[bytes], index: int = 0) -> None:
    leader = cluster.leader(topic, index)
    for value in values:
        answer = cluster.produce(leader, topic, value, index=index)
        assert answer.error_code == 0, answer


def assert_replicas_agree(cluster: Cluster, topic: str, index: int = 0) -> None:
    cluster.wait_for_in_sync(topic, list(cluster.brokers), index)
    cluster.advance(2)
    logs = [cluster.read_log(node, topic, index) for node in cluster.brokers]
    assert all(log == logs[0] for log in logs)


def in_sync_of_leader(cluster: Cluster, leader: int, topic: str) -> frozenset[int]:
    leading = cluster.partition(leader, topic).state.leading
    assert leading is not None
    return leading.in_sync.committed


def test_a_topic_is_led_and_followed() -> None:
    cluster = Cluster()
    cluster.create("t")
    leader = cluster.leader("t")
    for number in range(3):
        answer = cluster.produce(leader, "t", b"%d" % number)
        assert (answer.error_code, answer.base_offset) == (0, number)
    assert cluster.read(leader, "t") == [b"0", b"1", b"2"]
    for node in NODES:
        assert cluster.partition(node, "t").log.log_end_offset == 3
        assert sorted(cluster.describe(node, "t").partitions[0].isr_nodes) == [1, 2, 3]


def test_nothing_acknowledged_is_lost_when_the_leader_is_killed() -> None:
    cluster = Cluster()
    cluster.create("t")
    first = cluster.leader("t")
    produce_some(cluster, "t", [b"0", b"1", b"2"])
    cluster.kill(first)
    second = cluster.wait_for_leader("t", but=[first])
    assert cluster.produce(second, "t", b"3").error_code == 0
    assert cluster.read(second, "t") == [b"0", b"1", b"2", b"3"]
    cluster.start(first)
    assert_replicas_agree(cluster, "t")


def test_a_returning_leader_gives_up_what_nobody_acknowledged() -> None:
    cluster = Cluster()
    cluster.create("t")
    first = cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0", b"1"])
    followers = [node for node in NODES if node != first]
    for node in followers:
        cluster.network.cut(f"broker-{first}", f"broker-{node}")
    assert cluster.produce(first, "t", b"lost", acks=1).error_code == 0
    cluster.kill(first)
    second = cluster.wait_for_leader("t", but=[first])
    for node in followers:
        cluster.network.heal(f"broker-{first}", f"broker-{node}")
    assert cluster.produce(second, "t", b"2").error_code == 0
    cluster.start(first)
    assert_replicas_agree(cluster, "t")
    assert [value for _, _, value in cluster.read_log(first, "t")] == [b"0", b"1", b"2"]


def test_a_lagging_follower_is_not_elected() -> None:
    cluster = Cluster()
    cluster.create("t", assignment={0: [1, 2, 3]})
    assert cluster.wait_for_leader("t") == 1
    cluster.network.cut("broker-1", "broker-2")
    assert cluster.produce(1, "t", b"first", acks=1).error_code == 0
    cluster.wait(lambda: in_sync_of_leader(cluster, 1, "t") == {1, 3})
    produce_some(cluster, "t", [b"0", b"1"])
    cluster.kill(1)
    cluster.network.heal("broker-1", "broker-2")
    assert cluster.wait_for_leader("t", but=[1]) == 3
    assert cluster.read(3, "t") == [b"first", b"0", b"1"]
    cluster.wait_for_in_sync("t", [2, 3])
    cluster.start(1)
    assert_replicas_agree(cluster, "t")


def test_the_in_sync_set_shrinks_and_grows() -> None:
    cluster = Cluster(min_insync_replicas="2")
    cluster.create("t", assignment={0: [1, 2, 3]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    cluster.network.cut("broker-1", "broker-2")
    cluster.network.cut("broker-1", "broker-3")
    late = cluster.produce(1, "t", b"1")
    assert late.error_code in (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.REQUEST_TIMED_OUT)
    cluster.wait(lambda: in_sync_of_leader(cluster, 1, "t") == {1}, 2 * LAG_S)
    assert cluster.produce(1, "t", b"2").error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.partition(1, "t").high_watermark.offset == 1
    cluster.network.heal("broker-1", "broker-2")
    cluster.network.heal("broker-1", "broker-3")
    cluster.wait_for_in_sync("t", [1, 2, 3])
    assert cluster.produce(1, "t", b"3").error_code == 0
    assert cluster.read(1, "t") == [b"0", b"1", b"3"]


@pytest.mark.parametrize("source, target", [(1, 2), (2, 1)])
def test_a_cut_of_one_direction_shrinks_the_set(source: int, target: int) -> None:
    cluster = Cluster()
    cluster.create("t", assignment={0: [1, 2, 3]})
    cluster.wait_for_leader("t")
    link = cluster.network.link(f"broker-{source}", f"broker-{target}")
    link.cut()
    assert cluster.produce(1, "t", b"first", acks=1).error_code == 0
    cluster.wait(lambda: in_sync_of_leader(cluster, 1, "t") == {1, 3}, 3 * LAG_S)
    produce_some(cluster, "t", [b"0"])
    link.heal()
    cluster.wait_for_in_sync("t", [1, 2, 3], seconds=90)
    assert_replicas_agree(cluster, "t")


def test_a_clean_stop_moves_the_leaders_first() -> None:
    cluster = Cluster()
    cluster.create("t", partitions=6)
    cluster.create("alone", assignment={0: [1]})
    for index in range(6):
        cluster.wait_for_leader("t", index)
    stopping = cluster.begin_stop(1)
    unled: list[int] = []
    while not stopping.called:
        cluster.turn()
        if 9092 in cluster.hosts[1].ports:
            continue
        unled += [
            index
            for index in range(6)
            for node in (2, 3)
            if (leader := cluster.leader("t", index, node)) == 1 or not cluster.partition(leader, "t", index).is_leader
        ]
    assert not unled
    cluster.end_stop(1)
    for index in range(6):
        assert cluster.wait_for_leader("t", index) in (2, 3)
        assert cluster.produce(cluster.leader("t", index), "t", b"x", index=index).error_code == 0
    cluster.start(1)
    for index in range(6):
        cluster.wait_for_in_sync("t", NODES, index)
    assert cluster.wait_for_leader("alone") == 1


def test_a_clean_stop_is_quick() -> None:
    cluster = Cluster()
    cluster.create("t", partitions=3)
    cluster.wait_for_leader("t")
    began = cluster.clock.seconds()
    cluster.stop(cluster.controller())
    assert cluster.clock.seconds() - began < 3


def test_a_topic_of_one_replica_waits_for_its_broker() -> None:
    cluster = Cluster()
    cluster.create("t", assignment={0: [2]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    cluster.kill(2)
    cluster.wait(lambda: cluster.leader("t", node=1) == -1)
    assert cluster.describe(1, "t").partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    cluster.start(2)
    assert cluster.wait_for_leader("t") == 2
    assert cluster.read(2, "t") == [b"0"]


def test_nobody_out_of_sync_leads_unless_that_is_allowed() -> None:
    cluster = Cluster()
    cluster.create("clean", assignment={0: [1, 2]})
    cluster.create("unclean", assignment={0: [1, 2]}, unclean_leader_election_enable="true")
    for topic in ("clean", "unclean"):
        cluster.wait_for_leader(topic)
    cluster.kill(2)
    for topic in ("clean", "unclean"):
        cluster.wait_for_in_sync(topic, [1])
        produce_some(cluster, topic, [b"0"])
    cluster.kill(1)
    cluster.start(2)
    cluster.wait(lambda: cluster.leader("unclean", node=3) == 2)
    assert cluster.leader("clean", node=3) == -1
    assert cluster.in_sync("clean", node=3) == [1]
    cluster.start(1)
    assert cluster.wait_for_leader("clean") == 1
    assert cluster.read(1, "clean") == [b"0"]


def test_brokers_are_restarted_one_by_one_under_load() -> None:
    cluster = Cluster(min_insync_replicas="2")
    cluster.create("t")
    cluster.wait_for_leader("t")
    acknowledged: list[bytes] = []

    def produce(value: bytes) -> None:
        answer = cluster.produce(cluster.wait_for_leader("t"), "t", value)
        if answer.error_code == 0:
            acknowledged.append(value)

    for node in NODES:
        for number in range(3):
            produce(b"%d before %d" % (number, node))
        cluster.stop(node)
        for number in range(3):
            produce(b"%d without %d" % (number, node))
        cluster.start(node)
        cluster.wait_for_in_sync("t", NODES)
    assert len(acknowledged) == 18
    assert cluster.read(cluster.leader("t"), "t") == acknowledged
    assert_replicas_agree(cluster, "t")


@pytest.mark.parametrize("lose_unsynced", [False, True])
def test_all_brokers_are_killed_and_started_again(lose_unsynced: bool) -> None:
    cluster = Cluster(kafkacompat_acks_after="fsync" if lose_unsynced else "kafka")
    cluster.create("t", partitions=3)
    for index in range(3):
        cluster.wait_for_leader("t", index)
        produce_some(cluster, "t", [b"0", b"1", b"2"], index)
    for node in NODES:
        cluster.kill(node, lose_unsynced=lose_unsynced)
    for node in (2, 3, 1):
        cluster.start(node)
    for index in range(3):
        leader = cluster.wait_for_leader("t", index)
        cluster.wait_for_in_sync("t", NODES, index)
        assert cluster.produce(leader, "t", b"3", index=index).error_code == 0
        assert cluster.read(leader, "t", index=index) == [b"0", b"1", b"2", b"3"]


def test_a_follower_serves_consumers_what_is_below_its_high_watermark() -> None:
    cluster = Cluster()
    cluster.create("t", assignment={0: [1, 2, 3]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0", b"1"])
    cluster.advance(2)
    assert cluster.read(2, "t") == [b"0", b"1"]
    cluster.network.cut("broker-1", "broker-3")
    assert cluster.produce(1, "t", b"2", acks=1).error_code == 0
    cluster.advance(1)
    assert cluster.partition(2, "t").log.log_end_offset == 3
    assert cluster.read(2, "t") == [b"0", b"1"]


def test_a_partition_with_one_replica_needs_nobody_else() -> None:
    cluster = Cluster(min_insync_replicas="2")
    cluster.create("alone", replicas=1)
    leader = cluster.wait_for_leader("alone")
    for acks, value in ((-1, b"first"), (1, b"second")):
        assert cluster.produce(leader, "alone", value, acks).error_code == 0
    assert cluster.read(leader, "alone") == [b"first", b"second"]


def test_the_last_broker_does_not_wait_for_others_to_lead() -> None:
    cluster = Cluster()
    cluster.create("t")
    cluster.wait_for_leader("t")
    for node in NODES:
        began_s = cluster.clock.seconds()
        cluster.stop(node)
        assert cluster.clock.seconds() - began_s < 5


def test_orders_of_an_earlier_start_wait_for_the_registration() -> None:
    cluster = Cluster(min_insync_replicas="2")
    controller = cluster.controller()
    first, second = [node for node in NODES if node != controller]
    cluster.create("t", assignment={0: [first, second, controller]})
    assert cluster.wait_for_leader("t") == first
    cluster.advance(3)
    produce_some(cluster, "t", [b"0", b"1", b"2"])
    # The order to lead does not reach the second broker, which fails, and loses what is not synced.
    cluster.network.link(f"broker-{controller}", f"broker-{second}").cut()
    cluster.kill(first)
    cluster.wait(lambda: cluster.brokers[controller].replica_manager.find("t", 0).leader_epoch == 1)
    cluster.kill(second, expire=False, lose_unsynced=True)
    cluster.network.link(f"broker-{controller}", f"broker-{second}").heal()
    # It listens again, and ZooKeeper does not answer it for a while.
    broker = cluster.brokers[second] = cluster.build(second)
    listen = broker._listen

    async def listen_and_disconnect() -> None:
        await listen()
        cluster.zookeeper.disconnect(cluster.client_of(second))

    broker._listen = listen_and_disconnect  # type: ignore[method-assign]
    starting = Deferred.fromCoroutine(broker.start())
    cluster.advance(5)
    cluster.zookeeper.reconnect(cluster.client_of(second))
    cluster.run(starting)
    assert cluster.wait_for_leader("t") == controller
    cluster.start(first)
    cluster.wait_for_in_sync("t", NODES)
    assert cluster.read(controller, "t") == [b"0", b"1", b"2"]
