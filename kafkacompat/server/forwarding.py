"""Requests that only the controller carries out, on the other brokers of a cluster: forwarded as a whole in an Envelope (KIP-590).

A client need not know the controller. The controller answers the request as if the client had sent it there, and its response
goes back to the client byte for byte. While there is no controller, the Envelope is repeated until the client's patience ends.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from kafkacompat.client.errors import RequestFailedError, RequestNotSentError
from kafkacompat.cluster.controller_link import NoBrokerError, NoControllerError
from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.controller_apis import CARRIED_OUT_ANYWHERE, CONTROLLER_APIS, build_refusal
from kafkacompat.security.principals import pack_principal
from kafkacompat.timers import make_steps
from kafkacompat.wire.apis.envelope import EnvelopeRequest, EnvelopeResponse
from kafkacompat.wire.compiler import Part, find_reader, find_stepwise_writer
from kafkacompat.wire.connection import EncodedResponse, IncomingRequest
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.headers import (
    ResponseHeader,
    encode_request_header,
    response_header_version,
)
from kafkacompat.wire.schema import Request, Response

if TYPE_CHECKING:
    from kafkacompat.handlers import Handler

log = logging.getLogger(__name__)

DEFAULT_PATIENCE_S = 30.0
"""The time limit of a request that has none of its own."""
RETRY_S = 0.1
"""Pause before an Envelope is repeated."""
GRACE_S = 5.0
"""Time that the controller has for its response beyond the request's own limit, at which it answers by itself."""
UNKNOWN_ADDRESS = bytes(4)

CONFIG_APIS = frozenset({33, 44})
"""AlterConfigs and IncrementalAlterConfigs: some of their resources concern this broker itself."""

_CORRELATION = struct.Struct(">i")


class Enclosed(NamedTuple):
    """A request to forward."""

    incoming: IncomingRequest
    body: Request
    context: RequestContext

    @property
    def patience_s(self) -> float:
        """How long the client waits for the response."""
        timeout_ms: int | None = getattr(self.body, "timeout_ms", None)
        return DEFAULT_PATIENCE_S if timeout_ms is None else timeout_ms / 1000


class Forwarding:
    """Decides for each request whether the controller answers it, and forwards it.

    Listeners that emulate a release with ZooKeeper answer NOT_CONTROLLER as that release does; their clients find the controller.
    Those of instances need not see it.
    """

    def __init__(self, handlers: Mapping[int, Handler], services: Services) -> None:
        self._handlers = handlers
        self._services = services
        self._clock = services.clock
        self._link = services.require_cluster().forwarding
        emulated = services.emulated
        self._sends_clients_away = emulated is not None and not emulated.is_since("4.0")

    def answer(
        self, incoming: IncomingRequest, context: RequestContext, handle_here: Callable[[], Any]
    ) -> Response | Pending[Response] | None:
        """Return the controller's response, or None for a request to handle here.

        *handle_here* dispatches the request again, if this broker becomes the controller meanwhile.
        """
        body, key = incoming.body, incoming.api_key
        if key not in CONTROLLER_APIS or context.is_forwarded or self._link.is_local or body is None:
            return None
        if self._sends_clients_away and key not in CARRIED_OUT_ANYWHERE and context.tenant is None:
            return _refuse_request(body, KafkaError(ErrorCode.NOT_CONTROLLER, "another broker is the controller"))
        request = Enclosed(incoming, body, context)
        if key in CONFIG_APIS and any(map(self._is_own, _list_resources(body))):
            if all(map(self._is_own, _list_resources(body))):
                return None
            return _answer_later(self._alter_configs(request))
        return _answer_later(self._forward(request, handle_here))

    # Configurations

    def _is_own(self, resource: Any) -> bool:
        """Whether this broker answers for a resource: its loggers, and brokers that the client should have sent it to."""
        if resource.resource_type == ResourceType.BROKER:
            return resource.resource_name not in ("", str(self._services.node_id))
        return bool(resource.resource_type == ResourceType.BROKER_LOGGER)

    async def _alter_configs(self, request: Enclosed) -> Response:
        """Change what concerns this broker here, and let the controller change the other resources."""
        handler, resources = self._handlers[request.incoming.api_key], _list_resources(request.body)
        own, others = copy(request.body), copy(request.body)
        own.resources = [resource for resource in resources if self._is_own(resource)]  # type: ignore[attr-defined]
        others.resources = [resource for resource in resources if not self._is_own(resource)]  # type: ignore[attr-defined]

        def handle(body: Request) -> Any:
            return handler.handle(body, request.context, self._services)

        whole = await _wait_for(handle(own))
        forwarded = await self._forward(request._replace(body=others), lambda: handle(others))
        if isinstance(forwarded, EncodedResponse):
            forwarded = _decode_response(forwarded, handler.response, request.incoming.api_version)
        results = {
            (result.resource_type, result.resource_name): result
            for result in [*whole.responses, *forwarded.responses]  # type: ignore[attr-defined]
        }
        whole.responses = [results[resource.resource_type, resource.resource_name] for resource in resources]
        response: Response = whole
        return response

    # Envelopes

    async def _forward(self, request: Enclosed, handle_here: Callable[[], Any]) -> Response:
        """Return the controller's response, or what the client gets if there is none in time."""
        envelope = await self._enclose(request)
        gives_up_at = self._clock.seconds() + request.patience_s
        while not self._link.is_local:
            left_s = gives_up_at - self._clock.seconds()
            try:
                return await self._send(request, envelope, max(left_s, DEFAULT_PATIENCE_S) + GRACE_S)
            except _RepeatableError as problem:
                if left_s <= RETRY_S:
                    return _refuse_request(request.body, problem.error)
            except KafkaError as problem:
                return _refuse_request(request.body, problem)
            await deferLater(self._clock, RETRY_S)  # type: ignore[arg-type]
        response: Response = await _wait_for(handle_here())
        return response

    async def _send(self, request: Enclosed, envelope: EnvelopeRequest, timeout_s: float) -> EncodedResponse:
        """Send an Envelope once; raises _RepeatableError, or KafkaError if another attempt would fail as well."""
        try:
            response: EnvelopeResponse = await self._link.send(envelope, timeout_s)
        except (NoControllerError, NoBrokerError, RequestNotSentError) as problem:
            raise _RepeatableError(ErrorCode.NOT_CONTROLLER, f"there is no controller: {problem}") from None
        except RequestFailedError as problem:
            # The controller may have carried out the request. As Apache Kafka does, it is sent again.
            raise _RepeatableError(ErrorCode.REQUEST_TIMED_OUT, f"the controller has not answered: {problem}") from None
        if response.error_code == ErrorCode.NOT_CONTROLLER:
            raise _RepeatableError(ErrorCode.NOT_CONTROLLER, "another broker has become the controller")
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # The client can ask the controller itself, in a version that it has.
            reason = "the controller does not know this version of the request"
            raise KafkaError(ErrorCode.NOT_CONTROLLER, reason)
        data = response.response_data
        if response.error_code or data is None or not _is_answer(data, request.incoming):
            log.error(
                "The controller has not answered a forwarded %s, but the error %d",
                type(request.body).__name__,
                response.error_code,
            )
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller rejects the forwarded request")
        return EncodedResponse(data=data)

    async def _enclose(self, request: Enclosed) -> EnvelopeRequest:
        incoming, body = request.incoming, request.body
        version = incoming.api_version
        parts: list[Part] = [encode_request_header(type(body), version, incoming.correlation_id, incoming.client_id)]
        writing = make_steps(self._clock, _write_request(body, version, parts))
        if writing is not None:
            await writing
        return EnvelopeRequest(
            request_data=b"".join(parts),  # type: ignore[arg-type]  # these requests hold no file regions
            request_principal=pack_principal(request.context.principal),
            client_host_address=_pack_address(request.context.peer.host),
        )


class _RepeatableError(Exception):
    """An attempt has failed, and another may succeed; ``error`` is the client's if none does."""

    def __init__(self, code: ErrorCode, detail: str) -> None:
        super().__init__(detail)
        self.error = KafkaError(code, detail)


def _answer_later(answering: Any) -> Pending[Response]:
    """Hold the connection's next request; a client that is gone ends the attempts."""
    return Pending(Deferred.fromCoroutine(answering), in_order=True, abandonable=True)


def _refuse_request(body: Request, problem: KafkaError) -> Response:
    response: Response = build_refusal(body, problem)
    return response


async def _wait_for(answer: Any) -> Any:
    return await answer.response if isinstance(answer, Pending) else answer


def _list_resources(body: Any) -> list[Any]:
    resources: list[Any] = body.resources
    return resources


def _write_request(body: Request, version: int, parts: list[Part]) -> Iterator[None]:
    for written in find_stepwise_writer(type(body), version)(body):
        parts += written or ()
        yield


def _is_answer(data: bytes, incoming: IncomingRequest) -> bool:
    return len(data) >= _CORRELATION.size and _CORRELATION.unpack_from(data)[0] == incoming.correlation_id


def _decode_response(encoded: EncodedResponse, message: type[Response], version: int) -> Response:
    data = encoded.data
    position = find_reader(ResponseHeader, response_header_version(message, version))(data, 0)[1]
    response: Response = find_reader(message, version)(data, position)[0]
    return response


def _pack_address(host: str) -> bytes:
    """Return the 4 or 16 bytes of an address; an IPv4 address in IPv6 form has 4, as in Java."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return UNKNOWN_ADDRESS
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).packed
