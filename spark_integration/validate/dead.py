"""The reasons of dead letters: why a record does not fit the schema."""

from __future__ import annotations

SHOWN_CHARACTERS = 80
DETAIL_CHARACTERS = 500

# The word in a dead letter's header, and its meaning (docs/SPARK.md has the same list).
REASONS = {
    "no-schema-id": "the value does not begin with the header of a schema registry's serializers",
    "unknown-schema": "the registry has no schema of that id",
    "unusable-schema": "the schema of that id cannot be read",
    "malformed": "the value is not in the format",
    "other-message": "the value is another message of the Protobuf schema",
    "does-not-fit": "the value is well formed and does not fit the schema",
}


class DeadLetterError(Exception):
    """A record does not fit the schema; *reason* is one of REASONS, *detail* a sentence about this record."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail[:DETAIL_CHARACTERS]


def shorten_value(value: object) -> str:
    """Return the beginning of a value, for a detail."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
