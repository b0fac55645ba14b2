"""An instance's throughput over three brokers: all of it whatever the skew, never more, and without the controller as before."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from twisted.python.failure import Failure

from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.tenancy.tenant_view import TenantView
from kafkacompat.wire import entities
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.apis.report_traffic import ReportTrafficRequest
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.kafkacompat.three_brokers.support import NODES, TURN_S, Cluster

LIMIT = 60_000
RECORD_BYTES = 400
SKEW = {1: 0.9, 2: 0.05, 3: 0.05}
CONNECTIONS = 6
SHOP_PORT = 19092


class Shop:
    """An instance whose topic has a partition on each broker, and its producers, which wait for their answers."""

    def __init__(self, **properties: str) -> None:
        self.cluster = Cluster(controlled_shutdown_enable="false")
        self.producers: list[Producer] = []
        self.failed: list[Any] = []
        given = {
            "cluster.id": "the-shop",
            "secret": "secret",
            "listeners": f"PLAINTEXT://:{SHOP_PORT}",
            "quota.produce.bytes.per.second": str(LIMIT),
            **properties,
        }
        self.alter(given)
        self.cluster.create("shop.t", assignment={index: [node] for index, node in enumerate(NODES)})
        for index in range(len(NODES)):
            self.cluster.wait_for_leader("shop.t", index)
        self.cluster.wait(lambda: all("shop" in broker.instances.by_name for broker in self.cluster.brokers.values()))

    def alter(self, given: Mapping[str, str]) -> None:
        operations = [ConfigOperation(name, ConfigOperationType.SET, value) for name, value in given.items()]
        controller = self.cluster.brokers[self.cluster.controller()].controller
        change = ResourceChange(ResourceType.INSTANCE, "shop", operations)
        assert self.cluster.run(controller.alter_configs([change])) == [None]

    def view(self, node: int) -> TenantView:
        view: TenantView = self.cluster.brokers[node].instances.by_name["shop"]
        return view

    def produced_bytes(self) -> int:
        meters = [self.view(node).traffic for node in self.cluster.brokers]
        return sum(meter.produced.total_bytes for meter in meters if meter is not None)

    def share(self, node: int) -> float:
        meter = self.view(node).traffic
        assert meter is not None and meter.produced.bucket is not None
        return meter.produced.bucket.share

    def demand(self, parts: Mapping[int, float]) -> None:
        """Let producers send to each broker this part of the limit from now on."""
        self.producers = [
            Producer(self, node, part * LIMIT / CONNECTIONS) for node, part in parts.items() for _ in range(CONNECTIONS)
        ]

    def run(self, seconds: float) -> float:
        """Let time pass, and return the part of the limit that was used."""
        before = self.produced_bytes()
        for _ in range(int(seconds / TURN_S)):
            for producer in self.producers:
                producer.work()
            self.cluster.turn()
        assert not self.failed
        return (self.produced_bytes() - before) / (LIMIT * seconds)


class Producer:
    """One connection to a broker, with one request in flight."""

    def __init__(self, shop: Shop, node: int, bytes_per_second: float) -> None:
        self.shop, self.node, self.rate = shop, node, bytes_per_second
        cluster = shop.cluster
        cluster.clients += 1
        network = cluster.network.at(f"tenant-{cluster.clients}")
        self.connections = BrokerConnections(ConnectionSettings("producer"), network, cluster.clock, Random(9))
        self.credit = -bytes_per_second * Random(cluster.clients).random()
        self.is_waiting = False
        data = PartitionProduceData(
            index=node - 1, records=build_batch([(1_700_000_000_000, b"k", bytes(RECORD_BYTES), [])])
        )
        topic_id = shop.view(node).names.to_client[entities.TOPIC_ID][cluster.ids["shop.t"]]
        topic = TopicProduceData(name="t", topic_id=topic_id, partition_data=[data])
        self.request = ProduceRequest(acks=1, timeout_ms=5000, topic_data=[topic])

    def work(self) -> None:
        self.credit = min(self.credit + self.rate * TURN_S, self.rate + RECORD_BYTES)
        if self.is_waiting or self.credit < RECORD_BYTES or self.node not in self.shop.cluster.brokers:
            return
        self.credit -= RECORD_BYTES
        self.is_waiting = True
        address = BrokerAddress(self.node, f"broker-{self.node}", SHOP_PORT)
        self.connections.request(address, "tenant", self.request, timeout_s=60).addBoth(self.finish)

    def finish(self, answer: Any) -> None:
        self.is_waiting = False
        if self.node in self.shop.cluster.brokers and not is_success(answer):
            self.shop.failed.append(answer)


def is_success(answer: Any) -> bool:
    return not isinstance(answer, Failure) and answer.responses[0].partition_responses[0].error_code == 0


def test_a_skew_gets_the_whole_limit_while_the_even_split_gives_a_third_to_the_hot_broker() -> None:
    shop = Shop()
    shop.demand(SKEW)
    shop.run(3)
    assert 0.95 <= shop.run(15) <= 1.0
    figures = shop.cluster.brokers[1].tenancy.usage
    usage = None if figures is None else figures.read("shop")
    assert usage is not None and usage.throttled_ms > 1000
    for broker in shop.cluster.brokers.values():
        assert broker.tenancy.traffic is not None and broker.tenancy.traffic._reports is not None
        broker.tenancy.traffic.stop()
        list(broker.tenancy.traffic.control.use_static(int(shop.cluster.clock.seconds() * 1000)))
    assert [shop.share(node) for node in NODES] == pytest.approx([LIMIT / 3] * 3)
    shop.run(3)
    assert 0.3 <= shop.run(10) <= 0.5


def test_more_than_the_limit_is_never_used_and_traffic_moves_between_brokers() -> None:
    shop = Shop()
    for hot in NODES:
        shop.demand({node: 3.0 if node == hot else 0.05 for node in NODES})
        used = shop.run(2)
        assert used <= 1.5 + 0.1, "the limit, and one interval's burst in these two seconds"
        assert shop.share(hot) > 0.7 * LIMIT
        assert 0.9 <= shop.run(6) <= 1.03


def test_nobody_notices_for_ten_seconds_that_the_controller_is_gone() -> None:
    shop = Shop()
    controller = shop.cluster.controller()
    hot, other = (node for node in NODES if node != controller)
    shop.demand({hot: 0.9, other: 0.05})
    shop.run(3)
    before = shop.run(5)
    assert before >= 0.9
    shares = [shop.share(node) for node in (hot, other)]
    shop.cluster.kill(controller, expire=False)
    assert shop.run(10) >= before * 0.99
    assert shop.share(hot) >= shares[0] * 0.999
    assert sum(shop.share(node) for node in (hot, other)) <= LIMIT * 1.001
    shop.cluster.wait(lambda: shop.cluster.controller() > 0)
    assert shop.run(5) >= before * 0.95
    assert sum(shop.share(node) for node in (hot, other)) <= LIMIT * 1.001


def test_a_broker_that_is_not_alive_gets_no_share() -> None:
    shop = Shop()
    controller = shop.cluster.controller()
    other = next(node for node in NODES if node != controller)
    epoch = shop.cluster.side(other).member.registration.epoch
    answers = [
        shop.cluster.ask(node, ReportTrafficRequest(broker_id=broker, broker_epoch=broker_epoch)).error_code
        for node, broker, broker_epoch in ((controller, 9, 1), (controller, other, epoch + 1), (other, other, epoch))
    ]
    assert answers == [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NOT_CONTROLLER]
    assert shop.cluster.ask(controller, ReportTrafficRequest(broker_id=other, broker_epoch=epoch)).error_code == 0


def test_fetched_bytes_have_a_limit_of_their_own_and_none_are_counted_without_it() -> None:
    shop = Shop()
    meter = shop.view(1).traffic
    assert meter is not None and meter.fetched.bucket is None
    shop.alter({"quota.fetch.bytes.per.second": "5000"})
    shop.cluster.advance(1)
    assert meter.fetched.bucket is not None
    assert meter.fetched.bucket.share == pytest.approx(5000 * 0.02 / 3)
