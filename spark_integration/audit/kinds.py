"""The kinds of findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class FindingKind(NamedTuple):
    """A kind of finding: what is counted, and whether it is a problem by itself."""

    counted: str
    is_problem: bool


KINDS: Mapping[str, FindingKind] = {
    "gap": FindingKind("sequences that no record has", True),
    "duplicate": FindingKind("records with a sequence that occurred before", True),
    "inversion": FindingKind("records after one with a higher sequence", True),
    "unexplained": FindingKind("offsets that nothing in the log explains", True),
    "missing": FindingKind("records of the topic that the archive lacks", True),
    "lost": FindingKind("records that the archive has lost since it was written", True),
    "extra": FindingKind("records of the archive that the topic does not have", True),
    "differing": FindingKind("records with other contents in the archive", True),
    "repeated": FindingKind("records more than once in the archive", True),
    "unattributed": FindingKind("records without a producer or a sequence", False),
    "unexamined": FindingKind("offsets without a record that were not examined", False),
    "cut-sequence": FindingKind("sequences that may lie before or after what was read", False),
    "marker": FindingKind("offsets of transaction markers", False),
    "aborted": FindingKind("records of aborted transactions", False),
    "aborted-sequence": FindingKind("sequences that only aborted transactions have", False),
    "compacted": FindingKind("offsets that compaction may have cleaned", False),
    "compacted-sequence": FindingKind("sequences that compaction may have cleaned", False),
    "absent": FindingKind("offsets that had no record when they were archived", False),
    "pending": FindingKind("records that the archive has not reached", False),
    "cleaned": FindingKind("records of the archive that compaction may have taken from the topic", False),
}


def describe_count(kind: str, count: int) -> str:
    """Return how many findings there are of a kind, and what they are."""
    return f"{count:,} {kind} ({KINDS[kind].counted})"


PROBLEMS = tuple(name for name, kind in KINDS.items() if kind.is_problem)
