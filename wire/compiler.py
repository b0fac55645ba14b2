"""One declaration and one version in, one flat read function and one flat write function out.

The functions are Python source, built and compiled when first asked for. Two things make them
fast: neighbouring fixed-width fields share one `struct.Struct`, and nested structs are inlined, so a
message costs no call per field. Every read is checked against the end of the frame; a message
that lies about a length raises MalformedError.

A write function returns a list of *parts*: buffers, and between them the file regions that stand
in `records` fields, so that the transport can send those without reading them.
"""

from __future__ import annotations

from typing import TypeVar

from kafkacompat.wire.compile_reader import ReadBuilder
from kafkacompat.wire.compile_source import Part, ReadFunction, Region, WriteFunction
from kafkacompat.wire.compile_writer import WriteBuilder
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.schema import Message

__all__ = ["Part", "Region", "decode", "encode", "reader", "writer"]

MessageType = TypeVar("MessageType", bound=Message)

_READERS: dict[tuple[type[Message], int], ReadFunction] = {}
_WRITERS: dict[tuple[type[Message], int], WriteFunction] = {}


def reader(message: type[Message], version: int) -> ReadFunction:
    """Return ``read(data, position) -> (message, next position)`` for one version.

    Raises ValueError for a version outside the declaration's range.
    """
    read = _READERS.get((message, version))
    if read is None:
        _check_version(message, version)
        read = _READERS[message, version] = ReadBuilder(version, version in message.FLEXIBLE).build(message)
    return read


def writer(message: type[Message], version: int) -> WriteFunction:
    """Return ``write(message) -> parts`` for one version.

    Raises ValueError for a version outside the declaration's range.
    """
    write = _WRITERS.get((message, version))
    if write is None:
        _check_version(message, version)
        write = _WRITERS[message, version] = WriteBuilder(version, version in message.FLEXIBLE).build(message)
    return write


def decode(message: type[MessageType], data: Buffer, version: int) -> MessageType:
    """Read one message from the start of *data*; what follows it is ignored, as in Kafka."""
    value: MessageType = reader(message, version)(data, 0)[0]
    return value


def encode(message: Message, version: int) -> bytes:
    """Write one message that holds no file regions."""
    return b"".join(writer(type(message), version)(message))  # type: ignore[arg-type]


def _check_version(message: type[Message], version: int) -> None:
    if version not in message.VERSIONS:
        span = f"{message.VERSIONS.first}-{message.VERSIONS.last}"
        raise ValueError(f"{message.__name__} has no version {version}; use one of {span}")
