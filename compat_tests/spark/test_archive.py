"""Archives hold exactly the records of a raw consumer, whatever happens to checkpoints, topics and files."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions

from compat_tests.confluent import admin_of
from compat_tests.spark.archives import (
    assert_the_same,
    list_spans,
    produce_all_kinds,
    read_frame,
    read_held,
    read_topics,
    run_archive,
)
from compat_tests.spark.scene import Scene, make_values, produce_values
from spark_integration.archive import compaction
from spark_integration.archive.ledger import ArchiveLedger
from spark_integration.archive.settings import FileOptions
from spark_integration.errors import PipelineError, explain_failure
from spark_integration.state.archives import read_manifest
from spark_integration.state.checkpoint import read_planned_batch


def test_an_archive_holds_all_that_the_topic_holds(scene: Scene) -> None:
    scene.create(2)
    produce_all_kinds(scene.broker, scene.topic, 200, 2)
    assert run_archive(scene).records == 400
    assert_the_same(scene)


@pytest.mark.spark
def test_with_a_new_checkpoint_nothing_is_archived_twice(scene: Scene) -> None:
    scene.create(2)
    produce_all_kinds(scene.broker, scene.topic, 100, 2)
    assert run_archive(scene, maxOffsetsPerTrigger="80").batches == 3
    assert run_archive(scene).records == 0
    produce_all_kinds(scene.broker, scene.topic, 10, 2, first=100)
    shutil.rmtree(scene.folder / "checkpoint")
    summary = run_archive(scene, maxOffsetsPerTrigger="70")
    # Records that the archive holds are not read again.
    assert (summary.records, summary.batches, summary.offsets_there_already) == (20, 1, 0)
    begun = read_planned_batch(scene.session, str(scene.folder / "checkpoint"), 0).start
    assert begun == {(scene.topic, 0): 100, (scene.topic, 1): 100}
    assert_the_same(scene)


@pytest.mark.spark
def test_with_a_new_checkpoint_latest_is_where_the_archive_ends(scene: Scene) -> None:
    scene.create(1)
    produce_all_kinds(scene.broker, scene.topic, 10, 1)
    run_archive(scene)
    produce_all_kinds(scene.broker, scene.topic, 10, 1, first=10)
    assert run_archive(scene, "new", startingOffsets="latest").records == 10
    assert_the_same(scene)


@pytest.mark.spark
def test_with_a_new_checkpoint_one_partition_alone(scene: Scene) -> None:
    scene.create(2)
    produce_all_kinds(scene.broker, scene.topic, 10, 2)
    run_archive(scene)
    produce_all_kinds(scene.broker, scene.topic, 10, 2, first=10)
    source = {"assign": f'{{"{scene.topic}":[1]}}'}
    assert run_archive(scene, "one", startingOffsets="latest", **source).records == 10
    assert run_archive(scene, "again", startingOffsets="earliest", **source).records == 0
    assert run_archive(scene).records == 10
    assert_the_same(scene)


@pytest.mark.spark
def test_a_later_run_adds_earlier_records(scene: Scene) -> None:
    """From the middle first, then from the beginning: both ends are archived, and the middle once."""
    scene.create(1)
    produce_all_kinds(scene.broker, scene.topic, 30, 1)
    starting = f'{{"{scene.topic}":{{"0":10}}}}'
    run_archive(scene, startingOffsets=starting)
    produce_all_kinds(scene.broker, scene.topic, 10, 1, first=30)
    summary = run_archive(scene, "other")
    assert (summary.records, summary.offsets_there_already) == (20, 20)
    assert list_spans(scene) == [(0, 0, 10), (0, 10, 30), (0, 30, 40)]
    assert_the_same(scene)


@pytest.mark.spark
def test_new_partitions_and_topics_are_picked_up(scene: Scene) -> None:
    first, second = f"{scene.topic}-a", f"{scene.topic}-b"
    scene.create(1, first)
    produce_all_kinds(scene.broker, first, 20, 1)
    # Spark reads it, as a regular expression of Java's.
    run_archive(scene, subscribePattern=rf"{scene.topic}-\p{{Graph}}*")
    admin_of(scene.broker).create_partitions([NewPartitions(first, 3)])[first].result(30)
    scene.create(2, second)
    produce_all_kinds(scene.broker, first, 10, 3, first=20)
    produce_all_kinds(scene.broker, second, 10, 2)
    assert run_archive(scene, subscribePattern=f"{scene.topic}-.*").topics == 2
    assert_the_same(scene, first, second)


@pytest.mark.spark
def test_aborted_transactions_are_absent(scene: Scene) -> None:
    scene.create(1)
    producer = Producer({"bootstrap.servers": scene.broker.bootstrap, "transactional.id": scene.topic})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for record in range(5):
            producer.produce(scene.topic, f"{number}/{record}", partition=0)
        assert producer.flush(30) == 0  # an abort would forget records that were not sent
        producer.commit_transaction(30) if number % 2 else producer.abort_transaction(30)
    summary = run_archive(scene, maxOffsetsPerTrigger="7")
    assert summary.records == 15
    assert_the_same(scene)
    assert list_spans(scene)[-1][2] == 36
    assert {str(row.value, "utf-8")[0] for row in read_held(scene).select("value").collect()} == {"1", "3", "5"}


def sql_configs(scene: Scene) -> set[tuple[str, str]]:
    return {(row.key, row.value) for row in scene.session.sql("SET").collect()}


@pytest.mark.spark
def test_small_files_are_merged(scene: Scene) -> None:
    scene.create(2)
    produce_all_kinds(scene.broker, scene.topic, 40, 2)
    before = run_archive(scene, maxOffsetsPerTrigger="16", files=FileOptions(tasks=1)).files
    early = read_held(scene)
    configs = sql_configs(scene)
    assert before == len(list((scene.folder / "archive").rglob("part-*.parquet"))) >= 16
    produce_all_kinds(scene.broker, scene.topic, 4, 2, first=40)
    run_archive(scene, files=FileOptions(merge_files=3))
    assert len(list((scene.folder / "archive").rglob("part-*.parquet"))) == 4
    assert_the_same(scene)
    with pytest.raises(Exception, match=r"(?i)does not exist|FileNotFound") as problem:
        early.collect()
    assert explain_failure(problem.value)
    run_archive(scene)
    assert_the_same(scene)
    assert sql_configs(scene) == configs


@pytest.mark.spark
def test_a_long_manifest_is_made_short(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MANIFEST_COMMITS", 4)
    scene.create(1)
    produce_all_kinds(scene.broker, scene.topic, 40, 1)
    assert run_archive(scene, maxOffsetsPerTrigger="8").batches == 5
    manifest = read_manifest(scene.session, str(scene.folder / "archive"))
    assert [commit.kind for commit in manifest.commits] == ["compact", "batch"]
    assert_the_same(scene)
    assert run_archive(scene, "new").records == 0


@pytest.mark.spark
def test_max_records_per_file_limits_each_file(scene: Scene) -> None:
    scene.create(4)
    produce_values(scene.broker, scene.topic, make_values(25, 4))
    assert run_archive(scene, files=FileOptions(tasks=1, max_records_per_file=30)).files == 4
    assert_the_same(scene)


@pytest.mark.spark
@pytest.mark.parametrize("partition_by", [(), ("date",), ("topic", "partition", "date")])
def test_other_readers_read_the_folder(scene: Scene, partition_by: tuple[str, ...]) -> None:
    import pandas

    scene.create(2)
    produce_all_kinds(scene.broker, scene.topic, 50, 2)
    run_archive(scene, maxOffsetsPerTrigger="40", partition_by=partition_by)
    assert_the_same(scene)
    folder = scene.folder / "archive"
    assert read_frame(scene.session.read.parquet(str(folder))) == read_topics(scene.broker, [scene.topic])
    table = pandas.read_parquet(folder)
    assert {(int(row.partition), row.offset) for row in table.itertuples()} == {
        (partition, offset) for partition in range(2) for offset in range(50)
    }


@pytest.mark.spark
def test_a_batch_that_was_not_finished_before_partitions_came(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """AvailableNow alone would fail for ever: the batch, planned earlier, lacks the new partitions."""
    scene.create(1)
    produce_all_kinds(scene.broker, scene.topic, 30, 1)
    with monkeypatch.context() as patched:
        patched.setattr(ArchiveLedger, "commit", raise_refusal)
        with pytest.raises(PipelineError, match="not today"):
            run_archive(scene, maxOffsetsPerTrigger="10")
    admin_of(scene.broker).create_partitions([NewPartitions(scene.topic, 2)])[scene.topic].result(30)
    produce_all_kinds(scene.broker, scene.topic, 5, 2, first=30)
    assert run_archive(scene, maxOffsetsPerTrigger="10").records == 40
    assert_the_same(scene)


def raise_refusal(*_: Any) -> None:
    raise PipelineError("not today")
