"""The file format of server.properties: the rules of java.util.Properties."""

from __future__ import annotations

import re

_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# A key ends at the first separator that no backslash protects; one '=' or ':' may stand between blanks.
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    """Parse a properties file; the last value of a repeated key counts.

    Raises ValueError for a ``\\u`` without four hexadecimal digits after it.
    """
    entries = {}
    for line in _join_logical_lines(text):
        match = _ENTRY.fullmatch(line)
        assert match, "the pattern matches any line"
        entries[_unescape_text(match[1])] = _unescape_text(match[2])
    return entries


def _join_logical_lines(text: str) -> list[str]:
    """Join lines that end in a backslash; drop blank lines and comments (a comment does not continue)."""
    lines = []
    pending: str | None = None
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        pending = (pending or "") + (line[:-1] if continued else line)
        if not continued:
            lines.append(pending)
            pending = None
    return lines if pending is None else [*lines, pending]


def _unescape_text(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_unescape_one, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape_one(match: re.Match[str]) -> str:
    escape = match[1]
    if escape == "u":
        # The text may be a secret.
        raise ValueError("a \\u is not followed by four hexadecimal digits: write \\\\u for a backslash and a u")
    return chr(int(escape[1:], 16)) if len(escape) > 1 else _LETTERS.get(escape, escape)
