"""Changes of the quotas of users, client ids and addresses, by the rules of Kafka's controller, on a draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from kafkacompat.metadata.client_entities import CLIENT_ID, IP, USER, ClientConfig, Entity
from kafkacompat.metadata.draft import MetadataDraft, check_change_count
from kafkacompat.wire.errors import ErrorCode, KafkaError

_INT32_MAX = float(2**31 - 1)
_INT64_MAX = float(2**63 - 1)
_MAX_FRACTION = 1e-6
"""Largest distance of a value from a whole number where the quota takes whole numbers."""

# The largest value of a quota that takes whole numbers; None for a quota that takes any number.
_CLIENT_QUOTAS: Mapping[str, float | None] = {
    "producer_byte_rate": _INT64_MAX,
    "consumer_byte_rate": _INT64_MAX,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_IP_QUOTAS: Mapping[str, float | None] = {"connection_creation_rate": _INT32_MAX}


class QuotaAlteration(NamedTuple):
    """Changes for one entity: pairs of a quota's name and its new value; None removes the quota."""

    entity: Entity
    operations: Sequence[tuple[str, float | None]]


def alter_client_quotas(
    draft: MetadataDraft, alterations: Sequence[QuotaAlteration]
) -> dict[Entity, KafkaError | None]:
    """Change the quotas of each entity; returns None or the error (INVALID_REQUEST) for each.

    Raises KafkaError POLICY_VIOLATION for too many changes.
    """
    check_change_count(sum(len(alteration.operations) for alteration in alterations))
    outcomes: dict[Entity, KafkaError | None] = {}
    for alteration in alterations:
        try:
            if alteration.entity in outcomes:
                raise _invalid_request(
                    f"{_describe_entity(alteration.entity)} is altered twice: the second alteration is left out"
                )
            _alter_quotas(draft, alteration)
            outcomes[alteration.entity] = None
        except KafkaError as problem:
            outcomes[alteration.entity] = problem.with_traceback(None)
    return outcomes


def _alter_quotas(draft: MetadataDraft, alteration: QuotaAlteration) -> None:
    entity, operations = alteration
    allowed = _find_allowed_quotas(entity)
    names = [name for name, _ in operations]
    if len(set(names)) < len(names):
        raise _invalid_request(f"a quota of {_describe_entity(entity)} is named twice")
    config = draft.clients.get(entity, ClientConfig())
    quotas = dict(config.quotas)
    for name, value in operations:
        if value is None:
            quotas.pop(name, None)
        else:
            _check_value(allowed, name, value)
            quotas[name] = value
    draft.put_client(entity, config._replace(quotas=quotas))


def _find_allowed_quotas(entity: Entity) -> Mapping[str, float | None]:
    """Return the quotas that an entity may have, with their largest values."""
    names = dict(entity)
    if not names:
        raise _invalid_request("a quota needs a user, a client id or an ip")
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid_request(f"'{kind}' is not one of {USER}, {CLIENT_ID} and {IP}")
        if name == "":
            raise _invalid_request(f"the name of a {kind} is empty")
    if IP not in names:
        return _CLIENT_QUOTAS
    if len(names) > 1:
        raise _invalid_request(f"an {IP} cannot be combined with a {USER} or a {CLIENT_ID}")
    _check_address(names[IP])
    return _IP_QUOTAS


def _check_address(address: str | None) -> None:
    try:
        if address is not None:
            ip_address(address)
    except ValueError:
        raise _invalid_request(f"'{address}' is not an IP address") from None


def _check_value(allowed: Mapping[str, float | None], name: str, value: float) -> None:
    if name not in allowed:
        raise _invalid_request(f"'{name}' is not one of {', '.join(allowed)}")
    if not value > 0:
        raise _invalid_request(f"{name} must be more than 0, not {value}")
    largest = allowed[name]
    if largest is None:
        return
    if value > largest:
        raise _invalid_request(f"{name} must be at most {largest:.0f}, not {value}")
    if value % 1 > _MAX_FRACTION:
        raise _invalid_request(f"{name} must be a whole number, not {value}")


def _describe_entity(entity: Entity) -> str:
    return " and ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in entity)


def _invalid_request(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
