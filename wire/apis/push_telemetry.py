"""PushTelemetry (key 72): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, boolean, bytestring, int8, int16, int32, uuid


class PushTelemetryRequest(Request, api_key=72, versions="0", flexible="0+"):
    """DOC"""

    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = bytestring()


class PushTelemetryResponse(Response, api_key=72, versions="0", flexible="0+"):
    """DOC"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
