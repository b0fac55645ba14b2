"""Requests that this process makes to its own broker, without a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacompat.handlers.context import Pending
from kafkacompat.wire.compiler import find_reader
from kafkacompat.wire.connection import EncodedResponse, IncomingRequest
from kafkacompat.wire.headers import ResponseHeader, response_header_version

if TYPE_CHECKING:
    from kafkacompat.handlers.context import RequestContext
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.wire.schema import Request, Response


async def answer_directly(dispatcher: Dispatcher, request: Request, context: RequestContext) -> Any:
    """Return the response to a request in the version of *context*; that of the controller is decoded.

    Raises UnanswerableError where the broker would close the connection.
    """
    key, version = request.API_KEY, context.api_version
    incoming = IncomingRequest(key, version, 0, context.client_id, request, 0)
    answer: Any = dispatcher.dispatch(incoming, context)
    if isinstance(answer, Pending):
        answer = await answer.response
    return decode_response(answer, dispatcher.handlers[key].response, version)


def decode_response(response: Any, declared: type[Response], version: int) -> Any:
    """Return a response of the class *declared*; one that the controller has encoded is decoded."""
    if not isinstance(response, EncodedResponse):
        return response
    position = find_reader(ResponseHeader, response_header_version(declared, version))(response.data, 0)[1]
    return find_reader(declared, version)(response.data, position)[0]
