"""Requests to an identity provider by HTTP or HTTPS: for the keys of tokens, and for a token of this broker.

The provider's certificate is checked by the system's authorities, or by those that the login module names.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.internet.task import Cooperator
from twisted.python.failure import Failure
from twisted.web.client import Agent, BrowserLikePolicyForHTTPS, FileBodyProducer, ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers

from kafkacompat.security.sasl.bearer_login import Post
from kafkacompat.security.sasl.jwks import MAX_JWKS_BYTES, Fetch
from kafkacompat.security.sasl.token_requests import TokenEndpoint
from kafkacompat.security.tls.failures import describe_tls_error
from kafkacompat.security.tls.stores import read_file, read_trust_store

CONNECT_TIMEOUT_S = 10.0
TIMEOUT_S = 30.0
HTTP_OK = 200


class FetchError(Exception):
    """A URL cannot be fetched; the message is one sentence."""


class _Body(Protocol):
    """Collects a response up to MAX_JWKS_BYTES; if ``result`` is cancelled, the connection ends."""

    def __init__(self) -> None:
        self.result: Deferred[bytes] = Deferred(lambda _: self._end_connection())
        self._data = bytearray()

    def dataReceived(self, data: bytes) -> None:
        """Twisted: a part of the response."""
        if self.result.called:
            return
        self._data += data
        if len(self._data) > MAX_JWKS_BYTES:
            self.result.errback(FetchError(f"the answer has more than {MAX_JWKS_BYTES} bytes"))
            self._end_connection()

    def _end_connection(self) -> None:
        # Twisted gives a body a transport that cannot abort; over TLS, loseConnection would wait for the peer.
        if self.transport is not None:
            self.transport.stopProducing()

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
        return await _read_body(response)

    def fetch_in_time(url: str) -> Deferred[bytes]:
        fetching = Deferred.fromCoroutine(fetch(url))
        fetching.addTimeout(TIMEOUT_S, reactor, _report_timeout)
        return fetching.addErrback(_explain)

    return fetch_in_time


def make_post(reactor: Any, endpoint: TokenEndpoint) -> Post:
    """Return the function that requests a token. Redirections are not followed. Raises ConfigError for a bad trust store."""
    agent = Agent(reactor, _build_policy(endpoint), endpoint.connect_timeout_s)
    cooperator = Cooperator(scheduler=lambda step: reactor.callLater(0, step))
    headers = {name.encode(): [value.encode()] for name, value in endpoint.build_headers().items()}

    async def post() -> tuple[int, bytes]:
        body: Any = FileBodyProducer(BytesIO(endpoint.build_body()), cooperator)
        response: Any = await agent.request(b"POST", endpoint.url.encode(), Headers(headers), body)
        return response.code, await _read_body(response)

    def post_in_time() -> Deferred[tuple[int, bytes]]:
        posting = Deferred.fromCoroutine(post())
        posting.addTimeout(endpoint.connect_timeout_s + endpoint.read_timeout_s, reactor, _report_timeout)
        return posting.addErrback(_explain)

    return post_in_time


def _build_policy(endpoint: TokenEndpoint) -> BrowserLikePolicyForHTTPS:
    if endpoint.trust_store is None:
        return BrowserLikePolicyForHTTPS()
    trusted = read_trust_store(endpoint.trust_store, read_file) or ()
    certificates = [Certificate.load(certificate.public_bytes(Encoding.DER)) for certificate in trusted]
    return BrowserLikePolicyForHTTPS(trustRootFromCertificates(certificates))


def _read_body(response: Any) -> Deferred[bytes]:
    body = _Body()
    response.deliverBody(body)
    return body.result


def _report_timeout(_: object, timeout_s: float) -> None:
    raise FetchError(f"there was no answer within {timeout_s:g} s")


def _explain(failure: Failure) -> Failure:
    """Return FetchError with the words of the first cause; Twisted lists several. A cancelled request stays one."""
    causes: list[Failure] = getattr(failure.value, "reasons", None) or [failure]
    if causes[0].check(FetchError, CancelledError):
        return causes[0]
    cause = causes[0].value
    if isinstance(cause, SSL.Error):
        return Failure(FetchError(f"TLS fails: {describe_tls_error(cause)}"))
    return Failure(FetchError(str(cause).rstrip(".") or type(cause).__name__))
