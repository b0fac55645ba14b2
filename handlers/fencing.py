"""How a producer whose epoch is over is told so, in words that its version knows."""

from __future__ import annotations

from kafkacompat.wire.errors import ErrorCode


def in_words_of(code: ErrorCode, version: int, since_version: int) -> ErrorCode:
    """The code, but INVALID_PRODUCER_EPOCH for PRODUCER_FENCED before the API's version *since_version* (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < since_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
