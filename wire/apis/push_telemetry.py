"""PushTelemetry (key 72): a client sends the metrics that the cluster subscribes to (KIP-714)."""

from __future__ import annotations

from kafkacompat.wire.entities import CLIENT_INSTANCE
from kafkacompat.wire.schema import Request, Response, boolean, bytestring, int8, int16, int32, uuid


class PushTelemetryRequest(Request, api_key=72, versions="0", flexible="0+"):
    """Send the client's metrics."""

    client_instance_id: bytes = uuid(entity=CLIENT_INSTANCE)  # as returned by GetTelemetrySubscriptions
    subscription_id: int = int32()  # as returned by GetTelemetrySubscriptions
    terminating: bool = boolean()  # the last push of the client, which may come before the interval ends
    compression_type: int = int8()  # a code, as in accepted_compression_types of GetTelemetrySubscriptions
    metrics: bytes = bytestring()  # MetricsData of OpenTelemetry, version 1, as protobuf


class PushTelemetryResponse(Response, api_key=72, versions="0", flexible="0+"):
    """The outcome of the push."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
