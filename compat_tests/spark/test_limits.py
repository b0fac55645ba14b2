"""The size of a micro-batch: at most, at least, all records that exist, or all that existed at the start."""

from __future__ import annotations

from functools import partial

import pytest

from compat_tests.spark.scene import Query, Scene, catch_failure, collect_records, make_values

pytestmark = pytest.mark.spark


def list_sizes(query: Query) -> list[int]:
    return [len(batch) for _, batch in sorted(query.batches.items())]


@pytest.mark.parametrize("trigger", ["availableNow", "processingTime"])
def test_max_offsets_per_trigger_limits_a_batch(scene: Scene, trigger: str) -> None:
    """The offsets are divided among the partitions in proportion to the waiting ones."""
    scene.create(2)
    produced = scene.fill({0: make_values(30)[0], 1: [f"1/{number}" for number in range(10)]})
    query = scene.run(
        scene.stream(maxOffsetsPerTrigger="8"), **{trigger: True if trigger == "availableNow" else "0 seconds"}
    )
    # Spark reports a micro-batch a moment after its records arrived.
    query.wait_until(lambda: query.records() == produced and len(query.ranges()) == len(query.batches))
    query.stop()
    assert scene.note("batches", {number: set(batch) for number, batch in query.batches.items()})
    assert scene.note("ranges", query.ranges())
    assert max(list_sizes(query)) <= 8
    assert len(list_sizes(query)) == 5


def test_once_takes_all_at_once(scene: Scene) -> None:
    scene.create(2)
    produced = scene.fill(make_values(20, 2))
    query = scene.run_to_the_end(scene.stream(maxOffsetsPerTrigger="8"), once=True)
    assert query.batches.keys() == {0}
    assert scene.note("rows", query.records()) == produced


def test_available_now_ends_where_the_log_ended_at_its_start(scene: Scene) -> None:
    """Records that arrive while the query runs are for the next run, and so is a partition that is added."""
    scene.create(1)
    produced = scene.fill(make_values(20))
    query = scene.run(scene.stream(maxOffsetsPerTrigger="8"), on_batch=partial(fill_once, scene), availableNow=True)
    query.finish()
    assert scene.note("first", query.records()) == produced
    more = collect_records(scene.batch()) - produced
    assert len(more) == 5
    assert scene.note("second", scene.run_to_the_end(scene.stream()).records()) == more


def fill_once(scene: Scene, number: int) -> None:
    if number == 0:
        scene.fill(make_values(5, start=100))


def test_min_offsets_per_trigger_holds_a_batch_back(scene: Scene) -> None:
    """Fewer offsets are held back until more arrive."""
    told_at_once = scene.with_conf(spark__sql__streaming__noDataProgressEventInterval="10")
    scene.create(1)
    first = scene.fill(make_values(5))
    query = told_at_once.run(told_at_once.stream(minOffsetsPerTrigger="20", maxTriggerDelay="1h"))
    query.wait_for(first)
    held_back = scene.fill(make_values(10, start=5))
    query.wait_until(lambda: seen_to_be_there(query, 15))
    assert query.records() == first
    rest = scene.fill(make_values(15, start=15))
    query.wait_for(first | held_back | rest)
    assert scene.note("batches", {number: set(batch) for number, batch in query.batches.items()}) == {
        0: first,
        1: held_back | rest,
    }


def seen_to_be_there(query: Query, offset: int) -> bool:
    """Return whether Spark knows the partition's end, from a trigger that read nothing."""
    empty_batch_sources = [entry["sources"][0] for entry in query.progress() if entry["numInputRows"] == 0]
    return any(f":{offset}}}" in str(source["latestOffset"]).replace(" ", "") for source in empty_batch_sources)


def test_fewer_are_taken_when_the_delay_is_over(scene: Scene) -> None:
    scene.create(1)
    first = scene.fill(make_values(5))
    query = scene.run(scene.stream(minOffsetsPerTrigger="20", maxTriggerDelay="1s"))
    query.wait_until(lambda: query.records() == first)
    second = scene.fill(make_values(3, start=5))
    query.wait_until(lambda: query.records() == first | second)
    assert scene.note("batches", set(query.batches)) == {0, 1}


def test_at_least_is_no_more_than_at_most(scene: Scene) -> None:
    scene.create()
    limits = {"minOffsetsPerTrigger": "20", "maxOffsetsPerTrigger": "10"}
    assert scene.note("refusal", catch_failure(lambda: scene.stream(**limits))) == ["IllegalArgumentException"]
