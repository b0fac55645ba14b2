"""Source code under construction: what the builders of readers and writers share."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.schema import Field, Struct


class Region(Protocol):
    """Bytes in a file, which are sent from there."""

    @property
    def size_bytes(self) -> int: ...


Part: TypeAlias = "Buffer | Region"
ReadFunction: TypeAlias = Callable[[Buffer, int], "tuple[Any, int]"]
WriteFunction: TypeAlias = Callable[[Any], "list[Part]"]
ReadSteps: TypeAlias = Callable[[Buffer, int], "Iterator[tuple[Any, int] | None]"]
WriteSteps: TypeAlias = Callable[[Any], "Iterator[list[Part] | None]"]

FIXED = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}


class FunctionSource:
    """The lines of a function under construction, and the names that it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, Any] = {}
        self._counter = 0

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, hint: str) -> str:
        self._counter += 1
        return f"{hint}{self._counter}"

    def bind(self, hint: str, value: Any) -> str:
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(f"_{hint}")
        self.names[name] = value
        return name

    def struct(self, codes: str, method: str) -> str:
        key = f"_{method}_{codes.replace('?', 'z')}"
        if key not in self.names:
            self.names[key] = getattr(struct.Struct(">" + codes), method)
        return key


STEP_ELEMENTS = 64
"""Elements of one step; each takes some microseconds."""


class Builder:
    """Builds a function, or *in steps* a generator that yields None after each `STEP_ELEMENTS` elements and the result last."""

    def __init__(self, version: int, flexible: bool, in_steps: bool = False) -> None:
        self.version = version
        self.flexible = flexible
        self.in_steps = in_steps
        self.out = FunctionSource()

    def _begin(self, *lines: str) -> None:
        for line in (*lines, *(["elements = 0"] if self.in_steps else [])):
            self.out.emit(line)

    def _emit_end_of_element(self) -> None:
        if self.in_steps:
            self.out.emit("elements += 1")
            self.out.emit(f"if not elements % {STEP_ELEMENTS}: yield")

    def _emit_result(self, result: str) -> None:
        self.out.emit(f"{'yield' if self.in_steps else 'return'} {result}")

    def _list_present(self, cls: type[Struct]) -> list[tuple[str, Field]]:
        return [(name, f) for name, f in cls.FIELDS.items() if self.version in f.versions and not self._is_tagged(f)]

    def _list_tagged(self, cls: type[Struct]) -> list[tuple[str, Field]]:
        fields = [(name, f) for name, f in cls.FIELDS.items() if self.version in f.versions and self._is_tagged(f)]
        return sorted(fields, key=lambda item: item[1].tag or 0)

    def _is_tagged(self, field: Field) -> bool:
        return self.version in field.tagged and self.flexible

    def _is_compact(self, field: Field) -> bool:
        return self.flexible and field.flexible

    def _is_nullable(self, field: Field) -> bool:
        return self.version in field.nullable

    def _group_fixed(self, cls: type[Struct]) -> list[list[tuple[str, Field]]]:
        """Group neighbouring fixed-width fields; every other field is a group of its own."""
        runs: list[list[tuple[str, Field]]] = []
        for item in self._list_present(cls):
            if item[1].kind in FIXED and runs and runs[-1][-1][1].kind in FIXED:
                runs[-1].append(item)
            else:
                runs.append([item])
        return runs
