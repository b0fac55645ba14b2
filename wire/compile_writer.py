"""Builds write functions: one flat function for each message and version.

Fields are written to one bytearray. A file region becomes a part of its own, and the fields after it start a new
bytearray.
"""

from __future__ import annotations

import struct
from typing import Any

from kafkacompat.wire.compile_function import compile_function
from kafkacompat.wire.compile_source import FIXED, Builder
from kafkacompat.wire.primitives import encode_uvarint
from kafkacompat.wire.schema import Field, Message, Struct, shared_default


class WriteBuilder(Builder):
    """Writes the source of a write function."""

    def build(self, message: type[Message]) -> Any:
        """Build a `WriteFunction`, or a `WriteSteps` if it works in steps."""
        out = self.out
        out.names.update(uvarint=encode_uvarint)
        self.buffer = "out"
        self._begin("out = bytearray(); parts = []")
        self._emit_struct(message, "message")
        out.emit("parts.append(out)")
        self._emit_result("parts")
        source = ["def write(message):", *out.lines]
        where = f"<{message.__name__} v{self.version} writer>"
        return compile_function(source, "write", out.names, where)

    def _emit_struct(self, cls: type[Struct], owner: str) -> None:
        for run in self._group_fixed(cls):
            if run[0][1].kind in FIXED:
                self._emit_fixed([f"{owner}.{name}" for name, _ in run], [field for _, field in run])
            else:
                name, field = run[0]
                self._emit_value(name, field, f"{owner}.{name}")
        if self.flexible:
            self._emit_tag_section(cls, owner)

    def _emit_fixed(self, values: list[str], fields: list[Field]) -> None:
        pack = self.out.struct("".join(FIXED[field.kind] for field in fields), "pack")
        self.out.emit(f"{self.buffer} += {pack}({', '.join(values)})")

    def _emit_value(self, name: str, field: Field, value: str) -> None:
        if field.kind in FIXED:
            self._emit_fixed([value], [field])
        elif field.kind == "struct":
            self._emit_nested(field, value)
        elif field.kind == "array":
            self._emit_array(name, field, value)
        else:
            self._emit_blob(name, field, value)

    def _emit_length(self, field: Field, length: str) -> None:
        if self._is_compact(field):
            self.out.emit(f"{self.buffer} += uvarint({length} + 1)")
        else:
            pack = self.out.struct("h" if field.kind == "string" else "i", "pack")
            self.out.emit(f"{self.buffer} += {pack}({length})")

    def _emit_null_branch(self, field: Field, value: str) -> bool:
        if not self._is_nullable(field):
            return False
        out = self.out
        out.emit(f"if {value} is None:")
        out.depth += 1
        self._emit_length(field, "-1")
        out.depth -= 1
        out.emit("else:")
        out.depth += 1
        return True

    def _emit_blob(self, name: str, field: Field, value: str) -> None:
        out = self.out
        local = out.fresh(name + "_")
        out.emit(f"{local} = {value}")
        opened = self._emit_null_branch(field, local)
        if field.kind == "records":
            self._emit_records(field, local)
        else:
            if field.kind == "string":
                out.emit(f"{local} = {local}.encode()")
            self._emit_length(field, f"len({local})")
            out.emit(f"{self.buffer} += {local}")
        out.depth -= opened

    def _emit_records(self, field: Field, value: str) -> None:
        """Write records: a region becomes a part of its own, and the fields after it start a new buffer."""
        out = self.out
        out.emit(f"if isinstance({value}, (bytes, bytearray, memoryview)):")
        out.depth += 1
        self._emit_length(field, f"len({value})")
        out.emit(f"{self.buffer} += {value}")
        out.depth -= 1
        out.emit("else:")
        out.depth += 1
        self._emit_length(field, f"{value}.size_bytes")
        out.emit(f"parts.append(out); parts.append({value}); out = bytearray()")
        out.depth -= 1

    def _emit_array(self, name: str, field: Field, value: str) -> None:
        out = self.out
        assert field.element is not None
        local = out.fresh(name + "_")
        out.emit(f"{local} = {value}")
        opened = self._emit_null_branch(field, local)
        self._emit_length(field, f"len({local})")
        if field.element.kind in FIXED and field.element.kind != "uuid":
            pack = out.bind("pack", struct.pack)
            out.emit(f"{self.buffer} += {pack}(f'>{{len({local})}}{FIXED[field.element.kind]}', *{local})")
        else:
            item = out.fresh(name + "_")
            out.emit(f"for {item} in {local}:")
            out.depth += 1
            self._emit_value(name, field.element, item)
            self._emit_end_of_element()
            out.depth -= 1
        out.depth -= opened

    def _emit_nested(self, field: Field, value: str) -> None:
        out = self.out
        assert field.struct is not None
        local = out.fresh("nested_")
        out.emit(f"{local} = {value}")
        if not self._is_nullable(field):
            self._emit_struct(field.struct, local)
            return
        out.emit(f"if {local} is None:")
        # In a tagged field null is 0, elsewhere it is -1.
        null = r"b'\x00'" if self._is_tagged(field) else r"b'\xff'"
        out.emit(f"    {self.buffer} += {null}")
        out.emit("else:")
        out.depth += 1
        out.emit(f"{self.buffer} += b'\\x01'")
        self._emit_struct(field.struct, local)
        out.depth -= 1

    def _emit_tag_section(self, cls: type[Struct], owner: str) -> None:
        """Write each tagged field that differs from its default, in the order of the tags."""
        out = self.out
        tags = self._list_tagged(cls)
        if not tags:
            out.emit(f"{self.buffer} += b'\\x00'")
            return
        outer, tagged = self.buffer, out.fresh("tags")
        out.emit(f"{tagged} = []")
        for name, field in tags:
            local = out.fresh(name + "_")
            out.emit(f"{local} = {owner}.{name}")
            out.emit(f"if {self._differs(local, field)}:")
            out.depth += 1
            self.buffer = out.fresh("buffer")
            out.emit(f"{self.buffer} = bytearray()")
            self._emit_value(name, field, local)
            out.emit(f"{tagged}.append(({field.tag}, {self.buffer}))")
            out.depth -= 1
        self.buffer = outer
        out.emit(f"{outer} += uvarint(len({tagged}))")
        out.emit(f"for tag, content in {tagged}:")
        out.emit(f"    {outer} += uvarint(tag); {outer} += uvarint(len(content)); {outer} += content")

    def _differs(self, local: str, field: Field) -> str:
        if field.kind == "struct" and field.default is None:
            return "True"  # Kafka also writes a null here; it leaves out a struct of defaults only.
        if field.default is None:
            return f"{local} is not None"
        if field.default is list:
            return f"{local} is None or len({local})"
        default = self.out.bind("default", shared_default(field))
        return f"{local} is not {default} and {local} != {default}"
