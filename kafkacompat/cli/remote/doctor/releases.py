"""Which release of Kafka a broker looks like, by the versions that it serves."""

from __future__ import annotations

from collections.abc import Mapping

from kafkacompat.wire.releases import RELEASES, find_release
from kafkacompat.wire.schema import Versions

PRODUCE = 0
FETCH = 1
NOT_COMPARED = {4, 5, 6, 7, *range(52, 57), 58, 59, *range(62, 65), 67, *range(70, 76), *range(80, 83)}
"""APIs that depend on the kind of a broker and on its plugins: those between brokers, of KRaft's quorum, and of telemetry."""


def describe_release(served: Mapping[int, Versions]) -> str:
    """Say which release serves these versions, or which one comes nearest."""
    differences = {name: count_differences(served, name) for name in RELEASES if name not in ("0.8.2", "0.9.0")}
    fewest = min(differences.values())
    nearest = [name for name, count in differences.items() if count == fewest]
    names = nearest[0] if len(nearest) == 1 else f"{nearest[0]} to {nearest[-1]}"
    if not fewest:
        return f"the versions of Kafka {names}"
    difference = "1 API differs" if fewest == 1 else f"{fewest} APIs differ"
    return f"versions nearest to those of Kafka {names}, from which {difference}{_describe_span(served)}"


def _describe_span(served: Mapping[int, Versions]) -> str:
    """Say that a broker serves clients of every age, which no release of Kafka does."""
    fetch = served.get(FETCH, Versions(1, 0))
    if fetch.first == 0 and fetch.last > find_release("3.9").versions[FETCH].last:
        return "; it serves clients of every release"
    return ""


def count_differences(served: Mapping[int, Versions], name: str) -> int:
    """Return how many APIs a broker and a release serve in different versions."""
    expected = {key: versions for key, versions in find_release(name).versions.items() if key not in NOT_COMPARED}
    # Brokers from 4.0 on list Produce from version 0, for clients that check for it.
    if PRODUCE in expected and served.get(PRODUCE, Versions(1, 0)).first == 0:
        expected[PRODUCE] = Versions(0, expected[PRODUCE].last)
    keys = (served.keys() | expected.keys()) - NOT_COMPARED
    return sum(served.get(key) != expected.get(key) for key in keys)
