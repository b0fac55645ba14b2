"""GetTelemetrySubscriptions (key 71), v0: what a client is to push, and how often (KIP-714).

It is served only where the broker shows what clients push: with kafkacompat.http.listener. Kafka serves it where a metrics
reporter with ClientTelemetry is configured.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacompat.handlers.context import UNKNOWN_SOFTWARE, RequestContext, Services
from kafkacompat.wire.apis.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.primitives import format_uuid

MAX_CHARACTERS = 200
"""Characters of a client id that are kept for each client."""
ACCEPTED_CODECS = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)


def handle_get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, context: RequestContext, services: Services
) -> GetTelemetrySubscriptionsResponse:
    """Return the client's subscription, and its id; a client that has none yet receives one."""
    telemetry = services.require_telemetry()
    instance_id = request.client_instance_id
    client = telemetry.subscribe(instance_id, describe_client(instance_id, context))
    metrics, interval_ms, subscription_id = client.subscription
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client.instance_id,
        subscription_id=subscription_id,
        accepted_compression_types=list(map(int, ACCEPTED_CODECS)),
        push_interval_ms=interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=list(metrics),
    )


def describe_client(instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
    """Return a client's properties, by the names that subscriptions match them by."""
    software = context.software
    return {
        "client_instance_id": format_uuid(instance_id),
        "client_id": context.client_id[:MAX_CHARACTERS],
        "client_software_name": UNKNOWN_SOFTWARE if software is None else software.name,
        "client_software_version": UNKNOWN_SOFTWARE if software is None else software.version,
        "client_source_address": context.peer.host,
        "client_source_port": str(context.peer.port),
    }
