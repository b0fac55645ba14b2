"""One declaration and one version in, one flat read function and one flat write function out.

The functions are Python source, built and compiled when first asked for. Two things make them
fast: neighbouring fixed-width fields share one `struct.Struct`, and nested structs are inlined, so a
message costs no call per field. Every read is checked against the end of the frame; a message
that lies about a length raises MalformedError.

A write function returns a list of *parts*: buffers, and between them the file regions that stand
in `records` fields, so that the transport can send those without reading them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from kafkacompat.wire.primitives import Buffer, MalformedError, read_uvarint, uvarint
from kafkacompat.wire.schema import Field, Message, Struct

MessageType = TypeVar("MessageType", bound=Message)


class Region(Protocol):
    """Bytes that lie elsewhere (in a file) and are sent from there."""

    @property
    def size_bytes(self) -> int: ...


Part: TypeAlias = "Buffer | Region"
ReadFunction: TypeAlias = Callable[[Buffer, int], "tuple[Any, int]"]
WriteFunction: TypeAlias = Callable[[Any], "list[Part]"]

MAX_ELEMENTS = 1_000_000
"""Elements that all arrays of one message may have together: two bytes can stand for an object of two hundred."""

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


_READERS: dict[tuple[type[Message], int], ReadFunction] = {}
_WRITERS: dict[tuple[type[Message], int], WriteFunction] = {}


def reader(message: type[Message], version: int) -> ReadFunction:
    """Return ``read(data, position) -> (message, next position)`` for one version.

    Raises ValueError for a version outside the declaration's range.
    """
    read = _READERS.get((message, version))
    if read is None:
        _check_version(message, version)
        read = _READERS[message, version] = _ReadBuilder(version, version in message.FLEXIBLE).build(message)
    return read


def writer(message: type[Message], version: int) -> WriteFunction:
    """Return ``write(message) -> parts`` for one version.

    Raises ValueError for a version outside the declaration's range.
    """
    write = _WRITERS.get((message, version))
    if write is None:
        _check_version(message, version)
        write = _WRITERS[message, version] = _WriteBuilder(version, version in message.FLEXIBLE).build(message)
    return write


def decode(message: type[MessageType], data: Buffer, version: int) -> MessageType:
    """Read one message from the start of *data*; what follows it is ignored, as in Kafka."""
    value: MessageType = reader(message, version)(data, 0)[0]
    return value


def encode(message: Message, version: int) -> bytes:
    """Write one message that holds no file regions."""
    return b"".join(writer(type(message), version)(message))  # type: ignore[arg-type]


def compile_constructor(cls: type[Struct]) -> Callable[..., None]:
    """Build ``__init__`` with one optional argument a field, in declaration order."""
    arguments, body = [], []
    names: dict[str, Any] = {"_absent": _ABSENT}
    for name, field in cls.FIELDS.items():
        names[f"_default_{name}"] = _shared_default(field) if field.tag is not None else field.default
        if isinstance(names[f"_default_{name}"], type):
            arguments.append(f"{name}=_absent")
            body.append(f"    self.{name} = _default_{name}() if {name} is _absent else {name}")
        else:
            arguments.append(f"{name}=_default_{name}")
            body.append(f"    self.{name} = {name}")
    source = [f"def __init__({', '.join(['self', *arguments])}):", *(body or ["    pass"])]
    constructor: Callable[..., None] = _compile(source, "__init__", names, f"<{cls.__name__} constructor>")
    return constructor


_ABSENT = object()
_SHARED_STRUCTS: dict[type[Struct], Struct] = {}


def _shared_default(field: Field) -> Any:
    """Tagged structs are nearly always left at their default, so all messages share one (replace it, never change it)."""
    if field.struct is None or field.default is None:
        return field.default
    if field.struct not in _SHARED_STRUCTS:
        _SHARED_STRUCTS[field.struct] = field.struct()
    return _SHARED_STRUCTS[field.struct]


def _check_version(message: type[Message], version: int) -> None:
    if version not in message.VERSIONS:
        span = f"{message.VERSIONS.first}-{message.VERSIONS.last}"
        raise ValueError(f"{message.__name__} has no version {version}; use one of {span}")


def _compile(source: Sequence[str], function: str, names: dict[str, Any], where: str) -> Any:
    exec(compile("\n".join(source) + "\n", where, "exec"), names)
    return names[function]


def _overrun(position: int, size: int) -> MalformedError:
    return MalformedError(f"a field ends at byte {position} of a frame that holds {size}")


def _bad_length(name: str, length: int) -> MalformedError:
    return MalformedError(f"{name} has the length {length}")


def _too_many(name: str) -> MalformedError:
    return MalformedError(f"{name} brings the arrays of one message to more than {MAX_ELEMENTS} elements")


class _Source:
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


class _Builder:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.out = _Source()

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


class _ReadBuilder(_Builder):
    """Writes the source of a read function: locals, then one constructor call a struct."""

    def build(self, message: type[Message]) -> ReadFunction:
        out = self.out
        out.names.update(read_uvarint=read_uvarint, overrun=_overrun, bad_length=_bad_length, error=struct.error)
        out.names.update(MalformedError=MalformedError, text=str, raw=bytes, too_many=_too_many)
        out.emit(f"size = len(data); left = {MAX_ELEMENTS}")
        out.emit("try:")
        out.depth += 1
        result = self._struct(message)
        out.emit(f"return {result}, pos")
        out.depth -= 1
        out.emit("except (error, IndexError):")
        out.emit("    raise overrun(pos, size) from None")
        out.emit("except UnicodeDecodeError as problem:")
        out.emit("    raise MalformedError(f'a string is not UTF-8: {problem}') from None")
        source = ["def read(data, pos):", *out.lines]
        function: ReadFunction = _compile(source, "read", out.names, f"<{message.__name__} v{self.version} reader>")
        return function

    def _struct(self, cls: type[Struct]) -> str:
        out = self.out
        values: dict[str, str] = {}
        for run in self._runs(cls):
            if run[0][1].kind in FIXED:
                targets = [out.fresh(name + "_") for name, _ in run]
                self._fixed(targets, [field for _, field in run])
                values.update(zip((name for name, _ in run), targets, strict=True))
            else:
                (name, field) = run[0]
                values[name] = self._value(name, field)
        if self.flexible:
            values.update(self._tag_section(cls))
        arguments = ", ".join(f"{name}={value}" for name, value in values.items())
        target = out.fresh("struct_")
        out.emit(f"{target} = {out.bind(cls.__name__, cls)}({arguments})")
        return target

    def _fixed(self, targets: list[str], fields: list[Field]) -> None:
        codes = "".join(FIXED[field.kind] for field in fields)
        unpack = self.out.struct(codes, "unpack_from")
        self.out.emit(f"{', '.join(targets)}, = {unpack}(data, pos); pos += {struct.calcsize('>' + codes)}")

    def _value(self, name: str, field: Field) -> str:
        if field.kind in FIXED:
            target = self.out.fresh(name + "_")
            self._fixed([target], [field])
            return target
        if field.kind == "struct":
            return self._nested(name, field)
        return self._array(name, field) if field.kind == "array" else self._blob(name, field)

    def _length(self, name: str, field: Field) -> str:
        """Read a length: an int16 or int32, or in compact form an unsigned varint less one."""
        out = self.out
        length = out.fresh("n")
        if self._compact(field):
            out.emit(f"{length} = data[pos]; pos += 1")
            out.emit(f"if {length} > 127:")
            out.emit(f"    {length}, pos = read_uvarint(data, pos - 1)")
            out.emit(f"{length} -= 1")
        else:
            code = "h" if field.kind == "string" else "i"
            self._emit_unpack(length, code)
        if not self._nullable(field):
            out.emit(f"if {length} < 0: raise bad_length({name!r}, {length})")
        return length

    def _emit_unpack(self, target: str, code: str) -> None:
        unpack = self.out.struct(code, "unpack_from")
        self.out.emit(f"{target}, = {unpack}(data, pos); pos += {struct.calcsize('>' + code)}")

    def _null_branch(self, name: str, field: Field, length: str, target: str) -> bool:
        """Open the branch for a value that is there; True when a branch was opened."""
        if not self._nullable(field):
            return False
        out = self.out
        out.emit(f"if {length} < 0:")
        out.emit(f"    if {length} != -1: raise bad_length({name!r}, {length})")
        out.emit(f"    {target} = None")
        out.emit("else:")
        out.depth += 1
        return True

    def _blob(self, name: str, field: Field) -> str:
        out = self.out
        length = self._length(name, field)
        target, end = out.fresh(name + "_"), out.fresh("end")
        opened = self._null_branch(name, field, length, target)
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

    def _array(self, name: str, field: Field) -> str:
        out = self.out
        assert field.element is not None
        length = self._length(name, field)
        target = out.fresh(name + "_")
        opened = self._null_branch(name, field, length, target)
        out.emit(f"if {length} > size - pos: raise bad_length({name!r}, {length})")
        out.emit(f"left -= {length}")
        out.emit(f"if left < 0: raise too_many({name!r})")
        if field.element.kind in FIXED and field.element.kind != "uuid":
            self._fixed_array(target, length, FIXED[field.element.kind])
        else:
            item = out.fresh(name + "_")
            out.emit(f"{target} = []; {item}_add = {target}.append")
            out.emit(f"for _ in range({length}):")
            out.depth += 1
            out.emit(f"{item}_add({self._value(name, field.element)})")
            out.depth -= 1
        out.depth -= opened
        return target

    def _fixed_array(self, target: str, length: str, code: str) -> None:
        out = self.out
        unpack = out.bind("unpack_from", struct.unpack_from)
        width = struct.calcsize(">" + code)
        out.emit(f"{target} = list({unpack}(f'>{{{length}}}{code}', data, pos)); pos += {length} * {width}")

    def _nested(self, name: str, field: Field) -> str:
        out = self.out
        assert field.struct is not None
        if not self._nullable(field):
            return self._struct(field.struct)
        marker, target = out.fresh("n"), out.fresh(name + "_")
        self._emit_unpack(marker, "b")
        out.emit(f"if {marker} < 0:")
        out.emit(f"    {target} = None")
        out.emit("else:")
        out.depth += 1
        out.emit(f"{target} = {self._struct(field.struct)}")
        out.depth -= 1
        return target

    def _tag_section(self, cls: type[Struct]) -> dict[str, str]:
        """Read the tagged fields; unknown tags are skipped, absent ones keep their default."""
        out = self.out
        targets = {}
        for name, field in self._tags(cls):
            targets[name] = out.fresh(name + "_")
            default = _shared_default(field)
            bound = out.bind("default", default) if default is not None else "None"
            out.emit(f"{targets[name]} = {bound}{'()' if isinstance(default, type) else ''}")
        count, tag, length, end = (out.fresh(hint) for hint in ("tags", "tag", "n", "end"))
        out.emit(f"{count} = data[pos]; pos += 1")
        out.emit(f"if {count} > 127: {count}, pos = read_uvarint(data, pos - 1)")
        out.emit(f"for _ in range({count}):")
        out.depth += 1
        out.emit(f"{tag}, pos = read_uvarint(data, pos); {length}, pos = read_uvarint(data, pos)")
        out.emit(f"{end} = pos + {length}")
        out.emit(f"if {end} > size: raise overrun({end}, size)")
        for name, field in self._tags(cls):
            out.emit(f"if {tag} == {field.tag}:")
            out.depth += 1
            out.emit(f"{targets[name]} = {self._value(name, field)}")
            out.emit(f"if pos != {end}: raise bad_length({name!r}, {length})")
            out.depth -= 1
        out.emit(f"pos = {end}")
        out.depth -= 1
        return targets


class _WriteBuilder(_Builder):
    """Writes the source of a write function: everything goes to one bytearray until a region comes."""

    def build(self, message: type[Message]) -> WriteFunction:
        out = self.out
        out.names.update(uvarint=uvarint)
        self.buffer = "out"
        self._struct(message, "message")
        out.emit("parts.append(out)")
        out.emit("return parts")
        source = ["def write(message):", "    out = bytearray(); parts = []", *out.lines]
        where = f"<{message.__name__} v{self.version} writer>"
        function: WriteFunction = _compile(source, "write", out.names, where)
        return function

    def _struct(self, cls: type[Struct], owner: str) -> None:
        for run in self._runs(cls):
            if run[0][1].kind in FIXED:
                self._fixed([f"{owner}.{name}" for name, _ in run], [field for _, field in run])
            else:
                name, field = run[0]
                self._value(name, field, f"{owner}.{name}")
        if self.flexible:
            self._tag_section(cls, owner)

    def _fixed(self, values: list[str], fields: list[Field]) -> None:
        pack = self.out.struct("".join(FIXED[field.kind] for field in fields), "pack")
        self.out.emit(f"{self.buffer} += {pack}({', '.join(values)})")

    def _value(self, name: str, field: Field, value: str) -> None:
        if field.kind in FIXED:
            self._fixed([value], [field])
        elif field.kind == "struct":
            self._nested(field, value)
        elif field.kind == "array":
            self._array(name, field, value)
        else:
            self._blob(name, field, value)

    def _length(self, field: Field, length: str) -> None:
        if self._compact(field):
            self.out.emit(f"{self.buffer} += uvarint({length} + 1)")
        else:
            pack = self.out.struct("h" if field.kind == "string" else "i", "pack")
            self.out.emit(f"{self.buffer} += {pack}({length})")

    def _null_branch(self, field: Field, value: str) -> bool:
        if not self._nullable(field):
            return False
        out = self.out
        out.emit(f"if {value} is None:")
        out.depth += 1
        self._length(field, "-1")
        out.depth -= 1
        out.emit("else:")
        out.depth += 1
        return True

    def _blob(self, name: str, field: Field, value: str) -> None:
        out = self.out
        local = out.fresh(name + "_")
        out.emit(f"{local} = {value}")
        opened = self._null_branch(field, local)
        if field.kind == "records":
            self._records(field, local)
        else:
            if field.kind == "string":
                out.emit(f"{local} = {local}.encode()")
            self._length(field, f"len({local})")
            out.emit(f"{self.buffer} += {local}")
        out.depth -= opened

    def _records(self, field: Field, value: str) -> None:
        """A region becomes a part of its own; what is written after it starts a new buffer."""
        out = self.out
        out.emit(f"if isinstance({value}, (bytes, bytearray, memoryview)):")
        out.depth += 1
        self._length(field, f"len({value})")
        out.emit(f"{self.buffer} += {value}")
        out.depth -= 1
        out.emit("else:")
        out.depth += 1
        self._length(field, f"{value}.size_bytes")
        out.emit(f"parts.append(out); parts.append({value}); out = bytearray()")
        out.depth -= 1

    def _array(self, name: str, field: Field, value: str) -> None:
        out = self.out
        assert field.element is not None
        local = out.fresh(name + "_")
        out.emit(f"{local} = {value}")
        opened = self._null_branch(field, local)
        self._length(field, f"len({local})")
        if field.element.kind in FIXED and field.element.kind != "uuid":
            pack = out.bind("pack", struct.pack)
            out.emit(f"{self.buffer} += {pack}(f'>{{len({local})}}{FIXED[field.element.kind]}', *{local})")
        else:
            item = out.fresh(name + "_")
            out.emit(f"for {item} in {local}:")
            out.depth += 1
            self._value(name, field.element, item)
            out.depth -= 1
        out.depth -= opened

    def _nested(self, field: Field, value: str) -> None:
        out = self.out
        assert field.struct is not None
        local = out.fresh("nested_")
        out.emit(f"{local} = {value}")
        if not self._nullable(field):
            self._struct(field.struct, local)
            return
        out.emit(f"if {local} is None:")
        out.emit(f"    {self.buffer} += b'\\xff'")
        out.emit("else:")
        out.depth += 1
        out.emit(f"{self.buffer} += b'\\x01'")
        self._struct(field.struct, local)
        out.depth -= 1

    def _tag_section(self, cls: type[Struct], owner: str) -> None:
        """Write each tagged field that differs from its default, in the order of the tags."""
        out = self.out
        tags = self._tags(cls)
        if not tags:
            out.emit(f"{self.buffer} += b'\\x00'")
            return
        outer, found = self.buffer, out.fresh("tags")
        out.emit(f"{found} = []")
        for name, field in tags:
            local = out.fresh(name + "_")
            out.emit(f"{local} = {owner}.{name}")
            out.emit(f"if {self._differs(local, field)}:")
            out.depth += 1
            self.buffer = out.fresh("buffer")
            out.emit(f"{self.buffer} = bytearray()")
            self._value(name, field, local)
            out.emit(f"{found}.append(({field.tag}, {self.buffer}))")
            out.depth -= 1
        self.buffer = outer
        out.emit(f"{outer} += uvarint(len({found}))")
        out.emit(f"for tag, content in {found}:")
        out.emit(f"    {outer} += uvarint(tag); {outer} += uvarint(len(content)); {outer} += content")

    def _differs(self, local: str, field: Field) -> str:
        if field.default is None:
            return f"{local} is not None"
        if field.default is list:
            return f"{local} is None or len({local})"
        default = self.out.bind("default", _shared_default(field))
        return f"{local} is not {default} and {local} != {default}"
