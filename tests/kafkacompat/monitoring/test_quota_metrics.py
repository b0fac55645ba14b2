"""The throttle times of clients in /metrics."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock

from kafkacompat.metrics.throttling import IDLE_MS, OTHERS
from kafkacompat.monitoring.collectors.quotas import QuotaCollector
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.quotas.limits import QuotaKind
from kafkacompat.wire.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from tests.kafkacompat.monitoring.test_monitor import produce_many
from tests.kafkacompat.monitoring.world import World, make_key

TIME = "kafka_server_quota_throttle_time"


def test_a_throttled_client_is_in_the_metrics(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(world.broker.start())
    entity = [EntityData(entity_type="client-id", entity_name="broker-2")]
    entry = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=1000)])
    assert world.ask(AlterClientQuotasRequest(entries=[entry])).entries[0].error_code == 0
    topic_id = world.make_topic("orders")
    assert world.scrape()[make_key("kafkacompat_throttled_responses_total", resource="Produce")] == 0
    produce_many(world, "orders", topic_id, 1000)
    samples = world.scrape()
    throttle_ms = samples[make_key(TIME, resource="Produce", clientId="broker-2")]
    assert throttle_ms > 100
    assert samples[make_key("kafkacompat_throttled_responses_total", resource="Produce")] == 1
    assert samples[make_key("kafkacompat_throttle_seconds_total", resource="Produce")] == throttle_ms / 1000
    for resource in ("Fetch", "Request", "ControllerMutation"):
        assert samples[make_key("kafkacompat_throttled_responses_total", resource=resource)] == 0
    world.connections.close()
    world.run(world.broker.stop())


class Quotas:
    """The collector of quotas that a test throttles by hand."""

    def __init__(self, limit: int = 10) -> None:
        self.clock = Clock()
        self.quotas = ClientQuotas(most_series=limit)
        observed: Any = SimpleNamespace(clock=self.clock, quotas=self.quotas)
        self.collector = QuotaCollector(observed)

    def throttle(self, kind: QuotaKind, user: str, client_id: str, throttle_ms: int) -> None:
        self.quotas.throttled[kind].add((user, client_id), throttle_ms, int(self.clock.seconds() * 1000))

    def scrape(self) -> dict[tuple[str, ...], float]:
        metrics = [metric for metric in self.collector.collect() if metric is not None]
        (mean,) = [metric for metric in metrics if metric.name == TIME]
        return {
            (sample.labels["resource"], sample.labels.get("user", ""), sample.labels.get("clientId", "")): sample.value
            for sample in mean.samples
        }


def test_each_quota_has_the_labels_of_its_clients() -> None:
    world = Quotas()
    world.throttle(QuotaKind.FETCH, "alice", "c", 100)
    world.throttle(QuotaKind.FETCH, "alice", "c", 300)
    world.throttle(QuotaKind.REQUEST, "alice", "", 7)
    world.throttle(QuotaKind.MUTATION, "", "c", 5)
    assert world.scrape() == {
        ("Fetch", "alice", "c"): 200,
        ("Request", "alice", ""): 7,
        ("ControllerMutation", "", "c"): 5,
    }


def test_clients_without_end_share_a_series() -> None:
    world = Quotas(limit=3)
    for number in range(100):
        world.throttle(QuotaKind.PRODUCE, "", f"c{number}", number)
    samples = world.scrape()
    assert len(samples) == 4
    assert samples[("Produce", *OTHERS)] == sum(range(3, 100)) / 97


def test_a_client_that_is_not_throttled_any_more_is_forgotten() -> None:
    world = Quotas()
    world.throttle(QuotaKind.PRODUCE, "", "c", 100)
    assert world.scrape() == {("Produce", "", "c"): 100}
    for _ in range(10):
        world.clock.advance(30)
        samples = world.scrape()
    assert samples == {("Produce", "", "c"): 0}
    world.clock.advance(IDLE_MS / 1000)
    assert world.scrape() == {}
    assert world.collector._means._seen == {}
    assert world.quotas.throttled[QuotaKind.PRODUCE].total.count == 1
