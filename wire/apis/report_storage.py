"""ReportStorage (key 10001): a broker reports what instances store on it, and learns what they store on all brokers.

It is this project's own API between brokers.
"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class StoredBytes(Struct):
    """The bytes of an instance that count for its limit: those of one broker in a request, of all brokers in a response."""

    instance: str = string()
    stored_bytes: int = int64()


class ReportStorageRequest(Request, api_key=10001, versions="0", flexible="0+"):
    """Report the stored bytes of the instances that have a limit and partitions on the broker."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    stored: list[StoredBytes] = array(StoredBytes)


class ReportStorageResponse(Response, api_key=10001, versions="0", flexible="0+"):
    """The totals of the reported instances; none while the controller is new and has not received the reports of all brokers."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    totals: list[StoredBytes] = array(StoredBytes)
