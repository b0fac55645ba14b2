"""UpdateFeatures (key 57), v0-2: change the level of a feature of the whole cluster (KIP-584).

v1     the client says whether a downgrade is allowed, and may only validate
v2     one error for the whole request

The levels are fixed by the broker's release, and by the option to give the log back to an older Kafka. A request for the
current level succeeds; any other is rejected as Kafka rejects an unknown level.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from kafkacompat.wire.errors import ErrorCode


def handle_update_features(
    request: UpdateFeaturesRequest, context: RequestContext, services: Services
) -> UpdateFeaturesResponse:
    """Reject the whole request for its first invalid change; a request that changes nothing succeeds."""
    response = UpdateFeaturesResponse(error_message=None)
    for update in request.feature_updates:
        if objection := _explain_refusal(update, services):
            response.error_code = ErrorCode.INVALID_UPDATE_VERSION
            response.error_message = objection
            break
    return response


def _explain_refusal(update: FeatureUpdateKey, services: Services) -> str:
    wanted = f"{update.feature} cannot be set to {update.max_version_level}"
    level = services.features.get(update.feature)
    if level is None:
        return f"this broker has no feature of that name, so {wanted}"
    return "" if update.max_version_level == level else f"this broker works at level {level} alone, so {wanted}"
