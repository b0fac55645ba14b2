"""PushTelemetry (key 72), v0: a client pushes its metrics (KIP-714)."""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.get_telemetry_subscriptions import describe_client
from kafkacompat.wire.apis.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


def handle_push_telemetry(
    request: PushTelemetryRequest, context: RequestContext, services: Services
) -> PushTelemetryResponse:
    """Keep what the client pushes until /metrics is read."""
    services.require_telemetry().push(request, describe_client(request.client_instance_id, context))
    return PushTelemetryResponse()
