"""FindCoordinator (key 10), v0-6: which broker coordinates a group or a transactional id.

v1     key types: 0 a group, 1 a transactional id
v3     flexible
v4     several keys of one type (KIP-699)
v5     transactions may answer TRANSACTION_ABORTABLE
v6     key type 2: share groups (KIP-932)

The first request creates a coordinator's topic and waits for it, so that the client need not retry after a pause; Kafka
returns COORDINATOR_NOT_AVAILABLE instead. Key type 2 is not served: it is an INVALID_REQUEST, like a type that Kafka
does not know, as clients report that error instead of retrying for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.endpoints import find_broker
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.wire.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)

SEVERAL_KEYS_VERSION = 4
NOT_SERVED = {2: "share groups are not served"}
NO_NODE = -1


class _CoordinatorTopic(NamedTuple):
    """The internal topic of one key type: its name, how to create it, and the partition of a key."""

    topic: str
    ensure_topic: Callable[[], Deferred[None]]
    partition_for: Callable[[str], int]


def _find_coordinator_topic(key_type: int, services: Services) -> _CoordinatorTopic | None:
    if key_type == 0:
        groups = services.coordinators.groups
        return _CoordinatorTopic(OFFSETS_TOPIC, groups.ensure_offsets_topic, groups.partition_for)
    if key_type == 1:
        transactions = services.coordinators.transactions
        return _CoordinatorTopic(TRANSACTION_TOPIC, transactions.ensure_topic, transactions.partition_for)
    return None


def handle_find_coordinator(
    request: FindCoordinatorRequest, context: RequestContext, services: Services
) -> FindCoordinatorResponse | Pending[FindCoordinatorResponse]:
    """Return the leader of the partition that each key belongs to."""
    keys = request.coordinator_keys if context.api_version >= SEVERAL_KEYS_VERSION else [request.key]
    kind = _find_coordinator_topic(request.key_type, services)
    if kind is None:
        message = NOT_SERVED.get(request.key_type, f"there is no coordinator of type {request.key_type}")
        return _build_response([_build_error(key, ErrorCode.INVALID_REQUEST, message) for key in keys], context)
    if kind.topic in services.metadata.image.topics:
        return _find_coordinators(keys, kind, context, services)
    created = kind.ensure_topic().addErrback(_log_failed_creation, kind.topic)
    return Pending(created.addCallback(lambda _: _find_coordinators(keys, kind, context, services)))


def _log_failed_creation(failure: Failure, topic: str) -> None:
    log.error("Cannot create topic %s: %s", topic, failure.value)


def _find_coordinators(
    keys: list[str], kind: _CoordinatorTopic, context: RequestContext, services: Services
) -> FindCoordinatorResponse:
    return _build_response([_find_coordinator(key, kind, context, services) for key in keys], context)


def _find_coordinator(key: str, kind: _CoordinatorTopic, context: RequestContext, services: Services) -> Coordinator:
    partition = services.metadata.image.partition(kind.topic, kind.partition_for(key))
    image = services.metadata.image.brokers.get(partition.leader) if partition is not None else None
    broker = find_broker(image, context, services) if image is not None else None
    if broker is None:
        return _build_error(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=broker.node_id, host=broker.host, port=broker.port)


def _build_error(key: str, code: ErrorCode, message: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, port=-1, error_code=code, error_message=message)


def _build_response(coordinators: list[Coordinator], context: RequestContext) -> FindCoordinatorResponse:
    if context.api_version >= SEVERAL_KEYS_VERSION:
        return FindCoordinatorResponse(coordinators=coordinators)
    only = coordinators[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or ErrorCode(only.error_code).name,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )
