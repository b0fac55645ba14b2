"""The offsets that an audit reads, from a cluster's responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from spark_integration.audit.places import PlaceCuts
from spark_integration.audit.ranges import ReadRange, find_cuts, resolve_ranges
from spark_integration.errors import PipelineError
from spark_integration.topics.cluster import Cluster, OffsetSpec
from spark_integration.topics.offsets import Offsets, TopicPartition

COMMITTED = {"subscribe": "t", "kafka.isolation.level": "read_committed"}
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


class Answers(Cluster):
    """Two partitions with records from offset 5 to 40; in the first one they are committed up to 20."""

    bootstrap = "h:1"

    def __init__(self, times: Mapping[OffsetSpec | int, Offsets] | None = None) -> None:
        self.times = times or {}

    def require(self, names: Iterable[str]) -> dict[str, Any]:
        return dict.fromkeys(names)

    def partitions(self, names: Iterable[str]) -> list[TopicPartition]:
        return [ZERO, ONE]

    def offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec | int, *, read_committed: bool = False
    ) -> Offsets:
        ends = {ZERO: 20 if read_committed else 40, ONE: 40}
        known: dict[OffsetSpec | int, Offsets] = {
            OffsetSpec.EARLIEST: {ZERO: 5, ONE: 5},
            OffsetSpec.LATEST: ends,
            **self.times,
        }
        return {partition: offset for partition, offset in known[spec].items() if partition in partitions}


@pytest.mark.parametrize(
    "options",
    [{"endingTimestamp": "7"}, {"endingOffsetsByTimestamp": '{"t":{"0":7,"1":7}}'}],
    ids=["one time", "one each"],
)
def test_a_time_after_an_open_transaction_is_the_end(options: dict[str, str]) -> None:
    ranges = resolve_ranges(Answers({7: {ZERO: 30, ONE: 30}}), {**COMMITTED, **options})
    assert ranges == {ZERO: ReadRange(5, 20), ONE: ReadRange(5, 30)}


def test_times_of_each_partition() -> None:
    times: dict[OffsetSpec | int, Offsets] = {7: {ZERO: 8, ONE: 9}, 9: {ZERO: 18, ONE: 19}, 11: {}}
    said = {"startingOffsetsByTimestamp": '{"t":{"0":7,"1":9}}', "endingOffsetsByTimestamp": '{"t":{"0":9,"1":11}}'}
    assert resolve_ranges(Answers(times), {**COMMITTED, **said}) == {ZERO: ReadRange(8, 18), ONE: ReadRange(19, 40)}


def test_offsets_that_are_said() -> None:
    said = {"startingOffsets": '{"t":{"0":-2,"1":7}}', "endingOffsets": '{"t":{"0":-1,"1":9}}'}
    assert resolve_ranges(Answers(), {**COMMITTED, **said}) == {ZERO: ReadRange(5, 20), ONE: ReadRange(7, 9)}


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets", "endingOffsetsByTimestamp"])
def test_a_partition_of_which_nothing_is_said(option: str) -> None:
    with pytest.raises(PipelineError, match=f"--{option} lacks partition 1 of t: add it"):
        resolve_ranges(Answers({9: {}}), {**COMMITTED, option: '{"t":{"0":9}}'})


def test_cuts_of_a_range_are_found() -> None:
    """The first partition continues after the committed records; the second is read from its first to its last record."""
    assert find_cuts(Answers(), {ZERO: ReadRange(5, 20), ONE: ReadRange(0, 40)}) == PlaceCuts(
        before={ZERO}, after={ZERO}
    )
