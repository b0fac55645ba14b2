"""Bytes of records as text: UTF-8, JSON or hexadecimal, bounded, and without characters that change how other text looks."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

PREVIEW_CHARACTERS = 160
LIST_BYTES = 2048
"""The most of a key or a value that a list of messages shows."""
HEADER_BYTES = 256
"""The most of the value of a header that is shown."""
MESSAGE_BYTES = 256 * 1024
"""The most of a key or a value that the page of one message shows."""
HEX_BYTES = 1024
ROW_BYTES = 16
MAX_JSON_BYTES = 64 * 1024
MAX_GROWTH = 8
"""How much longer line breaks may make JSON: deep nesting would make it as long as it likes."""

# Controls other than tab and line feed, marks that reverse the order of text, invisible ones, and halves of characters.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_INDENT = "  "


class ShownBytes(NamedTuple):
    """Bytes as the page shows them.

    ``form`` is "null", "empty", "text", "json" or "hex". ``preview`` is one line, ``full`` the text as far as it is shown, "" if the
    preview says everything. ``is_cut`` says that *full* is not all.
    """

    form: str
    size_bytes: int
    preview: str = ""
    full: str = ""
    is_cut: bool = False


def show_bytes(data: bytes | None, most_bytes: int = LIST_BYTES) -> ShownBytes:
    """Return bytes as text, at most *most_bytes* of them."""
    if data is None:
        return ShownBytes("null", 0)
    if not data:
        return ShownBytes("empty", 0)
    part = data[:most_bytes]
    text = _decode(part, is_cut=len(part) < len(data))
    if text is None:
        shown = part[:HEX_BYTES]
        return ShownBytes("hex", len(data), shown[:40].hex(" "), dump_hex(shown), len(shown) < len(data))
    pretty = format_json(text) if len(part) == len(data) else None
    full = reveal_hidden(text if pretty is None else pretty)
    line = reveal_hidden(" ".join(text[:LIST_BYTES].split()))
    preview = line[:PREVIEW_CHARACTERS] + "…" * (len(line) > PREVIEW_CHARACTERS)
    is_whole = preview == full
    form = "text" if pretty is None else "json"
    return ShownBytes(form, len(data), preview, "" if is_whole else full, len(part) < len(data))


def _decode(data: bytes, *, is_cut: bool) -> str | None:
    """Return UTF-8 as text; None for other bytes. The last character may be *is_cut*."""
    try:
        text = data.decode()
    except UnicodeDecodeError as problem:
        if not is_cut or problem.start < len(data) - 3 or problem.reason != "unexpected end of data":
            return None
        text = data[: problem.start].decode()
    controls = sum(1 for character in text if character < " " and character not in "\t\r\n")
    # Numbers in binary are often valid UTF-8, too.
    return None if controls * 8 > len(text) else text


def reveal_hidden(text: str) -> str:
    """Return a text with its invisible characters as escapes, such as \\u202e."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def dump_hex(data: bytes) -> str:
    """Return lines with positions, bytes in hexadecimal, and the printable characters of ASCII."""
    lines = []
    for start in range(0, len(data), ROW_BYTES):
        row = data[start : start + ROW_BYTES]
        characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:08x}  {row.hex(' '):<{ROW_BYTES * 3 - 1}}  {characters}")
    return "\n".join(lines)


def format_json(text: str) -> str | None:
    """Return a JSON object or array with line breaks; None for another text, and for one that would become too long.

    Only white space changes: numbers keep their digits, and an object its repeated keys.
    """
    if text.lstrip()[:1] not in ("{", "[") or len(text) > MAX_JSON_BYTES:
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    parts: list[str] = []
    depth = 0
    before = ""
    left = MAX_GROWTH * len(text) + 1000
    for token in _JSON_TOKEN.findall(text):
        is_end = token in "}]"
        depth -= is_end
        if before and (before not in "{[" if is_end else before in "{[,"):
            parts.append("\n" + _INDENT * depth)
            left -= len(parts[-1])
        parts.append(": " if token == ":" else token)
        left -= len(parts[-1])
        if left < 0:
            return None
        depth += token in "{["
        before = token
    return "".join(parts)
