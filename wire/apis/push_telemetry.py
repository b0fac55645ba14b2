"""PushTelemetry (key 72): a client hands over the metrics it was asked for (KIP-714)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, boolean, bytestring, int8, int16, int32, uuid


class PushTelemetryRequest(Request, api_key=72, versions="0", flexible="0+"):
    """These are my metrics."""

    client_instance_id: bytes = uuid()  # the one it was given
    subscription_id: int = int32()  # the one it was given
    terminating: bool = boolean()  # the last push, which need not wait for its time
    compression_type: int = int8()  # as accepted_compression_types of GetTelemetrySubscriptions
    metrics: bytes = bytestring()  # MetricsData of OpenTelemetry, version 1, as protobuf


class PushTelemetryResponse(Response, api_key=72, versions="0", flexible="0+"):
    """Whether they were taken."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
