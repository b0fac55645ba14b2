"""What AlterConfigs and IncrementalAlterConfigs share: each resource changes as a whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.metadata.config_changes import ResourceChange
from kafkacompat.wire.errors import ErrorCode, KafkaError

_STORED = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP, ResourceType.CLIENT_METRICS)

Outcome = KafkaError | None


class Resource(Protocol):
    """A resource in either request."""

    resource_type: int
    resource_name: str


class Result(Protocol):
    """A resource's result in either response."""

    error_code: int
    error_message: str | None


ResourceT = TypeVar("ResourceT", bound=Resource)


async def alter_resources(
    resources: Sequence[ResourceT],
    plan: Callable[[ResourceT], ResourceChange | None],
    services: Services,
    *,
    validate_only: bool,
) -> list[Outcome]:
    """Change every resource that is named once; return the error of each, or None, in the order of the request.

    *plan* returns the change of a resource, or None if it has already made the change; it raises KafkaError.
    """
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    outcomes: list[Outcome] = [None] * len(resources)
    changes: dict[int, ResourceChange] = {}
    for index, resource in enumerate(resources):
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                reason = f"{resource.resource_name!r} is named more than once; send all its changes in one entry"
                raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
            if (change := plan(resource)) is not None:
                changes[index] = change
        except KafkaError as problem:
            outcomes[index] = problem.with_traceback(None)
    results = await _commit_changes(list(changes.values()), services, validate_only)
    for index, outcome in zip(changes, results, strict=True):
        outcomes[index] = outcome
    return outcomes


async def _commit_changes(
    changes: Sequence[ResourceChange], services: Services, validate_only: bool
) -> Sequence[Outcome]:
    try:
        return await services.controller.alter_configs(changes, validate_only=validate_only)
    except KafkaError as problem:
        return [problem.with_traceback(None)] * len(changes)


def check_keys(names: Sequence[str], without_value: Iterable[str]) -> None:
    """Reject keys that are named twice or lack a value; raises KafkaError INVALID_REQUEST."""
    if twice := ", ".join(name for name, times in Counter(names).items() if times > 1):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"these configs are named more than once: {twice}")
    if missing := ", ".join(without_value):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"these configs need a value: {missing}")


def check_stored_type(resource: Resource, context: RequestContext, services: Services) -> ResourceType:
    """Return the type of a resource whose configuration is stored; raises KafkaError INVALID_REQUEST for others.

    A broker's configuration is changed by requests to that broker, which may forward them.
    """
    if resource.resource_type not in _STORED:
        known = ", ".join(f"{each.name} ({each:d})" for each in _STORED)
        reason = f"resources of type {resource.resource_type} cannot be changed here, only {known}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    name, node_id = resource.resource_name, services.node_id
    if resource.resource_type == ResourceType.BROKER and not context.is_forwarded and name not in ("", str(node_id)):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{name}' is not the id of this broker, {node_id}")
    return ResourceType(resource.resource_type)


def fill_results(results: Iterable[Result], outcomes: Iterable[Outcome]) -> None:
    """Write each resource's error into its result."""
    for result, outcome in zip(results, outcomes, strict=True):
        result.error_message = None
        if outcome is not None:
            result.error_code, result.error_message = outcome.code, outcome.detail
