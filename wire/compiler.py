"""Compiles one declaration and one version into one flat read function and one flat write function.

The functions are Python source, which is built and compiled at first use. Two things make them fast: neighbouring
fixed-width fields share one `struct.Struct`, and nested structs are inlined, so that a message costs no call per field. Every
read is checked against the end of the frame; a message with a wrong length raises MalformedError.

A write function returns a list of *parts*: buffers, and between them the file regions of `records` fields, which the
transport sends without reading them.

Both functions have a second form that works in steps of some array elements, so that a message of a hundred thousand
elements does not keep the reactor.
"""

from __future__ import annotations

from typing import Any, TypeVar

from kafkacompat.wire.compile_reader import ReadBuilder
from kafkacompat.wire.compile_source import Part, ReadFunction, ReadSteps, Region, WriteFunction, WriteSteps
from kafkacompat.wire.compile_writer import WriteBuilder
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.schema import Message

__all__ = [
    "Part",
    "Region",
    "decode_message",
    "encode_message",
    "find_reader",
    "find_stepwise_reader",
    "find_stepwise_writer",
    "find_writer",
]

MessageType = TypeVar("MessageType", bound=Message)

_READERS: dict[tuple[type[Message], int], ReadFunction] = {}
_WRITERS: dict[tuple[type[Message], int], WriteFunction] = {}
_READ_STEPS: dict[tuple[type[Message], int], ReadSteps] = {}
_WRITE_STEPS: dict[tuple[type[Message], int], WriteSteps] = {}


def find_reader(message: type[Message], version: int) -> ReadFunction:
    """Return ``read(data, position) -> (message, next position)`` for one version.

    Raises ValueError if the declaration does not have the version.
    """
    read = _READERS.get((message, version))
    if read is None:
        read = _READERS[message, version] = _build_function(ReadBuilder, message, version)
    return read


def find_writer(message: type[Message], version: int) -> WriteFunction:
    """Return ``write(message) -> parts`` for one version.

    Raises ValueError if the declaration does not have the version.
    """
    write = _WRITERS.get((message, version))
    if write is None:
        write = _WRITERS[message, version] = _build_function(WriteBuilder, message, version)
    return write


def find_stepwise_reader(message: type[Message], version: int) -> ReadSteps:
    """Return the stepwise form of `reader`: a generator function that yields None after each step and the result last."""
    steps = _READ_STEPS.get((message, version))
    if steps is None:
        steps = _READ_STEPS[message, version] = _build_function(ReadBuilder, message, version, in_steps=True)
    return steps


def find_stepwise_writer(message: type[Message], version: int) -> WriteSteps:
    """Return the stepwise form of `writer`: a generator function that yields None after each step and the result last."""
    steps = _WRITE_STEPS.get((message, version))
    if steps is None:
        steps = _WRITE_STEPS[message, version] = _build_function(WriteBuilder, message, version, in_steps=True)
    return steps


def decode_message(message: type[MessageType], data: Buffer, version: int) -> MessageType:
    """Read one message from the start of *data*; the bytes after it are ignored, as in Kafka."""
    value: MessageType = find_reader(message, version)(data, 0)[0]
    return value


def encode_message(message: Message, version: int) -> bytes:
    """Write one message that holds no file regions."""
    return b"".join(find_writer(type(message), version)(message))  # type: ignore[arg-type]


def _build_function(
    builder: type[ReadBuilder] | type[WriteBuilder], message: type[Message], version: int, *, in_steps: bool = False
) -> Any:
    if version not in message.VERSIONS:
        span = f"{message.VERSIONS.first}-{message.VERSIONS.last}"
        raise ValueError(f"{message.__name__} has no version {version}; use one of {span}")
    return builder(version, version in message.FLEXIBLE, in_steps).build(message)
