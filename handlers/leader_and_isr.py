"""LeaderAndIsr (key 4), v0-7: the controller lets this broker lead and follow partitions.

v2     partitions by topic; the broker's epoch
v3     replicas that a reassignment adds and removes
v4     flexible
v5     topic ids; whether the request names all partitions of the broker
v6     partitions that recover from an unclean election
v7     KRaft controllers during a migration (KIP-866), which are not supported
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse


def handle_leader_and_isr(
    request: LeaderAndIsrRequest, context: RequestContext, services: Services
) -> Pending[LeaderAndIsrResponse]:
    """Answer when the partitions have their roles; the controller's next request waits until then."""
    return Pending(services.require_cluster().apply_leader_and_isr(request), in_order=True)
