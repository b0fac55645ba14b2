"""DescribeTransactions (key 65), v0: the states of some transactions (KIP-664)."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse


def handle_describe_transactions(
    request: DescribeTransactionsRequest, context: RequestContext, services: Services
) -> Pending[DescribeTransactionsResponse]:
    """Describe each transactional id once, as a transaction may be much larger than its name."""
    return Pending(Deferred.fromCoroutine(_describe_transactions(request, services)))


async def _describe_transactions(
    request: DescribeTransactionsRequest, services: Services
) -> DescribeTransactionsResponse:
    names = dict.fromkeys(request.transactional_ids)
    described = [
        services.coordinators.transactions.describe(name) async for name in yield_in_turns(services.clock, names)
    ]
    return DescribeTransactionsResponse(transaction_states=described)
