"""Avro's binary encoding, read under schema resolution into what pyarrow takes (Avro 1.12, "Schema Resolution").

What reads a value is made once for each pair of schemas. fastavro, which parses the schemas, does not say which branch of a
union it met, takes defaults of bytes for text, and has no end to the depth of a value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from spark_integration.validate.avro_defaults import encoded_default
from spark_integration.validate.avro_types import RECORDS, joined, leaf, not_null, whole
from spark_integration.validate.dead import DeadLetterError, shown
from spark_integration.validate.shapes import json_of

FLOAT, DOUBLE = struct.Struct("<f"), struct.Struct("<d")
MOST_BITS = 70
# Items that take no bytes (nulls) may be that many more than there are bytes.
MOST_EMPTY_ITEMS = 1 << 16
Named = Mapping[str, Any]


class Cursor:
    """A place in a value's bytes; beyond their end there is an EOFError or IndexError."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self) -> int:
        """Read a zigzag varint."""
        data, at, shift = self.data, self.at, 7
        byte = data[at]
        number = byte & 0x7F
        while byte > 0x7F:
            at += 1
            byte = data[at]
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift > MOST_BITS:
                raise ValueError("a number has more than ten bytes")
        self.at = at + 1
        return (number >> 1) ^ -(number & 1)

    def take(self, size: int) -> bytes:
        """Read that many bytes."""
        begin, end = self.at, self.at + size
        if not begin <= end <= len(self.data):
            raise EOFError(f"{size} bytes are to come, and {len(self.data) - begin} are there")
        self.at = end
        return self.data[begin:end]

    def boolean(self) -> bool:
        """Read a byte that is 0 or 1."""
        return (False, True)[self.take(1)[0]]

    def text(self) -> str:
        """Read a string."""
        return self.take(self.number()).decode()

    def items(self) -> Iterator[int]:
        """Go through the blocks of an array or map: count for each item."""
        while count := self.number():
            if count < 0:
                count = -count
                self.number()
            if count > len(self.data) + MOST_EMPTY_ITEMS:
                raise ValueError(f"{count} items are to come")
            yield from range(count)


Decode = Callable[[Cursor], Any]
NAMED = (*RECORDS, "enum", "fixed")

READ: Mapping[str, Decode] = {
    "null": lambda cursor: None,
    "boolean": Cursor.boolean,
    "int": Cursor.number,
    "long": Cursor.number,
    "float": lambda cursor: FLOAT.unpack(cursor.take(4))[0],
    "double": lambda cursor: DOUBLE.unpack(cursor.take(8))[0],
    "bytes": lambda cursor: cursor.take(cursor.number()),
    "string": Cursor.text,
}
# What a writer's number or text becomes where the reader has a wider one.
PROMOTED: Mapping[tuple[str, str], Callable[[Any], Any] | None] = {
    ("int", "long"): None,
    ("int", "float"): float,
    ("int", "double"): float,
    ("long", "float"): float,
    ("long", "double"): float,
    ("float", "double"): None,
    ("string", "bytes"): str.encode,
    ("bytes", "string"): bytes.decode,
}


class Plain:
    """Makes readers of what *writer*'s types write and *reader*'s describe; records become dictionaries."""

    def __init__(self, writer: Named, reader: Named) -> None:
        self._writer, self._reader = writer, reader
        self._records: dict[tuple[str, str], Decode] = {}
        self._within: list[str] = []

    def of(self, writer: Any, reader: Any) -> Decode:
        """Return what reads a value; where it meets what does not fit the reader it raises DeadLetterError."""
        written, wanted = whole(writer, self._writer), whole(reader, self._reader)
        if isinstance(written, list):
            return _branches([self.of(one, reader) for one in written])
        if isinstance(wanted, list):
            return self._branch(written, wanted)
        if not _rank(written, wanted):
            return _refuse(f"{_name(written)} was written, which is no {_name(wanted)}")
        return self._made(written, wanted)

    def _made(self, written: Any, wanted: Any) -> Decode:
        kind = written["type"]
        if kind in RECORDS:
            return self._record(written, wanted)
        if kind == "array":
            item = self.of(written["items"], wanted["items"])
            return lambda cursor: [item(cursor) for _ in cursor.items()]
        if kind == "map":
            return self._map(self.of(written["values"], wanted["values"]))
        return _converted(_enum(written, wanted) if kind == "enum" else _raw(written), written, wanted)

    def _branch(self, written: Any, branches: Sequence[Any]) -> Decode:
        """Read what was not written as a union into that branch of one that fits best, and of those into the first."""
        ranks = [_rank(written, whole(one, self._reader)) for one in branches]
        if not any(ranks):
            return _refuse(f"{_name(written)} was written, which is no branch of the union")
        branch = branches[ranks.index(max(ranks))]
        decode = self.of(written, branch)
        members = not_null(branches)
        if branch not in members or len(members) < 2 or joined(members):
            return decode
        return self._member(f"member{members.index(branch)}", decode)

    def _member(self, name: str, decode: Decode) -> Decode:
        return decode

    def _map(self, content: Decode) -> Decode:
        return lambda cursor: {cursor.text(): content(cursor) for _ in cursor.items()}

    def _record(self, written: Any, wanted: Any) -> Decode:
        key = written["name"], wanted["name"]
        if key not in self._records:
            # It may be met within itself: found when it is used, for then it is there.
            self._records[key] = lambda cursor: self._records[key](cursor)
            self._records[key] = self._fields(written, wanted)
        return self._records[key]

    def _fields(self, written: Any, wanted: Any) -> Decode:
        named = {alias: field for field in wanted["fields"] for alias in field.get("aliases", ())}
        named |= {field["name"]: field for field in wanted["fields"]}
        steps: list[tuple[str | None, Decode]] = []
        for field in written["fields"]:
            found = named.get(field["name"])
            # What the reader does not know is read as its writer has it, and let go.
            decode = self.of(field["type"], found["type"]) if found else self._skip(field["type"])
            steps.append((found["name"] if found else None, decode))
        there = {name for name, _ in steps}
        steps += [(one["name"], self._default(one)) for one in wanted["fields"] if one["name"] not in there]

        def read(cursor: Cursor) -> dict[str | None, Any]:
            values = {name: decode(cursor) for name, decode in steps}
            values.pop(None, None)
            return values

        return read

    def _skip(self, writer: Any) -> Decode:
        return Plain(self._writer, self._writer).of(writer, writer)

    def _default(self, field: Any) -> Decode:
        if "default" not in field:
            return _refuse(f"{field['name']} was not written, and has no default")
        encoded = encoded_default(field["type"], field["default"], self._reader)
        alike = type(self)(self._reader, self._reader)
        alike._within = list(self._within)
        decode = alike.of(field["type"], field["type"])
        return lambda _: decode(Cursor(encoded))


class Typed(Plain):
    """Makes readers of values for the types that `Types` tells."""

    def _member(self, name: str, decode: Decode) -> Decode:
        return lambda cursor: {name: decode(cursor)}

    def _map(self, content: Decode) -> Decode:
        plain = super()._map(content)
        return lambda cursor: list(plain(cursor).items())

    def _record(self, written: Any, wanted: Any) -> Decode:
        if wanted["name"] in self._within or not wanted["fields"]:
            return _then(Plain(self._writer, self._reader)._record(written, wanted), json_of)
        self._within.append(wanted["name"])
        try:
            return self._fields(written, wanted)
        finally:
            self._within.pop()


def _branches(decodes: Sequence[Decode]) -> Decode:
    def read(cursor: Cursor) -> Any:
        return decodes[_index(cursor, len(decodes), "branches")](cursor)

    return read


def _enum(written: Any, wanted: Any) -> Decode:
    symbols, known = written["symbols"], {one: one for one in wanted["symbols"]}
    default = wanted.get("default")

    def read(cursor: Cursor) -> Any:
        symbol = symbols[_index(cursor, len(symbols), "symbols")]
        found = known.get(symbol, default)
        if found is None:
            raise DeadLetterError("does-not-fit", f"{symbol} is no symbol of {wanted['name']}")
        return found

    return read


def _index(cursor: Cursor, count: int, what: str) -> int:
    index = cursor.number()
    if not 0 <= index < count:
        raise ValueError(f"{index} is none of {count} {what}")
    return index


def _raw(written: Any) -> Decode:
    if written["type"] != "fixed":
        return READ[written["type"]]
    size = written["size"]
    return lambda cursor: cursor.take(size)


def _converted(read: Decode, written: Any, wanted: Any) -> Decode:
    """Make the reader's type of what was read; where both have a logical type of one kind, in the writer's unit or scale."""
    mine, theirs = leaf(wanted), leaf(written)
    if mine.convert and theirs.convert and type(mine.type) is type(theirs.type):
        return _then(read, theirs.convert)
    for step in (PROMOTED.get((written["type"], wanted["type"])), mine.convert):
        read = _then(read, step) if step else read
    return read


def _then(read: Decode, step: Callable[[Any], Any]) -> Decode:
    return lambda cursor: step(read(cursor))


def _refuse(why: str) -> Decode:
    def read(_: Cursor) -> Any:
        raise DeadLetterError("does-not-fit", f"its schema cannot be read by the one asked for: {why}")

    return read


def _rank(written: Any, wanted: Any) -> int:
    """Tell how well a type fits a writer's: 3 the same, 2 the same but for its namespace, or an alias, 1 a wider one, 0 not."""
    if isinstance(wanted, list):
        return 0
    kinds = written["type"], wanted["type"]
    if kinds[0] != kinds[1]:
        return int(kinds in PROMOTED)
    if kinds[0] not in NAMED:
        return 3
    if written.get("size") != wanted.get("size"):
        return 0
    names = [one.rpartition(".")[2] for one in (wanted["name"], *wanted.get("aliases", ()))]
    return 3 if written["name"] == wanted["name"] else 2 * (written["name"].rpartition(".")[2] in names)


def _name(schema: Any) -> str:
    return "a union" if isinstance(schema, list) else shown(schema.get("name", schema["type"]))
