"""Records as JSON with all their fields; `kafkacompat produce --json` reads the same."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from kafkacompat.cli.log_lines import CONTROLS
from kafkacompat.cli.remote.records.decoding import BASE64, format_json
from kafkacompat.cli.remote.records.line_format import TIMESTAMP_KINDS

if TYPE_CHECKING:
    from kafkacompat.cli.remote.records.decoding import Decode
    from kafkacompat.cli.remote.records.line_format import Format

_SHOWN = {code: f"\\u{code:04x}" for code in CONTROLS if code >= 0x7F}
"""Control characters that JSON leaves as they are, by what means the same in JSON."""


def make_json_format(decode_key: Decode, decode_value: Decode) -> Format:
    """Return a format with one line of JSON for each record."""

    def format_batch(batch: list[Any]) -> bytes:
        lines = [format_json(describe_record(message, decode_key, decode_value)) for message in batch]
        return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")

    return format_batch


def make_pretty_format(decode_key: Decode, decode_value: Decode) -> Format:
    """Return a format for a terminal: indented and coloured."""
    from rich.console import Console
    from rich.highlighter import JSONHighlighter
    from rich.text import Text

    console, highlight = Console(), JSONHighlighter()

    def format_batch(batch: list[Any]) -> bytes:
        with console.capture() as capture:
            for message in batch:
                text = json.dumps(describe_record(message, decode_key, decode_value), indent=2, ensure_ascii=False)
                shown = Text(text.translate(_SHOWN))
                highlight.highlight(shown)
                console.print(shown, soft_wrap=True)
        return capture.get().encode("utf-8", "backslashreplace")

    return format_batch


def describe_record(message: Any, decode_key: Decode, decode_value: Decode) -> dict[str, Any]:
    """Return the fields of a record: text where the bytes are UTF-8, and base64 in a field of another name where not."""
    kind, timestamp_ms = message.timestamp()
    record = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
    if kind in TIMESTAMP_KINDS:
        record |= {"timestamp": timestamp_ms, "timestamp_type": TIMESTAMP_KINDS[kind]}
    _describe_decoded(record, "key", message.key(), decode_key)
    _describe_decoded(record, "value", message.value(), decode_value)
    headers = []
    for name, value in message.headers() or ():
        header: dict[str, Any] = {"name": name}
        _describe_content(header, "value", value)
        headers.append(header)
    record["headers"] = headers
    return record


def _describe_decoded(record: dict[str, Any], name: str, content: bytes | None, decode: Decode) -> None:
    if content is None:
        record[name] = None
        return
    decoded = decode(content)
    if not decoded.is_decoded:
        _describe_content(record, name, content)
        return
    record[name] = decoded.value
    if decoded.schema_id is not None:
        record[f"{name}_schema_id"] = decoded.schema_id


def _describe_content(record: dict[str, Any], name: str, content: bytes | None) -> None:
    if content is None:
        record[name] = None
        return
    try:
        record[name] = content.decode()
    except UnicodeDecodeError:
        record[name + BASE64] = base64.b64encode(content).decode()
