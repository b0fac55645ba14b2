"""GetTelemetrySubscriptions (key 71): the client metrics that the cluster subscribes to (KIP-714)."""

from __future__ import annotations

from kafkacompat.wire.entities import CLIENT_INSTANCE
from kafkacompat.wire.schema import Request, Response, array, boolean, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Request, api_key=71, versions="0", flexible="0+"):
    """Request the subscription for the client's metrics."""

    client_instance_id: bytes = uuid(entity=CLIENT_INSTANCE)  # 0: the client has none yet and requests one


class GetTelemetrySubscriptionsResponse(Response, api_key=71, versions="0", flexible="0+"):
    """The subscribed metrics, the push interval and the compression types."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: bytes = uuid(entity=CLIENT_INSTANCE)  # the new id; 0 if the request carries one
    subscription_id: int = int32()  # an id to send with each push; changes with the subscription
    # 0: none, 1: gzip, 2: snappy, 3: lz4, 4: zstd; in order of preference
    accepted_compression_types: list[int] = array(int8())
    push_interval_ms: int = int32()  # the time between two pushes
    telemetry_max_bytes: int = int32()  # the largest size of one push
    # true: counters report the change since the last push, false: the total since the start
    delta_temporality: bool = boolean()
    # prefixes of metric names; empty: no metrics, one empty string: all metrics
    requested_metrics: list[str] = array(string())
