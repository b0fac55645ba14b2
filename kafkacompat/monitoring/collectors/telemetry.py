"""What clients push (KIP-714), each value with the client that it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from kafkacompat.monitoring.collectors import Collected
from kafkacompat.monitoring.table import CLIENT_PREFIX, make_metric
from kafkacompat.telemetry.points import CLIENT_LABELS
from kafkacompat.wire.primitives import format_uuid

if TYPE_CHECKING:
    from kafkacompat.telemetry.receiver import ClientTelemetry

SERVER = "kafka_server_client_metrics_"
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
        labels: dict[bytes, dict[str, str] | None] = {}
        for name, is_counter in telemetry.points:
            metric = Metric(CLIENT_PREFIX + name, "A metric that clients push", "counter" if is_counter else "gauge")
            suffix = "_total" if is_counter else ""
            for client, own, value in telemetry.points.list_values(name):
                if client not in labels:
                    # Clients come, push and go in the turns of a scrape.
                    labels[client] = self._describe(client)
                if (of_client := labels[client]) is not None:
                    metric.add_sample(CLIENT_PREFIX + name + suffix, {**dict(own), **of_client}, value)
            yield metric
            yield None

    def _describe(self, instance_id: bytes) -> dict[str, str] | None:
        """Return the labels of a client; None for one that was forgotten."""
        client = self._telemetry.find_client(instance_id)
        if client is None:
            return None
        instance, *names = CLIENT_LABELS
        own = {name: client.properties.get(name, "")[:MAX_CHARACTERS] for name in names}
        return {instance: format_uuid(instance_id), **own}
