"""The subscriptions and assignments that consumers exchange through the classic group protocol.

The coordinator passes these bytes on unread, except to learn the topics that a group subscribes to. Each begins with the
int16 version of its writer. A version may only add fields at the end, so the bytes of a newer client are read as the
newest version known here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

from kafkacompat.wire.compiler import (
    decode_message,
    encode_message,
    find_reader,
    find_stepwise_reader,
    find_stepwise_writer,
)
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.schema import Message, Struct, array, bytestring, int32, string

_VERSION = struct.Struct(">h")
STEP_TOPICS = 64
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


def replace_topics(message: type[Message], data: bytes, rename: Callable[[str], str]) -> bytes:
    """Return a subscription or an assignment, by its class, with other names of topics; bytes that cannot be read stay."""
    for attempt in _list_attempts(message, data):
        try:
            content, end = find_reader(message, attempt)(data, _VERSION.size)
            for _ in _rename(content, rename):
                pass
            return b"".join((data[: _VERSION.size], encode_message(content, attempt), data[end:]))
        except MalformedError:
            continue
    return data


def replace_topics_in_steps(
    message: type[Message], data: bytes, rename: Callable[[str], str]
) -> Generator[None, None, bytes]:
    """Do the same as `replace_topics`, in short steps."""
    for attempt in _list_attempts(message, data):
        try:
            content, end = yield from _take_last(find_stepwise_reader(message, attempt)(data, _VERSION.size))
            yield from _rename(content, rename)
            parts = yield from _take_last(find_stepwise_writer(message, attempt)(content))
            return b"".join((data[: _VERSION.size], *parts, data[end:]))
        except MalformedError:
            continue
    return data


def _list_attempts(message: type[Message], data: bytes) -> Iterable[int]:
    """List the versions in which to read the bytes: their own, and version 0 if they lack that version's fields."""
    try:
        return dict.fromkeys((_read_version(message, data), 0))
    except MalformedError:
        return ()


def _rename(content: Any, rename: Callable[[str], str]) -> Iterator[None]:
    """Rename the topics of a subscription or an assignment; what follows its fields stays."""
    is_subscription = isinstance(content, ConsumerProtocolSubscription)
    if is_subscription:
        for count in range(len(content.topics)):
            content.topics[count] = rename(content.topics[count])
            if count % STEP_TOPICS == 0:
                yield
    for count, topic in enumerate(content.owned_partitions if is_subscription else content.assigned_partitions):
        topic.topic = rename(topic.topic)
        if count % STEP_TOPICS == 0:
            yield


def _take_last(steps: Iterator[Any]) -> Generator[None, None, Any]:
    """Return the last item of an iterator of steps, the others of which are None."""
    last = None
    for last in steps:
        if last is None:
            yield
    return last
