"""What users may change with kafkacompat.ui.writable: a table of paths, each with the function that carries a form out.

The broker decides, as for any client: access rules, limits of instances and checks of names are those of the requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.web.errors import explain
from kafkacompat.web.figures import parse_time
from kafkacompat.web.pages import NAME, make_pattern
from kafkacompat.web.rendering import build_link
from kafkacompat.web.topics import EARLIEST, LATEST, PartitionRow, describe_topic, find_offsets
from kafkacompat.web.visits import Visit
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkacompat.wire.errors import ErrorCode

TIMEOUT_MS = 20_000
"""Less than an HTTP connection may take."""
BY_BROKER = -1
MAX_PARTITIONS, MAX_REPLICAS = 10_000, 1000
MAX_RESET = 1000
"""Partitions of a topic whose offsets one form resets."""
BY_NAME_VERSION = 9
"""The newest version of OffsetCommit that names topics."""
PLACES = {"earliest": EARLIEST, "latest": LATEST}

Fields: TypeAlias = "Mapping[str, str]"
Act: TypeAlias = "Callable[[Visit, Fields], Awaitable[str]]"
"""Carries a form out and returns the address of the page to show; raises HttpError."""


async def create_topic(visit: Visit, fields: Fields) -> str:
    """Create a topic; empty numbers are the broker's defaults."""
    name = fields.get("name", "").strip()
    topic = CreatableTopic(
        name=name,
        num_partitions=_read_number(fields, "partitions", MAX_PARTITIONS),
        replication_factor=_read_number(fields, "replicas", MAX_REPLICAS),
        configs=_read_configs(fields.get("configs", "")),
    )
    response = await visit.requests.send(CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS))
    (result,) = response.topics
    _check(result.error_code, result.error_message, f"the topic {name}")
    return build_link(("topics", name))


def _read_number(fields: Fields, name: str, most: int) -> int:
    text = fields.get(name, "").strip()
    if not text:
        return BY_BROKER
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise HttpError(400, f"{name}={text} is not valid: it takes a whole number from 1 to {most}")
    return int(text)


def _read_configs(text: str) -> list[CreatableTopicConfig]:
    """Read lines of the form name=value."""
    configs = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals:
            raise HttpError(400, f"the config {line} is not valid: it takes name=value")
        configs.append(CreatableTopicConfig(name=name.strip(), value=value.strip()))
    return configs


async def delete_topic(visit: Visit, fields: Fields) -> str:
    """Delete a topic whose name the form repeats."""
    name = visit.path[1]
    if fields.get("confirm") != name:
        raise HttpError(400, f"all messages of the topic {name} would be lost: type its name to confirm that")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=TIMEOUT_MS)
    (result,) = (await visit.requests.send(request)).responses
    _check(result.error_code, result.error_message, f"the topic {name}")
    return build_link(("topics",))


async def reset_offsets(visit: Visit, fields: Fields) -> str:
    """Set the offsets of a group without members in all partitions of a topic to a place or a time."""
    group_id, name = visit.path[1], fields.get("topic", "").strip()
    topic = await describe_topic(visit.requests, name)
    if len(topic.partitions) > MAX_RESET:
        raise HttpError(400, f"the topic {name} has more than {MAX_RESET} partitions: use kafka-consumer-groups.sh")
    offsets = await _find_targets(visit, topic.partitions, fields.get("to", ""))
    missing = next((partition.index for partition in topic.partitions if (name, partition.index) not in offsets), None)
    if missing is not None:
        raise HttpError(503, f"partition {missing} of {name} is not on this broker: use the page of another broker")
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        for (_, index), offset in offsets.items()
    ]
    request = OffsetCommitRequest(
        group_id=group_id, topics=[OffsetCommitRequestTopic(name=name, partitions=partitions)]
    )
    (committed,) = (await visit.requests.send(request, BY_NAME_VERSION)).topics
    for partition in committed.partitions:
        _check(partition.error_code, REFUSALS.get(partition.error_code), f"the group {group_id}")
    return build_link(("groups", group_id))


async def _find_targets(visit: Visit, partitions: list[PartitionRow], target: str) -> dict[tuple[str, int], int]:
    """Return the offsets of a place or a time by topic and partition; the end for a partition without later messages."""
    try:
        timestamp = PLACES[target] if target in PLACES else parse_time(target)
    except (ValueError, OverflowError):
        takes = "it takes earliest, latest, or a time such as 2026-01-31 12:00 (UTC)"
        raise HttpError(400, f"to={target} is not valid: {takes}") from None
    node_id = visit.services.node_id
    ends = await find_offsets(visit.requests, partitions, LATEST, node_id)
    return ends | await find_offsets(visit.requests, partitions, timestamp, node_id)


REFUSALS: Mapping[int, str] = {
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members: stop its clients first",
    ErrorCode.ILLEGAL_GENERATION: "the group has members: stop its clients first",
    ErrorCode.STALE_MEMBER_EPOCH: "the group has members: stop its clients first",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "you are not allowed to commit offsets of this topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "you are not allowed to commit offsets of this group",
}
"""What an error code means for a commit by a client that is no member."""


def _check(code: int, message: str | None, subject: str) -> None:
    """Raise HttpError for the error code of a response, with its message if it has one."""
    if code:
        status, sentence = explain(code, subject)
        is_input = status == 500 or code == ErrorCode.INVALID_TOPIC_EXCEPTION
        raise HttpError(400 if is_input else status, message or sentence)


ACTIONS: Mapping[tuple[str, ...], Act] = {
    ("topics",): create_topic,
    ("topics", NAME, "delete"): delete_topic,
    ("groups", NAME, "offsets"): reset_offsets,
}
"""By the parts of the path below /ui; the second one is a name."""


def find_action(path: tuple[str, ...]) -> Act:
    """Return the function of a path; raises HttpError."""
    act = ACTIONS.get(make_pattern(path))
    if act is None:
        raise HttpError(405, "this page is read by GET")
    return act
