"""Transactions by their transactional ids: listed, described and aborted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkacompat.cli.remote.cluster import TRANSACTION_KEY
from kafkacompat.cli.remote.errors import EXIT_DONE, EXIT_REFUSED, RemoteError, explain_refusal, suggest_name
from kafkacompat.cli.remote.outcomes import Outcome, write_outcomes
from kafkacompat.wire.apis.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacompat.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output

ONGOING = "Ongoing"
OPEN_STATES = (ONGOING, "PrepareCommit", "PrepareAbort")
STATE_STYLES = {ONGOING: "yellow", "Dead": "red"}
COLUMNS = (
    "transactional_id",
    "state",
    "producer_id",
    "producer_epoch",
    "coordinator",
    "timeout_ms",
    "open_ms",
    "partitions",
)


def list_transactions(cluster: RemoteCluster, output: Output, states: Sequence[str]) -> None:
    """Write all transactional ids, or those in some states."""
    rows = read_transactions(cluster, states)
    output.write_rows(rows, "There are no such transactions", styles={"state": _find_style})


def _find_style(state: object) -> str:
    return STATE_STYLES.get(str(state), "")


def read_transactions(cluster: RemoteCluster, states: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the transactional ids of all coordinators; raises RemoteError."""
    request = ListTransactionsRequest(state_filters=list(states))
    rows = []
    for broker in cluster.brokers.brokers:
        send = partial(cluster.request_broker, broker.node_id, request, ListTransactionsResponse)
        response = cluster.retry(send, lambda answer: answer.error_code)
        if response.error_code:
            reason = explain_refusal(response.error_code)
            raise RemoteError(f"broker {broker.node_id} lists no transactions: {reason}")
        rows += [
            {
                "transactional_id": state.transactional_id,
                "state": state.transaction_state,
                "producer_id": state.producer_id,
                "coordinator": broker.node_id,
            }
            for state in response.transaction_states
        ]
    return sorted(rows, key=lambda row: str(row["transactional_id"]))


def describe_transactions(cluster: RemoteCluster, output: Output, names: Sequence[str], now_ms: int) -> int:
    """Write transactions; returns the exit code."""
    described, code = [], EXIT_DONE
    for name in names:
        try:
            state = read_transaction(cluster, name)
        except RemoteError as problem:
            output.complain(str(problem))
            code = EXIT_REFUSED
            continue
        started_ms = state.transaction_start_time_ms if state.transaction_state in OPEN_STATES else None
        described.append(
            {
                "transactional_id": name,
                "state": state.transaction_state,
                "producer_id": state.producer_id,
                "producer_epoch": state.producer_epoch,
                "coordinator": cluster.find_coordinator(name, TRANSACTION_KEY),
                "timeout_ms": state.transaction_timeout_ms,
                "started_ms": started_ms,
                "open_ms": None if started_ms is None else max(now_ms - started_ms, 0),
                "partitions": [
                    {"topic": topic.topic, "partition": index}
                    for topic in state.topics
                    for index in sorted(topic.partitions)
                ],
            }
        )
    if output.as_json:
        output.write_json(described)
    elif described:
        rows = [{name: _show(row[name]) for name in COLUMNS} for row in described]
        output.write_rows(rows, "", styles={"state": _find_style})
    return code


def _show(value: Any) -> object:
    """Return partitions as texts, and other values as they are."""
    return [f"{name['topic']}-{name['partition']}" for name in value] if isinstance(value, list) else value


def read_transaction(cluster: RemoteCluster, name: str) -> TransactionState:
    """Return a transaction as its coordinator describes it; raises RemoteError."""
    response = cluster.request_coordinator(
        name,
        TRANSACTION_KEY,
        DescribeTransactionsRequest(transactional_ids=[name]),
        DescribeTransactionsResponse,
        lambda answer: answer.transaction_states[0].error_code,
    )
    (state,) = response.transaction_states
    if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        known = (row["transactional_id"] for row in read_transactions(cluster))
        raise RemoteError(f"there is no transactional id {name}{suggest_name(name, known)}")
    if state.error_code:
        raise RemoteError(f"the transaction of {name} is not shown: {explain_refusal(state.error_code)}")
    return state


def abort_transactions(cluster: RemoteCluster, output: Output, names: Sequence[str]) -> int:
    """Abort the open transactions of transactional ids, and fence their producers; returns the exit code."""
    outcomes = [Outcome(name, _abort_transaction(cluster, name)) for name in names]
    return write_outcomes(output, "transaction", "aborted", outcomes)


def _abort_transaction(cluster: RemoteCluster, name: str) -> str | None:
    """Return why a transaction is not aborted, or None."""
    try:
        state = read_transaction(cluster, name)
    except RemoteError as problem:
        return str(problem)
    if state.transaction_state != ONGOING:
        return f"it is not open, but {state.transaction_state}"
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=state.transaction_timeout_ms)
    response = cluster.request_coordinator(
        name, TRANSACTION_KEY, request, InitProducerIdResponse, lambda answer: answer.error_code
    )
    # The coordinator returns this until the markers of the abort are written.
    if response.error_code in (ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS):
        return None
    return explain_refusal(response.error_code)
