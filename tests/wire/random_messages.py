"""Messages made up from their own declarations, for tests of the encoder."""

from __future__ import annotations

import os
import random
from enum import Enum

from kafkacompat.wire.primitives import ZERO_UUID
from kafkacompat.wire.schema import Field, Message, Struct

NUMBERS = {
    "int8": (-0x80, 0x7F),
    "int16": (-0x8000, 0x7FFF),
    "uint16": (0, 0xFFFF),
    "int32": (-0x80000000, 0x7FFFFFFF),
    "uint32": (0, 0xFFFFFFFF),
    "int64": (-0x8000000000000000, 0x7FFFFFFFFFFFFFFF),
}
LETTERS = "abcZ-._é漢😀"
# Around the lengths at which a compact length (which counts one more) grows by a byte.
LENGTHS = (0, 1, 2, 16, 63, 126, 127, 128, 300)


class Mode(Enum):
    """The kind of a random message."""

    RANDOM = "random"
    DEFAULT = "default"
    NULL = "null"
    BOUNDARY = "boundary"
    SMALL = "small"


def seeded_random() -> random.Random:
    """A generator whose seed is printed, which pytest shows when a test fails; TEST_SEED=n repeats that run."""
    seed = int(os.environ.get("TEST_SEED") or random.SystemRandom().getrandbits(32))
    print(f"TEST_SEED={seed}")
    return random.Random(seed)


class MessageMaker:
    """Makes up messages of one mode."""

    def __init__(self, rng: random.Random, mode: Mode) -> None:
        self._rng = rng
        self._mode = mode

    def make(self, cls: type[Struct], version: int) -> Struct:
        """An instance of *cls* in which every field that *version* has is filled."""
        if self._mode is Mode.DEFAULT:
            return cls()
        fields = {name: field for name, field in cls.FIELDS.items() if version in field.versions}
        return cls(**{name: self._value(field, version) for name, field in fields.items() if self._filled(field)})

    def _filled(self, field: Field) -> bool:
        return field.tag is None or self._mode is Mode.BOUNDARY or self._rng.random() < 0.7

    def _value(self, field: Field, version: int) -> object:
        if version in field.nullable and self._is_null():
            return None
        if field.kind in NUMBERS:
            return self._number(*NUMBERS[field.kind])
        if field.element is not None:
            return [self._value(field.element, version) for _ in range(self._rng.choice((0, 1, 1, 2, 3)))]
        if field.struct is not None:
            return self.make(field.struct, version)
        return self._plain(field.kind)

    def _is_null(self) -> bool:
        return self._mode is Mode.NULL or (self._mode is not Mode.BOUNDARY and self._rng.random() < 0.25)

    def _number(self, low: int, high: int) -> int:
        if self._mode is Mode.BOUNDARY:
            return self._rng.choice((low, high))
        return self._rng.choice((low, high, max(low, -1), 0, 1, self._rng.randint(low, high)))

    def _plain(self, kind: str) -> object:
        if kind == "bool":
            return self._rng.random() < 0.5
        if kind == "float64":
            return self._rng.choice((0.0, -1.5, self._rng.uniform(-1e9, 1e9)))
        if kind == "uuid":
            return self._rng.choice((ZERO_UUID, self._rng.randbytes(16)))
        length = self._rng.randint(0, 4) if self._mode is Mode.SMALL else self._rng.choice(LENGTHS)
        return "".join(self._rng.choices(LETTERS, k=length)) if kind == "string" else self._rng.randbytes(length)


def make_message(cls: type[Message], version: int, rng: random.Random, mode: Mode) -> Message:
    """Make up a message of one version."""
    message = MessageMaker(rng, mode).make(cls, version)
    assert isinstance(message, cls)
    return message


def versions_of(*classes: type[Message]) -> list[tuple[type[Message], int]]:
    """Every class with each of its versions."""
    return [(cls, version) for cls in classes for version in range(cls.VERSIONS.first, cls.VERSIONS.last + 1)]
