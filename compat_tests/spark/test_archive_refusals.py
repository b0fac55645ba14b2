"""Archives reject options that do not fit, topics that were recreated, and records that are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pyspark.errors import StreamingQueryException

from compat_tests.confluent import admin_of
from compat_tests.spark.archives import read_frame, read_held, read_topics, run_archive
from compat_tests.spark.scene import Scene, make_values, produce_values
from spark_integration.archive.settings import FileOptions
from spark_integration.errors import PipelineError, explain_failure


def truncate_topic(scene: Scene, offset: int) -> None:
    place = TopicPartition(scene.topic, 0, offset)
    for future in admin_of(scene.broker).delete_records([place]).values():
        future.result(30)


@pytest.mark.spark
def test_records_that_went_before_they_were_archived(scene: Scene) -> None:
    scene.create(1)
    produce_values(scene.broker, scene.topic, make_values(20))
    run_archive(scene)
    first = read_topics(scene.broker, [scene.topic])
    produce_values(scene.broker, scene.topic, make_values(20, start=20))
    truncate_topic(scene, 30)
    with pytest.raises(StreamingQueryException) as refused:
        run_archive(scene)
    assert "give --failOnDataLoss false" in explain_failure(refused.value)
    with pytest.raises(PipelineError, match=r"offsets 20 to 29 .* are gone and were not archived"):
        run_archive(scene, "new")
    assert run_archive(scene, failOnDataLoss="false").records == 10
    assert read_frame(read_held(scene)) == first | read_topics(scene.broker, [scene.topic])


@pytest.mark.spark
def test_a_recreated_topic_is_refused(scene: Scene) -> None:
    scene.create(1)
    produce_values(scene.broker, scene.topic, make_values(20))
    run_archive(scene)
    before = read_frame(read_held(scene))
    admin_of(scene.broker).delete_topics([scene.topic])[scene.topic].result(30)
    scene.create(1)
    produce_values(scene.broker, scene.topic, make_values(30, start=100))
    for options in ({}, {"checkpoint": "new"}, {"failOnDataLoss": "false"}):
        with pytest.raises(PipelineError, match="recreated"):
            run_archive(scene, **options)
    assert read_frame(read_held(scene)) == before


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")} if folder.exists() else set()


@pytest.mark.spark
def test_unfit_options_are_refused_before_anything_is_written(scene: Scene) -> None:
    scene.create(1)
    scene.create(1, f"{scene.topic}-other")
    produce_values(scene.broker, scene.topic, make_values(5))
    run_archive(scene)
    run_archive(scene, "of-other", "other", subscribe=f"{scene.topic}-other")
    (scene.folder / "occupied").mkdir()
    (scene.folder / "occupied/data.csv").write_text("1")
    (scene.folder / "file").write_text("1")
    refused: list[tuple[str, dict[str, Any]]] = [
        ("there is no topic no-such", {"subscribe": "no-such", "path": "new", "checkpoint": "new"}),
        ("no topic matches", {"subscribePattern": "no-such", "path": "new", "checkpoint": "new"}),
        ("is no regular expression", {"subscribePattern": "(", "path": "new", "checkpoint": "new"}),
        ("is no trigger", {"trigger": "daily", "path": "new", "checkpoint": "new"}),
        ("is no trigger", {"trigger": "continuous 1 second", "path": "new", "checkpoint": "new"}),
        ("cannot be split by 'offset'", {"partition_by": ("offset",), "path": "new", "checkpoint": "new"}),
        ("has no delta", {"format": "delta", "path": "new", "checkpoint": "new"}),
        (
            "Iceberg cannot limit",
            {
                "format": "iceberg",
                "files": FileOptions(max_records_per_file=5),
                "path": "new",
                "checkpoint": "new",
            },
        ),
        ("'orc' is no format", {"format": "orc", "path": "new", "checkpoint": "new"}),
        ("holds data.csv and is no archive", {"path": "occupied", "checkpoint": "new"}),
        ("is a file", {"path": "file", "checkpoint": "new"}),
        ("cannot be written to", {"path": "file/below", "checkpoint": "new"}),
        ("is parquet, not delta", {"format": "delta"}),
        ("is split by topic,date", {"partition_by": ("date",)}),
        ("is not that of the archive", {"checkpoint": "of-other", "subscribe": f"{scene.topic}-other"}),
        ("is not that of the archive", {"path": "new"}),
        (f"has read {scene.topic}, which is not", {"subscribe": f"{scene.topic}-other"}),
        ("no broker answered|cannot be reached", {"kafka.bootstrap.servers": "127.0.0.1:1", "path": "new"}),
    ]
    before = files_of(scene.folder)
    for sentence, options in refused:
        with pytest.raises(PipelineError, match=sentence):
            run_archive(scene, **options)
        assert files_of(scene.folder) == before, options
