"""Answers in JSON, and errors as exceptions: each becomes one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkacompat.wire.errors import ErrorCode, describe_code

JSON = b"application/json"


class HttpError(Exception):
    """A request is refused with an HTTP status; the text is one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Answer(NamedTuple):
    """The status and the value of an answer."""

    status: int
    value: Any


STATUSES: Mapping[int, int] = {
    ErrorCode.INVALID_CONFIG: 400,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
    ErrorCode.RESOURCE_NOT_FOUND: 404,
    ErrorCode.NOT_CONTROLLER: 503,
    ErrorCode.REQUEST_TIMED_OUT: 503,
    ErrorCode.KAFKA_STORAGE_ERROR: 503,
}
"""By error code of the broker's responses; others are 500."""


def check_code(code: int, message: str | None) -> None:
    """Raise HttpError for the error code of a response."""
    if not code:
        return
    raise HttpError(STATUSES.get(code, 500), message or describe_code(code, None))


def encode_json(value: Any) -> bytes:
    """Encode a value as one line."""
    return json.dumps(value).encode() + b"\n"
