"""The subscriptions and assignments that consumers exchange through the classic group protocol.

The coordinator passes these bytes on unread, except to learn the topics that a group subscribes to. Each begins with the
int16 version of its writer. A version may only add fields at the end, so the bytes of a newer client are read as the
newest version known here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from kafkacompat.wire.compiler import decode_message, encode_message, find_reader
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.schema import Message, Struct, array, bytestring, int32, string

_VERSION = struct.Struct(">h")
_MessageType = TypeVar("_MessageType", bound=Message)


class TopicPartition(Struct):
    """Some partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32())


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """The topics that one consumer subscribes to, and the partitions that it owns."""

    topics: list[str] = array(string())
    user_data: bytes | None = bytestring(nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, versions="1+")
    generation_id: int = int32(versions="2+", default=-1)  # in which the partitions were owned; -1 when not known
    rack_id: str | None = string(versions="3+", nullable="3+", default=None)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """The partitions that one consumer is assigned."""

    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = bytestring(nullable="0+", default=None)


def read_subscription(data: Buffer) -> ConsumerProtocolSubscription:
    """Read the metadata of a group member; raises MalformedError."""
    return _read_message(ConsumerProtocolSubscription, data)


def read_topics(data: Buffer) -> list[str]:
    """Read the topics that a group member subscribes to. Every version begins with them; the rest is ignored.

    Some clients write a version number without that version's fields. Raises MalformedError.
    """
    if len(data) < _VERSION.size:
        raise MalformedError(f"a subscription needs a version, but holds {len(data)} bytes")
    return decode_message(ConsumerProtocolSubscription, data[_VERSION.size :], 0).topics


def write_subscription(subscription: ConsumerProtocolSubscription, version: int) -> bytes:
    """Write the metadata of a group member."""
    return _VERSION.pack(version) + encode_message(subscription, version)


def read_assignment(data: Buffer) -> ConsumerProtocolAssignment:
    """Read the assignment of a group member; raises MalformedError."""
    return _read_message(ConsumerProtocolAssignment, data)


def write_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    """Write the assignment of a group member."""
    return _VERSION.pack(version) + encode_message(assignment, version)


def choose_version(data: Buffer) -> int:
    """Return the version for an answer to this writer: its own, or the newest known here. Raises MalformedError."""
    return _read_version(ConsumerProtocolAssignment, data)


def _read_version(message: type[Message], data: Buffer) -> int:
    if len(data) < _VERSION.size:
        raise MalformedError(f"{message.__name__} needs a version, but holds {len(data)} bytes")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise MalformedError(f"{message.__name__} has no version {version}")
    return min(version, message.VERSIONS.last)


def _read_message(message: type[_MessageType], data: Buffer) -> _MessageType:
    return decode_message(message, data[_VERSION.size :], _read_version(message, data))


def replace_subscribed_topics(data: bytes, rename: Callable[[str], str]) -> bytes:
    """Return the metadata of a group member with other names of topics; bytes that cannot be read stay."""
    return _replace_topics(
        ConsumerProtocolSubscription, data, lambda subscription: _rename_subscribed(subscription, rename)
    )


def replace_assigned_topics(data: bytes, rename: Callable[[str], str]) -> bytes:
    """Return the assignment of a group member with other names of topics; bytes that cannot be read stay."""
    return _replace_topics(
        ConsumerProtocolAssignment, data, lambda assignment: _rename_partitions(assignment.assigned_partitions, rename)
    )


def _rename_subscribed(subscription: ConsumerProtocolSubscription, rename: Callable[[str], str]) -> None:
    subscription.topics = [rename(topic) for topic in subscription.topics]
    _rename_partitions(subscription.owned_partitions, rename)


def _rename_partitions(partitions: list[TopicPartition], rename: Callable[[str], str]) -> None:
    for topic in partitions:
        topic.topic = rename(topic.topic)


def _replace_topics(message: type[_MessageType], data: bytes, rename: Callable[[_MessageType], None]) -> bytes:
    """Change a message in its own version, or in version 0 if it lacks that version's fields; what follows it stays."""
    try:
        version = _read_version(message, data)
    except MalformedError:
        return data
    for attempt in dict.fromkeys((version, 0)):
        try:
            content, end = find_reader(message, attempt)(data, _VERSION.size)
            rename(content)
            return b"".join((data[: _VERSION.size], encode_message(content, attempt), data[end:]))
        except MalformedError:
            continue
    return data
