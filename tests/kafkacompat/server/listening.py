"""A listener without connections: frames in, frames out, as a connection handles them."""

from __future__ import annotations

from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Peer, Pending, RequestContext
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.timers import Clock, make_steps
from kafkacompat.wire import headers
from kafkacompat.wire.compiler import decode_message
from kafkacompat.wire.connection import ServerConnection
from kafkacompat.wire.headers import response_header_version
from kafkacompat.wire.schema import Request, Response

Answer = TypeVar("Answer", bound=Response)

CORRELATION_ID = 0x12345678
CLIENT = Peer(listener_name="PLAINTEXT", host="10.1.1.1", port=5555, local_host="10.0.0.5", local_port=9092)


def encode_request(
    request: Request, version: int, correlation_id: int = CORRELATION_ID, client_id: str = "test"
) -> bytes:
    """The request's header and body."""
    return headers.encode_request(request, version, correlation_id, client_id)


def decode_response(data: bytes, answer: type[Answer], version: int) -> Answer:
    """A response without its header."""
    assert int.from_bytes(data[:4], "big") == CORRELATION_ID
    return decode_message(answer, data[4 + response_header_version(answer, version) :], version)


class ListenerWorld:
    """Answers frames through a dispatcher."""

    def __init__(self, dispatcher: Dispatcher, clock: Clock, peer: Peer = CLIENT) -> None:
        self.dispatcher = dispatcher
        self._clock = clock
        self._peer = peer

    def send(self, data: bytes) -> Deferred[bytes]:
        """Fires with the response's header and body."""
        return Deferred.fromCoroutine(self._answer(data))

    async def _answer(self, data: bytes) -> bytes:
        requests = ServerConnection(self.dispatcher.handlers)
        incoming = requests.parse(memoryview(data))
        context = RequestContext(incoming.api_version, incoming.client_id, self._peer)
        try:
            answer: Any = self.dispatcher.dispatch(incoming, context)
            if isinstance(answer, Pending):
                answer = await answer.response
        except Exception as problem:
            answer = self.dispatcher.build_failure_response(incoming, problem)
        steps = requests.answer(incoming, answer, incoming.api_version)
        writing = None if steps is None else make_steps(self._clock, steps)
        if writing is not None:
            await writing
        frame = b"".join(requests.take_parts())  # type: ignore[arg-type]
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        return frame[4:]
