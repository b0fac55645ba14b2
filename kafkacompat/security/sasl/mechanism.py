"""What all mechanisms have in common, on the side of the server."""

from __future__ import annotations

from typing import Protocol

from kafkacompat.security.principals import Principal

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"


class SaslError(Exception):
    """An authentication has failed.

    ``client_message`` is the text that the client receives; None stands for the same text for every cause, so that it does not
    say whether a user exists. The exception's own text is for the log, and holds no secret.
    """

    def __init__(self, reason: str, client_message: str | None = None) -> None:
        super().__init__(reason)
        self.client_message = client_message


def tell_client(reason: str) -> SaslError:
    """Build an error whose reason the client receives."""
    return SaslError(reason, reason)


class ServerMechanism(Protocol):
    """One authentication by one mechanism, on the side of the server.

    ``principal`` is the authenticated user once the exchange is complete, None before. ``expires_at_ms`` is the end of its
    credential in milliseconds since the epoch, or None.
    """

    principal: Principal | None
    expires_at_ms: int | None

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a client's message; raises SaslError."""
