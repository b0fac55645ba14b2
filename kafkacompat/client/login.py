"""The authentication of a broker, or of a command, at a broker: the requests that it sends, without a socket (KIP-152, KIP-368)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkacompat.security.sasl.client import ClientMechanism, Login
from kafkacompat.security.sasl.mechanism import SaslError
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.errors import describe_code
from kafkacompat.wire.schema import Request

RENEWED_AFTER = 0.85
"""Share of a session's lifetime after which this broker authenticates itself again, as clients of Kafka do."""


class LoginError(Exception):
    """The broker does not accept a login; the message is one sentence."""


class BrokerLogin:
    """One connection's authentication. ``renewed_after_s`` is when to authenticate again, None if the session has no limit."""

    def __init__(self, login: Login, new_nonce: Callable[[], str]) -> None:
        self._login = login
        self._new_nonce = new_nonce
        self._mechanism: ClientMechanism | None = None
        self.renewed_after_s: float | None = None

    def begin(self) -> Request:
        """Return the first request."""
        self._mechanism = None
        return SaslHandshakeRequest(mechanism=self._login.mechanism)

    def receive(self, response: Any) -> Request | None:
        """Return the request that follows a response; None when the authentication is complete. Raises LoginError."""
        if isinstance(response, SaslHandshakeResponse):
            return self._send_first(response)
        if response.error_code:
            reason = describe_code(response.error_code, response.error_message)
            raise LoginError(f"the login by {self._login.mechanism} is not accepted: {reason}")
        assert self._mechanism is not None
        try:
            token = self._mechanism.evaluate(bytes(response.auth_bytes))
        except SaslError as problem:
            raise LoginError(str(problem)) from None
        if token is not None:
            return SaslAuthenticateRequest(auth_bytes=token)
        lifetime_ms = response.session_lifetime_ms
        self.renewed_after_s = lifetime_ms * RENEWED_AFTER / 1000 if lifetime_ms > 0 else None
        return None

    def _send_first(self, response: SaslHandshakeResponse) -> Request:
        if response.error_code:
            offered = ", ".join(response.mechanisms) or "none"
            name = describe_code(response.error_code, None)
            raise LoginError(f"the SASL mechanism {self._login.mechanism} is not accepted: {name}, it offers {offered}")
        try:
            self._mechanism = self._login.start(self._new_nonce)
        except SaslError as problem:
            raise LoginError(str(problem)) from None
        return SaslAuthenticateRequest(auth_bytes=self._mechanism.begin())
