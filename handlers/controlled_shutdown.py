"""ControlledShutdown (key 7), v0-3: a request of a broker to the controller."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse


def handle_controlled_shutdown(
    request: ControlledShutdownRequest, context: RequestContext, services: Services
) -> Pending[ControlledShutdownResponse]:
    """Let the controller answer."""
    assert services.cluster is not None
    return Pending(Deferred.fromCoroutine(services.cluster.shut_down_broker(request)), in_order=True)
