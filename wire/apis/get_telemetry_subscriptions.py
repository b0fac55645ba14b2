"""GetTelemetrySubscriptions (key 71): a client asks which of its metrics the cluster wants (KIP-714)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, array, boolean, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Request, api_key=71, versions="0", flexible="0+"):
    """Which metrics do you want?"""

    client_instance_id: bytes = uuid()  # 0: none yet, give me one


class GetTelemetrySubscriptionsResponse(Response, api_key=71, versions="0", flexible="0+"):
    """These, so often, so compressed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: bytes = uuid()  # the new one; 0 if the request had one
    subscription_id: int = int32()  # to send with every push; changes whenever what is wanted does
    # 0: none, 1: gzip, 2: snappy, 3: lz4, 4: zstd; the best first
    accepted_compression_types: list[int] = array(int8())
    push_interval_ms: int = int32()  # between two pushes
    telemetry_max_bytes: int = int32()  # of one push
    delta_temporality: bool = boolean()  # counters tell what was added since the last push, else all since the start
    requested_metrics: list[str] = array(string())  # how the names begin; empty: no metrics, one empty string: all
