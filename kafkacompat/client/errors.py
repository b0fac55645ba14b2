"""Why a request to another broker has no response."""

from __future__ import annotations


class RequestFailedError(Exception):
    """A request has no response; the message is one sentence."""


class RequestNotSentError(RequestFailedError):
    """The request never left this broker, so the other broker has not seen it."""


class UnsupportedRequestError(RequestNotSentError):
    """The two brokers have no version of the request in common."""


class ConnectionLostError(RequestFailedError):
    """The connection ended before the response arrived; the other broker may have handled the request."""


class RequestTimedOutError(RequestFailedError):
    """The response did not arrive in time; the other broker may have handled the request."""
