"""The throttle time in a response (KIP-219)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kafkacompat.wire.connection import EncodedResponse
from kafkacompat.wire.headers import response_header_version

if TYPE_CHECKING:
    from kafkacompat.wire.schema import Response

_CORRELATION_BYTES = 4
_TIME = struct.Struct(">i")
_FIELD = "throttle_time_ms"


def raise_throttle_time(response: Response, declared: type[Response], version: int, throttle_ms: int) -> int:
    """Note a throttle time in a response unless it has a longer one; return the longer one.

    *declared* is the API's response class. A version without the field changes nothing: its client is throttled all the same. In a
    response that the controller has encoded the field comes first; those for delegation tokens, where it comes last, keep the
    controller's time.
    """
    field = declared.FIELDS.get(_FIELD)
    if field is None or version not in field.versions:
        return throttle_ms
    if not isinstance(response, EncodedResponse):
        throttle_ms = max(throttle_ms, response.throttle_time_ms)  # type: ignore[attr-defined]
        response.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]
    elif type(response) is EncodedResponse and next(iter(declared.FIELDS)) == _FIELD:
        position = _CORRELATION_BYTES + response_header_version(declared, version)
        throttle_ms = max(throttle_ms, _TIME.unpack_from(response.data, position)[0])
        data = bytearray(response.data)
        _TIME.pack_into(data, position, throttle_ms)
        response.data = bytes(data)
    return throttle_ms
