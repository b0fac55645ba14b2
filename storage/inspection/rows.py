"""The rows of a dump: named fields, in the words of Kafka's DumpLogSegments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from kafkacompat.wire.record_batch import Record

PROBLEM = "problem"


class DumpRow(NamedTuple):
    """One line of a dump; all rows of a `kind` have the same fields. Rows of kind PROBLEM have the field "what"."""

    kind: str
    fields: Mapping[str, object]


Decoder: TypeAlias = "Callable[[Record], tuple[str | None, str | None]]"
"""Returns the texts of a record's key and value, None for null."""


class DumpOptions(NamedTuple):
    """The options of `kafkacompat log dump`; without a `decoder`, keys and values are left out."""

    deep_iteration: bool = False
    decoder: Decoder | None = None
    skip_record_metadata: bool = False
    max_bytes: int = 2**31 - 1
    index_sanity_check: bool = False
    verify_index_only: bool = False


def make_problem_row(problem: str) -> DumpRow:
    """Return a row that names a problem."""
    return DumpRow(PROBLEM, {"what": problem})


def decode_text(data: bytes) -> str:
    """Decode UTF-8; other bytes appear as \\x.."""
    return data.decode("utf-8", "backslashreplace")


def decode_plain_text(record: Record) -> tuple[str | None, str | None]:
    """Decode keys and values that are text."""
    return tuple(None if data is None else decode_text(data) for data in (record.key, record.value))  # type: ignore[return-value]
