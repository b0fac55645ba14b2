"""ApiVersions (key 18), v0-4: the served APIs and their versions.

v3     flexible body, but always response header v0; the client names itself and its version; features
v4     features whose minimum is 0 may be listed

A request in an unknown version is answered in the layout of v0, with error 35 and this API's own range, so that the
client can ask again (KIP-511); such a request arrives here without a body. Brokers before 2.4 name no range. Brokers of 0.9
do not know ApiVersions and never answer.
"""

from __future__ import annotations

import re

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.metadata.features import SUPPORTED_LEVELS
from kafkacompat.wire.apis.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.headers import API_VERSIONS_KEY

CLIENT_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
CLIENT_NAME_VERSION = 3
MAX_CHARACTERS = 200
"""Characters of a name that are kept for each connection."""
LEVEL_0_VERSION = 4
OWN_RANGE_RELEASE = "2.4"


def handle_api_versions(
    request: ApiVersionsRequest | None, context: RequestContext, services: Services
) -> ApiVersionsResponse | None:
    """List the served APIs and the supported features."""
    if request is None:
        return _answer_unknown_version(services)
    if context.api_version >= CLIENT_NAME_VERSION and not _is_valid(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if context.api_version >= CLIENT_NAME_VERSION and context.software is not None:
        context.software.name = request.client_software_name[:MAX_CHARACTERS]
        context.software.version = request.client_software_version[:MAX_CHARACTERS]
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last)
            for key, versions in sorted(services.served.items())
        ],
        supported_features=_list_features(context.api_version, services),
        finalized_features_epoch=services.metadata.image.version if services.features else -1,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in services.features.items()
            if level
        ],
    )


def _list_features(version: int, services: Services) -> list[SupportedFeatureKey]:
    """List features, without those whose minimum is 0 for clients that cannot parse them (KAFKA-17492)."""
    return [
        SupportedFeatureKey(
            name=name, min_version=SUPPORTED_LEVELS[name].first, max_version=SUPPORTED_LEVELS[name].last
        )
        for name in services.features
        if SUPPORTED_LEVELS[name].first or version >= LEVEL_0_VERSION
    ]


def _answer_unknown_version(services: Services) -> ApiVersionsResponse | None:
    if API_VERSIONS_KEY not in services.served:
        return None
    versions = services.served[API_VERSIONS_KEY]
    own = ApiVersion(api_key=API_VERSIONS_KEY, min_version=versions.first, max_version=versions.last)
    tells = services.emulated is None or services.emulated.is_since(OWN_RANGE_RELEASE)
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own] if tells else [])


def _is_valid(request: ApiVersionsRequest) -> bool:
    return all(CLIENT_NAME.fullmatch(text) for text in (request.client_software_name, request.client_software_version))
