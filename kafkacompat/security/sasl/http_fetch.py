"""Fetching the keys of an identity provider by HTTP or HTTPS, whose certificate is checked by the system's authorities."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import Agent, ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers

from kafkacompat.security.sasl.jwks import MAX_JWKS_BYTES, Fetch

CONNECT_TIMEOUT_S = 10.0
TIMEOUT_S = 30.0
HTTP_OK = 200


class FetchError(Exception):
    """A URL cannot be fetched; the message is one sentence."""


class _Body(Protocol):
    """Collects a response up to MAX_JWKS_BYTES."""

    def __init__(self) -> None:
        self.result: Deferred[bytes] = Deferred()
        self._data = bytearray()

    def dataReceived(self, data: bytes) -> None:
        """Twisted: a part of the response."""
        self._data += data
        if len(self._data) > MAX_JWKS_BYTES and not self.result.called:
            self.result.errback(FetchError(f"the answer has more than {MAX_JWKS_BYTES} bytes"))
            self.transport.abortConnection()  # type: ignore[union-attr]

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Twisted: the end of the response."""
        if self.result.called:
            return
        if reason.check(ResponseDone, PotentialDataLoss):
            self.result.callback(bytes(self._data))
        else:
            self.result.errback(reason)


def make_fetch(reactor: Any) -> Fetch:
    """Return the function that fetches a URL. Redirections are not followed."""
    agent = Agent(reactor, connectTimeout=CONNECT_TIMEOUT_S)

    async def fetch(url: str) -> bytes:
        response: Any = await agent.request(b"GET", url.encode(), Headers({b"Accept": [b"application/json"]}))
        if response.code != HTTP_OK:
            raise FetchError(f"the answer has the status {response.code}")
        body = _Body()
        response.deliverBody(body)
        return await body.result

    def fetch_in_time(url: str) -> Deferred[bytes]:
        fetching = Deferred.fromCoroutine(fetch(url))
        fetching.addTimeout(TIMEOUT_S, reactor)
        return fetching

    return fetch_in_time
