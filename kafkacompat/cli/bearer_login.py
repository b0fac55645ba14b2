"""Bearer tokens of commands, which wait for them; brokers have `kafkacompat.security.sasl.bearer_login`."""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from kafkacompat.security.sasl.client import BearerClient, ClientMechanism
from kafkacompat.security.sasl.login_settings import BearerSettings
from kafkacompat.security.sasl.mechanism import OAUTHBEARER, SaslError
from kafkacompat.security.sasl.token_requests import (
    MAX_TOKEN_BYTES,
    ClientToken,
    TokenEndpoint,
    TokenRequestError,
    parse_client_token,
    read_own_token,
)
from kafkacompat.security.tls.stores import read_file, read_trust_store
from kafkacompat.storage.files.os_errors import describe_error

TOKEN_MARGIN_MS = 30_000
"""A token that expires sooner is replaced before a login."""


Post = Callable[[], tuple[int, bytes]]
"""Requests a token; returns the status and the body of the answer, and raises OSError if there is none."""


def _read_time_ms() -> int:
    return int(time.time() * 1000)


class BlockingBearerLogin:
    """A login by bearer tokens, each retrieved when it is needed.

    ``make_post`` raises ConfigError for an endpoint that cannot be reached in the way it is configured. ``now_ms`` returns the time of
    day.
    """

    mechanism = OAUTHBEARER

    def __init__(
        self,
        settings: BearerSettings,
        make_post: Callable[[TokenEndpoint], Post],
        now_ms: Callable[[], int] = _read_time_ms,
    ) -> None:
        self._settings = settings
        self._post = make_post(settings.origin) if isinstance(settings.origin, TokenEndpoint) else None
        self._now_ms = now_ms
        self._token: ClientToken | None = None

    def start(self, new_nonce: Callable[[], str]) -> ClientMechanism:
        """See Login.start."""
        return BearerClient(self.retrieve_token().text, self._settings.extensions)

    @property
    def extensions(self) -> Mapping[str, str]:
        """The extensions that the client sends with each token (KIP-342)."""
        return self._settings.extensions

    def retrieve_token(self) -> ClientToken:
        """Return a token that is valid for a while longer; raises SaslError if there is none."""
        now_ms = self._now_ms()
        if self._token is None or self._token.expires_at_ms - now_ms < TOKEN_MARGIN_MS:
            try:
                self._token = parse_client_token(self._fetch(now_ms), self._settings.subject_claim)
            except TokenRequestError as problem:
                raise SaslError(f"there is no bearer token: {problem}") from None
        return self._token

    def _fetch(self, now_ms: int) -> str:
        origin = self._settings.origin
        if not isinstance(origin, TokenEndpoint):
            return read_own_token(origin, now_ms)
        assert self._post is not None
        try:
            return origin.read_answer(*self._post())
        except OSError as problem:
            raise TokenRequestError(f"{origin.url} does not answer: {describe_error(problem)}") from problem


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    """Follows no redirection, as the secret goes to one URL only."""

    def redirect_request(self, *_: Any) -> None:
        return None


def make_post(endpoint: TokenEndpoint) -> Post:
    """Return the function that requests a token. Raises ConfigError for a bad trust store."""
    # As in Kafka, the environment's proxies are not used: with a URL of http: they would receive the secret.
    no_proxies = urllib.request.ProxyHandler({})
    https = urllib.request.HTTPSHandler(context=_build_context(endpoint))
    opener = urllib.request.build_opener(no_proxies, _NoRedirection, https)
    request = urllib.request.Request(endpoint.url, endpoint.build_body(), endpoint.build_headers())
    timeout_s = endpoint.connect_timeout_s + endpoint.read_timeout_s

    def post() -> tuple[int, bytes]:
        try:
            with opener.open(request, timeout=timeout_s) as response:
                return response.status, response.read(MAX_TOKEN_BYTES)
        except urllib.error.HTTPError as problem:
            return problem.code, problem.read(MAX_TOKEN_BYTES)
        except urllib.error.URLError as problem:
            raise OSError(str(problem.reason)) from problem
        except HTTPException as problem:
            raise OSError(f"the answer is not HTTP: {problem}") from problem

    return post


def _build_context(endpoint: TokenEndpoint) -> ssl.SSLContext:
    if endpoint.trust_store is None:
        return ssl.create_default_context()
    trusted = read_trust_store(endpoint.trust_store, read_file) or ()
    texts = (certificate.public_bytes(Encoding.PEM).decode() for certificate in trusted)
    return ssl.create_default_context(cadata="".join(texts))
