"""Source code under construction: what the builders of readers, writers and constructors share."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.schema import Field, Struct


class Region(Protocol):
    """Bytes that lie elsewhere (in a file) and are sent from there."""

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

_SHARED_STRUCTS: dict[type[Struct], Struct] = {}


def shared_default(field: Field) -> Any:
    """Tagged structs are nearly always left at their default, so all messages share one, which refuses to be changed."""
    if field.struct is None or field.default is None:
        return field.default
    if field.struct not in _SHARED_STRUCTS:
        _SHARED_STRUCTS[field.struct] = _unchangeable(field.struct)
    return _SHARED_STRUCTS[field.struct]


def _unchangeable(of: type[Struct]) -> Struct:
    """Return a struct of defaults, equal to any other; a change would show in every message that has it as default."""
    shared = of()

    def refuse(_: Struct, name: str, value: object) -> None:
        raise AttributeError(
            f"{of.__name__}.{name} = {value!r} would change a shared default; assign a new {of.__name__}"
        )

    frozen = type(of.__name__, (of,), {"__setattr__": refuse, "__eq__": _equals_its_base, "__hash__": None})
    frozen.FIELDS = of.FIELDS  # type: ignore[attr-defined]
    shared.__class__ = frozen
    return shared


def _equals_its_base(shared: Struct, other: object) -> bool:
    return isinstance(other, type(shared).__mro__[1]) and vars(other) == vars(shared)


def compile_source(source: Sequence[str], function: str, names: dict[str, Any], where: str) -> Any:
    exec(compile("\n".join(source) + "\n", where, "exec"), names)
    return names[function]


class Source:
    """Lines of a function under construction, with the names it refers to."""

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
"""So many, at some microseconds each, are a step."""


class Builder:
    """Builds a function, or *in steps* a generator: it yields None behind so many elements of arrays, and last the result."""

    def __init__(self, version: int, flexible: bool, in_steps: bool = False) -> None:
        self.version = version
        self.flexible = flexible
        self.in_steps = in_steps
        self.out = Source()

    def _begin(self, *lines: str) -> None:
        for line in (*lines, *(["elements = 0"] if self.in_steps else [])):
            self.out.emit(line)

    def _end_of_element(self) -> None:
        if self.in_steps:
            self.out.emit("elements += 1")
            self.out.emit(f"if not elements % {STEP_ELEMENTS}: yield")

    def _result(self, result: str) -> None:
        self.out.emit(f"{'yield' if self.in_steps else 'return'} {result}")

    def _present(self, cls: type[Struct]) -> list[tuple[str, Field]]:
        return [(name, f) for name, f in cls.FIELDS.items() if self.version in f.versions and not self._tagged(f)]

    def _tags(self, cls: type[Struct]) -> list[tuple[str, Field]]:
        fields = [(name, f) for name, f in cls.FIELDS.items() if self.version in f.versions and self._tagged(f)]
        return sorted(fields, key=lambda item: item[1].tag or 0)

    def _tagged(self, field: Field) -> bool:
        return self.version in field.tagged and self.flexible

    def _compact(self, field: Field) -> bool:
        return self.flexible and field.flexible

    def _nullable(self, field: Field) -> bool:
        return self.version in field.nullable

    def _runs(self, cls: type[Struct]) -> list[list[tuple[str, Field]]]:
        """Group neighbouring fixed-width fields; every other field stands alone."""
        runs: list[list[tuple[str, Field]]] = []
        for item in self._present(cls):
            if item[1].kind in FIXED and runs and runs[-1][-1][1].kind in FIXED:
                runs[-1].append(item)
            else:
                runs.append([item])
        return runs
