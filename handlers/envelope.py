"""Envelope (key 58), v0: another broker forwards a client's request to this one, the controller (KIP-590).

The enclosed request is answered as if its client had sent it here, and the encoded response goes back in the Envelope's. Errors
of the Envelope itself (Kafka's EnvelopeUtils):

NOT_CONTROLLER                       another broker is the controller; the sender repeats the request there
PRINCIPAL_DESERIALIZATION_FAILURE    the client's principal cannot be read
INVALID_REQUEST                      the client's address is none, or the API may not be forwarded
UNSUPPORTED_VERSION                  the enclosed request cannot be read
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services, UnanswerableError
from kafkacompat.handlers.throttle_time import raise_throttle_time
from kafkacompat.quotas.request_meter import RequestMeter, begin_request
from kafkacompat.security.principals import Principal, unpack_principal
from kafkacompat.timers import make_steps
from kafkacompat.wire.apis import API_NAMES
from kafkacompat.wire.apis.envelope import EnvelopeRequest, EnvelopeResponse
from kafkacompat.wire.connection import IncomingRequest, RequestError, ServerConnection
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.frames import SIZE
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import Response, Struct

if TYPE_CHECKING:
    from kafkacompat.handlers.cluster_role import EnclosedRequests

UNKNOWN_PORT = 0
"""An Envelope has the client's address without its port."""

_API_KEY = struct.Struct(">h")


def handle_envelope(request: EnvelopeRequest, context: RequestContext, services: Services) -> Pending[EnvelopeResponse]:
    """Answer the enclosed request. Others on the connection do not wait for it: they come from other clients."""
    return Pending(Deferred.fromCoroutine(_answer_envelope(request, context, services)))


async def _answer_envelope(request: EnvelopeRequest, context: RequestContext, services: Services) -> EnvelopeResponse:
    assert services.enclosed is not None
    try:
        if not services.require_cluster().forwarding.is_local:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "another broker is the controller")
        principal = _read_principal(request.request_principal)
        client = replace(context.peer, host=_parse_address(request.client_host_address), port=UNKNOWN_PORT)
        return EnvelopeResponse(
            response_data=await _answer_enclosed(
                request.request_data, context._replace(peer=client, principal=principal), services.enclosed, services
            )
        )
    except KafkaError as problem:
        return EnvelopeResponse(error_code=problem.code)


def _read_principal(data: bytes | None) -> Principal:
    """Return the principal of the enclosed request's client; raises KafkaError if it cannot be read."""
    try:
        return unpack_principal(data or b"")
    except MalformedError as problem:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(problem)) from None


def _parse_address(packed: bytes) -> str:
    try:
        return str(ip_address(packed))
    except ValueError:
        reason = f"the client's address has {len(packed)} bytes, and not 4 or 16"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason) from None


async def _answer_enclosed(
    data: bytes, context: RequestContext, enclosed: EnclosedRequests, services: Services
) -> bytes:
    """Return the encoded response to an enclosed request, header and body; raises KafkaError."""
    _check_api(data, enclosed)
    requests = ServerConnection(enclosed.handlers)
    try:
        incoming = requests.parse(memoryview(data))
        response = await _dispatch_enclosed(incoming, context, enclosed, services)
    except RequestError as problem:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(problem)) from None
    except UnanswerableError as problem:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(problem)) from None
    if ErrorCode.NOT_CONTROLLER in _iterate_error_codes(response):
        # The controller has resigned meanwhile: the sender looks for the new one.
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "another broker has become the controller")
    steps = requests.answer(incoming, response, incoming.api_version)
    writing = None if steps is None else make_steps(services.clock, steps)
    if writing is not None:
        await writing
    return b"".join(requests.take_parts())[SIZE.size :]  # type: ignore[arg-type]  # no forwarded API returns file regions


def _check_api(data: bytes, enclosed: EnclosedRequests) -> None:
    """Raise KafkaError unless the API of the enclosed request may be forwarded; an Envelope may not."""
    if len(data) < _API_KEY.size:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"the enclosed request has {len(data)} bytes")
    api_key = _API_KEY.unpack_from(data)[0]
    if api_key not in API_NAMES:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"the API key {api_key} of the enclosed request is not known")
    if api_key not in enclosed.handlers:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"requests of API {API_NAMES[api_key]} are not forwarded")


async def _dispatch_enclosed(
    incoming: IncomingRequest, context: RequestContext, enclosed: EnclosedRequests, services: Services
) -> Response:
    """Answer a request as its connection does, which mutes itself; raises RequestError and UnanswerableError."""
    meter = _begin_metering(incoming, context, services) if services.quotas.active else None
    inner = RequestContext(
        incoming.api_version, incoming.client_id, context.peer, True, principal=context.principal, meter=meter
    )
    try:
        answer = enclosed.dispatch(incoming, inner)
        response = await answer.response if isinstance(answer, Pending) else answer
    except RequestError:
        raise
    except Exception as problem:
        response = enclosed.build_failure_response(incoming, problem)
    assert response is not None
    if meter is not None:
        throttle_ms = meter.finish(incoming.size_bytes, True, services.clock.seconds())
        raise_throttle_time(response, type(response), incoming.api_version, throttle_ms)
    return response


def _begin_metering(incoming: IncomingRequest, context: RequestContext, services: Services) -> RequestMeter | None:
    return begin_request(
        services.quotas,
        incoming.api_key,
        incoming.api_version,
        context.principal.name,
        incoming.client_id,
        services.clock.seconds(),
    )


def _iterate_error_codes(message: Struct) -> Iterator[int]:
    """Yield every error code in a response."""
    for name in message.FIELDS:
        value = getattr(message, name)
        if name == "error_code":
            yield value
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            for item in value:
                yield from _iterate_error_codes(item)
