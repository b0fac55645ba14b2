"""What goes wrong with brokers of tests; each message is one sentence."""

from __future__ import annotations


class BrokerError(Exception):
    """A broker of a test cannot start, does not run any more, or rejected a request of a helper."""
