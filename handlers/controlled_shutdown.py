"""ControlledShutdown (key 7), v0-3: a broker that stops asks the controller to move its leaderships.

v1     the request's header has a client id
v2     the broker's epoch
v3     flexible
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse


def handle_controlled_shutdown(
    request: ControlledShutdownRequest, context: RequestContext, services: Services
) -> Pending[ControlledShutdownResponse]:
    """Answer with the partitions that the broker still leads."""
    return Pending(Deferred.fromCoroutine(services.require_cluster().answers.shut_down_broker(request)))
