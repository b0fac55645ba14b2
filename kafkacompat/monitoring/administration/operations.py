"""The operations of /v1/instances: a table of methods and paths, each with the function that carries it out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from kafkacompat.config.instances import Instance
from kafkacompat.config.properties import ConfigError
from kafkacompat.monitoring.administration.answers import Answer, HttpError
from kafkacompat.tenancy import instance_changes

if TYPE_CHECKING:
    from kafkacompat.monitoring.administration.requests import InternalRequests, Properties

NAMES_A_REQUEST = 100
MAX_ITEMS = 20_000
"""Elements of a list in a body."""


class Call(NamedTuple):
    """One request: the instance's name, "" for all; the parsed body; the query's first values by name.

    ``describe_usage`` returns the usage of an instance as this broker knows it. ``rng`` draws identities.
    """

    requests: InternalRequests
    name: str
    body: Mapping[str, Any]
    query: Mapping[str, str]
    now_ms: int
    rng: Random
    describe_usage: Callable[[str], Mapping[str, Any]]


Operate: TypeAlias = "Callable[[Call], Awaitable[Answer]]"


class Operation(NamedTuple):
    """An operation of the API, as the OpenAPI document describes it; ``fields`` are those of its body with their schemas."""

    operate: Operate
    summary: str
    fields: Mapping[str, Mapping[str, Any]] | None = None
    parameters: Mapping[str, Mapping[str, Any]] = {}
    success: int = 200


async def _list(call: Call) -> Answer:
    names = await call.requests.list_names()
    instances: dict[str, Properties] = {}
    for first in range(0, len(names), NAMES_A_REQUEST):
        instances.update(await call.requests.describe(names[first : first + NAMES_A_REQUEST]))
    return Answer(200, {"instances": [_describe(name, given) for name, given in sorted(instances.items())]})


def _describe(name: str, given: Properties) -> dict[str, Any]:
    instance = Instance(name, given)
    return {"name": name, "state": instance.string("state"), "properties": given}


async def _read(call: Call) -> Answer:
    return Answer(200, _describe(call.name, await _find(call)))


async def _find(call: Call) -> Properties:
    """Return the properties of the named instance; raises HttpError 404."""
    given = (await call.requests.describe([call.name])).get(call.name)
    if given is None:
        raise HttpError(404, f"there is no instance {call.name}")
    return given


async def _put(call: Call) -> Answer:
    wanted = {name: _write_value(name, value) for name, value in _read_properties(call).items() if value is not None}
    given = (await call.requests.describe([call.name])).get(call.name)
    if given is None:
        await call.requests.alter(call.name, instance_changes.plan_creation(wanted, call.rng))
        return Answer(201, _describe(call.name, await _find_soon(call)))
    changes = instance_changes.plan_difference(given, wanted)
    if changes:
        await call.requests.alter(call.name, changes)
    return await _read(call)


async def _find_soon(call: Call) -> Properties:
    """Return the properties of an instance that was created; the broker of a cluster may learn of it a moment later."""
    return (await call.requests.describe([call.name])).get(call.name, {})


async def _patch(call: Call) -> Answer:
    properties = _read_properties(call)
    await _find(call)
    added = {name: _write_value(name, value) for name, value in properties.items() if value is not None}
    changes = instance_changes.plan_alteration(added, [name for name in properties if name not in added])
    if changes:
        await call.requests.alter(call.name, changes)
    return await _read(call)


def _read_properties(call: Call) -> Mapping[str, Any]:
    properties = call.body.get("properties", {})
    if not isinstance(properties, dict) or not all(map(is_text, properties)):
        raise HttpError(400, "properties is not valid: it takes an object")
    return properties


def _write_value(name: str, value: Any) -> str:
    """Return the text of a property's value in JSON; raises HttpError 400."""
    if isinstance(value, list) and len(value) <= MAX_ITEMS and not any(isinstance(item, list) for item in value):
        return ",".join(_write_value(name, item) for item in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int)) and is_text(str(value)):
        return str(value)
    raise HttpError(400, f"{name} is not valid: it takes a text, a whole number, true, false or a list of these")


def is_text(value: str) -> bool:
    """Return whether a text has a form in UTF-8: JSON can hold halves of characters."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


async def _delete(call: Call) -> Answer:
    await _find(call)
    text = call.query.get("grace.ms", str(instance_changes.DEFAULT_GRACE_MS))
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise HttpError(400, f"grace.ms={text} is not valid: it takes milliseconds")
    if int(text) == 0 and call.query.get("confirm") != call.name:
        raise HttpError(400, f"all data of {call.name} would be lost at once: confirm it by confirm={call.name}")
    changes = instance_changes.plan_deletion(call.now_ms, int(text))
    await call.requests.alter(call.name, changes)
    return Answer(202, {"name": call.name, "state": "deleting", "delete.at.ms": call.now_ms + int(text)})


async def _restore(call: Call) -> Answer:
    instance = Instance(call.name, await _find(call))
    try:
        changes = instance_changes.plan_restoration(instance, call.now_ms)
    except ConfigError as problem:
        raise HttpError(409, str(problem)) from None
    await call.requests.alter(call.name, changes)
    return await _read(call)


async def _read_usage(call: Call) -> Answer:
    instance = Instance(call.name, await _find(call))
    limits = {name: instance.int(name) for name in _LIMITS if instance.int(name) >= 0}
    return Answer(200, {"name": call.name, "usage": call.describe_usage(call.name), "limits": limits})


_LIMITS = (
    "limit.topics",
    "limit.partitions",
    "limit.groups",
    "limit.storage.bytes",
    "limit.connections",
    "quota.produce.bytes.per.second",
    "quota.fetch.bytes.per.second",
)


async def _put_whitelist(call: Call) -> Answer:
    networks = call.body.get("networks")
    if not isinstance(networks, list) or not all(isinstance(network, str) and is_text(network) for network in networks):
        raise HttpError(400, "networks is not valid: it takes a list of networks")
    current = Instance(call.name, await _find(call)).list("whitelist")
    await call.requests.alter(call.name, instance_changes.plan_whitelist("set", networks, current))
    return await _read(call)


_PROPERTIES = {
    "properties": {
        "type": "object",
        "description": "Properties by name, as of kafkacompat instances; null deletes one",
        "additionalProperties": {},
    }
}
_NETWORKS = {
    "networks": {
        "type": "array",
        "items": {"type": "string"},
        "description": 'Networks that may connect; empty for all, "none" for nobody',
    }
}
_GRACE = {
    "grace.ms": {"type": "integer", "description": "Milliseconds until the data go; 7 days by default"},
    "confirm": {"type": "string", "description": "The name again, for grace.ms=0"},
}

COLLECTION, ITEM = "/v1/instances", "/v1/instances/{name}"
OPERATIONS: Mapping[str, Mapping[str, Operation]] = {
    COLLECTION: {"GET": Operation(_list, "List all instances")},
    ITEM: {
        "GET": Operation(_read, "Describe an instance"),
        "PUT": Operation(_put, "Create an instance, or replace its properties", _PROPERTIES),
        "PATCH": Operation(_patch, "Set and delete properties", _PROPERTIES),
        "DELETE": Operation(_delete, "Stop an instance, and let its data go later", None, _GRACE, 202),
    },
    f"{ITEM}/restore": {"POST": Operation(_restore, "Bring back an instance within its grace period", {})},
    f"{ITEM}/usage": {"GET": Operation(_read_usage, "Show what an instance uses, beside its limits")},
    f"{ITEM}/whitelist": {"PUT": Operation(_put_whitelist, "Set the networks that may connect", _NETWORKS)},
}
"""By path and method."""


async def carry_out(operation: Operation, call: Call) -> Answer:
    """Carry out an operation; raises HttpError."""
    try:
        return await operation.operate(call)
    except ConfigError as problem:
        raise HttpError(400, str(problem)) from None
