"""The instances of the cluster for its operator, and the usage of one instance for its users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.config.instances import NO_LIMIT, Instance
from kafkacompat.config.properties import ConfigError
from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.web.figures import format_bytes, format_number

if TYPE_CHECKING:
    from kafkacompat.monitoring.administration.requests import InternalRequests

MAX_INSTANCES = 200
NUMBERS = {"topics": "limit.topics", "partitions": "limit.partitions", "groups": "limit.groups"}
CONNECTIONS, STORED = "connections", "total.stored.bytes"


class Figure(NamedTuple):
    """What an instance uses, and its limit as a text; "" if there is none."""

    label: str
    used: str
    limit: str
    percent: int | None


class InstanceState(NamedTuple):
    """One instance with its figures."""

    name: str
    state: str
    description: str
    cluster_id: str
    figures: list[Figure]


DescribeUsage = Callable[[str], Mapping[str, Any]]


async def list_instances(requests: InternalRequests, describe_usage: DescribeUsage) -> tuple[list[InstanceState], int]:
    """Return the first instances by name, and the number of all; raises HttpError if the user may not see them."""
    try:
        names = sorted(await requests.list_names())
    except HttpError as problem:
        if problem.status == 403:
            raise HttpError(403, "you are not allowed to see the instances") from None
        raise
    described = await requests.describe(names[:MAX_INSTANCES])
    shown = filter(None, (_read_instance(name, given) for name, given in described.items()))
    return [make_state(instance, describe_usage) for instance in shown], len(names)


def _read_instance(name: str, given: Mapping[str, str]) -> Instance | None:
    """Return an instance; None for one whose properties are not valid."""
    try:
        return Instance(name, given)
    except ConfigError:
        return None


def make_state(instance: Instance, describe_usage: DescribeUsage) -> InstanceState:
    """Return an instance with its usage as this broker knows it."""
    try:
        usage = describe_usage(instance.name)
    except HttpError:
        usage = {}
    usage = {**usage.get("broker", {}), **usage}
    figures = [
        _make_figure(label, usage.get(label, 0), instance.int(limit), format_number) for label, limit in NUMBERS.items()
    ]
    figures += [
        _make_figure("connections here", usage.get(CONNECTIONS, 0), instance.int("limit.connections"), format_number),
        _make_figure("stored", usage.get(STORED, 0), instance.int("limit.storage.bytes"), format_bytes),
        _make_figure("produce quota", None, instance.int("quota.produce.bytes.per.second"), _format_rate),
        _make_figure("fetch quota", None, instance.int("quota.fetch.bytes.per.second"), _format_rate),
    ]
    return InstanceState(
        instance.name, instance.string("state"), instance.string("description"), instance.cluster_id, figures
    )


def _make_figure(label: str, used: float | None, limit: int, show: Callable[[float], str]) -> Figure:
    has_limit = limit != NO_LIMIT
    percent = None if used is None or limit <= 0 else min(round(100 * used / limit), 100)
    return Figure(label, "" if used is None else show(used), show(limit) if has_limit else "", percent)


def _format_rate(value: float) -> str:
    return f"{format_bytes(value)}/s"
