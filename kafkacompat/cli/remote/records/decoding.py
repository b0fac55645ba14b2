"""Keys and values as text, as JSON, or by the schemas of a registry."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

MOST_KINDS_OF_FAILURES = 20
_COMPACT = (",", ":")


class Decoded(NamedTuple):
    """A key or value: its bytes, and what they stand for if they were decoded."""

    content: bytes
    is_decoded: bool = False
    value: Any = None
    schema_id: int | None = None

    def to_line(self) -> bytes:
        """Return the decoded value as compact JSON, or the bytes."""
        return format_json(self.value).encode("utf-8", "backslashreplace") if self.is_decoded else self.content


Decode = Callable[[bytes], Decoded]
"""Decodes a key or value, which is not null; bytes that do not fit stay as they are."""


def format_json(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=_COMPACT, ensure_ascii=False)


class Failures:
    """Counts keys and values that could not be decoded, by reason; further reasons than MOST_KINDS_OF_FAILURES are one."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, reason: str) -> None:
        """Count a failure."""
        if reason not in self.counts and len(self.counts) >= MOST_KINDS_OF_FAILURES:
            reason = "other reasons"
        self.counts[reason] += 1

    @property
    def sentences(self) -> list[str]:
        """A sentence for each reason."""
        return [
            f"{count:,} key{'s' * (count != 1)} or value{'s' * (count != 1)} could not be decoded: {reason}"
            for reason, count in self.counts.most_common()
        ]


def keep_text(content: bytes) -> Decoded:
    """Decode nothing."""
    return Decoded(content)


def make_json_decode(failures: Failures) -> Decode:
    """Return a decoder of JSON."""

    def decode_json(content: bytes) -> Decoded:
        try:
            return Decoded(content, True, json.loads(content))
        except (ValueError, RecursionError):
            failures.count("it is no JSON")
            return Decoded(content)

    return decode_json
