"""The HTTP side: pages, and connections that can neither hold memory nor stay.

A connection carries one request and ends after `DEADLINE_S` at the latest, whatever its client does. The body of a request is
dropped as it comes, unless the site accepts bodies up to a bound. If `MAX_CONNECTIONS` are open, the oldest one gives way to a new one.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from twisted.internet.error import CannotListenError
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from kafkacompat.complaints import LoggedComplaints
from kafkacompat.monitoring.exposition import Format
from kafkacompat.server.bind_advice import explain_bind_failure
from kafkacompat.server.listener import ListenError

if TYPE_CHECKING:
    from kafkacompat.monitoring.exposition import Scraper
    from kafkacompat.timers import DelayedCall

log = logging.getLogger(__name__)

DEADLINE_S = 30
MAX_CONNECTIONS = 32
PLAIN = b"text/plain; charset=utf-8"
BROKEN = "this page cannot be served: see the broker's log"
NOT_HERE = "there are /metrics, /healthz and /readyz"


def answer_plainly(request: Request, code: int, text: str) -> bytes:
    """Set the status of a request, and return the body."""
    request.setResponseCode(code)
    request.setHeader(b"Content-Type", PLAIN)
    return f"{text}\n".encode()


class Page(Resource, ABC):
    """A page without children that serves GET and HEAD."""

    isLeaf = True  # noqa: N815 (Twisted's name)

    def render(self, request: Request) -> Any:
        """Twisted: answer."""
        if request.postpath:
            return answer_plainly(request, 404, NOT_HERE)
        if request.method not in (b"GET", b"HEAD"):
            request.setHeader(b"Allow", b"GET, HEAD")
            return answer_plainly(request, 405, "only GET and HEAD are served")
        try:
            return self.render_GET(request)
        except Exception:
            log.exception("A page cannot be served")
            return answer_plainly(request, 500, BROKEN)

    @abstractmethod
    def render_GET(self, request: Request) -> Any:
        """Answer a GET; Twisted leaves out the body for a HEAD."""


class NoPage(Resource):
    """Every other path."""

    isLeaf = True  # noqa: N815 (Twisted's name)

    def render(self, request: Request) -> bytes:
        """Twisted: answer."""
        return answer_plainly(request, 404, NOT_HERE)


class Root(Resource):
    """The pages by path."""

    def getChild(self, path: bytes, request: Request) -> Resource:
        """Twisted: return the page of a path that has none."""
        return NoPage()


class HealthPage(Page):
    """/healthz: the process is alive, and its reactor turns."""

    def render_GET(self, request: Request) -> bytes:
        """Twisted: answer."""
        return answer_plainly(request, 200, "ok")


class ReadinessPage(Page):
    """/readyz: 200 if clients are served, else 503 with the reason."""

    def __init__(self, find_objection: Callable[[], str | None]) -> None:
        super().__init__()
        self._find_objection = find_objection

    def render_GET(self, request: Request) -> bytes:
        """Twisted: answer."""
        objection = self._find_objection()
        if objection is None:
            return answer_plainly(request, 200, "ready")
        return answer_plainly(request, 503, f"not ready: {objection}")


class MetricsPage(Page):
    """/metrics: all metrics, in the format that the client accepts."""

    def __init__(self, scraper: Scraper) -> None:
        super().__init__()
        self._scraper = scraper

    def render_GET(self, request: Request) -> int:
        """Twisted: answer, once the metrics are collected."""
        form = Format.choose(b",".join(request.requestHeaders.getRawHeaders(b"Accept", [])))
        gone: list[Any] = []
        request.notifyFinish().addErrback(gone.append)

        def answer(outcome: bytes | Failure) -> None:
            if gone:
                return
            if isinstance(outcome, Failure):
                log.error("The metrics cannot be collected", exc_info=outcome.value)
                outcome = answer_plainly(request, 500, BROKEN)
            else:
                request.setHeader(b"Content-Type", form.value.encode())
            request.setHeader(b"Content-Length", b"%d" % len(outcome))
            request.write(outcome)
            request.finish()

        self._scraper.scrape(form).addBoth(answer)
        return NOT_DONE_YET


class _Request(Request):
    """A request whose body is kept up to the bound of the site, ``max_body_bytes``; ``is_too_large`` if it was longer."""

    channel: Any
    content: Any
    is_too_large = False
    max_body_bytes = 0
    _body_bytes = 0

    def gotLength(self, length: int | None) -> None:
        """Twisted: a body of this length follows, None for an unknown one."""
        super().gotLength(0)

    def handleContentChunk(self, data: bytes) -> None:
        """Twisted: a part of the body."""
        self._body_bytes += len(data)
        self.max_body_bytes = self.channel.site.max_body_bytes
        self.is_too_large = self._body_bytes > self.max_body_bytes
        if not self.is_too_large:
            self.content.write(data)


class _Channel(HTTPChannel):
    """A connection with one request and a deadline, which no activity extends."""

    site: BoundedSite
    transport: Any
    _deadline: DelayedCall | None = None

    def connectionMade(self) -> None:
        """Twisted: a client has connected."""
        clock: Any = self.site.reactor
        self._deadline = clock.callLater(DEADLINE_S, self.abort)
        self.site.note_opened(self)
        super().connectionMade()

    def dataReceived(self, data: bytes) -> None:
        """Twisted: bytes have arrived. Its parser rejects most garbage, and fails at some."""
        try:
            super().dataReceived(data)
        except Exception as problem:
            if not self.transport.connected:
                return
            host = self.transport.getPeer().host
            self.site.complain(host, f"closing an HTTP connection of {host}: its request cannot be read: {problem!r}")
            self.abort()

    def connectionLost(self, reason: Failure = Failure(ConnectionError("closed"))) -> None:  # noqa: B008
        """Twisted: the connection has ended."""
        if self._deadline is not None and self._deadline.active():
            self._deadline.cancel()
        self.site.note_closed(self)
        super().connectionLost(reason)

    def checkPersistence(self, request: Any, version: bytes) -> bool:
        """Twisted: whether another request may follow."""
        request.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        return False

    def abort(self) -> None:
        """End the connection now."""
        self.transport.abortConnection()


class BoundedSite(Site):
    """The pages; ``reactor`` calls at deadlines. ``complain`` logs a line about a client, up to a bound.

    ``max_body_bytes`` is the most of a body that is kept.
    """

    noisy = False
    protocol = _Channel  # type: ignore[assignment]

    max_body_bytes = 0

    def __init__(self, pages: Mapping[str, Resource], reactor: Any) -> None:
        root = self._root = Root()
        self.add_pages(pages)
        super().__init__(root, _Request, timeout=None, reactor=reactor, parsePOSTFormSubmission=False)
        self.complain = LoggedComplaints(reactor, say=log.warning)
        self._channels: dict[_Channel, None] = {}

    def add_pages(self, pages: Mapping[str, Resource]) -> None:
        """Serve more pages, by the first part of their paths."""
        for path, page in pages.items():
            self._root.putChild(path.encode(), page)  # type: ignore[arg-type]  # zope's interfaces have no types

    def note_opened(self, channel: _Channel) -> None:
        """Note a new connection; the oldest one gives way to it if there are too many."""
        if len(self._channels) >= MAX_CONNECTIONS:
            oldest = next(iter(self._channels))
            # Its end comes in a later turn of the reactor, and more clients may connect in this one.
            del self._channels[oldest]
            oldest.abort()
        self._channels[channel] = None

    def note_closed(self, channel: _Channel) -> None:
        """Note the end of a connection."""
        self._channels.pop(channel, None)

    def close(self) -> None:
        """End all connections."""
        for channel in list(self._channels):
            channel.abort()

    def startFactory(self) -> None:
        """Twisted: the first port is bound. There is no access log."""

    def stopFactory(self) -> None:
        """Twisted: the last port is unbound."""

    def log(self, request: Any) -> None:
        """Twisted: a request was answered."""


def listen_http(reactor: Any, site: BoundedSite, host: str, port: int) -> Any:
    """Bind the listener and return Twisted's port; raises ListenError, one sentence."""
    try:
        return reactor.listenTCP(port, site, interface=host)
    except CannotListenError as problem:
        reason = explain_bind_failure(host, port, problem.socketError)
        raise ListenError(f"kafkacompat.http.listener: {reason}") from None
