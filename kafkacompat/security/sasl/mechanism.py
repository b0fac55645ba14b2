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


class LoginScope:
    """The users who may log in on a connection, and what the brokers call them: here every user, by its own name.

    Connections of instances have other scopes.
    """

    def find_user(self, login: str) -> str:
        """Return the brokers' name of a user that a client names; raises SaslError."""
        return login

    def find_subject(self, subject: str) -> str:
        """Return the brokers' name of the user that a token of an identity provider names; raises SaslError."""
        return subject

    def owns(self, user: str) -> bool:
        """Return whether a user, by the brokers' name, may log in."""
        return True

    def show(self, user: str) -> str:
        """Return the name by which clients know a user."""
        return user


ANY_LOGIN = LoginScope()


class ServerMechanism(Protocol):
    """One authentication by one mechanism, on the side of the server.

    ``scope`` says which users may log in. ``principal`` is the authenticated user once the exchange is complete, None before. ``expires_at_ms`` is the end of its
    credential in milliseconds since the epoch, or None.
    """

    scope: LoginScope
    principal: Principal | None
    expires_at_ms: int | None

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a client's message; raises SaslError."""
