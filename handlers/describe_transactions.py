"""DescribeTransactions (key 65), v0: what becomes of some transactions (KIP-664). There are none."""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from kafkacompat.wire.errors import ErrorCode


def handle_describe_transactions(
    request: DescribeTransactionsRequest, context: RequestContext, services: Services
) -> DescribeTransactionsResponse:
    """Find none."""
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=transactional_id, error_code=_code(transactional_id))
            for transactional_id in request.transactional_ids
        ]
    )


def _code(transactional_id: str) -> ErrorCode:
    return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
