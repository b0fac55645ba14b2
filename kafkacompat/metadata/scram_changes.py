"""Changes of SCRAM credentials, by the rules of Kafka's controller, on a draft."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafkacompat.metadata.client_entities import ClientConfig, make_user_entity
from kafkacompat.metadata.draft import MetadataDraft, check_change_count
from kafkacompat.security.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    derive_credential,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError


class ScramDeletion(NamedTuple):
    """The deletion of a user's credential; ``mechanism`` is a number of ScramMechanism."""

    user: str
    mechanism: int


class ScramUpsertion(NamedTuple):
    """The creation or replacement of a user's credential; ``mechanism`` is a number of ScramMechanism."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion(user={self.user!r}, mechanism={self.mechanism}, the rest is secret)"


ScramChange = ScramDeletion | ScramUpsertion


def alter_scram_credentials(draft: MetadataDraft, changes: Sequence[ScramChange]) -> dict[str, KafkaError | None]:
    """Change the credentials of each user; returns None or the error for each.

    The error is that of a user's first change, if it is invalid: UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM or
    RESOURCE_NOT_FOUND. A user with several changes gets DUPLICATE_RESOURCE otherwise. Raises KafkaError POLICY_VIOLATION for
    too many changes.
    """
    check_change_count(len(changes))
    outcomes: dict[str, KafkaError | None] = {}
    times = Counter(change.user for change in changes)
    for change in changes:
        if change.user not in outcomes:
            outcomes[change.user] = _alter_credential(draft, change, times[change.user])
    return outcomes


def _alter_credential(draft: MetadataDraft, change: ScramChange, times: int) -> KafkaError | None:
    try:
        _check_change(draft, change)
        if times > 1:
            reason = f"the credentials of '{change.user}' are altered {times} times in one request"
            raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, reason)
        _apply_change(draft, change)
    except KafkaError as problem:
        return problem.with_traceback(None)
    return None


def _check_change(draft: MetadataDraft, change: ScramChange) -> None:
    if not change.user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the name of a user is empty")
    if change.mechanism not in set(ScramMechanism):
        known = ", ".join(f"{mechanism.value} ({mechanism.sasl_name})" for mechanism in ScramMechanism)
        reason = f"{change.mechanism} is not one of the SCRAM mechanisms {known}"
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, reason)
    if isinstance(change, ScramUpsertion):
        _check_secret(change)
    elif change.mechanism not in _find_credentials(draft, change.user):
        name = ScramMechanism(change.mechanism).sasl_name
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"'{change.user}' has no credential of {name}")


def _check_secret(change: ScramUpsertion) -> None:
    if not MIN_ITERATIONS <= change.iterations <= MAX_ITERATIONS:
        reason = f"iterations must be {MIN_ITERATIONS} to {MAX_ITERATIONS}, not {change.iterations}"
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, reason)
    if not change.salted_password:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"the salted password of '{change.user}' is empty")


def _find_credentials(draft: MetadataDraft, user: str) -> Mapping[ScramMechanism, ScramCredential]:
    return draft.clients.get(make_user_entity(user), ClientConfig()).credentials


def _apply_change(draft: MetadataDraft, change: ScramChange) -> None:
    mechanism = ScramMechanism(change.mechanism)
    entity = make_user_entity(change.user)
    config = draft.clients.get(entity, ClientConfig())
    credentials = dict(config.credentials)
    if isinstance(change, ScramUpsertion):
        credentials[mechanism] = derive_credential(mechanism, change.salt, change.salted_password, change.iterations)
    else:
        del credentials[mechanism]
    draft.put_client(entity, config._replace(credentials=credentials))
