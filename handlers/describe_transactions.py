"""DescribeTransactions (key 65), v0: what becomes of some transactions (KIP-664)."""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse


def handle_describe_transactions(
    request: DescribeTransactionsRequest, context: RequestContext, services: Services
) -> DescribeTransactionsResponse:
    """Describe each transactional id, and once: a transaction may be much larger than its name."""
    names = dict.fromkeys(request.transactional_ids)
    return DescribeTransactionsResponse(transaction_states=[services.transactions.describe(each) for each in names])
