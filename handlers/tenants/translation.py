"""Answering a request of an instance's client: names become physical, the broker answers, and names become the client's again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.handlers.tenants.table import TENANT_APIS, Narrow, Refusing, TenantApi
from kafkacompat.tenancy.mapping import find_mapper
from kafkacompat.timers import Clock, make_steps
from kafkacompat.wire.compiler import find_reader, find_stepwise_reader
from kafkacompat.wire.connection import EncodedResponse, IncomingRequest, RequestError
from kafkacompat.wire.headers import ResponseHeader, response_header_version
from kafkacompat.wire.schema import Response

if TYPE_CHECKING:
    from kafkacompat.handlers import Handler

Handle = Callable[[IncomingRequest, RequestContext], Any]

_END = object()


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
        checking = None if api.check is None else api.check(incoming.body, context, self._services)
        if isinstance(checking, Response):
            return checking
        later = _take_steps(self._services.clock, exchange.translate_request(checking))
        if later is not None:
            return answer_in_order(exchange.answer_later(later, handle))
        return exchange.answer_now(handle)


class _Exchange:
    """One request and its response."""

    __slots__ = ("_api", "_context", "_handler", "_incoming", "_refusal", "_request", "_services", "_tenant")

    def __init__(
        self, api: TenantApi, handler: Handler, incoming: IncomingRequest, context: RequestContext, services: Services
    ) -> None:
        self._api = api
        self._handler = handler
        self._incoming = incoming
        # The connection drops the body once the request is answered.
        self._request: Any = incoming.body
        self._context = context
        self._services = services
        self._refusal: Response | None = None
        assert context.tenant is not None
        self._tenant = context.tenant

    def translate_request(self, checking: Refusing | None) -> Iterator[None]:
        """Return the steps that check the request, and those that give it physical names."""
        naming = self._name_request()
        translating = naming if self._api.narrow is None else self._narrow(naming, self._api.narrow)
        return translating if checking is None else self._check(checking, translating)

    def _check(self, checking: Refusing, translating: Iterator[None]) -> Iterator[None]:
        self._refusal = yield from checking
        if self._refusal is None:
            yield from translating

    def _name_request(self) -> Iterator[None]:
        mapper = find_mapper(type(self._request), self._context.api_version)
        if mapper is None:
            return iter(())
        names = self._tenant.names
        translations = names.to_physical_or_empty if self._api.refuses_empty else names.to_physical
        return mapper(self._request, translations, self._tenant.in_requests.resolve)

    def _narrow(self, naming: Iterator[None], narrow: Narrow) -> Iterator[None]:
        yield from naming
        result = narrow(self._request, self._context, self._services)
        if isinstance(result, Response):
            self._refusal = result
        elif result is not None:
            # The steps of most APIs refuse nothing.
            refusing: Refusing = result  # type: ignore[assignment]
            self._refusal = yield from refusing

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
        api = self._api
        if api.show is None and api.finish is None and not isinstance(response, EncodedResponse):
            later = _take_steps(self._services.clock, self._name_response(response))
            return response if later is None else later.addCallback(lambda _: response)
        finished: list[Any] = []
        later = _take_steps(self._services.clock, self._translate_response(response, finished.append))
        return finished[0] if later is None else later.addCallback(lambda _: finished[0])

    def _name_response(self, response: Any) -> Iterator[None]:
        mapper = find_mapper(self._handler.response, self._context.api_version)
        if mapper is None:
            return iter(())
        names = self._tenant.names
        translations = names.to_client_or_empty if self._api.refuses_empty else names.to_client
        return mapper(response, translations, self._tenant.in_responses.resolve)

    def _translate_response(self, response: Any, give: Callable[[Any], None]) -> Iterator[None]:
        api, context, services = self._api, self._context, self._services
        if isinstance(response, EncodedResponse):
            response = yield from _decode(response, self._handler, context.api_version)
        if api.show is not None:
            api.show(response, context, services)
        yield from self._name_response(response)
        if api.finish is not None:
            yield from api.finish(self._request, response, context, services) or ()
        give(response)


def _take_steps(clock: Clock, steps: Iterator[None]) -> Deferred[None] | None:
    """Do the same as `make_steps`, without a look at the clock for the many messages that have no step."""
    return None if next(steps, _END) is _END else make_steps(clock, steps)


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
