"""FindCoordinator (key 10), v0-6: which broker coordinates a group.

v1     key types: 0 a group, 1 a transactional id
v3     flexible
v4     several keys of one type (KIP-699)
v5     transactions may answer TRANSACTION_ABORTABLE
v6     key type 2: share groups (KIP-932)

The offsets topic is created when it is first asked for. The answer waits for it, so that a client's first join
does not have to come back after a pause; Kafka answers COORDINATOR_NOT_AVAILABLE instead.
Key types 1 and 2 are not served: like a type that Kafka does not know they are an INVALID_REQUEST, which clients
report instead of asking again for ever.
"""

from __future__ import annotations

import logging

from twisted.python.failure import Failure

from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.metadata.advertised import address
from kafkacompat.wire.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)

SEVERAL_KEYS_VERSION = 4
GROUP_KEY_TYPE = 0
NOT_SERVED = {1: "transactions are not served", 2: "share groups are not served"}
NO_NODE = -1


def handle_find_coordinator(
    request: FindCoordinatorRequest, context: RequestContext, services: Services
) -> FindCoordinatorResponse | Pending[FindCoordinatorResponse]:
    """Name the leader of the offsets partition that each group belongs to."""
    keys = request.coordinator_keys if context.api_version >= SEVERAL_KEYS_VERSION else [request.key]
    if request.key_type != GROUP_KEY_TYPE:
        message = NOT_SERVED.get(request.key_type, f"there is no coordinator of type {request.key_type}")
        return _response([_nobody(key, ErrorCode.INVALID_REQUEST, message) for key in keys], context)
    if OFFSETS_TOPIC in services.metadata.image.topics:
        return _find(keys, context, services)
    created = services.group_coordinator.ensure_offsets_topic().addErrback(_not_created)
    return Pending(created.addCallback(lambda _: _find(keys, context, services)))


def _not_created(failure: Failure) -> None:
    log.error("the topic %s cannot be created: %s", OFFSETS_TOPIC, failure.getErrorMessage())


def _find(keys: list[str], context: RequestContext, services: Services) -> FindCoordinatorResponse:
    return _response([_coordinator(key, context, services) for key in keys], context)


def _coordinator(key: str, context: RequestContext, services: Services) -> Coordinator:
    topic = services.metadata.image.topics.get(OFFSETS_TOPIC)
    if topic is None:
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leader = topic.partitions[services.group_coordinator.partition_for(key)].leader
    broker = services.metadata.image.brokers.get(leader)
    if broker is None:
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    host, port = address(broker, context.peer)
    return Coordinator(key=key, node_id=leader, host=host, port=port)


def _nobody(key: str, code: ErrorCode, message: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, port=-1, error_code=code, error_message=message)


def _response(found: list[Coordinator], context: RequestContext) -> FindCoordinatorResponse:
    if context.api_version >= SEVERAL_KEYS_VERSION:
        return FindCoordinatorResponse(coordinators=found)
    only = found[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or ErrorCode(only.error_code).name,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )
