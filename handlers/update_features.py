"""UpdateFeatures (key 57), v0-2: change the level of a feature of the whole cluster (KIP-584).

v1     the client says whether it may be a downgrade, and may only ask
v2     one error for the whole request

The levels here depend on the broker's release, and on whether an older Kafka may get its log back: a request for the level
that a feature is at is fine, any other is refused as Kafka refuses one for a level that it does not know.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from kafkacompat.wire.errors import ErrorCode


def handle_update_features(
    request: UpdateFeaturesRequest, context: RequestContext, services: Services
) -> UpdateFeaturesResponse:
    """Refuse all of it for the first that cannot be; a request that changes nothing is fine."""
    response = UpdateFeaturesResponse(error_message=None)
    for update in request.feature_updates:
        if objection := _objection(update, services):
            response.error_code = ErrorCode.INVALID_UPDATE_VERSION
            response.error_message = objection
            break
    return response


def _objection(update: FeatureUpdateKey, services: Services) -> str:
    wanted = f"{update.feature} cannot be set to {update.max_version_level}"
    level = services.features.get(update.feature)
    if level is None:
        return f"this broker has no feature of that name, so {wanted}"
    return "" if update.max_version_level == level else f"this broker works at level {level} alone, so {wanted}"
