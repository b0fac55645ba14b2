"""One declaration and one version in, one flat read function and one flat write function out.

The functions are Python source, built and compiled when first asked for. Two things make them
fast: neighbouring fixed-width fields share one `struct.Struct`, and nested structs are inlined, so a
message costs no call per field. Every read is checked against the end of the frame; a message
that lies about a length raises MalformedError.

A write function returns a list of *parts*: buffers, and between them the file regions that stand
in `records` fields, so that the transport can send those without reading them.

Both come in a second form that works in steps, some elements of arrays each: while a message of a hundred thousand
elements is read or written, others have their turn.
"""

from __future__ import annotations

from typing import Any, TypeVar

from kafkacompat.wire.compile_reader import ReadBuilder
from kafkacompat.wire.compile_source import Part, ReadFunction, ReadSteps, Region, WriteFunction, WriteSteps
from kafkacompat.wire.compile_writer import WriteBuilder
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.schema import Message

__all__ = ["Part", "Region", "decode", "encode", "reader", "steps_of_reading", "steps_of_writing", "writer"]

MessageType = TypeVar("MessageType", bound=Message)

_READERS: dict[tuple[type[Message], int], ReadFunction] = {}
_WRITERS: dict[tuple[type[Message], int], WriteFunction] = {}
_READ_STEPS: dict[tuple[type[Message], int], ReadSteps] = {}
_WRITE_STEPS: dict[tuple[type[Message], int], WriteSteps] = {}


def reader(message: type[Message], version: int) -> ReadFunction:
    """Return ``read(data, position) -> (message, next position)`` for one version.

    Raises ValueError for a version outside the declaration's range.
    """
    read = _READERS.get((message, version))
    if read is None:
        read = _READERS[message, version] = _build(ReadBuilder, message, version)
    return read


def writer(message: type[Message], version: int) -> WriteFunction:
    """Return ``write(message) -> parts`` for one version.

    Raises ValueError for a version outside the declaration's range.
    """
    write = _WRITERS.get((message, version))
    if write is None:
        write = _WRITERS[message, version] = _build(WriteBuilder, message, version)
    return write


def steps_of_reading(message: type[Message], version: int) -> ReadSteps:
    """Return what `reader` returns as a generator function: it yields None again and again, and last the result."""
    steps = _READ_STEPS.get((message, version))
    if steps is None:
        steps = _READ_STEPS[message, version] = _build(ReadBuilder, message, version, in_steps=True)
    return steps


def steps_of_writing(message: type[Message], version: int) -> WriteSteps:
    """Return what `writer` returns as a generator function: it yields None again and again, and last the result."""
    steps = _WRITE_STEPS.get((message, version))
    if steps is None:
        steps = _WRITE_STEPS[message, version] = _build(WriteBuilder, message, version, in_steps=True)
    return steps


def decode(message: type[MessageType], data: Buffer, version: int) -> MessageType:
    """Read one message from the start of *data*; what follows it is ignored, as in Kafka."""
    value: MessageType = reader(message, version)(data, 0)[0]
    return value


def encode(message: Message, version: int) -> bytes:
    """Write one message that holds no file regions."""
    return b"".join(writer(type(message), version)(message))  # type: ignore[arg-type]


def _build(
    builder: type[ReadBuilder] | type[WriteBuilder], message: type[Message], version: int, *, in_steps: bool = False
) -> Any:
    if version not in message.VERSIONS:
        span = f"{message.VERSIONS.first}-{message.VERSIONS.last}"
        raise ValueError(f"{message.__name__} has no version {version}; use one of {span}")
    return builder(version, version in message.FLEXIBLE, in_steps).build(message)
