"""ConsumerGroupHeartbeat (key 68), v0-1: join, stay in and leave a consumer group (KIP-848).

v1     RE2 patterns; the member generates its own id (KIP-1082)
"""

from __future__ import annotations

from functools import partial

from twisted.internet.defer import Deferred

from kafkacompat.groups.consumer.group import CompilePattern, TopicFilter, compile_pattern
from kafkacompat.groups.consumer.progress import ClientIdentity
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kafkacompat.wire.entities import TOPIC

OWN_MEMBER_ID_VERSION = 1


def handle_consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext, services: Services
) -> ConsumerGroupHeartbeatResponse | Pending[ConsumerGroupHeartbeatResponse]:
    """Handle a member's heartbeat; answer when its effects are in the log."""
    # Kafka prints an address without a host name this way, and tools show it.
    client = ClientIdentity(
        context.client_id, f"/{context.peer.host}", _find_visible_topics(context, services), _find_compiler(context)
    )
    needs_member_id = context.api_version >= OWN_MEMBER_ID_VERSION
    answer = services.coordinators.groups.consumer_heartbeat(request, client, needs_member_id=needs_member_id)
    return Pending(answer) if isinstance(answer, Deferred) else answer


def _find_compiler(context: RequestContext) -> CompilePattern:
    """Return what reads the client's patterns: those of an instance's clients match its topics by the names that they know."""
    return compile_pattern if context.tenant is None else partial(context.tenant.names.compile_pattern, TOPIC)


def _find_visible_topics(context: RequestContext, services: Services) -> TopicFilter | None:
    """Return the topics that patterns of the client match: those that it may describe."""
    authorizer, host = services.authorizer, context.peer.host
    if authorizer is None:
        return None
    describe, topic = AclOperation.DESCRIBE, AclResourceType.TOPIC
    return lambda name: authorizer.decide(context.principal, host, describe, topic, name).allowed
