"""ListTransactions (key 66), v0-2: the transactions that this broker coordinates (KIP-664).

v1     only those that have lasted for some time (KIP-994)
v2     only those whose transactional id matches a pattern (KIP-1152)

There are none; a filter is judged all the same.
"""

from __future__ import annotations

import re

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kafkacompat.wire.errors import ErrorCode

STATES = {
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
}

MAX_PATTERN_LENGTH = 10_000
"""A longer one is not even read, for that takes time."""

# What RE2, by whose syntax Kafka reads patterns, has no word for: looking around, back references.
_NOT_RE2 = re.compile(r"\(\?(?:<?[=!]|>|\(|P=)|(?<!\\)(?:\\\\)*\\[1-9]")


def handle_list_transactions(
    request: ListTransactionsRequest, context: RequestContext, services: Services
) -> ListTransactionsResponse:
    """List none, and name the states asked for that are no states."""
    if not _is_pattern(request.transactional_id_pattern or ""):
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = [state for state in request.state_filters if state not in STATES]
    return ListTransactionsResponse(unknown_state_filters=list(dict.fromkeys(unknown)))


def _is_pattern(text: str) -> bool:
    if len(text) > MAX_PATTERN_LENGTH:
        return False
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return not _NOT_RE2.search(text)
