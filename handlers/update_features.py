"""UpdateFeatures (key 57), v0-2: change the level of a feature of the whole cluster (KIP-584).

v1     the client says whether it may be a downgrade, and may only ask
v2     one error for the whole request

There is no feature with levels here: what the broker does depends on its version alone. ApiVersions names none,
and a request for any is refused as Kafka refuses one for a feature that it does not know.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kafkacompat.wire.errors import ErrorCode


def handle_update_features(
    request: UpdateFeaturesRequest, context: RequestContext, services: Services
) -> UpdateFeaturesResponse:
    """Refuse all of it; a request that changes nothing is fine."""
    response = UpdateFeaturesResponse(error_message=None)
    for update in request.feature_updates[:1]:
        response.error_code = ErrorCode.INVALID_UPDATE_VERSION
        response.error_message = (
            f"this broker has no features with levels, so {update.feature} cannot be set to {update.max_version_level}"
        )
    return response
