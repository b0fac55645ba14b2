"""Finding the handler of a parsed request in the table of handlers, and turning its failure into a response.

Besides `handlers/per_partition` this is the only place where a `KafkaError` becomes an error code.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkacompat.handlers.context import Pending, RequestContext, Services, UnanswerableError
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.server.portions import answer_in_portions
from kafkacompat.timers import make_steps
from kafkacompat.wire.connection import MAX_SMALL_BYTES, RequestError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Response

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.handlers import Handler
    from kafkacompat.handlers.tenants.translation import TenantRequests
    from kafkacompat.security.acls.authorizer import Authorizer
    from kafkacompat.server.forwarding import Forwarding
    from kafkacompat.wire.connection import IncomingRequest

Answer: TypeAlias = "Response | Pending[Response] | None"

log = logging.getLogger(__name__)


class Dispatcher:
    """Calls handlers; ``handlers`` is the table of the served APIs, by API key.

    In a cluster, requests that only the controller carries out are forwarded to it.
    """

    def __init__(self, handlers: Mapping[int, Handler], services: Services) -> None:
        if services.authorizer is not None:
            handlers = _guard_handlers(handlers, services.authorizer)
        self.handlers = handlers
        self._services = services
        self._forwarding = None if services.cluster is None else _make_forwarding(handlers, services)
        self._tenants: TenantRequests | None = None

    def dispatch(self, incoming: IncomingRequest, context: RequestContext) -> Answer:
        """Return the response to a request, now or later; None where the protocol has no response.

        Raises UnanswerableError or RequestError when the connection must be closed instead.
        """
        reading = incoming.reading and make_steps(self._services.clock, incoming.reading)
        if reading:
            return answer_in_order(self._handle_when_read(reading, incoming, context))
        return self._handle(incoming, context)

    def answer_versions(self, incoming: IncomingRequest, context: RequestContext) -> Answer:
        """Return the response to an ApiVersions that begins an authentication; it has been read, and never waits."""
        return self._handle(incoming, context)

    async def _handle_when_read(
        self, reading: Deferred[None], incoming: IncomingRequest, context: RequestContext
    ) -> Any:
        await reading
        result = self._handle(incoming, context)
        return await result.response if isinstance(result, Pending) else result

    def _handle(self, incoming: IncomingRequest, context: RequestContext) -> Answer:
        if context.tenant is None:
            return self._handle_physical(incoming, context)
        if self._tenants is None:
            self._tenants = _make_tenant_requests(self.handlers, self._services)
        try:
            answer: Answer = self._tenants.answer(incoming, context, self._handle_physical)
            return answer
        except Exception as problem:
            return self.build_failure_response(incoming, problem)

    def _handle_physical(self, incoming: IncomingRequest, context: RequestContext) -> Answer:
        """Answer a request whose names are physical."""
        handle, services, body = self.handlers[incoming.api_key].handle, self._services, incoming.body
        try:
            if services.whitelists.are_set:
                handle = _guard_by_network(incoming.api_key, handle, services)
            if self._forwarding is not None:
                forwarded = self._forwarding.answer(incoming, context, lambda: self._handle_physical(incoming, context))
                if forwarded is not None:
                    return forwarded
            if incoming.size_bytes > MAX_SMALL_BYTES and body is not None:
                portions = answer_in_portions(body, lambda part: handle(part, context, services), services.clock)
                if portions is not None:
                    return portions
            answer: Answer = handle(body, context, services)
            return answer
        except Exception as problem:
            return self.build_failure_response(incoming, problem)

    def build_failure_response(self, incoming: IncomingRequest, problem: BaseException) -> Response:
        """Return the response that carries a failed request's error code.

        Raises UnanswerableError where the response has no field for one.
        """
        handler = self.handlers[incoming.api_key]
        name = handler.request.__name__
        if isinstance(problem, RequestError):
            raise UnanswerableError(str(problem)) from None
        if isinstance(problem, UnanswerableError):
            raise problem
        if isinstance(problem, KafkaError):
            code = problem.code
        else:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            log.error("%s v%d failed", name, incoming.api_version, exc_info=problem)
        field = handler.response.FIELDS.get("error_code")
        if field is None or incoming.api_version not in field.versions:
            raise UnanswerableError(f"{name} v{incoming.api_version} failed: {problem}")
        make: Callable[..., Response] = handler.response
        return make(error_code=int(code))


def _guard_handlers(handlers: Mapping[int, Handler], authorizer: Authorizer) -> Mapping[int, Handler]:
    # Without an authorizer a broker does not pay for the guards.
    from kafkacompat.handlers.guards import guard_handlers

    return guard_handlers(handlers, authorizer)


def _guard_by_network(api_key: int, handle: Callable[..., Any], services: Services) -> Callable[..., Any]:
    # Where no topic has a whitelist a broker does not pay for the guards.
    from kafkacompat.handlers.guards.networks import guard_by_network

    return guard_by_network(api_key, handle, services)


def _make_forwarding(handlers: Mapping[int, Handler], services: Services) -> Forwarding:
    # A single node does not pay for the modules that only brokers of a cluster need.
    from kafkacompat.server.forwarding import Forwarding

    return Forwarding(handlers, services)


def _make_tenant_requests(handlers: Mapping[int, Handler], services: Services) -> TenantRequests:
    # A broker without instances does not pay for them.
    from kafkacompat.handlers.tenants.translation import TenantRequests

    return TenantRequests(handlers, services)
