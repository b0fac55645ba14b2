"""Records as lines of text, with the fields and marks of Kafka's console consumer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kafkacompat.cli.log_lines import CONTROLS

if TYPE_CHECKING:
    from kafkacompat.cli.remote.records.decoding import Decode

FIELDS = ("timestamp", "partition", "offset", "headers", "key", "value")
"""What a line may show, in this order."""
NULL = b"null"
TIMESTAMP_KINDS = {1: "CreateTime", 2: "LogAppendTime"}
_SHOWN = {code: name for code, name in CONTROLS.items() if chr(code) not in "\n\t"}

Format = Callable[[list[Any]], bytes]
"""Formats a batch of records, with the end of each line."""
Cell = Callable[[Any], bytes]


def escape_bytes(content: bytes) -> bytes:
    r"""Replace bytes that are no UTF-8 by `\xff`, and control characters but line ends and tabs by their names."""
    return content.decode("utf-8", "backslashreplace").translate(_SHOWN).encode()


def format_raw(batch: list[Any]) -> bytes:
    """Return the values one after the other, with nothing between them; null adds nothing."""
    return b"".join([message.value() or b"" for message in batch])


def format_values(batch: list[Any]) -> bytes:
    """Return a line for each value, as it is."""
    values = [message.value() for message in batch]
    try:
        return b"\n".join(values) + b"\n"
    except TypeError:
        return b"\n".join([NULL if value is None else value for value in values]) + b"\n"


def make_line_format(
    fields: Sequence[str], separator: bytes, decode_key: Decode, decode_value: Decode, *, escapes: bool
) -> Format:
    """Return a format with these of FIELDS; *escapes* is for a terminal, which bytes of a record must not control."""
    cells = _make_cells(decode_key, decode_value)
    chosen = [cells[field] for field in FIELDS if field in fields]

    def format_batch(batch: list[Any]) -> bytes:
        lines = [separator.join([cell(message) for cell in chosen]) for message in batch]
        return b"\n".join(map(escape_bytes, lines) if escapes else lines) + b"\n"

    return format_batch


def _make_cells(decode_key: Decode, decode_value: Decode) -> dict[str, Cell]:
    return {
        "timestamp": _format_timestamp,
        "partition": lambda message: b"Partition:%d" % message.partition(),
        "offset": lambda message: b"Offset:%d" % message.offset(),
        "headers": _format_headers,
        "key": lambda message: _format_content(message.key(), decode_key),
        "value": lambda message: _format_content(message.value(), decode_value),
    }


def _format_timestamp(message: Any) -> bytes:
    kind, timestamp_ms = message.timestamp()
    name = TIMESTAMP_KINDS.get(kind)
    return b"NO_TIMESTAMP" if name is None else f"{name}:{timestamp_ms}".encode()


def _format_headers(message: Any) -> bytes:
    headers = message.headers()
    if not headers:
        return b"NO_HEADERS"
    return b",".join([name.encode() + b":" + (NULL if value is None else value) for name, value in headers])


def _format_content(content: bytes | None, decode: Decode) -> bytes:
    if content is None:
        return NULL
    return decode(content).to_line()
