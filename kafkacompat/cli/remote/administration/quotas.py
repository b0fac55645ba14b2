"""Quotas of users, client ids and addresses: described and altered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from kafkacompat.cli.remote.errors import RemoteError, explain_refusal, suggest_name
from kafkacompat.cli.remote.outcomes import Outcome, write_outcomes
from kafkacompat.wire.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kafkacompat.wire.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output

EXACT, DEFAULT = 0, 1
Entity = Mapping[str, "str | None"]
"""Names by entity type; None for the default of a type."""


def parse_quotas(changes: Mapping[str, str | None]) -> dict[str, float | None]:
    """Return numbers, None for quotas to remove; raises click.UsageError."""
    quotas: dict[str, float | None] = {}
    for name, text in changes.items():
        try:
            quotas[name] = None if text is None else float(text)
        except ValueError:
            raise click.UsageError(f"{name}={text} is not valid: it takes a number") from None
    return quotas


def describe_quotas(cluster: RemoteCluster, output: Output, entity: Entity) -> None:
    """Write the quotas of all entities that *entity* is a part of; raises RemoteError."""
    entries = _read_quotas(cluster, entity)
    if output.as_json:
        output.write_json([{"entity": names, "quotas": values} for names, values in entries])
        return
    rows = [
        {"entity": _name_entity(names), "quota": quota, "value": f"{value:.15g}"}
        for names, values in entries
        for quota, value in values.items()
    ]
    output.write_rows(rows, "There are no such quotas")


def _read_quotas(
    cluster: RemoteCluster, entity: Entity, *, is_exact: bool = False
) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    """Return the entities that *entity* is a part of, or it alone, each with its quotas; raises RemoteError."""
    components = [
        ComponentData(entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name)
        for kind, name in entity.items()
    ]
    request = DescribeClientQuotasRequest(components=components, strict=is_exact)
    response = cluster.request(request, DescribeClientQuotasResponse)
    if response.error_code:
        reason = explain_refusal(response.error_code, response.error_message)
        raise RemoteError(f"the quotas are not shown: {reason}")
    entries = [
        (
            dict(sorted(((part.entity_type, part.entity_name) for part in entry.entity), reverse=True)),
            {value.key: value.value for value in sorted(entry.values, key=lambda value: value.key)},
        )
        for entry in response.entries or ()
    ]
    return sorted(entries, key=lambda entry: _name_entity(entry[0]))


def _name_entity(entity: Entity) -> str:
    """Return a name such as `user alice, client-id default`."""
    order = sorted(entity, reverse=True)
    return ", ".join(f"{kind} {'default' if entity[kind] is None else entity[kind]}" for kind in order)


def alter_quotas(cluster: RemoteCluster, output: Output, entity: Entity, quotas: Mapping[str, float | None]) -> int:
    """Set quotas of one entity, and remove those with None; returns the exit code."""
    removed = [name for name, value in quotas.items() if value is None]
    if removed and (problem := _find_missing_quota(cluster, entity, removed)) is not None:
        return write_outcomes(output, "entity", "altered", [Outcome(_name_entity(entity), problem)])
    operations = [OpData(key=name, value=value or 0.0, remove=value is None) for name, value in quotas.items()]
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=parts, ops=operations)])
    (result,) = cluster.request_controller(request, AlterClientQuotasResponse).entries
    problem = explain_refusal(result.error_code, result.error_message) if result.error_code else None
    return write_outcomes(output, "entity", "altered", [Outcome(_name_entity(entity), problem)])


def _find_missing_quota(cluster: RemoteCluster, entity: Entity, removed: Sequence[str]) -> str | None:
    """Return why quotas cannot be removed, or None. Brokers confirm the removal of a quota that is not set."""
    known = [name for _, quotas in _read_quotas(cluster, entity, is_exact=True) for name in quotas]
    for name in removed:
        if name not in known:
            return f"it has no quota {name}{suggest_name(name, known)}"
    return None
