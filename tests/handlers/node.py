"""The common part of nodes under test: their services, and the way of a request to its handler and back."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

from kafkacompat.handlers import HANDLERS
from kafkacompat.handlers.context import Peer, RequestContext, Services
from kafkacompat.wire import compiler
from kafkacompat.wire.schema import Request, Response

Answer = TypeVar("Answer", bound=Response)

NODE = 1


def make_services(**present: Any) -> Services:
    """Node 1 with these services and no others."""
    needed = (field for field in fields(Services) if field.default is MISSING and field.default_factory is MISSING)
    return Services(**{**{field.name: None for field in needed}, "node_id": NODE, **present})


def context_of(version: int, *, client_id: str = "test", listener: str = "PLAINTEXT") -> RequestContext:
    """A request's context in that version, from a client that is always at the same place."""
    peer = Peer(listener_name=listener, host="10.1.1.1", port=5555, local_host="10.0.0.5", local_port=9092)
    return RequestContext(api_version=version, client_id=client_id, peer=peer)


def handle_request(request: Request, context: RequestContext, services: Services) -> Any:
    """Send a request through the wire format; return the handler's result: a response, None, or a Pending."""
    version = context.api_version
    decoded = compiler.decode_message(type(request), compiler.encode_message(request, version), version)
    return HANDLERS[request.API_KEY].handle(decoded, context, services)


def reread_response(response: Response, answer: type[Answer], version: int) -> Answer:
    """A response as the client reads it."""
    return compiler.decode_message(answer, compiler.encode_message(response, version), version)
