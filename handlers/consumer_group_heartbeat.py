"""ConsumerGroupHeartbeat (key 68), v0-1: join, stay in and leave a consumer group (KIP-848).

v1     patterns of RE2; the member brings an id of its own (KIP-1082)
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.groups.consumer.progress import Client
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

OWN_MEMBER_ID_VERSION = 1


def handle_consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext, services: Services
) -> ConsumerGroupHeartbeatResponse | Pending[ConsumerGroupHeartbeatResponse]:
    """Answer a member; the answer comes when what it tells is in the log."""
    # As Kafka prints an address without a host name; tools show it.
    client = Client(context.client_id, f"/{context.peer.host}")
    needs_member_id = context.api_version >= OWN_MEMBER_ID_VERSION
    answer = services.coordinators.groups.consumer_heartbeat(request, client, needs_member_id=needs_member_id)
    return Pending(answer) if isinstance(answer, Deferred) else answer
