"""Ranges by time: each partition begins at its first record of that time or later, or has none."""

from __future__ import annotations

import json

import pytest

from compat_tests.batches import RECENT_MS
from compat_tests.spark.scene import Record, Scene, catch_failure, collect_records, make_values

pytestmark = pytest.mark.spark

EARLY, LATE = RECENT_MS, RECENT_MS + 100_000
BETWEEN, NEVER = str(RECENT_MS + 50_000), str(RECENT_MS + 200_000)

# By the admin client, and by the consumer of `useDeprecatedOffsetFetching`.
NONE_SO_LATE = ("IllegalArgumentException", "AssertionError")


def three_partitions(scene: Scene) -> set[Record]:
    """Partition 0 has ten early and ten late records, 1 has ten early ones, 2 has none."""
    scene.create(3)
    produced = scene.fill(make_values(10, 2), timestamp=EARLY)
    return produced | scene.fill({0: make_values(10, start=10)[0]}, timestamp=LATE)


def by_partition(scene: Scene, *times: str) -> str:
    return json.dumps({scene.topic: {str(number): int(time) for number, time in enumerate(times)}})


def test_one_time_for_all_partitions(scene: Scene) -> None:
    """If no record is that late, beginning there is an error, and ending there is ending at the end."""
    produced = three_partitions(scene)
    frame = scene.batch(startingTimestamp=BETWEEN)
    assert scene.note("refusal", catch_failure(frame.collect))[-1] in NONE_SO_LATE
    frame = scene.batch(startingTimestamp=BETWEEN, startingOffsetsByTimestampStrategy="latest")
    assert scene.note("late", collect_records(frame)) == {
        (part, offset, text) for part, offset, text in produced if offset >= 10
    }
    frame = scene.batch(endingTimestamp=BETWEEN)
    assert scene.note("early", collect_records(frame)) == {
        (part, offset, text) for part, offset, text in produced if offset < 10
    }


def test_a_time_for_each_partition(scene: Scene) -> None:
    produced = three_partitions(scene)
    starts = by_partition(scene, BETWEEN, str(EARLY), str(EARLY))
    ends = by_partition(scene, NEVER, str(EARLY), NEVER)
    options = {"startingOffsetsByTimestamp": starts, "startingOffsetsByTimestampStrategy": "latest"}
    late = {record for record in produced if record[1] >= 10}
    assert scene.note("from", collect_records(scene.batch(**options))) == late | {
        record for record in produced if record[0] == 1
    }
    assert scene.note("between", collect_records(scene.batch(endingOffsetsByTimestamp=ends, **options))) == late
    refused = scene.batch(startingOffsetsByTimestamp=starts, startingOffsetsByTimestampStrategy="error")
    assert scene.note("refusal", catch_failure(refused.collect))[-1] in NONE_SO_LATE


def test_times_go_before_offsets(scene: Scene) -> None:
    """A time for all partitions overrides times of each, and both override offsets."""
    produced = three_partitions(scene)
    options = {"startingOffsetsByTimestampStrategy": "latest", "startingOffsets": "earliest"}
    late = {record for record in produced if record[1] >= 10}
    assert scene.note("time", collect_records(scene.batch(startingTimestamp=BETWEEN, **options))) == late
    both = {"startingTimestamp": BETWEEN, "startingOffsetsByTimestamp": by_partition(scene, *[str(EARLY)] * 3)}
    assert scene.note("both", collect_records(scene.batch(**both, **options))) == late


def test_a_stream_begins_at_a_time(scene: Scene) -> None:
    """Later records are read from where the partition ended; existing ones are read once, by the checkpoint."""
    produced = three_partitions(scene)
    frame = scene.stream(startingTimestamp=BETWEEN, startingOffsetsByTimestampStrategy="latest")
    late = {record for record in produced if record[1] >= 10}
    assert scene.note("first", scene.run_to_the_end(frame).records()) == late
    more = scene.fill(make_values(3, 3, start=100), timestamp=EARLY)
    assert scene.note("second", scene.run_to_the_end(frame).records()) == more
