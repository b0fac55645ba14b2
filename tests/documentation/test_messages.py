"""The messages of this broker that docs/TROUBLESHOOTING.md quotes are in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "TROUBLESHOOTING.md").read_text()
QUOTED = re.compile(r"^```message\n(.*?)^```", re.MULTILINE | re.DOTALL)
LITERALS_SIDE_BY_SIDE = re.compile(r"\"\s*\n\s*f?\"")
SHORTEST = 5
"""Characters; shorter parts of a message are in every code."""


def messages() -> list[str]:
    """Return the quoted messages of the page."""
    return [line for block in QUOTED.findall(PAGE) for line in block.splitlines()]


def fixed_parts(message: str) -> list[str]:
    """Return the parts of a message between its variable parts, without the punctuation that joins them."""
    parts = (part.strip(" :;,()`'.=") for clause in message.split(": ") for part in clause.split("…"))
    return [part for part in parts if len(part) >= SHORTEST]


@pytest.fixture(scope="module")
def code() -> str:
    modules = sorted((ROOT / "kafkacompat").rglob("*.py")) + [
        path for folder in ("handlers", "storage", "wire") for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    return LITERALS_SIDE_BY_SIDE.sub("", "".join(path.read_text() for path in modules))


def test_quoted_messages_are_in_the_code(code: str) -> None:
    quoted = messages()
    assert len(quoted) > 40
    assert [message for message in quoted if not all(part in code for part in fixed_parts(message))] == []


def test_every_message_has_a_part_to_search_for() -> None:
    assert [message for message in messages() if not fixed_parts(message)] == []
