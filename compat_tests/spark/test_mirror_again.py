"""`mirror` started over: with another checkpoint, after a kill, without its offset map, over recreated topics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as sql

from compat_tests.brokers import Broker
from compat_tests.confluent import admin_of, create_topic
from compat_tests.conftest import MakeBroker
from compat_tests.spark.copies import (
    Run,
    assert_copied,
    client_options,
    count_offsets,
    kill_count,
    kill_some_times,
    make_numbered_records,
    produce_records,
    read_contents,
    record_contents,
    record_origins,
    run_mirror,
)
from compat_tests.waiting import until
from spark_integration.errors import PipelineError
from spark_integration.mirror import batches
from spark_integration.mirror.offset_map import parse_entry
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.origin import add_origin
from spark_integration.topics.sink import write_batch
from spark_integration.topics.source import read_batch
from spark_integration.topics.written import find_written_records

pytestmark = pytest.mark.spark


def write_ranges(spark: Any, source: Broker, target: Broker, topic: str, *ranges: range) -> None:
    """Write offsets of partition 0 like a mirror that is killed before it extends its map."""
    with Cluster(spark, client_options(source)) as cluster:
        cluster_id = cluster.cluster_id()
    rows = read_batch(spark, client_options(source, subscribe=topic))
    for offsets in ranges:
        chosen = (
            rows.where(sql.col("offset").between(offsets[0], offsets[-1])).coalesce(1).sortWithinPartitions("offset")
        )
        write_batch(add_origin(chosen, cluster_id), client_options(target))


def assert_pairs_hold(target: Broker, offset_map: str, topic: str) -> None:
    """Assert for every pair ever written: exactly the records before the source's offset lie before the target's."""
    contents = read_contents(target, topic)
    for record in read_contents(target, offset_map)[0]:
        key, value = (text.decode() for text in record.content[:2] if text is not None)
        link, _, pair = parse_entry(offset_map, key, value)
        before = {int(copied.origin["offset"]) for copied in contents[link.partition] if copied.offset < pair.target}
        after = {int(copied.origin["offset"]) for copied in contents[link.partition] if copied.offset >= pair.target}
        assert max(before, default=-1) < pair.source, pair
        assert min(after, default=pair.source) >= pair.source, pair


def test_a_new_checkpoint_after_a_kill(
    broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
) -> None:
    """Its batches have other ends; some end within records that the killed run wrote without extending the map."""
    target = make_broker()
    create_topic(broker, name, 1)
    produce_records(broker, name, make_numbered_records(20), 1)
    run_mirror(spark, broker, target, tmp_path / "c", subscribe=name)
    produce_records(broker, name, make_numbered_records(100), 1)
    write_ranges(spark, broker, target, name, range(20, 90))
    run_mirror(spark, broker, target, tmp_path / "new" / "c", subscribe=name, maxOffsetsPerTrigger="35")
    assert_copied(broker, name, target, name)
    assert_pairs_hold(target, "map-c", name)


def test_without_its_map_nothing_is_written_twice(
    broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
) -> None:
    target = make_broker()
    create_topic(broker, name, 2)
    produce_records(broker, name, make_numbered_records(60), 2)
    run_mirror(spark, broker, target, tmp_path / "a" / "map", subscribe=name)
    produce_records(broker, name, make_numbered_records(30), 2)
    # Each has a map of its own: the first continues from its checkpoint, the second starts over.
    (tmp_path / "a" / "map").rename(tmp_path / "a" / "other")
    assert run_mirror(spark, broker, target, tmp_path / "a" / "other", subscribe=name).records_written == 30
    assert run_mirror(spark, broker, target, tmp_path / "b" / "third", subscribe=name).records_written == 0
    assert_copied(broker, name, target, name)
    for offset_map in ("map-map", "map-other", "map-third"):
        assert_pairs_hold(target, offset_map, name)


GAP = (range(15), range(16, 60))
FROM_THE_GAP_ON = [*range(15), *range(16, 60), *range(15, 60)]


@pytest.mark.parametrize(
    ("batch", "written_ranges", "wanted"),
    [
        ("10", GAP, FROM_THE_GAP_ON),
        ("7", GAP, FROM_THE_GAP_ON),
        ("60", GAP, FROM_THE_GAP_ON),
        # The run that wrote again was stopped here.
        ("16", (range(30), range(5, 12)), [*range(30), *range(5, 60)]),
    ],
)
def test_after_a_record_that_is_missing_all_are_written_again(
    broker: Broker,
    make_broker: MakeBroker,
    spark: Any,
    name: str,
    tmp_path: Path,
    batch: str,
    written_ranges: Sequence[range],
    wanted: list[int],
) -> None:
    """In however many batches they arrive: else a reader of last values would end with an old one."""
    target = make_broker()
    create_topic(broker, name, 1)
    create_topic(target, name, 1)
    produce_records(broker, name, make_numbered_records(60), 1)
    write_ranges(spark, broker, target, name, *written_ranges)
    again = run_mirror(spark, broker, target, tmp_path / "anew", subscribe=name, maxOffsetsPerTrigger=batch)
    assert record_origins(read_contents(target, name)) == {0: wanted}
    assert again.records_written == len(wanted) - sum(map(len, written_ranges))


def test_a_restart_reads_the_target_once(
    broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mirror that read the target again for each batch would read it as often as there are batches."""
    target, looks = make_broker(), []

    def counted(*arguments: Any) -> Any:
        looks.append(arguments)
        return find_written_records(*arguments)

    create_topic(broker, name, 2)
    produce_records(broker, name, make_numbered_records(60), 2)
    run_mirror(spark, broker, target, tmp_path / "before", subscribe=name)
    monkeypatch.setattr(batches, "find_written_records", counted)
    anew = run_mirror(spark, broker, target, tmp_path / "anew", subscribe=name, maxOffsetsPerTrigger="10")
    assert (anew.batches, anew.records_written, len(looks)) == (6, 0, 1)
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


def make_anew(broker: Broker, topic: str) -> None:
    admin = admin_of(broker)
    admin.delete_topics([topic])[topic].result(30)
    until(lambda: topic not in admin.list_topics(timeout=30).topics)
    create_topic(broker, topic, 1)


def test_a_recreated_topic_needs_a_new_checkpoint(
    broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
) -> None:
    """Spark would read it from the checkpoint's offset on; without the map, old records are known by their times."""
    target = make_broker()
    create_topic(broker, name, 1)
    produce_records(broker, name, make_numbered_records(30), 1)
    run_mirror(spark, broker, target, tmp_path / "c", subscribe=name)
    make_anew(broker, name)
    produce_records(broker, name, make_numbered_records(40)[::-1], 1)
    with pytest.raises(PipelineError, match=f"^topic {name} on .* was deleted and recreated"):
        run_mirror(spark, broker, target, tmp_path / "c", subscribe=name)
    assert count_offsets(target, name) == 30
    assert run_mirror(spark, broker, target, tmp_path / "new", subscribe=name).records_written == 40
    wanted = [*make_numbered_records(30), *make_numbered_records(40)[::-1]]
    assert [content[:2] for content in record_contents(read_contents(target, name))[0]] == [
        content[:2] for content in wanted
    ]


def test_killed_mirror_writes_nothing_twice_after_a_restart(
    broker: Broker, make_broker: MakeBroker, name: str, tmp_path: Path
) -> None:
    target, count = make_broker(), 40_000 * kill_count()
    create_topic(broker, name, 3)
    produce_records(broker, name, make_numbered_records(count), 3)
    arguments = ["mirror", "--bootstrap-server", broker.bootstrap, "--target-bootstrap-server", target.bootstrap]
    arguments += ["--subscribe", name]
    first = ["--checkpointLocation", str(tmp_path / "c"), "--maxOffsetsPerTrigger", "10000"]
    kill_some_times(tmp_path, [*arguments, *first], lambda: count_offsets(target, name), count)
    anew = ["--checkpointLocation", str(tmp_path / "new"), "--maxOffsetsPerTrigger", "17000"]
    last = Run(tmp_path / "last", *arguments, *anew)
    assert last.wait() == 0, last.stderr
    assert_copied(broker, name, target, name)
    assert_pairs_hold(target, "kafkacompat-offset-map", name)
