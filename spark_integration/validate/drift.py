"""Differences between records and the schema by which they are read: new, missing and changed fields, with their paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

NEW, MISSING, CHANGED, HAS = "new", "missing", "changed", "has"
# The most new fields that are reported by name, since the keys of an object may be anything.
MOST_DIFFERENCES = 200
OTHERS = "new other fields"
MOST_CHARACTERS = 200


@dataclass(slots=True)
class RecordDrift:
    """How a record *differs* ("new a.b", "missing a.c", "changed a.d"), and which fields of the schema it *has*.

    A field may be in both: an array may have it in one item, and lack it in another.
    """

    differs: set[str] = field(default_factory=set)
    has: set[str] = field(default_factory=set)


@dataclass
class BatchDrift:
    """The differences of many records with the number of each, and the fields that any of them has."""

    differs: Counter[str] = field(default_factory=Counter)
    has: set[str] = field(default_factory=set)

    def add(self, drift: RecordDrift, good: bool) -> None:
        """Add a record; a record that is not good may lack a field because it is damaged."""
        if good:
            self.has |= drift.has
            self.differs.update(drift.differs)
        else:
            self.differs.update(difference for difference in drift.differs if not difference.startswith(MISSING))


def list_differences(writer: DataType, reader: DataType, path: str = "value") -> Iterator[str]:
    """Yield the differences of *writer* from *reader*: "new PATH", "missing PATH", "changed PATH", and "has PATH"."""
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
    """Return the differences of records that were written with the type *writer*."""
    differences = set(list_differences(writer, reader))
    has = {difference for difference in differences if difference.startswith(f"{HAS} ")}
    return RecordDrift(differences - has, {difference.removeprefix(f"{HAS} ") for difference in has})


def drop_optional_fields(counts: Mapping[str, int], has: set[str]) -> dict[str, int]:
    """Leave out missing fields that other records have: they are optional."""
    return {
        difference: count for difference, count in counts.items() if difference.removeprefix(f"{MISSING} ") not in has
    }


def shorten_difference(difference: str, known: set[str]) -> str:
    """Return the name under which a difference is reported.

    A long name of a new field is cut off. If *known* names are many, a further new field is reported as OTHERS.
    """
    if not difference.startswith(NEW):
        return difference
    short = difference if len(difference) <= MOST_CHARACTERS else f"{difference[:MOST_CHARACTERS]}..."
    return short if short in known or len(known) < MOST_DIFFERENCES else OTHERS
