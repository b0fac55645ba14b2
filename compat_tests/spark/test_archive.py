"""Archives hold what a raw consumer sees, each record once, whatever becomes of checkpoints, topics and files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewPartitions
from pyspark.errors import StreamingQueryException

from compat_tests.confluent import admin_of
from compat_tests.spark.archives import in_frame, in_topics, produce_all_kinds
from compat_tests.spark.scene import Scene, fill, numbered
from spark_integration.archive import ArchiveSummary, FileOptions, archive, read_archive
from spark_integration.archive.ledger import Ledger
from spark_integration.errors import PipelineError, sentence_of
from spark_integration.manifest import read_manifest
from spark_integration.query import StreamOptions


def run(scene: Scene, checkpoint: str = "checkpoint", path: str = "archive", **options: Any) -> ArchiveSummary:
    """Archive the scene's topic, or what *options* of Spark's source say, to its end."""
    files, partition_by = options.pop("files", FileOptions()), options.pop("partition_by", None)
    source = {"kafka.bootstrap.servers": scene.broker.bootstrap, "startingOffsets": "earliest", **options}
    source.setdefault("kafka.isolation.level", "read_committed")
    if "subscribePattern" not in source:
        source.setdefault("subscribe", scene.topic)
    stream = StreamOptions(str(scene.folder / checkpoint), source.pop("trigger", "availableNow"))
    form = source.pop("format", None)
    return archive(
        scene.session, source, str(scene.folder / path), stream, format=form, partition_by=partition_by, files=files
    )


def held(scene: Scene) -> Any:
    return read_archive(scene.session, str(scene.folder / "archive"))


def assert_the_same(scene: Scene, *topics: str) -> None:
    there = in_topics(scene.broker, topics or [scene.topic])
    assert in_frame(held(scene)) == there
    assert read_manifest(scene.session, str(scene.folder / "archive")).records == len(there)


def test_an_archive_holds_all_that_the_topic_holds(scene: Scene) -> None:
    scene.create(2)
    produce_all_kinds(scene.broker, scene.topic, 200, 2)
    assert run(scene).records == 400
    assert_the_same(scene)


def spans(scene: Scene) -> list[tuple[int, int, int]]:
    manifest = read_manifest(scene.session, str(scene.folder / "archive"))
    return sorted((one.partition, one.from_offset, one.until_offset) for one in manifest.ranges)


@pytest.mark.spark
def test_with_a_new_checkpoint_nothing_is_archived_twice(scene: Scene) -> None:
    scene.create(2)
    produce_all_kinds(scene.broker, scene.topic, 100, 2)
    assert run(scene, maxOffsetsPerTrigger="80").batches == 3
    assert run(scene).records == 0
    produce_all_kinds(scene.broker, scene.topic, 10, 2, first=100)
    shutil.rmtree(scene.folder / "checkpoint")
    summary = run(scene, maxOffsetsPerTrigger="70")
    assert (summary.records, summary.offsets_there_already) == (20, 200)
    assert_the_same(scene)


@pytest.mark.spark
def test_with_a_new_checkpoint_latest_is_where_the_archive_ends(scene: Scene) -> None:
    scene.create(1)
    produce_all_kinds(scene.broker, scene.topic, 10, 1)
    run(scene)
    produce_all_kinds(scene.broker, scene.topic, 10, 1, first=10)
    assert run(scene, "new", startingOffsets="latest").records == 10
    assert_the_same(scene)


@pytest.mark.spark
def test_what_came_before_is_added_later(scene: Scene) -> None:
    """From the middle first, then from the beginning: both ends are there, and the middle once."""
    scene.create(1)
    produce_all_kinds(scene.broker, scene.topic, 30, 1)
    starting = f'{{"{scene.topic}":{{"0":10}}}}'
    run(scene, startingOffsets=starting)
    produce_all_kinds(scene.broker, scene.topic, 10, 1, first=30)
    summary = run(scene, "other")
    assert (summary.records, summary.offsets_there_already) == (20, 20)
    assert_the_same(scene)


@pytest.mark.spark
def test_new_partitions_and_topics_are_picked_up(scene: Scene) -> None:
    first, second = f"{scene.topic}-a", f"{scene.topic}-b"
    scene.create(1, first)
    produce_all_kinds(scene.broker, first, 20, 1)
    # A regular expression of Java's, as it is Spark that reads it.
    run(scene, subscribePattern=rf"{scene.topic}-\p{{Graph}}*")
    admin_of(scene.broker).create_partitions([NewPartitions(first, 3)])[first].result(30)
    scene.create(2, second)
    produce_all_kinds(scene.broker, first, 10, 3, first=20)
    produce_all_kinds(scene.broker, second, 10, 2)
    assert run(scene, subscribePattern=f"{scene.topic}-.*").topics == 2
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
        assert producer.flush(30) == 0  # what was not sent an abort would only forget
        producer.commit_transaction(30) if number % 2 else producer.abort_transaction(30)
    summary = run(scene, maxOffsetsPerTrigger="7")
    assert summary.records == 15
    assert_the_same(scene)
    assert spans(scene)[-1][2] == 36
    assert {str(row.value, "utf-8")[0] for row in held(scene).select("value").collect()} == {"1", "3", "5"}


def truncate(scene: Scene, offset: int) -> None:
    place = TopicPartition(scene.topic, 0, offset)
    for future in admin_of(scene.broker).delete_records([place]).values():
        future.result(30)


@pytest.mark.spark
def test_records_that_went_before_they_were_archived(scene: Scene) -> None:
    scene.create(1)
    fill(scene.broker, scene.topic, numbered(20))
    run(scene)
    first = in_topics(scene.broker, [scene.topic])
    fill(scene.broker, scene.topic, numbered(20, start=20))
    truncate(scene, 30)
    with pytest.raises(StreamingQueryException) as refused:
        run(scene)
    assert "give --failOnDataLoss false" in sentence_of(refused.value)
    with pytest.raises(PipelineError, match=r"offsets 20 to 29 .* are gone and were not archived"):
        run(scene, "new")
    assert run(scene, failOnDataLoss="false").records == 10
    assert in_frame(held(scene)) == first | in_topics(scene.broker, [scene.topic])


@pytest.mark.spark
def test_a_topic_made_anew_is_not_taken_for_the_old_one(scene: Scene) -> None:
    scene.create(1)
    fill(scene.broker, scene.topic, numbered(20))
    run(scene)
    before = in_frame(held(scene))
    admin_of(scene.broker).delete_topics([scene.topic])[scene.topic].result(30)
    scene.create(1)
    fill(scene.broker, scene.topic, numbered(30, start=100))
    for options in ({}, {"checkpoint": "new"}, {"failOnDataLoss": "false"}):
        with pytest.raises(PipelineError, match="made anew"):
            run(scene, **options)
    assert in_frame(held(scene)) == before


@pytest.mark.spark
def test_small_files_are_merged(scene: Scene) -> None:
    scene.create(2)
    produce_all_kinds(scene.broker, scene.topic, 40, 2)
    before = run(scene, maxOffsetsPerTrigger="16", files=FileOptions(tasks=1)).files
    early = held(scene)
    configs = scene.session.conf.getAll
    assert before == len(list((scene.folder / "archive").rglob("part-*.parquet"))) >= 16
    produce_all_kinds(scene.broker, scene.topic, 4, 2, first=40)
    run(scene, files=FileOptions(merge_files=3))
    assert len(list((scene.folder / "archive").rglob("part-*.parquet"))) == 4
    assert_the_same(scene)
    with pytest.raises(Exception, match=r"(?i)does not exist|FileNotFound") as problem:
        early.collect()
    assert sentence_of(problem.value)
    run(scene)
    assert_the_same(scene)
    assert scene.session.conf.getAll == configs


@pytest.mark.spark
def test_files_have_at_most_so_many_records(scene: Scene) -> None:
    scene.create(4)
    fill(scene.broker, scene.topic, numbered(25, 4))
    assert run(scene, files=FileOptions(tasks=1, max_records_per_file=30)).files == 4
    assert_the_same(scene)


@pytest.mark.spark
@pytest.mark.parametrize("partition_by", [(), ("date",), ("topic", "partition", "date")])
def test_other_readers_read_the_folder(scene: Scene, partition_by: tuple[str, ...]) -> None:
    import pandas

    scene.create(2)
    produce_all_kinds(scene.broker, scene.topic, 50, 2)
    run(scene, maxOffsetsPerTrigger="40", partition_by=partition_by)
    assert_the_same(scene)
    folder = scene.folder / "archive"
    assert in_frame(scene.session.read.parquet(str(folder))) == in_topics(scene.broker, [scene.topic])
    table = pandas.read_parquet(folder)
    assert {(int(row.partition), row.offset) for row in table.itertuples()} == {
        (partition, offset) for partition in range(2) for offset in range(50)
    }


def lose(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 4] ^= 1
    file.write_bytes(content)
    (file.parent / f".{file.name}.crc").unlink()


@pytest.mark.spark
@pytest.mark.parametrize("damage", [lose, cut, flip])
def test_a_file_that_is_missing_or_damaged_is_found(scene: Scene, damage: Callable[[Path], None]) -> None:
    scene.create(1)
    fill(scene.broker, scene.topic, numbered(500))
    run(scene)
    file = next((scene.folder / "archive").rglob("part-*.parquet"))
    damage(file)
    with pytest.raises(Exception, match=r"missing|damaged|FAILED_READ_FILE") as problem:
        held(scene).collect()
    sentence = sentence_of(problem.value)
    assert file.name in sentence
    assert "restore it from a copy" in sentence


@pytest.mark.spark
def test_a_commit_that_is_missing_is_found(scene: Scene) -> None:
    scene.create(1)
    fill(scene.broker, scene.topic, numbered(30))
    run(scene, maxOffsetsPerTrigger="10")
    manifest = scene.folder / "archive/_kafkacompat_archive/manifest"
    (manifest / f"{2:020d}.json").unlink()
    with pytest.raises(PipelineError, match="lacks commit 2"):
        held(scene)


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")} if folder.exists() else set()


@pytest.mark.spark
def test_what_does_not_fit_is_refused_before_anything_is_written(scene: Scene) -> None:
    scene.create(1)
    scene.create(1, f"{scene.topic}-other")
    fill(scene.broker, scene.topic, numbered(5))
    run(scene)
    run(scene, "of-other", "other", subscribe=f"{scene.topic}-other")
    (scene.folder / "occupied").mkdir()
    (scene.folder / "occupied/data.csv").write_text("1")
    (scene.folder / "file").write_text("1")
    refused: list[tuple[str, dict[str, Any]]] = [
        ("there is no topic no-such", {"subscribe": "no-such", "path": "new", "checkpoint": "new"}),
        ("no topic fits", {"subscribePattern": "no-such", "path": "new", "checkpoint": "new"}),
        ("is no regular expression", {"subscribePattern": "(", "path": "new", "checkpoint": "new"}),
        ("is no trigger", {"trigger": "daily", "path": "new", "checkpoint": "new"}),
        ("is no trigger", {"trigger": "continuous 1 second", "path": "new", "checkpoint": "new"}),
        ("cannot be split by 'offset'", {"partition_by": ("offset",), "path": "new", "checkpoint": "new"}),
        ("has no delta", {"format": "delta", "path": "new", "checkpoint": "new"}),
        ("'orc' is no format", {"format": "orc", "path": "new", "checkpoint": "new"}),
        ("holds data.csv and is no archive", {"path": "occupied", "checkpoint": "new"}),
        ("is a file", {"path": "file", "checkpoint": "new"}),
        ("cannot be written to", {"path": "file/below", "checkpoint": "new"}),
        ("is parquet, not delta", {"format": "delta"}),
        ("is split by topic,date", {"partition_by": ("date",)}),
        ("is not of the archive", {"checkpoint": "of-other", "subscribe": f"{scene.topic}-other"}),
        ("is not of the archive", {"path": "new"}),
        (f"has read {scene.topic}, which is not", {"subscribe": f"{scene.topic}-other"}),
        ("no broker answered|cannot be reached", {"kafka.bootstrap.servers": "127.0.0.1:1", "path": "new"}),
    ]
    before = files_of(scene.folder)
    for sentence, options in refused:
        with pytest.raises(PipelineError, match=sentence):
            run(scene, **options)
        assert files_of(scene.folder) == before, options


@pytest.mark.spark
def test_a_batch_that_was_not_finished_before_partitions_came(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's AvailableNow alone would fail for ever: the batch, planned before, lacks the new partitions."""
    scene.create(1)
    produce_all_kinds(scene.broker, scene.topic, 30, 1)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "commit", refuse)
        with pytest.raises(PipelineError, match="not today"):
            run(scene, maxOffsetsPerTrigger="10")
    admin_of(scene.broker).create_partitions([NewPartitions(scene.topic, 2)])[scene.topic].result(30)
    produce_all_kinds(scene.broker, scene.topic, 5, 2, first=30)
    assert run(scene, maxOffsetsPerTrigger="10").records == 40
    assert_the_same(scene)


def refuse(*_: Any) -> None:
    raise PipelineError("not today")
