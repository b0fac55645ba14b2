"""JoinGroup (key 11), v0-9: become a member of the next generation.

v1     a separate rebalance timeout (KIP-62); before, the session timeout counts
v4     a new dynamic member first receives an id with MEMBER_ID_REQUIRED, then joins with it (KIP-394)
v5     static members (KIP-345)
v6     flexible
v7     the response has the protocol type, and the protocol name may be null
v8     a reason, for the log
v9     a returning static leader is asked to skip the assignment (KIP-814)
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.groups.classic_protocol import Joiner
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse

REBALANCE_TIMEOUT_VERSION = 1
MEMBER_ID_REQUIRED_VERSION = 4
NULL_PROTOCOL_NAME_VERSION = 7
SKIP_ASSIGNMENT_VERSION = 9


def handle_join_group(
    request: JoinGroupRequest, context: RequestContext, services: Services
) -> JoinGroupResponse | Pending[JoinGroupResponse]:
    """Join the group; answer when the generation begins."""
    version = context.api_version
    if version < REBALANCE_TIMEOUT_VERSION:
        request.rebalance_timeout_ms = request.session_timeout_ms
    joiner = Joiner(
        client_id=context.client_id,
        # Kafka prints an address without a host name this way, and tools show it.
        client_host=f"/{context.peer.host}",
        requires_member_id=version >= MEMBER_ID_REQUIRED_VERSION,
        can_skip_assignment=version >= SKIP_ASSIGNMENT_VERSION,
    )
    answer = services.coordinators.groups.join(request, joiner)
    if isinstance(answer, Deferred):
        return Pending(answer.addCallback(_adapt_to_version, version))
    return _adapt_to_version(answer, version)


def _adapt_to_version(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    nothing = None if version >= NULL_PROTOCOL_NAME_VERSION else ""
    response.protocol_name = response.protocol_name or nothing
    return response
