"""What AlterConfigs and IncrementalAlterConfigs share: each resource changes as a whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.metadata.config_changes import ResourceChange
from kafkacompat.wire.errors import ErrorCode, KafkaError

_STORED = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.INSTANCE,
)

Outcome = KafkaError | None


class Resource(Protocol):
    """A resource in either request."""

    resource_type: int
    resource_name: str


ResourceT = TypeVar("ResourceT", bound=Resource)
ResultT = TypeVar("ResultT")
"""A resource's result in either response."""


async def alter_resources(
    resources: Sequence[ResourceT],
    plan: Callable[[ResourceT], ResourceChange | None],
    make_result: Callable[..., ResultT],
    services: Services,
    *,
    validate_only: bool,
) -> list[ResultT]:
    """Change every resource that is named once; return the result of each, in the order of the request.

    *plan* returns the change of a resource, or None if it has already made the change; it raises KafkaError.
    """
    outcomes = await _change_resources(resources, plan, services, validate_only)
    return [
        make_result(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_code=ErrorCode.NONE if outcome is None else outcome.code,
            error_message=None if outcome is None else outcome.detail,
        )
        for resource, outcome in zip(resources, outcomes, strict=True)
    ]


async def _change_resources(
    resources: Sequence[ResourceT],
    plan: Callable[[ResourceT], ResourceChange | None],
    services: Services,
    validate_only: bool,
) -> list[Outcome]:
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
        known = ", ".join(f"{kind.name} ({kind:d})" for kind in _STORED if kind != ResourceType.INSTANCE)
        reason = f"resources of type {resource.resource_type} cannot be changed here, only {known}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    name, node_id = resource.resource_name, services.node_id
    if resource.resource_type == ResourceType.BROKER and not context.is_forwarded and name not in ("", str(node_id)):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{name}' is not the id of this broker, {node_id}")
    return ResourceType(resource.resource_type)
