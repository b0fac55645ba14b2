"""The known name that somebody probably meant by an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

from kafkacompat.config.topic_defaults import SYNONYMS

SIMILARITY = 0.8
"""Share of the letters of both names that must agree, as difflib counts them."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean num.partitions?)`, or nothing when no known name is near.

    A topic config where a broker's property belongs is answered with the property that sets it for all topics.
    """
    known = list(known)
    synonyms = [synonym.name for synonym in SYNONYMS.get(name, ()) if synonym.name in known]
    near = synonyms or _nearest(name, known)
    return f" (did you mean {near[0]}?)" if near else ""


def _nearest(name: str, known: list[str]) -> list[str]:
    from difflib import get_close_matches  # rarely needed, and it makes the start longer

    return get_close_matches(name, known, 1, SIMILARITY)
