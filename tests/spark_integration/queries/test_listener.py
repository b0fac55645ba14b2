"""Reports of micro-batches, and their receivers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_integration.errors import PipelineError
from spark_integration.queries.listener import BatchProgress, KafkaListener, parse_progress
from spark_integration.queries.observers import Committer, JsonLines, PrometheusText, ReadTally
from spark_integration.topics.cluster import TopicDescription
from spark_integration.topics.offsets import Offsets, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def spark_tells(**changes: Any) -> dict[str, Any]:
    """Return the JSON of a StreamingQueryProgress of Spark 4.0, with two topics."""
    kafka = {
        "description": "KafkaV2[Subscribe[a]]",
        "startOffset": {"a": {"0": 0, "1": 5}},
        "endOffset": {"a": {"0": 10, "1": 5}},
        "latestOffset": {"a": {"0": 12, "1": 5}},
        "numInputRows": 10,
    }
    return {
        "id": "query-id",
        "runId": "run-id",
        "name": "job",
        "timestamp": "2026-01-01T10:00:00.000Z",
        "batchId": 3,
        "batchDuration": 40,
        "numInputRows": 10,
        "inputRowsPerSecond": 2.5,
        "processedRowsPerSecond": 250.0,
        "durationMs": {"addBatch": 30, "latestOffset": 2},
        "stateOperators": [],
        "sources": [kafka],
        "sink": {"description": "ForeachBatchSink"},
        **changes,
    }


def make_progress(**changes: Any) -> BatchProgress:
    return parse_progress(spark_tells(**changes))


def make_event(**changes: Any) -> Any:
    return SimpleNamespace(progress=SimpleNamespace(json=json.dumps(spark_tells(**changes))))


def test_a_batch() -> None:
    progress = make_progress()
    assert (progress.query, progress.batch_id, progress.input_rows) == ("job", 3, 10)
    assert progress.start_offsets == {A0: 0, A1: 5}
    assert progress.end_offsets == {A0: 10, A1: 5}
    assert progress.lag == 2
    assert progress.durations_ms == {"addBatch": 30, "latestOffset": 2}


def test_the_first_batch_of_a_query_without_a_name() -> None:
    """Its start is null, and older releases report offsets as text, and no rates."""
    source = {"description": "KafkaV2[Assign[a-0]]", "startOffset": None, "endOffset": '{"a":{"0":4}}'}
    progress = make_progress(name=None, sources=[source], inputRowsPerSecond=None, processedRowsPerSecond=None)
    assert (progress.query, progress.start_offsets, progress.end_offsets) == ("", {}, {A0: 4})
    assert (progress.latest_offsets, progress.lag, progress.input_rows_per_second) == ({}, 0, 0.0)


def test_all_kafka_sources_and_no_others() -> None:
    second = {"description": "KafkaV2[Subscribe[b]]", "startOffset": {"b": {"0": 1}}, "endOffset": {"b": {"0": 2}}}
    files = {"description": "FileStreamSource[file:/x]", "startOffset": {"logOffset": 0}, "endOffset": {"logOffset": 1}}
    progress = make_progress(sources=[*spark_tells()["sources"], second, files])
    assert progress.end_offsets == {A0: 10, A1: 5, B0: 2}


def test_a_line_of_json() -> None:
    line = json.loads(make_progress().as_json())
    assert line["end_offsets"] == {"a": {"0": 10, "1": 5}}
    assert line["latest_offsets"] == {"a": {"0": 12, "1": 5}}
    assert (line["lag"], line["batch_id"], line["query_id"]) == (2, 3, "query-id")


def test_lines_are_added(tmp_path: Path) -> None:
    path = tmp_path / "new" / "progress.jsonl"
    JsonLines(path)(make_progress(batchId=0))
    JsonLines(path)(make_progress(batchId=1))
    assert [json.loads(line)["batch_id"] for line in path.read_text().splitlines()] == [0, 1]


def test_prometheus_text(tmp_path: Path) -> None:
    path = tmp_path / "new" / "spark.prom"
    observer = PrometheusText(path)
    observer(make_progress())
    observer(make_progress(batchId=4))
    lines = set(path.read_text().splitlines())
    assert {
        'kafkacompat_spark_input_rows_total{query="job"} 20.0',
        'kafkacompat_spark_batches_total{query="job"} 2.0',
        'kafkacompat_spark_offset{partition="0",query="job",topic="a"} 10.0',
        'kafkacompat_spark_lag{partition="0",query="job",topic="a"} 2.0',
        'kafkacompat_spark_lag{partition="1",query="job",topic="a"} 0.0',
        'kafkacompat_spark_batch_duration_seconds{part="addBatch",query="job"} 0.03',
    } <= lines
    assert [file.name for file in path.parent.iterdir()] == ["spark.prom"]


class Group:
    """Stands for a cluster: keeps the committed offsets."""

    def __init__(self, **partitions: int) -> None:
        self.commits: list[tuple[str, Offsets]] = []
        self.partitions = partitions or {"a": 2, "b": 1}
        self.is_away = False

    def topics(self, names: set[str]) -> dict[str, TopicDescription]:
        return {
            name: TopicDescription(name, "id", self.partitions[name], False)
            for name in names
            if name in self.partitions
        }

    def commit(self, group: str, offsets: Offsets) -> None:
        if self.is_away:
            raise OSError("away")
        if any(partition.partition >= self.partitions.get(partition.topic, 0) for partition in offsets):
            raise PipelineError("a topic that is read or written does not exist")
        self.commits.append((group, dict(offsets)))


def test_only_changed_offsets_are_committed() -> None:
    cluster = Group()
    committer = Committer(cluster, "group")  # type: ignore[arg-type]
    committer(make_progress())
    committer(make_progress())
    committer.commit({A0: 11, A1: 5})
    committer.commit({})
    assert cluster.commits == [("group", {A0: 10, A1: 5}), ("group", {A0: 11})]


def test_offsets_of_a_failed_commit_are_in_the_next() -> None:
    cluster = Group()
    committer = Committer(cluster, "group")  # type: ignore[arg-type]
    cluster.is_away = True
    with pytest.raises(OSError, match="away"):
        committer(make_progress())
    cluster.is_away = False
    committer(make_progress())
    assert cluster.commits == [("group", {A0: 10, A1: 5})]


def test_topics_that_are_gone_are_left_out() -> None:
    """A checkpoint still names them."""
    cluster = Group(a=1)
    committer = Committer(cluster, "group")  # type: ignore[arg-type]
    committer.commit({A0: 1, A1: 2, B0: 3})
    committer.commit({A0: 2, A1: 2, B0: 3})
    committer.commit({A0: 2, A1: 3})
    assert cluster.commits == [("group", {A0: 1}), ("group", {A0: 2})]


def test_a_failed_commit_with_all_topics_is_raised() -> None:
    class Refusing(Group):
        def commit(self, group: str, offsets: Offsets) -> None:
            raise PipelineError("not for you")

    with pytest.raises(PipelineError, match="not for you"):
        Committer(Refusing(), "group")(make_progress())  # type: ignore[arg-type]


def test_a_failing_observer_is_called_again_and_the_others_too() -> None:
    """The failure is reported when it begins, and remembered if it lasts to the end."""
    tally, calls = ReadTally(), []
    said: list[str] = []

    def failing(progress: BatchProgress) -> None:
        calls.append(progress.batch_id)
        if progress.batch_id in (1, 2, 4):
            raise OSError(f"no {progress.batch_id}")

    listener = KafkaListener([failing, tally], say=said.append)
    failures = []
    for number in (1, 2, 3, 4):
        listener.onQueryProgress(make_event(batchId=number))
        failures.append(str(listener.failure))
    assert calls == [1, 2, 3, 4]
    assert (tally.rows, tally.batches) == (40, 4)
    assert failures == ["no 1", "no 2", "None", "no 4"]
    assert said == [f"the query continues, but reporting batch {number} failed: no {number}" for number in (1, 4)]


def test_other_queries_of_the_session_are_not_this_one() -> None:
    tally = ReadTally()
    listener = KafkaListener([tally], "job")
    listener.onQueryProgress(make_event(name="another"))
    listener.onQueryProgress(make_event())
    listener.onQueryProgress(make_event(name=None))
    assert (tally.rows, tally.batches) == (10, 1)


def test_the_end_of_one_run_is_not_that_of_another() -> None:
    listener = KafkaListener([])
    listener.onQueryTerminated(SimpleNamespace(runId="first"))
    assert listener.wait_until_ended("first", 0)
    assert not listener.wait_until_ended("second", 0)
