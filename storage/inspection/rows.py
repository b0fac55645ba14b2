"""What a dump consists of: rows of named fields, in the words of Kafka's DumpLogSegments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from kafkacompat.wire.record_batch import Record

PROBLEM = "problem"


class Row(NamedTuple):
    """One line of a table; all rows of a ``kind`` have the same fields. Those of kind PROBLEM have one, "what"."""

    kind: str
    fields: Mapping[str, object]


Decoder: TypeAlias = "Callable[[Record], tuple[str | None, str | None]]"
"""Turns a record into the text of its key and of its value, None for null."""


class DumpOptions(NamedTuple):
    """What is asked for; see the options of `kafkacompat log dump`. ``decoder`` is None where records' contents are not wanted."""

    deep_iteration: bool = False
    decoder: Decoder | None = None
    skip_record_metadata: bool = False
    max_bytes: int = 2**31 - 1
    index_sanity_check: bool = False
    verify_index_only: bool = False


def problem(what: str) -> Row:
    """A row that says what is wrong."""
    return Row(PROBLEM, {"what": what})


def text(data: bytes) -> str:
    """Bytes as text; what is no UTF-8 shows as \\x.."""
    return data.decode("utf-8", "backslashreplace")


def plain_text(record: Record) -> tuple[str | None, str | None]:
    """The decoder of records whose keys and values are text."""
    return tuple(None if data is None else text(data) for data in (record.key, record.value))  # type: ignore[return-value]
