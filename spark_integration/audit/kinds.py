"""The kinds of findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of finding: what is counted, and whether it is a problem by itself."""

    counted: str
    is_problem: bool


KINDS: Mapping[str, Kind] = {
    "gap": Kind("sequences that no record has", True),
    "duplicate": Kind("records whose sequence was there already", True),
    "inversion": Kind("records behind one of a higher sequence", True),
    "unexplained": Kind("offsets that nothing in the log explains", True),
    "missing": Kind("records of the topic that the archive lacks", True),
    "lost": Kind("records that the archive has lost since it was written", True),
    "extra": Kind("records of the archive that the topic does not have", True),
    "differing": Kind("records with other contents in the archive", True),
    "repeated": Kind("records more than once in the archive", True),
    "unattributed": Kind("records without a producer or a sequence", False),
    "unexamined": Kind("offsets without a record that were not looked into", False),
    "cut-sequence": Kind("sequences that may lie before or behind what was read", False),
    "marker": Kind("offsets of transaction markers", False),
    "aborted": Kind("records of aborted transactions", False),
    "aborted-sequence": Kind("sequences that only aborted transactions have", False),
    "compacted": Kind("offsets that compaction may have cleaned", False),
    "compacted-sequence": Kind("sequences that compaction may have cleaned", False),
    "absent": Kind("offsets that had no record when they were archived", False),
    "pending": Kind("records that the archive has not come to", False),
    "cleaned": Kind("records of the archive that compaction may have taken from the topic", False),
}


def describe_count(kind: str, count: int) -> str:
    """Say how many there are of a kind, and what that is."""
    return f"{count:,} {kind} ({KINDS[kind].counted})"


PROBLEMS = tuple(name for name, kind in KINDS.items() if kind.is_problem)
