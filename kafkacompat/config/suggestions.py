"""Suggestions for unknown names of properties: what replaced a name that is gone, or the nearest known name."""

from __future__ import annotations

from collections.abc import Iterable

from kafkacompat.config.old_names import GONE_NAMES
from kafkacompat.config.topic_defaults import TOPIC_CONFIG_SYNONYMS

SIMILARITY = 0.8
"""Least share of the letters of both names that agree, as difflib counts them."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean num.partitions?)`, or an empty text when no known name is near.

    For a name that older releases of Kafka have, it is what replaced it: ` (listeners replaces it)`.
    For a topic config among the broker's properties, it is the property that sets the config for all topics.
    """
    if name in GONE_NAMES:
        return f" ({GONE_NAMES[name]})"
    known = list(known)
    synonyms = [synonym.name for synonym in TOPIC_CONFIG_SYNONYMS.get(name, ()) if synonym.name in known]
    near = synonyms or _find_nearest(name, known)
    return f" (did you mean {near[0]}?)" if near else ""


def _find_nearest(name: str, known: list[str]) -> list[str]:
    from difflib import get_close_matches  # rarely needed, and importing it makes the start longer

    return get_close_matches(name, known, 1, SIMILARITY)
