"""Answering a request of an instance's client: names become physical, the broker answers, and names become the client's again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.handlers.tenants.table import TENANT_APIS, TenantApi
from kafkacompat.tenancy.mapping import find_mapper
from kafkacompat.timers import make_steps
from kafkacompat.wire.compiler import find_reader, find_stepwise_reader
from kafkacompat.wire.connection import EncodedResponse, IncomingRequest, RequestError
from kafkacompat.wire.headers import ResponseHeader, response_header_version
from kafkacompat.wire.schema import Response

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
        api = TENANT_APIS.get(incoming.api_key)
        if api is None:
            raise RequestError(f"API {incoming.api_key} is not served to the clients of instances")
        exchange = _Exchange(api, self._handlers[incoming.api_key], incoming, context, self._services)
        if incoming.body is None:
            # ApiVersions in a version that is not known has no body.
            return exchange.finish(handle(incoming, context))
        later = make_steps(self._services.clock, exchange.translate_request())
        if later is not None:
            return answer_in_order(exchange.answer_later(later, handle))
        return exchange.answer_now(handle)


class _Exchange:
    """One request and its response."""

    def __init__(
        self, api: TenantApi, handler: Handler, incoming: IncomingRequest, context: RequestContext, services: Services
    ) -> None:
        self._api = api
        self._handler = handler
        self._incoming = incoming
        # The connection drops the body once the request is answered.
        self._request = incoming.body
        self._context = context
        self._services = services
        self._refusal: Response | None = None
        assert context.tenant is not None
        self._tenant = context.tenant

    def translate_request(self) -> Iterator[None]:
        """Give the request physical names, in steps; a hook may refuse it."""
        api, names = self._api, self._tenant.names
        if api.check is not None:
            yield from self._run_hook(api.check)
        if self._refusal is not None:
            return
        mapper = find_mapper(type(self._request), self._context.api_version)  # type: ignore[arg-type]
        if mapper is not None:
            translations = names.to_physical_or_empty if api.refuses_empty else names.to_physical
            yield from mapper(self._request, translations, self._tenant.in_requests.resolve)
        if api.narrow is not None:
            yield from self._run_hook(api.narrow)

    def _run_hook(self, hook: Callable[..., Any]) -> Iterator[None]:
        result = hook(self._request, self._context, self._services)
        if isinstance(result, Response):
            self._refusal = result
        elif result is not None:
            yield from result

    async def answer_later(self, translating: Deferred[None], handle: Handle) -> Any:
        """Answer the request once its names are physical."""
        await translating
        answer = self.answer_now(handle)
        return await answer.response if isinstance(answer, Pending) else answer

    def answer_now(self, handle: Handle) -> Any:
        """Answer the request, whose names are physical."""
        if self._refusal is not None:
            return self._refusal
        answer = handle(self._incoming, self._context)
        if isinstance(answer, Pending):
            answer.response.addCallback(self.finish)
            return answer
        finished = self.finish(answer)
        return Pending(finished) if isinstance(finished, Deferred) else finished

    def finish(self, response: Any) -> Any:
        """Return the response with the names that clients know, or a Deferred of it if it is large."""
        if response is None:
            return None
        finished: list[Any] = []
        later = make_steps(self._services.clock, self._translate_response(response, finished.append))
        return finished[0] if later is None else later.addCallback(lambda _: finished[0])

    def _translate_response(self, response: Any, give: Callable[[Any], None]) -> Iterator[None]:
        api, context, names = self._api, self._context, self._tenant.names
        if isinstance(response, EncodedResponse):
            response = yield from _decode(response, self._handler, context.api_version)
        if api.show is not None:
            api.show(response, context, self._services)
        mapper = find_mapper(self._handler.response, context.api_version)
        if mapper is not None:
            translations = names.to_client_or_empty if api.refuses_empty else names.to_client
            yield from mapper(response, translations, self._tenant.in_responses.resolve)
        if api.finish is not None:
            steps = api.finish(self._request, response, context, self._services)
            if steps is not None:
                yield from steps
        give(response)


def _decode(encoded: EncodedResponse, handler: Handler, version: int) -> Generator[None, None, Any]:
    """Read a response that the controller has encoded for this client, in steps."""
    position = find_reader(ResponseHeader, response_header_version(handler.response, version))(encoded.data, 0)[1]
    response = None
    for read in find_stepwise_reader(handler.response, version)(encoded.data, position):
        if read is None:
            yield
        else:
            response = read[0]
    return response
