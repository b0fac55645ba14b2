"""Builds the functions that translate the names in a message, from the entities of its declaration.

A function is Python source with one loop for each array that holds names, compiled at first use for one version. It changes the message
in place. In a response an element whose name is `FOREIGN` is left out: it tells of something that is not the instance's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from kafkacompat.tenancy.names import FOREIGN
from kafkacompat.wire.compile_function import compile_function
from kafkacompat.wire.entities import ASSIGNMENT, BROKER, CLUSTER, NAME_FILTER, SIBLINGS, SUBSCRIPTION
from kafkacompat.wire.schema import Field, Message, Struct

MapSteps: TypeAlias = "Callable[[Any, Any, Any], Iterator[None]]"
"""``map(message, translations, resolve)``: yields after each few elements; a small message has no steps.

*resolve* translates a name by its siblings.
"""

STEP_ELEMENTS = 64
SHORT_BYTES = 4096
LARGE_VALUES = frozenset({ASSIGNMENT, SUBSCRIPTION})
UNMAPPED = frozenset({BROKER, NAME_FILTER})


class _MapperSource:
    """Writes the source of one function."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._lines: list[str] = []
        self._tables: dict[str, str] = {}
        self._counter = 0

    def build(self, message: type[Message]) -> MapSteps | None:
        if not _has_entities(message, self._version):
            return None
        self._emit_struct(message, "message", 1)
        head = ["def translate(message, translations, resolve):", "    count = 0"]
        head += [f"    {name} = translations[{entity!r}]" for entity, name in self._tables.items()]
        # The last line makes a generator of a function that has no loop.
        source = [*head, *self._lines, "    if False: yield"]
        where = f"<{message.__name__} v{self._version} names>"
        function: MapSteps = compile_function(source, "translate", {"FOREIGN": FOREIGN}, where)
        return function

    def _emit(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _fresh(self, hint: str) -> str:
        self._counter += 1
        return f"{hint}{self._counter}"

    def _table(self, entity: str) -> str:
        return self._tables.setdefault(entity, f"_{entity}")

    def _emit_struct(self, cls: type[Struct], owner: str, depth: int, drop: str = "") -> None:
        """Translate the fields of a struct; *drop* is the variable that becomes true if it is not the instance's."""
        # What a struct holds is translated before its own names, as these may decide that it is left out.
        for name, field in sorted(cls.FIELDS.items(), key=lambda item: item[1].kind not in ("array", "struct")):
            if self._version in field.versions and _holds_entities(field, self._version):
                self._emit_field(cls, name, field, owner, depth, drop)

    def _emit_field(self, cls: type[Struct], name: str, field: Field, owner: str, depth: int, drop: str) -> None:
        target = f"{owner}.{name}"
        if field.kind == "struct":
            assert field.struct is not None
            inner = self._fresh("inner")
            self._emit(depth, f"{inner} = {target}")
            self._emit(depth, f"if {inner} is not None:")
            self._emit_struct(field.struct, inner, depth + 1, drop)
        elif field.kind == "array":
            self._emit_array(cls, name, field, owner, depth)
        else:
            value = self._fresh("value")
            self._emit(depth, f"{value} = {target}")
            guard = depth
            if field.entity not in SIBLINGS and field.entity != CLUSTER:
                self._emit(depth, f"if {value} is not None:")
                guard += 1
            if field.entity in LARGE_VALUES:
                self._emit_large(field.entity, value, guard)
            else:
                self._emit(guard, f"{value} = {self._translate(field, value, owner)}")
            if drop:
                self._emit(guard, f"if {value} is FOREIGN: {drop} = True")
            else:
                self._emit(
                    guard, f"if {value} is FOREIGN: {value} = {'None' if self._version in field.nullable else repr('')}"
                )
            self._emit(guard, f"{target} = {value}")

    def _emit_large(self, entity: str, value: str, depth: int) -> None:
        """Translate bytes that may hold many names, in steps unless they are short."""
        table = self._table(entity)
        in_steps = f"(yield from {table}.in_steps({value}))"
        self._emit(depth, f"{value} = {table}[{value}] if len({value}) <= {SHORT_BYTES} else {in_steps}")

    def _translate(self, field: Field, value: str, owner: str) -> str:
        assert field.entity is not None
        if field.entity not in SIBLINGS:
            return f"{self._table(field.entity)}[{value}]"
        return f"resolve({field.entity!r}, {value}, {owner})"

    def _emit_array(self, cls: type[Struct], name: str, field: Field, owner: str, depth: int) -> None:
        element, target = field.element, f"{owner}.{name}"
        assert element is not None
        items, item, kept, drop = (self._fresh(hint) for hint in ("items", "item", "kept", "drop"))
        self._emit(depth, f"{items} = {target}")
        self._emit(depth, f"if {items}:")
        self._emit(depth + 1, f"{kept} = []")
        self._emit(depth + 1, f"for {item} in {items}:")
        inside = depth + 2
        self._emit(inside, "count += 1")
        self._emit(inside, f"if not count % {STEP_ELEMENTS}: yield")
        if element.kind == "struct":
            assert element.struct is not None
            self._emit(inside, f"{drop} = False")
            self._emit_struct(element.struct, item, inside, drop)
            self._emit(inside, f"if not {drop}: {kept}.append({item})")
        else:
            described = field if element.entity is None else element
            self._emit(inside, f"{item} = {self._translate(described, item, owner)}")
            self._emit(inside, f"if {item} is not FOREIGN: {kept}.append({item})")
        self._emit(depth + 1, f"{target} = {kept}")


def _has_entities(cls: type[Struct], version: int) -> bool:
    return any(version in field.versions and _holds_entities(field, version) for field in cls.FIELDS.values())


def _holds_entities(field: Field, version: int) -> bool:
    if field.kind == "struct":
        return field.struct is not None and _has_entities(field.struct, version)
    if field.kind == "array":
        return field.element is not None and _holds_entities(field.element, version)
    return field.entity is not None and field.entity not in UNMAPPED


_MAPPERS: dict[tuple[type[Message], int], MapSteps | None] = {}


def find_mapper(message: type[Message], version: int) -> MapSteps | None:
    """Return the function that translates one version of a message; None if it holds no names."""
    key = message, version
    if key not in _MAPPERS:
        _MAPPERS[key] = _MapperSource(version).build(message)
    return _MAPPERS[key]
