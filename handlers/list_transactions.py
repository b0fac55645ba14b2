"""ListTransactions (key 66), v0-2: the transactional ids that this broker coordinates (KIP-664).

v1     filters by the duration of the transaction (KIP-994)
v2     filters by a pattern (KIP-1152)
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.patterns import Pattern, PatternError
from kafkacompat.transactions.administration import TransactionFilters
from kafkacompat.transactions.state import NAMES
from kafkacompat.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kafkacompat.wire.entities import TRANSACTIONAL_ID
from kafkacompat.wire.errors import ErrorCode

STATES = {name: state for state, name in NAMES.items()}


def handle_list_transactions(
    request: ListTransactionsRequest, context: RequestContext, services: Services
) -> ListTransactionsResponse | Pending[ListTransactionsResponse]:
    """List the transactions that match every filter, and name the requested states that do not exist."""
    try:
        matches = (
            _compile_pattern(request.transactional_id_pattern, context) if request.transactional_id_pattern else None
        )
    except PatternError:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    states = {STATES[name] for name in request.state_filters if name in STATES} if request.state_filters else None
    filters = TransactionFilters(states, frozenset(request.producer_id_filters), request.duration_filter, matches)
    return Pending(Deferred.fromCoroutine(_list_transactions(request, filters, services)))


def _compile_pattern(text: str, context: RequestContext) -> Callable[[str], bool]:
    """Return whether a name matches a pattern; those of an instance's clients match the names that they know."""
    if context.tenant is None:
        return Pattern(text).matches
    return context.tenant.names.compile_pattern(TRANSACTIONAL_ID, text)


async def _list_transactions(
    request: ListTransactionsRequest, filters: TransactionFilters, services: Services
) -> ListTransactionsResponse:
    transactions = await services.coordinators.transactions.list(filters)
    if isinstance(transactions, ErrorCode):
        return ListTransactionsResponse(error_code=transactions)
    unknown = dict.fromkeys(name for name in request.state_filters if name not in STATES)
    return ListTransactionsResponse(unknown_state_filters=list(unknown), transaction_states=list(transactions))
