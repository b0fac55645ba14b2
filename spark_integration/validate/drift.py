"""Where records differ from the schema that they are read by: new, missing and changed fields, with their paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

NEW, MISSING, CHANGED, HAS = "new", "missing", "changed", "has"
# Different new fields that are told one by one, for keys may be anything.
MOST_DIFFERENCES = 200
OTHERS = "new other fields"
MOST_CHARACTERS = 200


@dataclass(slots=True)
class RecordDrift:
    """Of one record: what *differs* ("new a.b", "missing a.c", "changed a.d"), and which fields of the schema it *has*.

    A field may be in both: in one item of an array and not in another.
    """

    differs: set[str] = field(default_factory=set)
    has: set[str] = field(default_factory=set)


@dataclass
class BatchDrift:
    """Of many records: how many of them differ in what, and what any of them has."""

    differs: Counter[str] = field(default_factory=Counter)
    has: set[str] = field(default_factory=set)

    def add(self, drift: RecordDrift, good: bool) -> None:
        """Add a record; one that is not good may lack a field because it is broken."""
        if good:
            self.has |= drift.has
            self.differs.update(drift.differs)
        else:
            self.differs.update(what for what in drift.differs if not what.startswith(MISSING))


def list_differences(writer: DataType, reader: DataType, path: str = "value") -> Iterator[str]:
    """Tell what *writer* writes otherwise than *reader* reads it: "new PATH", "missing PATH", "changed PATH"; "has PATH"."""
    if isinstance(writer, StructType) and isinstance(reader, StructType):
        yield from _field_differences(writer, reader, path)
    elif isinstance(writer, ArrayType) and isinstance(reader, ArrayType):
        yield from list_differences(writer.elementType, reader.elementType, f"{path}[]")
    elif isinstance(writer, MapType) and isinstance(reader, MapType):
        yield from list_differences(writer.valueType, reader.valueType, f"{path}{{}}")
    elif writer != reader:
        yield f"{CHANGED} {path}"


def _field_differences(writer: StructType, reader: StructType, path: str) -> Iterator[str]:
    written, read = ({field.name: field.dataType for field in kind.fields} for kind in (writer, reader))
    yield from (f"{NEW} {path}.{name}" for name in written if name not in read)
    yield from (f"{MISSING} {path}.{name}" for name in read if name not in written)
    for name in written.keys() & read.keys():
        yield f"{HAS} {path}.{name}"
        yield from list_differences(written[name], read[name], f"{path}.{name}")


def compare_types(writer: DataType, reader: DataType) -> RecordDrift:
    """Return what records differ in that are written by another type."""
    found = set(list_differences(writer, reader))
    has = {what for what in found if what.startswith(f"{HAS} ")}
    return RecordDrift(found - has, {what.removeprefix(f"{HAS} ") for what in has})


def drop_optional_fields(found: Mapping[str, int], has: set[str]) -> dict[str, int]:
    """Leave out fields that some records lack and others have: such are optional."""
    return {what: count for what, count in found.items() if what.removeprefix(f"{MISSING} ") not in has}


def shorten_difference(what: str, known: set[str]) -> str:
    """Return what a difference is told as: a new field is cut off, and is OTHERS where *known* are many and it is none."""
    if not what.startswith(NEW):
        return what
    short = what if len(what) <= MOST_CHARACTERS else f"{what[:MOST_CHARACTERS]}..."
    return short if short in known or len(known) < MOST_DIFFERENCES else OTHERS
