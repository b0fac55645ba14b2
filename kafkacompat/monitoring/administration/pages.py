"""The pages of /v1, /openapi.json and /docs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from kafkacompat.monitoring.administration.answers import JSON, Answer, HttpError, encode_json
from kafkacompat.monitoring.administration.openapi import build_document, build_page
from kafkacompat.monitoring.administration.operations import OPERATIONS, Call, Operation, carry_out
from kafkacompat.monitoring.administration.requests import InternalRequests
from kafkacompat.monitoring.http import BROKEN, Page

if TYPE_CHECKING:
    from kafkacompat.monitoring.administration.access import HttpAccess
    from kafkacompat.server.dispatcher import Dispatcher

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 512 * 1024
"""The largest body: a whitelist may have ten thousand networks."""
NOT_FOUND = "there is no such path: see /docs"
Reply = TypeVar("Reply")


class ApiPage(Resource):
    """/v1 and all below it."""

    isLeaf = True  # noqa: N815 (Twisted's name)

    def __init__(
        self,
        access: HttpAccess,
        dispatcher: Dispatcher,
        find_now_ms: Callable[[], int],
        rng: Random,
        describe_usage: Callable[[str], Mapping[str, Any]],
    ) -> None:
        super().__init__()
        self._access = access
        self._dispatcher = dispatcher
        self._find_now_ms = find_now_ms
        self._rng = rng
        self._describe_usage = describe_usage

    def render(self, request: Request) -> Any:
        """Twisted: answer, once the broker has."""
        return answer_later(request, self._answer(request))

    async def _answer(self, request: Request) -> Answer:
        method = request.method.decode("ascii", "replace")
        parts = [part.decode("utf-8", "replace") for part in request.postpath or ()]
        operation, name = find_operation(OPERATIONS, method, parts)
        host = request.getClientAddress().host
        principal = await self._access.authenticate(request.getHeader(b"authorization"), host)
        call = Call(
            InternalRequests(self._dispatcher, principal, host),
            name,
            read_body(request, operation),
            read_query(request.args or {}),
            self._find_now_ms(),
            self._rng,
            self._describe_usage,
        )
        answer = await carry_out(operation, call)
        if method != "GET":
            log.info("%s of instance %s over HTTP by %s from %s", method, name, principal, host)
        return answer


def answer_later(request: Request, answering: Coroutine[Deferred[Any], Any, Answer]) -> int:
    """Answer a request in JSON once *answering* has the answer; an HttpError is one, and a failure is logged."""
    return write_later(request, answering, _explain, _write)


def write_later(
    request: Request,
    answering: Coroutine[Deferred[Any], Any, Reply],
    explain: Callable[[Failure], Reply],
    write: Callable[[Request, Reply], None],
) -> int:
    """Write the reply of *answering*, or that of *explain* to its failure, unless the client has gone."""
    gone: list[Any] = []
    request.notifyFinish().addErrback(gone.append)

    def finish(outcome: Reply | Failure) -> None:
        if not gone:
            write(request, explain(outcome) if isinstance(outcome, Failure) else outcome)

    Deferred.fromCoroutine(answering).addBoth(finish)
    return NOT_DONE_YET


def find_operation(
    operations: Mapping[str, Mapping[str, Operation]], method: str, parts: list[str]
) -> tuple[Operation, str]:
    """Return the operation of a method and the parts of a path below /v1, and the name in the path; raises HttpError.

    *operations* are those of a page, by path and method. A path may have a part in braces for a name.
    """
    names = ((path, _match_path(path.split("/")[2:], parts)) for path in operations)
    path, name = next(((path, name) for path, name in names if name is not None), ("", ""))
    if not path:
        raise HttpError(404, NOT_FOUND)
    operation = operations[path].get("GET" if method == "HEAD" else method)
    if operation is None:
        raise HttpError(405, f"{path} serves {', '.join(operations[path])}")
    return operation, name


def _match_path(pattern: list[str], parts: list[str]) -> str | None:
    """Return the name in a path, "" if it has none; None for a path of another pattern."""
    name = ""
    if len(pattern) != len(parts):
        return None
    for expected, part in zip(pattern, parts, strict=True):
        if expected.startswith("{") and part:
            name = part
        elif expected != part:
            return None
    return name


def read_query(arguments: Mapping[bytes, list[bytes]]) -> dict[str, str]:
    """Return the first value of each name in a query."""
    return {key.decode(errors="replace"): values[0].decode(errors="replace") for key, values in arguments.items()}


def read_body(request: Any, operation: Operation) -> Mapping[str, Any]:
    """Return the object in the body of a request; raises HttpError 400, 413 and 415."""
    if operation.fields is None:
        return {}
    kind = (request.getHeader(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind != JSON:
        # This also keeps pages of other sites from sending requests by a browser that knows a password.
        raise HttpError(415, "the body is not JSON: set Content-Type: application/json")
    if request.is_too_large:
        raise HttpError(413, f"the body has more than {request.max_body_bytes} bytes")
    try:
        body = json.loads(request.content.getvalue() or b"{}")
    except (ValueError, RecursionError):
        raise HttpError(400, "the body is not valid JSON") from None
    if not isinstance(body, dict):
        raise HttpError(400, "the body is not valid: it takes an object")
    unknown = next((name for name in body if name not in operation.fields), None)
    if unknown is not None:
        takes = ", ".join(operation.fields) or "nothing"
        raise HttpError(400, f"{unknown!r} is no field of the body, which takes {takes}")
    return body


def _explain(failure: Failure) -> Answer:
    problem = failure.value
    if isinstance(problem, HttpError):
        return Answer(problem.status, {"error": str(problem)})
    log.error("A request over HTTP failed", exc_info=problem)
    return Answer(500, {"error": BROKEN})


def _write(request: Request, answer: Answer) -> None:
    body = encode_json(answer.value)
    request.setResponseCode(answer.status)
    request.setHeader(b"Content-Type", JSON)
    request.setHeader(b"Cache-Control", b"no-store")
    request.setHeader(b"Content-Length", b"%d" % len(body))
    if answer.status == 401:
        request.setHeader(b"WWW-Authenticate", b'Bearer, Basic realm="kafkacompat", charset="UTF-8"')
    if request.method != b"HEAD":
        request.write(body)
    request.finish()


class FixedPage(Page):
    """A page that never changes."""

    def __init__(self, content: bytes, content_type: bytes) -> None:
        super().__init__()
        self._content = content
        self._content_type = content_type

    def render_GET(self, request: Request) -> bytes:
        """Twisted: answer."""
        request.setHeader(b"Content-Type", self._content_type)
        return self._content


def make_document_pages(
    others: Mapping[str, Mapping[str, Operation]] | None = None, *, with_instances: bool = True
) -> dict[str, Resource]:
    """Return the pages that describe the API, by path: the operations on instances, if they are served, and *others*."""
    operations = {**(OPERATIONS if with_instances else {}), **(others or {})}
    return {
        "openapi.json": FixedPage(encode_json(build_document(operations)), JSON),
        "docs": FixedPage(build_page(operations), b"text/html; charset=utf-8"),
    }
