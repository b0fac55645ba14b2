"""DescribeUserScramCredentials (key 50), v0: the users that have a SCRAM password and its mechanisms; never the secrets."""

from __future__ import annotations

from collections import Counter

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.metadata.client_entities import USER, ClientConfig, make_user_entity
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.wire.apis.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kafkacompat.wire.errors import ErrorCode


def handle_describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: RequestContext, services: Services
) -> DescribeUserScramCredentialsResponse:
    """Describe the requested users, or all if the request names none."""
    image = services.metadata.image
    times = (
        Counter(user.name for user in request.users) if request.users else dict.fromkeys(_list_users(image, context), 1)
    )
    return DescribeUserScramCredentialsResponse(results=[_describe_user(image, user, times[user]) for user in times])


def _list_users(image: MetadataImage, context: RequestContext) -> list[str]:
    """List every user that has a credential, and belongs to the client's instance if it has one."""
    users = [dict(entity)[USER] or "" for entity, config in image.clients.items() if config.credentials]
    tenant = context.tenant
    return users if tenant is None else [user for user in users if tenant.has_user(user)]


def _describe_user(image: MetadataImage, user: str, times: int) -> DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResult(user=user)
    credentials = image.clients.get(make_user_entity(user), ClientConfig()).credentials
    if times > 1:
        result.error_code, result.error_message = ErrorCode.DUPLICATE_RESOURCE, f"'{user}' is named {times} times"
    elif not credentials:
        result.error_code, result.error_message = ErrorCode.RESOURCE_NOT_FOUND, f"'{user}' has no SCRAM credential"
    else:
        result.credential_infos = [
            CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            for mechanism, credential in sorted(credentials.items())
        ]
    return result
