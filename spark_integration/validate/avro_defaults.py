"""Defaults of Avro's fields, which schemas have as JSON, in Avro's binary encoding: so they are read as values are."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from spark_integration.validate.avro_types import whole

Named = Mapping[str, Any]


def encoded_default(schema: Any, value: Any, named: Named) -> bytes:
    """Write a default: bytes are text of as many characters, a union's is of the first branch that fits.

    Raises ValueError where it is none of the type.
    """
    kind = whole(schema, named)
    if not isinstance(kind, list):
        return ENCODE[kind["type"]](kind, value, named)
    for number, branch in enumerate(kind):
        if isinstance(value, JSON_TYPES[whole(branch, named)["type"]]):
            return _number(number) + encoded_default(branch, value, named)
    raise ValueError(f"the default {value!r} is of no branch of its union")


def _number(value: int) -> bytes:
    number, found = (value << 1) ^ (value >> 63), bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _counted(text: bytes) -> bytes:
    return _number(len(text)) + text


def _record(kind: Any, value: Any, named: Named) -> bytes:
    fields = kind["fields"]
    # What the default leaves out is as the fields' own defaults say.
    parts = [encoded_default(one["type"], value.get(one["name"], one.get("default")), named) for one in fields]
    return b"".join(parts)


def _array(kind: Any, value: Any, named: Named) -> bytes:
    items = b"".join(encoded_default(kind["items"], one, named) for one in value)
    return _number(len(value)) + items + _number(0) if value else _number(0)


def _map(kind: Any, value: Any, named: Named) -> bytes:
    pairs = [_counted(key.encode()) + encoded_default(kind["values"], one, named) for key, one in value.items()]
    return _number(len(value)) + b"".join(pairs) + _number(0) if value else _number(0)


ENCODE: Mapping[str, Callable[[Any, Any, Named], bytes]] = {
    "null": lambda kind, value, named: b"",
    "boolean": lambda kind, value, named: bytes([value]),
    "int": lambda kind, value, named: _number(value),
    "long": lambda kind, value, named: _number(value),
    "float": lambda kind, value, named: struct.pack("<f", value),
    "double": lambda kind, value, named: struct.pack("<d", value),
    "bytes": lambda kind, value, named: _counted(value.encode("latin-1")),
    "fixed": lambda kind, value, named: value.encode("latin-1"),
    "string": lambda kind, value, named: _counted(value.encode()),
    "enum": lambda kind, value, named: _number(kind["symbols"].index(value)),
    "array": _array,
    "map": _map,
    "record": _record,
    "error": _record,
}
JSON_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": (float, int),
    "double": (float, int),
    "bytes": str,
    "fixed": str,
    "string": str,
    "enum": str,
    "array": list,
    "map": dict,
    "record": dict,
    "error": dict,
}
