"""Three nodes, and one fails: the time without a leader, for one partition and for a thousand.

Each run starts a new cluster. Session timeouts are set, because their defaults differ: 18 s with ZooKeeper, 9 s with KRaft.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from bench.following import Reader, RetryingClient, Writer, at_work
from bench.row import RECORDS, ClusterRow, Goal, Options, Samples
from bench.topics import admin_of, await_open, unused_name
from compat_tests.clusters import NODES, Cluster, KafkacompatCluster
from compat_tests.raw_client import ClosedError, RawClient
from compat_tests.waiting import pause, until
from kafkacompat.cli.cluster.reading import read_cluster
from kafkacompat.cli.requests import BlockingConnection
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

SESSION_MS = 6000
TIMEOUTS = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "2000",
}
"""ZooKeeper's session for kafkacompat, and the broker's with the controllers for Kafka, whose other timeouts are its defaults."""

IMBALANCE_SECONDS = 5
MANY_PARTITIONS = 1000
STEADY_SECONDS = 1
LONGEST_SECONDS = 300
METADATA_VERSION = 9


@contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    """Run a cluster that was not started yet."""
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def find_controller(cluster: Cluster) -> int:
    """Return the node whose controller is active."""
    return read_cluster(
        [("127.0.0.1", broker.port) for broker in cluster.brokers.values()], BlockingConnection
    ).controller


def create_assigned(cluster: Cluster, assignment: Sequence[Sequence[int]]) -> str:
    """Create a topic with these replicas; return its name once the first ones lead and all are in sync."""
    topic = unused_name()
    new = NewTopic(topic, len(assignment), replica_assignment=[list(replicas) for replicas in assignment])
    admin = admin_of(cluster)
    admin.create_topics([new])[topic].result(LONGEST_SECONDS)
    port = cluster.brokers[assignment[0][0]].port
    until(lambda: is_as_assigned(port, topic, assignment), timeout_seconds=LONGEST_SECONDS)
    if len(assignment) == 1:
        await_open(cluster, topic, 1)
    return topic


def is_as_assigned(port: int, topic: str, assignment: Sequence[Sequence[int]]) -> bool:
    """Return whether the first replicas lead, and all are in sync, by the metadata of one broker."""
    partitions = read_partitions(port, topic)
    return len(partitions) == len(assignment) and all(
        (leader, len(isr)) == (assignment[index][0], len(assignment[index]))
        for index, (leader, isr) in partitions.items()
    )


def read_partitions(port: int, topic: str) -> dict[int, tuple[int, Sequence[int]]]:
    """Return leader and in-sync replicas of each partition by the metadata of one broker."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    with RawClient(port) as client:
        answer = client.call(request, MetadataResponse, METADATA_VERSION)
    return {
        partition.partition_index: (partition.leader_id, partition.isr_nodes)
        for partition in answer.topics[0].partitions
    }


def ports_without(cluster: Cluster, *nodes: int) -> dict[int, int]:
    """Return the ports of the other nodes."""
    return {node: broker.port for node, broker in cluster.brokers.items() if node not in nodes}


@contextmanager
def using_leader(cluster: Cluster) -> Iterator[tuple[int, Writer, Reader]]:
    """Run a cluster; yield the leader of a partition, which is not the controller, and clients that have used it for a while."""
    with running(cluster):
        leader, topic = create_led_elsewhere(cluster)
        ports = ports_without(cluster)
        writer, reader = Writer(ports, topic), Reader(ports, topic)
        with at_work(writer, reader):
            pause(STEADY_SECONDS)
            yield leader, writer, reader


def measure_kill(cluster: Cluster, _: Options) -> Samples:
    """Kill the leader under load; the seconds until the next acknowledgement and fetch."""
    with using_leader(cluster) as (victim, writer, reader):
        killed = time.monotonic()
        cluster.kill(victim)
        await_after(killed, writer, reader)
    return {
        "session timeout s": SESSION_MS / 1e3,
        "kill to acknowledgement s": writer.first_after(killed) - killed,
        "kill to fetch s": reader.first_after(killed) - killed,
    }


def await_after(moment: float, *clients: RetryingClient) -> None:
    """Wait until each client has succeeded well after *moment*: an answer may have been on its way."""
    for client in clients:
        until(lambda client=client: client.times[-1] > moment + 1, timeout_seconds=60)  # type: ignore[misc]
        client.await_success()


def measure_expiry(cluster: Cluster, _: Options) -> Samples:
    """Kill the leader under load; the seconds from the end of its session to the next acknowledgement."""
    assert isinstance(cluster, KafkacompatCluster)
    with running(cluster):
        victim, topic = create_led_elsewhere(cluster)
        writer = Writer(ports_without(cluster), topic)
        with at_work(writer), noting_expiry(cluster, victim) as expiries:
            pause(STEADY_SECONDS)
            killed = time.monotonic()
            cluster.kill(victim)
            await_after(killed, writer)
    return {
        "kill to expiry s": expiries[0] - killed,
        "expiry to acknowledgement s": writer.first_after(expiries[0]) - expiries[0],
    }


@contextmanager
def noting_expiry(cluster: KafkacompatCluster, node: int) -> Iterator[list[float]]:
    """Yield the list that receives the moment at which ZooKeeper deletes the registration of a node."""
    moments: list[float] = []
    client = KazooClient(f"{cluster.zookeeper.connect}/kafka")
    client.start()
    try:
        assert client.exists(f"/brokers/ids/{node}", watch=lambda _event: moments.append(time.monotonic()))
        yield moments
    finally:
        client.stop()
        client.close()


def other_than(node: int) -> int:
    """Return the lowest node that is not this one."""
    return next(other for other in NODES if other != node)


def create_led_elsewhere(cluster: Cluster) -> tuple[int, str]:
    """Create a topic that another node than the controller leads; return that node and the topic."""
    leader = other_than(find_controller(cluster))
    return leader, create_assigned(cluster, [[leader, *(node for node in NODES if node != leader)]])


def measure_shutdown(cluster: Cluster, _: Options) -> Samples:
    """Stop the leader under load, as an administrator does, and start it again."""
    with using_leader(cluster) as (victim, writer, reader):
        begun = time.monotonic()
        cluster.stop_node(victim)
        pause(STEADY_SECONDS)
        cluster.start_node(victim)
        pause(STEADY_SECONDS)
    return {"longest produce gap s": writer.longest_gap(begun), "longest fetch gap s": reader.longest_gap(begun)}


def measure_controller(cluster: Cluster, _: Options) -> Samples:
    """Kill the controller's node, which has no replica of the topic, and wait beyond its session's end."""
    with running(cluster):
        controller = find_controller(cluster)
        others = [node for node in NODES if node != controller]
        topic = create_assigned(cluster, [others])
        ports = ports_without(cluster, controller)
        writer, reader = Writer(ports, topic), Reader(ports, topic)
        with at_work(writer, reader):
            pause(STEADY_SECONDS)
            quiet = (writer.longest_gap(0), reader.longest_gap(0))
            begun = time.monotonic()
            cluster.kill(controller)
            until(lambda: has_lost(cluster, others, controller), timeout_seconds=60)
            pause(STEADY_SECONDS)
    return {
        "longest produce gap before s": quiet[0],
        "longest fetch gap before s": quiet[1],
        "longest produce gap s": writer.longest_gap(begun),
        "longest fetch gap s": reader.longest_gap(begun),
    }


def has_lost(cluster: Cluster, others: Sequence[int], lost: int) -> bool:
    """Return whether the others have a controller among them and no longer know the lost node."""
    with RawClient(cluster.brokers[others[0]].port) as client:
        answer = client.call(MetadataRequest(topics=[]), MetadataResponse, METADATA_VERSION)
    return lost not in {broker.node_id for broker in answer.brokers} and answer.controller_id in others


def measure_many(partitions: int, cluster: Cluster, options: Options) -> Samples:
    """Kill the controller, which leads a third of the partitions; start it, and wait until it leads them again."""
    assert isinstance(cluster, KafkacompatCluster)
    count = options.count(partitions)
    with running(cluster):
        victim = find_controller(cluster)
        first = NODES.index(victim)
        orders = [[NODES[(first + index + place) % 3] for place in range(3)] for index in range(count)]
        begun = time.monotonic()
        topic = create_assigned(cluster, orders)
        created = time.monotonic()
        survivors = ports_without(cluster, victim)
        with noting_expiry(cluster, victim) as expiries:
            killed = time.monotonic()
            cluster.kill(victim)
            until(lambda: expiries, timeout_seconds=60)
            await_each(survivors, lambda port: leads_nothing(port, topic, victim))
            moved = time.monotonic()
        started = time.monotonic()
        cluster.start_node(victim)
        await_each(survivors, lambda port: {len(isr) for _, isr in read_partitions(port, topic).values()} == {3})
        caught_up = time.monotonic()
        await_each(survivors, lambda port: is_as_assigned(port, topic, orders))
        leads_again = time.monotonic()
    return {
        "partitions": float(count),
        "creation s": created - begun,
        "kill to expiry s": expiries[0] - killed,
        "expiry to the last leader s": moved - expiries[0],
        "start to in sync s": caught_up - started,
        "in sync to leading again s": leads_again - caught_up,
    }


def await_each(ports: dict[int, int], check: Callable[[int], bool]) -> None:
    """Wait until the check is true for every broker."""

    def is_true(port: int) -> bool:
        try:
            return check(port)
        except (ClosedError, OSError):
            return False

    for port in ports.values():
        until(lambda port=port: is_true(port), timeout_seconds=LONGEST_SECONDS)  # type: ignore[misc]


def leads_nothing(port: int, topic: str, node: int) -> bool:
    """Return whether every partition has a leader other than *node*."""
    return all(leader not in (-1, node) for leader, _ in read_partitions(port, topic).values())


_CLIENT = (
    "Clients send one request after the other with acks=all and fetches of 100 ms, pause 5 ms after each answer and each failure, "
    "and try the brokers in turn."
)
_TIMEOUTS = "zookeeper.session.timeout.ms (kafkacompat) and broker.session.timeout.ms (Kafka) are 6 s."

ROWS = [
    ClusterRow(
        "failover-kill",
        "Three nodes: the leader is killed",
        f"The leader of one partition with three replicas is killed with SIGKILL; it is not the controller. {_CLIENT} {_TIMEOUTS} "
        "Kafka's broker.heartbeat.interval.ms is its default, 2 s, as are its other timeouts. RetryingClients answer fetches of both.",
        measure_kill,
        [Goal("kill to acknowledgement s", 1.0, at_least=False)],
        properties=TIMEOUTS,
        fresh=True,
    ),
    ClusterRow(
        "failover-expiry",
        "Three nodes: from the end of the session to the new leader",
        f"The same; the end of the session is the moment at which ZooKeeper reports the deletion of the registration. {_CLIENT}",
        measure_expiry,
        [Goal("expiry to acknowledgement s", 0.5, at_least=False, is_ratio=False)],
        contenders=(RECORDS,),
        properties=TIMEOUTS,
        fresh=True,
    ),
    ClusterRow(
        "failover-shutdown",
        "Three nodes: the leader is stopped and started",
        f"The leader of one partition with three replicas gets SIGTERM and starts again a second after its end. {_CLIENT}",
        measure_shutdown,
        [
            Goal("longest produce gap s", 0.3, at_least=False, is_ratio=False),
            Goal("longest produce gap s", 1.0, at_least=False),
        ],
        properties=TIMEOUTS,
        fresh=True,
    ),
    ClusterRow(
        "failover-controller",
        "Three nodes: the controller is killed",
        f"The controller has no replica of the partition, which the other two brokers have. {_CLIENT} {_TIMEOUTS} The gaps count until "
        "a second after another controller has removed the killed broker from the metadata.",
        measure_controller,
        [
            Goal("longest produce gap s", 0.1, at_least=False, is_ratio=False),
            Goal("longest fetch gap s", 0.25, at_least=False, is_ratio=False),
        ],
        properties=TIMEOUTS,
        fresh=True,
    ),
    ClusterRow(
        "failover-partitions",
        "Three nodes: a broker with 1,000 partitions is killed and returns",
        "One topic of 1,000 partitions with three replicas; the killed broker is the controller, and the first replica of a third of "
        "them. The partitions have moved when the metadata of both other brokers names other leaders. The broker starts again, and "
        f"leads again by preferred election: leader.imbalance.check.interval.seconds is {IMBALANCE_SECONDS}, and "
        f"leader.imbalance.per.broker.percentage is 0. {_TIMEOUTS}",
        partial(measure_many, MANY_PARTITIONS),
        [
            Goal("expiry to the last leader s", 5.0, at_least=False, is_ratio=False),
            Goal("in sync to leading again s", 10.0, at_least=False, is_ratio=False),
        ],
        contenders=(RECORDS,),
        properties={
            **TIMEOUTS,
            "leader.imbalance.check.interval.seconds": str(IMBALANCE_SECONDS),
            "leader.imbalance.per.broker.percentage": "0",
        },
        fresh=True,
    ),
]
