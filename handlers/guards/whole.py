"""Guards of requests that are allowed or refused as a whole."""

from __future__ import annotations

from typing import Any

from kafkacompat.handlers.controller_apis import CONTROLLER_APIS, build_refusal
from kafkacompat.handlers.guards.access import Access, Guard, Handle
from kafkacompat.handlers.guards.refusals import (
    MESSAGES,
    Items,
    make_response,
    refuse_items,
    refuse_request,
    refuse_whole,
)
from kafkacompat.handlers.guards.rights import (
    ALTER_CLUSTER,
    CREATE_TOKENS,
    WRITE_IDEMPOTENTLY,
    WRITE_TRANSACTION,
    AccessCheck,
)
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.wire.errors import KafkaError


def guard_named(*rights: tuple[AccessCheck, str]) -> Guard:
    """Refuse a request unless the client has each right, on the resource that a field of the request names."""

    def guard(request: Any, access: Access, handle: Handle) -> Any:
        for check, field in rights:
            if not access.may(check.operation, check.kind, getattr(request, field)):
                return refuse_whole(request, check.error)
        return handle(request)

    return guard


def guard_cluster(check: AccessCheck, items: Items | None = None) -> Guard:
    """Refuse a request unless the client has a right on the cluster.

    With *items* the response has no error of its own, and each of its items has the error.
    """

    def guard(request: Any, access: Access, handle: Handle) -> Any:
        if access.may_on_cluster(check.operation):
            return handle(request)
        if items is not None:
            return refuse_request(request, items, check.error)
        if request.API_KEY in CONTROLLER_APIS:
            return build_refusal(request, KafkaError(check.error, MESSAGES[check.error]))
        return refuse_whole(request, check.error)

    return guard


_MOVED = Items(("topics", "partitions"), ("results", "partitions"))


def guard_moves(request: Any, access: Access, handle: Handle) -> Any:
    """Let a client that may alter the cluster move replicas between log directories (AlterReplicaLogDirs)."""
    if access.may_on_cluster(AclOperation.ALTER):
        return handle(request)
    topics = [topic for directory in request.dirs for topic in directory.topics]
    return make_response(request, results=refuse_items(request, _MOVED, topics, ALTER_CLUSTER.error))


_MARKERS = Items(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions"))


def guard_markers(request: Any, access: Access, handle: Handle) -> Any:
    """Let administrators and brokers write the markers that end transactions (WriteTxnMarkers)."""
    if access.may_on_cluster(AclOperation.ALTER, is_noted=False) or access.may_on_cluster(AclOperation.CLUSTER_ACTION):
        return handle(request)
    return refuse_request(request, _MARKERS, ALTER_CLUSTER.error)


def guard_new_producer(request: Any, access: Access, handle: Handle) -> Any:
    """Let a client become a producer (InitProducerId): a transactional one by its id, else by any topic it may write to."""
    name = request.transactional_id
    if name is not None:
        check = WRITE_TRANSACTION
        is_allowed = access.may(check.operation, check.kind, name)
    else:
        check = WRITE_IDEMPOTENTLY
        is_allowed = access.may_on_cluster(check.operation, is_noted=False) or access.may_on_any(
            AclOperation.WRITE, AclResourceType.TOPIC
        )
    return handle(request) if is_allowed else refuse_whole(request, check.error, producer_id=-1, producer_epoch=-1)


def guard_new_token(request: Any, access: Access, handle: Handle) -> Any:
    """Let a client create a delegation token for another user (CreateDelegationToken, KIP-373)."""
    check = CREATE_TOKENS
    own = access.context.principal
    if own.by_token or access.services.is_anonymous(own):
        return handle(request)  # which refuses every request of such a client
    owner = (request.owner_principal_type or own.kind, request.owner_principal_name or own.name)
    if owner == own[:2] or access.may(check.operation, check.kind, ":".join(owner)):
        return handle(request)
    return refuse_whole(
        request,
        check.error,
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=own.kind,
        token_requester_principal_name=own.name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
