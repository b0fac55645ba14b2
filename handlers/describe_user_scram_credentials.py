"""DescribeUserScramCredentials (key 50), v0: the users that have a SCRAM password and its mechanisms; never the secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.client_entities import USER, ClientConfig, make_user_entity
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.apis.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kafkacompat.wire.errors import ErrorCode


def handle_describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: RequestContext, services: Services
) -> Pending[DescribeUserScramCredentialsResponse]:
    """Describe the requested users, or all if the request names none."""
    return answer_in_order(_describe_users(request, context, services))


async def _describe_users(
    request: DescribeUserScramCredentialsRequest, context: RequestContext, services: Services
) -> DescribeUserScramCredentialsResponse:
    image = services.metadata.image
    times: Mapping[str, int] = Counter(user.name for user in request.users or ())
    if not times:
        times = {
            user: 1 async for user in yield_in_turns(services.clock, _list_users(image, context)) if user is not None
        }
    return DescribeUserScramCredentialsResponse(results=[_describe_user(image, user, times[user]) for user in times])


def _list_users(image: MetadataImage, context: RequestContext) -> Iterator[str | None]:
    """Yield every user that has a credential, and belongs to the client's instance if it has one; None for others."""
    tenant = context.tenant
    for entity, config in image.clients.items():
        user = (dict(entity)[USER] or "") if config.credentials else None
        yield user if user is None or tenant is None or tenant.has_user(user) else None


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
