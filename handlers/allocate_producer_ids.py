"""AllocateProducerIds (key 67), v0: a broker requests a block of producer ids from the controller (KIP-730)."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def handle_allocate_producer_ids(
    request: AllocateProducerIdsRequest, context: RequestContext, services: Services
) -> Pending[AllocateProducerIdsResponse]:
    """Answer with a block that no other broker has."""
    return Pending(Deferred.fromCoroutine(services.require_cluster().answers.allocate_producer_ids(request)))
