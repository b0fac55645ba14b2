"""What consumers tell each other through the classic group protocol: subscriptions and assignments.

The coordinator passes these bytes on unread, except to learn which topics a group is subscribed to.
Each is preceded by the int16 version it was written in. A version may only add fields at the end, so
what a newer client wrote is read as the newest version known here.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from kafkacompat.wire.compiler import decode, encode
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.schema import Message, Struct, array, bytestring, int32, string

_VERSION = struct.Struct(">h")
_MessageType = TypeVar("_MessageType", bound=Message)


class TopicPartition(Struct):
    """Some partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32())


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """What one consumer wants to read, and what it holds at the moment."""

    topics: list[str] = array(string())
    user_data: bytes | None = bytestring(nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, versions="1+")
    generation_id: int = int32(versions="2+", default=-1)  # in which the partitions were owned; -1 when not known
    rack_id: str | None = string(versions="3+", nullable="3+", default=None)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """What one consumer shall read."""

    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = bytestring(nullable="0+", default=None)


def read_subscription(data: Buffer) -> ConsumerProtocolSubscription:
    """Read the metadata of a group member; raises MalformedError."""
    return _read(ConsumerProtocolSubscription, data)


def read_topics(data: Buffer) -> list[str]:
    """Read which topics a group member wants: every version begins with them, and what follows may be anything.

    Some clients write versions without what belongs there. Raises MalformedError.
    """
    if len(data) < _VERSION.size:
        raise MalformedError(f"a subscription needs a version, but holds {len(data)} bytes")
    return decode(ConsumerProtocolSubscription, data[_VERSION.size :], 0).topics


def write_subscription(subscription: ConsumerProtocolSubscription, version: int) -> bytes:
    """Write the metadata of a group member."""
    return _VERSION.pack(version) + encode(subscription, version)


def read_assignment(data: Buffer) -> ConsumerProtocolAssignment:
    """Read the assignment of a group member; raises MalformedError."""
    return _read(ConsumerProtocolAssignment, data)


def write_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    """Write the assignment of a group member."""
    return _VERSION.pack(version) + encode(assignment, version)


def version_of(data: Buffer) -> int:
    """The version in which to answer who wrote this: its own, or the newest known here. Raises MalformedError."""
    return _version(ConsumerProtocolAssignment, data)


def _version(message: type[Message], data: Buffer) -> int:
    if len(data) < _VERSION.size:
        raise MalformedError(f"{message.__name__} needs a version, but holds {len(data)} bytes")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise MalformedError(f"{message.__name__} has no version {version}")
    return min(version, message.VERSIONS.last)


def _read(message: type[_MessageType], data: Buffer) -> _MessageType:
    return decode(message, data[_VERSION.size :], _version(message, data))
