"""UnregisterBroker (key 64), v0: remove a broker that is gone for good (KIP-631).

The only broker is this one, and it runs; so the request is always rejected.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kafkacompat.wire.errors import ErrorCode


def handle_unregister_broker(
    request: UnregisterBrokerRequest, context: RequestContext, services: Services
) -> UnregisterBrokerResponse:
    """Reject the request."""
    broker_id = request.broker_id
    if broker_id in services.metadata.image.brokers:
        reason = f"broker {broker_id} is running; only a stopped broker can be unregistered"
        return UnregisterBrokerResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=reason)
    reason = f"there is no broker {broker_id}"
    return UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=reason)
