"""The error code for a fenced producer, by the version of its request."""

from __future__ import annotations

from kafkacompat.wire.errors import ErrorCode


def as_fencing_code(code: ErrorCode, version: int, since_version: int) -> ErrorCode:
    """Return *code*, but INVALID_PRODUCER_EPOCH for PRODUCER_FENCED before version *since_version* (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < since_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
