"""Our bytes judged by kio, another implementation in Python: it reads them and writes them again.

kio holds error codes, times and durations as Python's own types, so it refuses some numbers that the protocol allows;
such messages are left out. It has neither the versions that Kafka 4.0 removed nor every one that came after.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

from kafkacompat.wire.apis import API_NAMES, find_api
from kafkacompat.wire.compiler import encode_message
from kafkacompat.wire.schema import Message
from tests.wire.random_messages import Mode, make_message


class Kio:
    """One message in one version, by kio."""

    def __init__(self, cls: type[Message], version: int, entity: type[Any]) -> None:
        from kio.serial import entity_reader, entity_writer
        from kio.serial.errors import OutOfBoundValue

        self._refusals = (OutOfBoundValue, ValueError)
        self.cls = cls
        self.version = version
        self._read: Callable[[bytes, int], tuple[Any, int]] = entity_reader(entity)
        self._write: Callable[[io.BytesIO, Any], None] = entity_writer(entity)

    def differences(self, modes: Sequence[Mode], rng: random.Random) -> Iterator[str | None]:
        """Give a sentence for a message that kio writes otherwise, None for one that it writes as we do."""
        for mode in modes:
            message = make_message(self.cls, self.version, rng, mode)
            data = encode_message(message, self.version)
            try:
                value, size = self._read(data, 0)
            except self._refusals:  # an error code, time or duration that Python's own types do not hold
                continue
            again = io.BytesIO()
            self._write(again, value)
            same = again.getvalue() == data and size == len(data)
            yield None if same else f"kio writes {again.getvalue().hex()}, expected {data.hex()} for {message}"


def known_to_kio() -> Iterator[Kio]:
    """Return every message and version that kio has."""
    for key, name in API_NAMES.items():
        for cls in find_api(key):
            for version in cls.VERSIONS:
                kind = "request" if cls is find_api(key).request else "response"
                try:
                    module = import_module(f"kio.schema.{name}.v{version}.{kind}")
                except ModuleNotFoundError:
                    continue
                yield Kio(cls, version, getattr(module, cls.__name__))
