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
    from kafkacompat.wire.schema import Request


async def answer_directly(dispatcher: Dispatcher, request: Request, context: RequestContext) -> Any:
    """Return the response to a request in the version of *context*; that of the controller is decoded.

    Raises UnanswerableError where the broker would close the connection.
    """
    key, version = request.API_KEY, context.api_version
    incoming = IncomingRequest(key, version, 0, context.client_id, request, 0)
    answer: Any = dispatcher.dispatch(incoming, context)
    if isinstance(answer, Pending):
        answer = await answer.response
    if isinstance(answer, EncodedResponse):
        response = dispatcher.handlers[key].response
        position = find_reader(ResponseHeader, response_header_version(response, version))(answer.data, 0)[1]
        answer = find_reader(response, version)(answer.data, position)[0]
    return answer
