"""Answering a request of an instance's client: names become physical, the broker answers, and names become the client's again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.handlers.tenants.table import TENANT_APIS
from kafkacompat.tenancy.mapping import find_mapper
from kafkacompat.timers import make_steps
from kafkacompat.wire.compiler import find_reader
from kafkacompat.wire.connection import EncodedResponse, IncomingRequest, RequestError
from kafkacompat.wire.headers import ResponseHeader, response_header_version

if TYPE_CHECKING:
    from kafkacompat.handlers import Handler

Handle = Callable[[IncomingRequest, RequestContext], Any]


class TenantRequests:
    """Answers the requests of all instances' clients by the broker's own *handle*."""

    def __init__(self, handlers: Mapping[int, Handler], services: Services) -> None:
        self._handlers = handlers
        self._services = services

    def answer(self, incoming: IncomingRequest, context: RequestContext, handle: Handle) -> Any:
        """Return the response to a request whose body has been read, now or later.

        Raises KafkaError for a request that its instance may not make.
        """
        request, tenant = incoming.body, context.tenant
        assert tenant is not None
        api = TENANT_APIS.get(incoming.api_key)
        if api is None:
            raise RequestError(f"API {incoming.api_key} is not served to the clients of instances")
        if context.api_version < api.first_version:
            raise RequestError(f"version {context.api_version} of API {incoming.api_key} is not served to instances")
        if request is None:
            return self._finish(api.finish, request, handle(incoming, context), context)
        if api.check is not None:
            refusal = api.check(request, context, self._services)
            if refusal is not None:
                return refusal
        to_physical = find_mapper(type(request), context.api_version)
        if to_physical is not None:
            steps = to_physical(request, tenant.names.to_physical, tenant.in_requests.resolve)
            later = make_steps(self._services.clock, steps)
            if later is not None:
                return answer_in_order(self._answer_when_translated(later, incoming, context, handle))
        return self._answer_translated(incoming, context, handle)

    async def _answer_when_translated(
        self, translating: Any, incoming: IncomingRequest, context: RequestContext, handle: Handle
    ) -> Any:
        await translating
        answer = self._answer_translated(incoming, context, handle)
        return await answer.response if isinstance(answer, Pending) else answer

    def _answer_translated(self, incoming: IncomingRequest, context: RequestContext, handle: Handle) -> Any:
        api = TENANT_APIS[incoming.api_key]
        if api.narrow is not None:
            refusal = api.narrow(incoming.body, context, self._services)
            if refusal is not None:
                return refusal
        answer = handle(incoming, context)
        if isinstance(answer, Pending):
            answer.response.addCallback(self._translate_response, incoming, incoming.body, context)
            return answer
        translated = self._translate_response(answer, incoming, incoming.body, context)
        return translated if translated is answer or not hasattr(translated, "addCallback") else Pending(translated)

    def _translate_response(
        self, response: Any, incoming: IncomingRequest, request: Any, context: RequestContext
    ) -> Any:
        """Return the response, or a Deferred of it if it is large."""
        if response is None:
            return None
        version, handler, tenant = context.api_version, self._handlers[incoming.api_key], context.tenant
        assert tenant is not None
        if isinstance(response, EncodedResponse):
            response = _decode(response, handler, version)
        finish = TENANT_APIS[incoming.api_key].finish
        mapper = find_mapper(handler.response, version)
        if mapper is not None:
            steps: Iterator[None] = mapper(response, tenant.names.to_client, tenant.in_responses.resolve)
            later = make_steps(self._services.clock, steps)
            if later is not None:
                return later.addCallback(lambda _: self._finish(finish, request, response, context))
        return self._finish(finish, request, response, context)

    def _finish(self, finish: Any, request: Any, response: Any, context: RequestContext) -> Any:
        if finish is not None:
            finish(request, response, context, self._services)
        return response


def _decode(encoded: EncodedResponse, handler: Handler, version: int) -> Any:
    """Read a response that the controller has encoded for this client."""
    position = find_reader(ResponseHeader, response_header_version(handler.response, version))(encoded.data, 0)[1]
    return find_reader(handler.response, version)(encoded.data, position)[0]
