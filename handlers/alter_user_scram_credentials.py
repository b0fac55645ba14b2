"""AlterUserScramCredentials (key 51), v0: set and delete the passwords of users (KIP-554).

The client sends the password salted and hashed; the broker stores keys derived from that.
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.scram_changes import ScramChange, ScramDeletion, ScramUpsertion
from kafkacompat.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kafkacompat.wire.errors import KafkaError


def handle_alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: RequestContext, services: Services
) -> Pending[AlterUserScramCredentialsResponse]:
    """Change the credentials of every user that the request names once."""
    return answer_in_order(_alter_credentials(request, services))


async def _alter_credentials(
    request: AlterUserScramCredentialsRequest, services: Services
) -> AlterUserScramCredentialsResponse:
    changes = _parse_changes(request)
    outcomes: dict[str, KafkaError | None]
    try:
        outcomes = await services.controller.alter_scram_credentials(changes)
    except KafkaError as problem:
        outcomes = {change.user: problem for change in changes}
    return AlterUserScramCredentialsResponse(
        results=[_build_result(user, problem) for user, problem in outcomes.items()]
    )


def _parse_changes(request: AlterUserScramCredentialsRequest) -> list[ScramChange]:
    upsertions = (
        ScramUpsertion(
            upsertion.name,
            upsertion.mechanism,
            upsertion.iterations,
            bytes(upsertion.salt),
            bytes(upsertion.salted_password),
        )
        for upsertion in request.upsertions
    )
    return [*(ScramDeletion(deletion.name, deletion.mechanism) for deletion in request.deletions), *upsertions]


def _build_result(user: str, problem: KafkaError | None) -> AlterUserScramCredentialsResult:
    if problem is None:
        return AlterUserScramCredentialsResult(user=user, error_message=None)
    return AlterUserScramCredentialsResult(user=user, error_code=problem.code, error_message=problem.detail)
