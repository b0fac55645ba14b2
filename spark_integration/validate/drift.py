"""Where records differ from the schema that they are read by: new, missing and changed fields, with their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

NEW, MISSING, CHANGED = "new", "missing", "changed"


def differences(writer: DataType, reader: DataType, path: str = "value") -> Iterator[str]:
    """Tell what *writer* writes otherwise than *reader* reads it: "new PATH", "missing PATH", "changed PATH"."""
    if isinstance(writer, StructType) and isinstance(reader, StructType):
        yield from _fields(writer, reader, path)
    elif isinstance(writer, ArrayType) and isinstance(reader, ArrayType):
        yield from differences(writer.elementType, reader.elementType, f"{path}[]")
    elif isinstance(writer, MapType) and isinstance(reader, MapType):
        yield from differences(writer.valueType, reader.valueType, f"{path}{{}}")
    elif writer != reader:
        yield f"{CHANGED} {path}"


def _fields(writer: StructType, reader: StructType, path: str) -> Iterator[str]:
    written, read = ({field.name: field.dataType for field in kind.fields} for kind in (writer, reader))
    yield from (f"{NEW} {path}.{name}" for name in written if name not in read)
    yield from (f"{MISSING} {path}.{name}" for name in read if name not in written)
    for name in written.keys() & read.keys():
        yield from differences(written[name], read[name], f"{path}.{name}")


def that_count(found: Mapping[str, int], decoded: int) -> dict[str, int]:
    """Leave out fields that some records lack and others have: such are optional."""
    return {what: count for what, count in found.items() if not what.startswith(f"{MISSING} ") or count >= decoded}
