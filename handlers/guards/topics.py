"""Guards of requests about records and transactions that need more than one right."""

from __future__ import annotations

from typing import Any

from kafkacompat.handlers.context import UnanswerableError
from kafkacompat.handlers.guards.access import Access, Handle, change_response, wait_for
from kafkacompat.handlers.guards.items import (
    answer_rest,
    find_refused,
    guard_items,
    name_field,
    name_topic_from,
)
from kafkacompat.handlers.guards.refusals import Items, make_response, refuse_items, refuse_request
from kafkacompat.handlers.guards.rights import ACT_FOR_CLUSTER, DESCRIBE_TOPIC, WRITE_TOPIC, WRITE_TRANSACTION
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.topic_names import is_internal
from kafkacompat.partitions.producing import any_is_transactional
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.errors import ErrorCode

TOPIC = AclResourceType.TOPIC

_PRODUCED = Items(
    ("topic_data", "partition_data"),
    ("responses", "partition_responses"),
    {"base_offset": -1, "log_append_time_ms": -1, "log_start_offset": -1},
)
_find_produced_topic = name_topic_from(13)


def guard_produce(request: Any, access: Access, handle: Handle) -> Any:
    """Let a client write to topics, in a transaction only if that is its own."""
    refused = find_refused(request, _PRODUCED, WRITE_TOPIC, _find_produced_topic, access)
    if not refused and request.transactional_id is None:
        return handle(request)  # The handler rejects transactional batches without an id.
    batches = (data.records for topic in request.topic_data for data in topic.partition_data if data.records)
    name, check = request.transactional_id, WRITE_TRANSACTION
    if any_is_transactional(batches) and (name is None or not access.may(check.operation, check.kind, name)):
        return _close_without_acks(request, refuse_request(request, _PRODUCED, check.error))
    return _close_without_acks(request, answer_rest(request, _PRODUCED, handle, refused, WRITE_TOPIC.error))


def _close_without_acks(request: Any, answer: Any) -> Any:
    """Close the connection of a client that expects no response and was refused, as for any other error."""

    def check(response: Any) -> Any:
        if response is not None and any(
            partition.error_code for topic in response.responses for partition in topic.partition_responses
        ):
            raise UnanswerableError("a Produce with acks=0 is not allowed")
        return None

    return answer if request.acks else change_response(answer, check)


_ADDED = Items(("v3_and_below_topics", "partitions"), ("results_by_topic_v3_and_below", "results_by_partition"))


def guard_transaction_partitions(request: Any, access: Access, handle: Handle) -> Any:
    """Let a client add partitions to its transaction (AddPartitionsToTxn); from version 4 on brokers do that."""
    if access.version >= 4:
        access.require(ACT_FOR_CLUSTER)
        return handle(request)
    if not access.may(WRITE_TRANSACTION.operation, WRITE_TRANSACTION.kind, request.v3_and_below_transactional_id):
        return refuse_request(request, _ADDED, WRITE_TRANSACTION.error)
    return answer_in_order(_add_partitions(request, access, handle))


async def _add_partitions(request: Any, access: Access, handle: Handle) -> Any:
    """Add all partitions, or none if one of them is refused."""
    public = {topic.name for topic in request.v3_and_below_topics if not is_internal(topic.name)}
    allowed = await access.select_in_turns(AclOperation.WRITE, TOPIC, public)
    if len(allowed) == len(public):
        return await wait_for(handle(request))
    answers = refuse_items(request, _ADDED, request.v3_and_below_topics, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async for topic in yield_in_turns(access.services.clock, answers):
        for partition in topic.results_by_partition if topic.name in allowed else ():
            is_there = access.image.has_partition(topic.name, partition.partition_index)
            partition.partition_error_code = (
                ErrorCode.OPERATION_NOT_ATTEMPTED if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
    return make_response(request, results_by_topic_v3_and_below=answers)


_EPOCHS = Items(("topics", "partitions"), ("topics", "partitions"), {"leader_epoch": -1, "end_offset": -1})
_describe_epochs = guard_items(DESCRIBE_TOPIC, _EPOCHS, name_field("topic"))


def guard_epochs(request: Any, access: Access, handle: Handle) -> Any:
    """Let brokers, and clients that may describe a topic, ask for the end of a leader epoch (OffsetForLeaderEpoch)."""
    if access.may_on_cluster(AclOperation.CLUSTER_ACTION, is_noted=False):
        return handle(request)
    return _describe_epochs(request, access, handle)
