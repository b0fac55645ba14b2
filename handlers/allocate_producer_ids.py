"""AllocateProducerIds (key 67), v0: a request of a broker to the controller."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def handle_allocate_producer_ids(
    request: AllocateProducerIdsRequest, context: RequestContext, services: Services
) -> Pending[AllocateProducerIdsResponse]:
    """Let the controller answer."""
    assert services.cluster is not None
    return Pending(Deferred.fromCoroutine(services.cluster.allocate_producer_ids(request)), in_order=True)
