"""Guards of requests about groups and transactions that need more than one right, or whose answers are filtered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from itertools import chain
from typing import Any

from kafkacompat.handlers.guards.access import Access, Guard, Handle, change_response, in_turns, wait_for
from kafkacompat.handlers.guards.items import (
    NameOf,
    answer_rest,
    find_refused,
    guard_items,
    leave_out,
    name_field,
    name_itself,
    name_topic_from,
)
from kafkacompat.handlers.guards.refusals import (
    Items,
    find_struct,
    make_response,
    refuse_parts,
    refuse_request,
    refuse_whole,
)
from kafkacompat.handlers.guards.rights import (
    ACT_FOR_CLUSTER,
    DELETE_GROUP,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTION,
    READ_GROUP,
    READ_TOPIC,
    AccessCheck,
)
from kafkacompat.handlers.guards.whole import guard_cluster
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.errors import ErrorCode

FEW = 250
"""Names that are asked about in one turn."""
GROUP, TOPIC = AclResourceType.GROUP, AclResourceType.TOPIC


def guard_commit(rights: Iterable[tuple[AccessCheck, str]], items: Items, find_name: NameOf) -> Guard:
    """Let a client commit offsets of topics that it may read, if it has each right on a resource that a field names."""
    commit_topics = guard_items(READ_TOPIC, items, find_name)

    def guard(request: Any, access: Access, handle: Handle) -> Any:
        for check, field in rights:
            if not access.may(check.operation, check.kind, getattr(request, field)):
                return refuse_request(request, items, check.error)
        return commit_topics(request, access, handle)

    return guard


_FETCHED = Items(("topics", "partition_indexes"), ("topics", "partitions"), {"committed_offset": -1, "metadata": ""})
_find_offset_topic = name_topic_from(10)


def guard_fetched_offsets(request: Any, access: Access, handle: Handle) -> Any:
    """Show the offsets of groups and topics that a client may describe (OffsetFetch)."""
    if access.version >= 8:
        return answer_in_order(_fetch_of_groups(request, access, handle))
    if not access.may(DESCRIBE_GROUP.operation, GROUP, request.group_id):
        if access.version >= 2:
            return refuse_whole(request, DESCRIBE_GROUP.error)
        return refuse_request(request, _FETCHED, DESCRIBE_GROUP.error)
    if request.topics is None:
        return answer_in_order(_fetch_of_all_topics(request, access, handle))
    refused = find_refused(request, _FETCHED, DESCRIBE_TOPIC, name_field("name"), access)
    return answer_rest(request, _FETCHED, handle, refused, DESCRIBE_TOPIC.error)


async def _fetch_of_all_topics(request: Any, access: Access, handle: Handle) -> Any:
    return await _hide_topics(await wait_for(handle(request)), access)


async def _hide_topics(owner: Any, access: Access) -> Any:
    named = [(topic, _find_offset_topic(topic, access)) for topic in owner.topics]
    names = (name for _, name in named if name is not None)
    allowed = await access.select_in_turns(AclOperation.DESCRIBE, TOPIC, names)
    owner.topics = [topic for topic, name in named if name in allowed]
    return owner


async def _fetch_of_groups(request: Any, access: Access, handle: Handle) -> Any:
    allowed = access.select(AclOperation.DESCRIBE, GROUP, (group.group_id for group in request.groups))
    make_group = find_struct(request, "groups")
    refusals = [
        make_group(group_id=group_id, error_code=DESCRIBE_GROUP.error)
        for group_id in dict.fromkeys(group.group_id for group in request.groups)
        if group_id not in allowed
    ]
    refused_topics: dict[str, list[Any]] = {}
    of_all_topics: set[str] = set()
    kept = []
    for group in request.groups:
        if group.group_id in allowed:
            refused = find_refused(group, _FETCHED, DESCRIBE_TOPIC, _find_offset_topic, access)
            refused_topics[group.group_id] = refuse_parts(make_group, _FETCHED, refused, DESCRIBE_TOPIC.error)
            (of_all_topics.discard if group.topics is not None else of_all_topics.add)(group.group_id)
            kept.append(leave_out(group, "topics", refused) if refused else group)
    rest = copy(request)
    rest.groups = kept

    response = await wait_for(handle(rest)) if kept else make_response(request)
    for group in response.groups:
        if group.group_id in of_all_topics:
            await _hide_topics(group, access)
        if not group.error_code:
            group.topics = [*group.topics, *refused_topics[group.group_id]]
    response.groups = [*response.groups, *refusals]
    return response


_COORDINATED = Items(("coordinator_keys",), ("coordinators",), {"node_id": -1, "host": "", "port": -1})
_COORDINATOR_CHECKS = {0: DESCRIBE_GROUP, 1: DESCRIBE_TRANSACTION}
_SHARE_GROUPS_VERSION = 6
_guard_share_coordinators = guard_cluster(ACT_FOR_CLUSTER, _COORDINATED)


def guard_coordinators(request: Any, access: Access, handle: Handle) -> Any:
    """Name the coordinators of groups and transactions that a client may describe (FindCoordinator).

    Those of share groups are for brokers; before version 6 the handler rejects their type.
    """
    check = _COORDINATOR_CHECKS.get(request.key_type)
    if check is None:
        if access.version < _SHARE_GROUPS_VERSION:
            return handle(request)
        return _guard_share_coordinators(request, access, handle)
    if access.version < 4:
        if access.may(check.operation, check.kind, request.key):
            return handle(request)
        return refuse_whole(request, check.error, node_id=-1, port=-1)
    return guard_items(check, _COORDINATED, name_itself)(request, access, handle)


_DESCRIBED = Items(("groups",), ("groups",))


def guard_described_groups(request: Any, access: Access, handle: Handle) -> Any:
    """Describe the groups that a client may describe, and what it may do with them (DescribeGroups)."""

    def fill(response: Any) -> Any:
        for group in response.groups if request.include_authorized_operations else ():
            if not group.error_code:
                group.authorized_operations = access.list_operations(GROUP, group.group_id)
        return response

    return change_response(guard_items(DESCRIBE_GROUP, _DESCRIBED, name_itself)(request, access, handle), fill)


_CONSUMER_GROUPS = Items(("group_ids",), ("groups",))


_describe_consumer_groups = guard_items(DESCRIBE_GROUP, _CONSUMER_GROUPS, name_itself)


@in_turns
async def guard_consumer_groups(request: Any, access: Access, handle: Handle) -> Any:
    """Describe the groups that a client may describe, if it may describe all topics of their members too."""
    response = await wait_for(_describe_consumer_groups(request, access, handle))
    assigned = await _list_assigned(response.groups, access)
    allowed = await access.select_in_turns(AclOperation.DESCRIBE, TOPIC, chain.from_iterable(assigned))
    for index, (group, names) in enumerate(zip(response.groups, assigned, strict=True)):
        if not allowed.issuperset(names):
            response.groups[index] = type(group)(
                group_id=group.group_id,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                error_message="The group has described topic(s) that the client is not authorized to describe.",
            )
        elif request.include_authorized_operations and not group.error_code:
            group.authorized_operations = access.list_operations(GROUP, group.group_id)
    return response


async def _list_assigned(groups: Sequence[Any], access: Access) -> list[set[str]]:
    """Return for each group the topics that its members have, or are to have."""
    assigned = [set[str]() for _ in groups]
    members = ((names, member) for names, group in zip(assigned, groups, strict=True) for member in group.members)
    async for names, member in yield_in_turns(access.services.clock, members):
        for assignment in (member.assignment, member.target_assignment):
            names.update(topic.topic_name for topic in assignment.topic_partitions)
    return assigned


def guard_heartbeat(request: Any, access: Access, handle: Handle) -> Any:
    """Let a client be a member of a group, and subscribe to topics that it may describe (ConsumerGroupHeartbeat)."""
    if not access.may(READ_GROUP.operation, GROUP, request.group_id):
        return refuse_whole(request, READ_GROUP.error)
    if request.subscribed_topic_names and len(request.subscribed_topic_names) > FEW:
        return answer_in_order(_subscribe_to_many(request, access, handle))
    names = set(request.subscribed_topic_names or ())
    if len(access.select(AclOperation.DESCRIBE, TOPIC, names)) < len(names):
        return refuse_whole(request, DESCRIBE_TOPIC.error)
    return handle(request)


async def _subscribe_to_many(request: Any, access: Access, handle: Handle) -> Any:
    names = set(request.subscribed_topic_names)
    if len(await access.select_in_turns(AclOperation.DESCRIBE, TOPIC, names)) < len(names):
        return refuse_whole(request, DESCRIBE_TOPIC.error)
    return await wait_for(handle(request))


@in_turns
async def guard_group_list(request: Any, access: Access, handle: Handle) -> Any:
    """List the groups that a client may describe; all of them if it may describe the cluster (ListGroups)."""
    response = await wait_for(handle(request))
    if not access.may_on_cluster(AclOperation.DESCRIBE, is_noted=False):
        names = (group.group_id for group in response.groups)
        allowed = await access.select_in_turns(AclOperation.DESCRIBE, GROUP, names, is_noted=False)
        response.groups = [group for group in response.groups if group.group_id in allowed]
    return response


_DELETED = Items(("topics", "partitions"), ("topics", "partitions"))
_delete_of_topics = guard_items(READ_TOPIC, _DELETED, name_field("name"))


def guard_offset_deletion(request: Any, access: Access, handle: Handle) -> Any:
    """Let a client delete a group's offsets of topics that it may read (OffsetDelete)."""
    if not access.may(DELETE_GROUP.operation, GROUP, request.group_id):
        return refuse_whole(request, DELETE_GROUP.error)
    return _delete_of_topics(request, access, handle)


_TRANSACTIONS = Items(("transactional_ids",), ("transaction_states",))


_describe_transactions = guard_items(DESCRIBE_TRANSACTION, _TRANSACTIONS, name_itself)


@in_turns
async def guard_described_transactions(request: Any, access: Access, handle: Handle) -> Any:
    """Describe the transactions that a client may describe, with the topics that it may describe."""
    response = await wait_for(_describe_transactions(request, access, handle))
    for state in response.transaction_states:
        names = (topic.topic for topic in state.topics)
        allowed = await access.select_in_turns(AclOperation.DESCRIBE, TOPIC, names)
        state.topics = [topic for topic in state.topics if topic.topic in allowed]
    return response


@in_turns
async def guard_transaction_list(request: Any, access: Access, handle: Handle) -> Any:
    """List the transactional ids that a client may describe (ListTransactions)."""
    response = await wait_for(handle(request))
    names = (state.transactional_id for state in response.transaction_states)
    allowed = await access.select_in_turns(DESCRIBE_TRANSACTION.operation, DESCRIBE_TRANSACTION.kind, names)
    response.transaction_states = [state for state in response.transaction_states if state.transactional_id in allowed]
    return response
