"""What clients push (KIP-714), each value with the client that it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from kafkacompat.monitoring.collectors import Collected
from kafkacompat.monitoring.table import CLIENT_PREFIX, make_metric
from kafkacompat.wire.primitives import format_uuid

if TYPE_CHECKING:
    from kafkacompat.telemetry.receiver import ClientTelemetry

SERVER = "kafka_server_client_metrics_"
CLIENT_LABELS = ("client_id", "client_software_name", "client_software_version")
MAX_CHARACTERS = 200


class TelemetryCollector:
    """Collects the values of all clients that have pushed lately."""

    def __init__(self, telemetry: ClientTelemetry) -> None:
        self._telemetry = telemetry

    def collect(self) -> Collected:
        """Yield the metrics."""
        telemetry = self._telemetry
        clients = telemetry.list_clients()
        yield make_metric(f"{SERVER}instance_count", len(clients))
        yield make_metric(f"{SERVER}unknown_subscription_request", telemetry.unknown_subscriptions)
        yield make_metric(f"{SERVER}throttle", telemetry.throttled)
        yield make_metric(f"{SERVER}plugin_export", telemetry.exported)
        yield make_metric(f"{SERVER}plugin_error", telemetry.failed)
        yield make_metric("kafkacompat_telemetry_dropped_points", telemetry.points.dropped)
        labels = {client.instance_id: self._describe(client.instance_id) for client in clients}
        for name, is_counter in telemetry.points:
            metric = Metric(CLIENT_PREFIX + name, "A metric that clients push", "counter" if is_counter else "gauge")
            suffix = "_total" if is_counter else ""
            for client, own, value in telemetry.points.list_values(name):
                metric.add_sample(CLIENT_PREFIX + name + suffix, {**dict(own), **labels.get(client, {})}, value)
            yield metric
            yield None

    def _describe(self, instance_id: bytes) -> dict[str, str]:
        client = self._telemetry.find_client(instance_id)
        properties = {} if client is None else client.properties
        own = {name: properties.get(name, "")[:MAX_CHARACTERS] for name in CLIENT_LABELS}
        return {"client_instance_id": format_uuid(instance_id), **own}
