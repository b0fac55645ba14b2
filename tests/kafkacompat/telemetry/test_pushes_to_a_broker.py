"""A client's pushes, through a whole broker, into /metrics."""

from __future__ import annotations

from pathlib import Path

from kafkacompat.wire.apis.api_versions import ApiVersionsRequest
from kafkacompat.wire.apis.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.apis.push_telemetry import PushTelemetryRequest
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.monitoring.world import World, make_key
from tests.kafkacompat.telemetry.pushes import make_push
from tests.kafkacompat.test_broker_over_memory_network import World as PlainWorld

CLIENT_METRICS = 16
NAMED = {"client_software_name": "test", "client_software_version": "1"}


def alter(world: World, name: str, **configs: str) -> None:
    entries = [
        AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value) for key, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=entries)
    assert world.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code == 0


def test_a_push_is_in_the_metrics_of_its_client(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(world.broker.start())
    alter(world, "all", metrics="*", interval_ms="1000", match="client_software_name=.*")
    answer = world.ask(GetTelemetrySubscriptionsRequest())
    assert answer.error_code == 0
    assert answer.requested_metrics == ["*"]
    assert answer.push_interval_ms == 1000
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert answer.delta_temporality and answer.telemetry_max_bytes == 1 << 20
    push = PushTelemetryRequest(
        client_instance_id=answer.client_instance_id,
        subscription_id=answer.subscription_id,
        metrics=make_push("org.apache.kafka.consumer.fetch.manager.fetch.latency.max", value=12.5),
    )
    assert world.ask(push).error_code == 0
    assert world.ask(push).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    name = "kafkacompat_client_consumer_fetch_manager_fetch_latency_max"
    ((labels, value),) = [(labels, value) for (own, labels), value in world.scrape().items() if own == name]
    assert value == 12.5
    assert dict(labels)["client_id"] == "broker-2"
    samples = world.scrape()
    assert samples[make_key("kafka_server_client_metrics_instance_count")] == 1
    assert samples[make_key("kafka_server_client_metrics_throttle_total")] == 1
    world.run(world.broker.stop())


def test_telemetry_is_served_only_with_the_listener(tmp_path: Path) -> None:
    world, plain = World(tmp_path / "a"), PlainWorld(tmp_path / "b")
    for node in (world, plain):
        node.run(node.broker.start())
    served = [{api.api_key for api in node.ask(ApiVersionsRequest(**NAMED)).api_keys} for node in (world, plain)]
    assert served[0] - served[1] == {71, 72}
    assert served[1] - served[0] == set()
    for node in (world, plain):
        node.run(node.broker.stop())
