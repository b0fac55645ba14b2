"""LeaderAndIsr (key 4), v0-7: an order of the controller."""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse


def handle_leader_and_isr(
    request: LeaderAndIsrRequest, context: RequestContext, services: Services
) -> Pending[LeaderAndIsrResponse]:
    """Carry the order out."""
    assert services.cluster is not None
    return Pending(services.cluster.apply_leader_and_isr(request), in_order=True)
