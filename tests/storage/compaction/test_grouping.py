"""Grouping segments that become one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkacompat.storage.compaction.grouping import group_segments
from kafkacompat.storage.compaction.job import CleaningSource
from kafkacompat.storage.log_config import LogConfig

CONFIG = LogConfig(segment_bytes=100, segment_index_bytes=40)


def group_slots(sizes: Sequence[int], index_sizes: Sequence[int] = (), distance: int = 10) -> list[list[int]]:
    """Return the slots of the segments of each group; each segment has `distance` offsets."""
    sources = [CleaningSource(slot * distance, size, 0) for slot, size in enumerate(sizes)]
    groups = group_segments(sources, index_sizes or [0] * len(sizes), len(sizes) * distance, CONFIG)
    return [[source.base_offset // distance for source in group] for group in groups]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([30], [[0]]),
        ([30, 70, 1], [[0, 1], [2]]),
        ([60, 60, 40], [[0], [1, 2]]),
        ([200, 10, 10], [[0], [1, 2]]),
        ([0, 0, 100, 0], [[0, 1, 2, 3]]),
    ],
)
def test_neighbours_that_fit_one_segment_are_grouped(sizes: list[int], expected: list[list[int]]) -> None:
    assert group_slots(sizes) == expected


def test_their_indexes_have_to_fit_too() -> None:
    assert group_slots([1, 1, 1], [20, 20, 1]) == [[0, 1], [2]]


def test_offsets_have_to_fit_into_an_index() -> None:
    assert group_slots([1, 1, 1], distance=2**30) == [[0, 1], [2]]
    assert group_slots([1, 1, 1], distance=2**31 // 3) == [[0, 1, 2]]
