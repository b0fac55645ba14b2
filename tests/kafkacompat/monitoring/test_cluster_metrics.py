"""Metrics of brokers in a cluster: the controller, in-sync sets, followers, and when a broker is ready."""

from __future__ import annotations

from typing import Any

from kafkacompat.broker import Broker
from kafkacompat.config.resources import ResourceType
from kafkacompat.wire.apis.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.kafkacompat.monitoring.web import Answer, HttpClock, ask
from tests.kafkacompat.monitoring.world import Sample, make_key, read_samples
from tests.kafkacompat.three_brokers.support import LAG_S, NODES, Cluster

MANAGER = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"


class MonitoredCluster(Cluster):
    """Three brokers with /metrics; ``http`` has what listens on each of them."""

    def __init__(self, **properties: str) -> None:
        self.http: dict[int, HttpClock] = {}
        super().__init__(NODES, **properties, kafkacompat_http_listener="127.0.0.1:9464")

    def build(self, node: int, host: str | None = None, **properties: str) -> Broker:
        broker = super().build(node, host, **properties)
        self.http[node] = HttpClock()
        clock: Any = self.clocks[node]
        clock.listenTCP = self.http[node].listenTCP
        return broker

    def get(self, node: int, path: str) -> Answer:
        return ask(self.http[node], path, advance=self.turn)

    def scrape(self, node: int) -> dict[Sample, float]:
        return read_samples(self.get(node, "/metrics").body)

    def sum(self, name: str, **labels: Any) -> float:
        """Return the sum of a metric over all brokers, as dashboards show it."""
        return sum(self.scrape(node).get(make_key(name, **labels), 0) for node in self.brokers)


def test_one_broker_is_the_controller_and_knows_the_cluster() -> None:
    cluster = MonitoredCluster()
    cluster.create("t", 4, 3)
    for name, expected in {
        "activecontrollercount": 1,
        "activebrokercount": 3,
        "globaltopiccount": 1,
        "globalpartitioncount": 4,
        "offlinepartitionscount": 0,
        "preferredreplicaimbalancecount": 0,
    }.items():
        assert cluster.sum(CONTROLLER + name) == expected, name
    controller = cluster.controller()
    assert cluster.scrape(controller)[make_key(f"{CONTROLLER}activecontrollercount")] == 1
    assert cluster.sum(f"{MANAGER}leadercount") == 4
    assert cluster.sum(f"{MANAGER}partitioncount") == 12
    assert all(cluster.get(node, "/readyz").status == 200 for node in NODES)


def test_a_dead_follower_is_missed_and_comes_back() -> None:
    cluster = MonitoredCluster()
    cluster.create("t", assignment={0: (1, 2, 3)}, min_insync_replicas="2")
    cluster.wait_for_leader("t")
    assert cluster.sum(f"{MANAGER}underreplicatedpartitions") == 0
    cluster.kill(3)
    cluster.wait(lambda: cluster.in_sync("t") == [1, 2], 60)
    cluster.advance(LAG_S)
    samples = cluster.scrape(1)
    assert samples[make_key(f"{MANAGER}underreplicatedpartitions")] == 1
    assert samples[make_key(f"{MANAGER}atminisrpartitioncount")] == 1
    assert samples[make_key(f"{MANAGER}underminisrpartitioncount")] == 0
    for name, expected in {"insyncreplicascount": 2, "replicascount": 3, "underreplicated": 1, "atminisr": 1}.items():
        assert samples[make_key(f"kafka_cluster_partition_{name}", topic="t", partition=0)] == expected
    assert cluster.sum(f"{CONTROLLER}activebrokercount") == 2
    cluster.start(3)
    cluster.wait(lambda: cluster.in_sync("t") == [1, 2, 3], 60)
    assert cluster.sum(f"{MANAGER}underreplicatedpartitions") == 0
    assert cluster.sum(f"{MANAGER}isrexpands_total") == 1


def test_elections_are_counted_by_the_controller() -> None:
    cluster = MonitoredCluster(unclean_leader_election_enable="true")
    stats = "kafka_controller_controllerstats_"
    cluster.create("t", assignment={0: (2, 3)})
    cluster.wait_for_leader("t")
    while cluster.controller() != 1:
        cluster.zookeeper.expire(cluster.client_of(cluster.controller()).session_id)
        cluster.wait(lambda: cluster.controller() > 0)
        cluster.advance(5)
    leader = cluster.leader("t")
    before = cluster.scrape(1)[make_key(f"{stats}leaderelectionrateandtimems_count")]
    cluster.kill(leader)
    other = cluster.wait_for_leader("t", but=[leader])
    assert cluster.scrape(1)[make_key(f"{stats}leaderelectionrateandtimems_count")] == before + 1
    assert cluster.sum(f"{stats}uncleanleaderelections_total") == 0
    cluster.wait(lambda: cluster.in_sync("t") == [other])
    cluster.kill(other)
    cluster.start(leader)
    cluster.wait_for_leader("t", but=[other])
    assert cluster.sum(f"{stats}uncleanleaderelections_total") == 1


def test_clients_push_to_every_broker_of_a_cluster() -> None:
    cluster = MonitoredCluster()
    configs = [AlterableConfig(name="metrics", config_operation=0, value="org.apache.kafka.producer")]
    resource = AlterConfigsResource(resource_type=ResourceType.CLIENT_METRICS, resource_name="all", configs=configs)
    answer = cluster.ask(2, IncrementalAlterConfigsRequest(resources=[resource]))
    assert answer.responses[0].error_code == 0
    cluster.advance(2)
    for node in NODES:
        answer = cluster.ask(node, GetTelemetrySubscriptionsRequest())
        assert (answer.error_code, answer.requested_metrics) == (0, ["org.apache.kafka.producer"])


def test_replication_is_counted_on_both_sides() -> None:
    cluster = MonitoredCluster()
    cluster.create("t", assignment={0: (1, 2, 3)})
    cluster.wait_for_leader("t")
    cluster.produce(1, "t", b"value")
    cluster.advance(2)
    counted = {node: cluster.scrape(node) for node in NODES}
    prefix = "kafka_server_brokertopicmetrics_"
    size = counted[1][make_key(f"{prefix}bytesin_total", topic="t")]
    assert size > 0
    assert counted[1][make_key(f"{prefix}replicationbytesout_total", topic="t")] == 2 * size
    assert counted[1][make_key(f"{prefix}bytesout_total", topic="t")] == 0
    for node in (2, 3):
        assert counted[node][make_key(f"{prefix}replicationbytesin_total", topic="t")] == size
        assert counted[node][make_key(f"{prefix}messagesin_total", topic="t")] == 0
        assert counted[node][make_key("kafka_log_log_logendoffset", topic="t", partition=0)] == 1
        assert counted[node][make_key("kafka_server_replicafetchermanager_maxlag", clientId="Replica")] == 0
    followers = counted[1][make_key("kafka_network_requestmetrics_totaltimems_count", request="FetchFollower")]
    assert followers > 0


def test_a_broker_without_its_session_is_not_ready() -> None:
    cluster = MonitoredCluster()
    assert cluster.scrape(2)[make_key("kafkacompat_zookeeper_connected")] == 1
    client = cluster.client_of(2)
    cluster.zookeeper.disconnect(client)
    cluster.advance(1)
    answer = cluster.get(2, "/readyz")
    assert (answer.status, answer.body) == (503, "not ready: the session with ZooKeeper is not connected\n")
    assert cluster.get(1, "/readyz").status == 200
    cluster.zookeeper.reconnect(client)
    cluster.wait(lambda: cluster.get(2, "/readyz").status == 200, 60)


def test_a_broker_is_not_ready_before_the_controller_has_sent_metadata() -> None:
    cluster = MonitoredCluster()
    cluster.kill(1)
    cluster.kill(2)
    cluster.kill(3)
    starting = cluster.begin(1)
    reasons = set()
    for _ in range(2000):
        answer = ask(cluster.http[1], "/readyz") if cluster.http[1].site is not None else None
        if answer is not None:
            reasons.add((answer.status, answer.body))
        if starting.called:
            break
        cluster.turn()
    assert (503, "not ready: the broker starts: its logs are not open yet\n") in reasons
    assert cluster.get(1, "/readyz").status == 200
