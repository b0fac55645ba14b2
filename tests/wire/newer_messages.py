"""Messages as a newer release would write them: with tagged fields that the declarations do not know."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from kafkacompat.wire.schema import Field, Message, Struct, bytestring

LENGTHS = (1, 3, 126, 127, 300)
MAX_TAG = 0x7FFFFFFE  # the largest that Kafka writes

_NEWER: dict[type[Struct], type[Struct]] = {}


def lift_message(message: Struct, rng: random.Random) -> Any:
    """Return *message* with unknown tagged fields in it and in the structs under it; flexible versions only."""
    return _lift_struct(message, type(message), rng)


def _lift_struct(message: Struct, declared: type[Struct], rng: random.Random) -> Any:
    """Lift a struct of a message; a default that messages share has a class of its own, not *declared*."""
    cls = declare_newer(declared)
    values = {name: _lift_value(getattr(message, name), field, rng) for name, field in declared.FIELDS.items()}
    added = [name for name in cls.FIELDS if name not in values and rng.random() < 0.5]
    return cls(**values, **{name: rng.randbytes(rng.choice(LENGTHS)) for name in added})


def _lift_value(value: Any, field: Field, rng: random.Random) -> Any:
    if value is not None and field.element is not None:
        return [_lift_value(item, field.element, rng) for item in value]
    return value if value is None or field.struct is None else _lift_struct(value, field.struct, rng)


def declare_newer(cls: type[Struct]) -> type[Struct]:
    """Return the declaration *cls* with three more tagged fields, in every struct under it too."""
    if cls not in _NEWER:
        _NEWER[cls] = _extend_declaration(cls)
    return _NEWER[cls]


def _extend_declaration(cls: type[Struct]) -> type[Struct]:
    body: dict[str, Any] = {name: _newer_field(field) for name, field in cls.FIELDS.items()}
    for tag in _free_tags({field.tag for field in cls.FIELDS.values()}):
        body[f"unknown_{tag}"] = bytestring(tag=tag)
    base = Message if issubclass(cls, Message) else Struct
    made: type[Struct] = type(cls.__name__, (base,), body)
    if issubclass(cls, Message) and issubclass(made, Message):
        made.VERSIONS, made.FLEXIBLE = cls.VERSIONS, cls.FLEXIBLE
    return made


def _free_tags(taken: set[int | None]) -> list[int]:
    """Return a tag among the known ones or right after them, one of two bytes, and the largest."""
    return [next(tag for tag in range(MAX_TAG) if tag not in taken), 300, MAX_TAG]


def _newer_field(field: Field) -> Field:
    element = field.element and _newer_field(field.element)
    if field.struct is None:
        return replace(field, element=element)
    struct = declare_newer(field.struct)
    return replace(field, struct=struct, default=struct if field.default is field.struct else field.default)
