"""DescribeDelegationToken (key 41), v0-3: the delegation tokens that the client may see, with their secrets (KIP-48).

v2     flexible
v3     the requester of a token (KIP-373)
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.delegation_tokens import acts_for, check_token_request
from kafkacompat.metadata.token_changes import TokenRules
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.security.tokens import TokenInfo
from kafkacompat.wire.apis.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkacompat.wire.errors import KafkaError


def handle_describe_delegation_token(
    request: DescribeDelegationTokenRequest, context: RequestContext, services: Services
) -> DescribeDelegationTokenResponse:
    """Describe the tokens of the given owners, or all, as far as the requester owns or renews them."""
    try:
        check_token_request(context, services)
        rules = TokenRules.read(services.config)
    except KafkaError as problem:
        return DescribeDelegationTokenResponse(error_code=problem.code)
    owners = (
        None if request.owners is None else {(owner.principal_type, owner.principal_name) for owner in request.owners}
    )
    return DescribeDelegationTokenResponse(
        tokens=[
            _describe_token(token, rules)
            for token in services.metadata.image.tokens.values()
            if _is_wanted(token, owners) and _is_visible(token, context, services)
        ]
    )


def _is_wanted(token: TokenInfo, owners: set[tuple[str, str]] | None) -> bool:
    """Return whether one of the named users owns or renews a token, as in Kafka."""
    return owners is None or any(principal[:2] in owners for principal in (token.owner, *token.renewers))


def _is_visible(token: TokenInfo, context: RequestContext, services: Services) -> bool:
    """Return whether a client sees a token: its owner and renewers do, and clients with a right on the token or its owner."""
    tenant = context.tenant
    if tenant is not None and not tenant.has_user(token.owner.name):
        return False
    if token.may_be_renewed_by(context.principal):
        return True
    if acts_for(context, AclOperation.DESCRIBE_TOKENS, token.owner, services):
        return True
    if services.authorizer is None:
        return False
    client = context.principal, context.peer.host
    kind, prefix = AclResourceType.DELEGATION_TOKEN, "" if tenant is None else tenant.names.prefix
    return services.authorizer.decide(*client, AclOperation.DESCRIBE, kind, f"{prefix}{token.token_id}").allowed


def _describe_token(token: TokenInfo, rules: TokenRules) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.kind,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_at_ms,
        expiry_timestamp=token.expires_at_ms,
        max_timestamp=token.ends_at_ms,
        token_id=token.token_id,
        hmac=rules.compute_hmac(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=renewer.kind, principal_name=renewer.name)
            for renewer in token.renewers
        ],
    )
