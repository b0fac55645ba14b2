"""Keys and values as text, as JSON, or by the schemas of a registry."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from kafkacompat.cli.remote.records.failures import ReasonCounts

BASE64 = "_base64"
"""Ends the name of a field of JSON whose bytes are no UTF-8."""
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


def load_json(content: bytes) -> Any:
    """Return the value of JSON; raises ValueError and RecursionError, also for NaN and infinite numbers, which JSON has not."""
    return json.loads(content, parse_constant=_reject_constant, parse_float=_parse_float)


def _reject_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large")
    return number


class Failures(ReasonCounts):
    """Counts keys and values that could not be decoded, by reason."""

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
            return Decoded(content, True, load_json(content))
        except (ValueError, RecursionError):
            failures.count("it is no JSON")
            return Decoded(content)

    return decode_json
