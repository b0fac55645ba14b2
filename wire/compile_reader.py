"""Builds read functions: one flat function for each message and version.

Neighbouring fixed-width fields are unpacked together, nested structs are inlined, and each struct ends in one call of its
constructor. Every read is checked against the end of the frame.
"""

from __future__ import annotations

import struct
from typing import Any

from kafkacompat.wire.compile_function import compile_function
from kafkacompat.wire.compile_source import FIXED, Builder
from kafkacompat.wire.primitives import MalformedError, read_uvarint
from kafkacompat.wire.schema import Field, Message, Request, Struct, shared_default

MAX_STRING_BYTES = 0x7FFF
"""The longest string, also where the length field is wider than an int16."""

MAX_ELEMENTS = 100_000
"""The most elements and tagged fields of one message: two bytes of a frame can stand for an object of two hundred."""

LEAST_ELEMENT_BYTES = 4
"""The least bytes of an element in an honest message: a replica in a list."""


def _build_overrun_error(position: int, size: int) -> MalformedError:
    return MalformedError(f"a field ends at byte {position} of a frame that holds {size}")


def _build_length_error(name: str, length: int) -> MalformedError:
    return MalformedError(f"{name} has the length {length}")


def _build_count_error(name: str, most: int) -> MalformedError:
    return MalformedError(f"{name} brings a message to more than {most} elements and tagged fields")


def _format_bound(message: type[Message]) -> str:
    """Return the source of the bound: a controller's request has as many elements as its frame can hold."""
    if issubclass(message, Request) and message.SIZED_BY_CLUSTER:
        return f"max({MAX_ELEMENTS}, size // {LEAST_ELEMENT_BYTES})"
    return str(MAX_ELEMENTS)


class ReadBuilder(Builder):
    """Writes the source of a read function: local variables, then one constructor call for each struct."""

    def build(self, message: type[Message]) -> Any:
        """Build a `ReadFunction`, or a `ReadSteps` if it works in steps."""
        out = self.out
        out.names.update(
            read_uvarint=read_uvarint, overrun=_build_overrun_error, bad_length=_build_length_error, error=struct.error
        )
        out.names.update(MalformedError=MalformedError, text=str, raw=bytes, too_many=_build_count_error)
        self._begin(f"size = len(data); most = left = {_format_bound(message)}")
        out.emit("try:")
        out.depth += 1
        result = self._emit_struct(message)
        self._emit_result(f"{result}, pos")
        out.depth -= 1
        out.emit("except (error, IndexError):")
        out.emit("    raise overrun(pos, size) from None")
        out.emit("except UnicodeDecodeError as problem:")
        out.emit("    raise MalformedError(f'a string is not UTF-8: {problem}') from None")
        source = ["def read(data, pos):", *out.lines]
        return compile_function(source, "read", out.names, f"<{message.__name__} v{self.version} reader>")

    def _emit_struct(self, cls: type[Struct]) -> str:
        out = self.out
        values: dict[str, str] = {}
        for run in self._group_fixed(cls):
            if run[0][1].kind in FIXED:
                targets = [out.fresh(name + "_") for name, _ in run]
                self._emit_fixed(targets, [field for _, field in run])
                values.update(zip((name for name, _ in run), targets, strict=True))
            else:
                (name, field) = run[0]
                values[name] = self._emit_value(name, field)
        if self.flexible:
            values.update(self._emit_tag_section(cls))
        arguments = ", ".join(f"{name}={value}" for name, value in values.items())
        target = out.fresh("struct_")
        out.emit(f"{target} = {out.bind(cls.__name__, cls)}({arguments})")
        return target

    def _emit_fixed(self, targets: list[str], fields: list[Field]) -> None:
        codes = "".join(FIXED[field.kind] for field in fields)
        unpack = self.out.struct(codes, "unpack_from")
        self.out.emit(f"{', '.join(targets)}, = {unpack}(data, pos); pos += {struct.calcsize('>' + codes)}")

    def _emit_value(self, name: str, field: Field) -> str:
        if field.kind in FIXED:
            target = self.out.fresh(name + "_")
            self._emit_fixed([target], [field])
            return target
        if field.kind == "struct":
            return self._emit_nested(name, field)
        return self._emit_array(name, field) if field.kind == "array" else self._emit_blob(name, field)

    def _emit_length(self, name: str, field: Field) -> str:
        """Read a length: an int16 or int32, or in compact form an unsigned varint less one."""
        out = self.out
        length = out.fresh("n")
        if self._is_compact(field):
            out.emit(f"{length} = data[pos]; pos += 1")
            out.emit(f"if {length} > 127:")
            out.emit(f"    {length}, pos = read_uvarint(data, pos - 1)")
            if field.kind == "string":
                out.emit(f"    if {length} > {MAX_STRING_BYTES} + 1: raise bad_length({name!r}, {length} - 1)")
            out.emit(f"{length} -= 1")
        else:
            code = "h" if field.kind == "string" else "i"
            self._emit_unpack(length, code)
        if not self._is_nullable(field):
            out.emit(f"if {length} < 0: raise bad_length({name!r}, {length})")
        return length

    def _emit_unpack(self, target: str, code: str) -> None:
        unpack = self.out.struct(code, "unpack_from")
        self.out.emit(f"{target}, = {unpack}(data, pos); pos += {struct.calcsize('>' + code)}")

    def _emit_null_branch(self, name: str, field: Field, length: str, target: str) -> bool:
        """Open the branch for a value that is not null; return whether there is one."""
        if not self._is_nullable(field):
            return False
        out = self.out
        out.emit(f"if {length} < 0:")
        out.emit(f"    if {length} != -1: raise bad_length({name!r}, {length})")
        out.emit(f"    {target} = None")
        out.emit("else:")
        out.depth += 1
        return True

    def _emit_blob(self, name: str, field: Field) -> str:
        out = self.out
        length = self._emit_length(name, field)
        target, end = out.fresh(name + "_"), out.fresh("end")
        opened = self._emit_null_branch(name, field, length, target)
        out.emit(f"{end} = pos + {length}")
        out.emit(f"if {end} > size: raise overrun({end}, size)")
        convert = {
            "string": "text(data[pos:{end}], 'utf-8')",
            "bytes": "raw(data[pos:{end}])",
            "records": "data[pos:{end}]",
        }
        out.emit(f"{target} = {convert[field.kind].format(end=end)}; pos = {end}")
        out.depth -= opened
        return target

    def _emit_array(self, name: str, field: Field) -> str:
        out = self.out
        assert field.element is not None
        length = self._emit_length(name, field)
        target = out.fresh(name + "_")
        opened = self._emit_null_branch(name, field, length, target)
        out.emit(f"if {length} > size - pos: raise bad_length({name!r}, {length})")
        self._take(length, name)
        if field.element.kind in FIXED and field.element.kind != "uuid":
            self._emit_fixed_array(target, length, FIXED[field.element.kind])
        else:
            item = out.fresh(name + "_")
            out.emit(f"{target} = []; {item}_add = {target}.append")
            out.emit(f"for _ in range({length}):")
            out.depth += 1
            out.emit(f"{item}_add({self._emit_value(name, field.element)})")
            self._emit_end_of_element()
            out.depth -= 1
        out.depth -= opened
        return target

    def _take(self, count: str, name: str) -> None:
        self.out.emit(f"left -= {count}")
        self.out.emit(f"if left < 0: raise too_many({name!r}, most)")

    def _emit_fixed_array(self, target: str, length: str, code: str) -> None:
        out = self.out
        unpack = out.bind("unpack_from", struct.unpack_from)
        width = struct.calcsize(">" + code)
        out.emit(f"{target} = list({unpack}(f'>{{{length}}}{code}', data, pos)); pos += {length} * {width}")

    def _emit_nested(self, name: str, field: Field) -> str:
        out = self.out
        assert field.struct is not None
        if not self._is_nullable(field):
            return self._emit_struct(field.struct)
        marker, target = out.fresh("n"), out.fresh(name + "_")
        self._emit_unpack(marker, "b")
        # In a tagged field null is 0, elsewhere it is -1.
        out.emit(f"if {marker} {'<=' if self._is_tagged(field) else '<'} 0:")
        out.emit(f"    {target} = None")
        out.emit("else:")
        out.depth += 1
        out.emit(f"{target} = {self._emit_struct(field.struct)}")
        out.depth -= 1
        return target

    def _emit_tag_section(self, cls: type[Struct]) -> dict[str, str]:
        """Read the tagged fields; unknown tags are skipped, absent ones keep their default."""
        out = self.out
        targets = {}
        for name, field in self._list_tagged(cls):
            targets[name] = out.fresh(name + "_")
            default = shared_default(field)
            bound = out.bind("default", default) if default is not None else "None"
            out.emit(f"{targets[name]} = {bound}{'()' if isinstance(default, type) else ''}")
        count, tag, length, end = (out.fresh(hint) for hint in ("tags", "tag", "n", "end"))
        out.emit(f"{count} = data[pos]; pos += 1")
        out.emit(f"if {count}:")
        out.depth += 1
        out.emit(f"if {count} > 127: {count}, pos = read_uvarint(data, pos - 1)")
        self._take(count, f"tags of {cls.__name__}")
        out.emit(f"for _ in range({count}):")
        out.depth += 1
        out.emit(f"{tag}, pos = read_uvarint(data, pos); {length}, pos = read_uvarint(data, pos)")
        out.emit(f"{end} = pos + {length}")
        out.emit(f"if {end} > size: raise overrun({end}, size)")
        for name, field in self._list_tagged(cls):
            out.emit(f"if {tag} == {field.tag}:")
            out.depth += 1
            out.emit(f"{targets[name]} = {self._emit_value(name, field)}")
            out.emit(f"if pos != {end}: raise bad_length({name!r}, {length})")
            out.depth -= 1
        out.emit(f"pos = {end}")
        self._emit_end_of_element()
        out.depth -= 2
        return targets
