"""Reports of a real query while it runs: lines of JSON, Prometheus' text, a consumer group's offsets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from compat_tests.brokers import KafkaBroker
from compat_tests.confluent import admin_of, consumer_of, create_topic
from compat_tests.java_tools import run_java
from compat_tests.ports import free_port
from compat_tests.spark.scene import Scene, make_values, produce_values
from compat_tests.waiting import until
from spark_integration.errors import PipelineError
from spark_integration.queries.listener import BatchProgress, KafkaListener
from spark_integration.queries.observers import Committer, JsonLines
from spark_integration.queries.query import run_query
from spark_integration.queries.settings import StreamOptions
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.offsets import Offsets, TopicPartition, parse_offsets

CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
LIMIT = 8


class Job:
    """A query over two partitions of 15 records each, which reads eight in a batch and keeps none."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.spark, self.topic = scene.session, scene.topic
        self.group = f"{scene.topic}-group"
        self.checkpoint = scene.folder / "checkpoint"
        self.lines = scene.folder / "progress.jsonl"
        self.metrics = scene.folder / "spark.prom"
        scene.create(2)
        scene.fill(make_values(15, 2))

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.spark, {"kafka.bootstrap.servers": self.scene.broker.bootstrap})

    @property
    def ends(self) -> Offsets:
        return {TopicPartition(self.topic, 0): 15, TopicPartition(self.topic, 1): 15}

    def run(self, *observers: Any, group: str | None = None) -> None:
        writer = self.scene.stream(maxOffsetsPerTrigger=str(LIMIT)).writeStream.format("noop")
        options = StreamOptions(
            str(self.checkpoint), progress_json=self.lines, prometheus=self.metrics, commit_group=group
        )
        with self.cluster as cluster:
            run_query(self.spark, writer, options, name="job", cluster=cluster, observers=observers)

    def progress_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines.read_text().splitlines()]

    def committed(self) -> Offsets:
        with self.cluster as cluster:
            return cluster.read_committed(self.group)

    def finished_batches(self) -> set[int]:
        return {int(path.name) for path in (self.checkpoint / "commits").iterdir() if path.name.isdecimal()}


@pytest.fixture
def job(scene: Scene) -> Job:
    return Job(scene)


def in_all(offsets: Mapping[str, Mapping[str, int]]) -> int:
    return sum(offset for partitions in offsets.values() for offset in partitions.values())


@pytest.mark.spark
def test_lines_and_metrics_of_each_batch(job: Job) -> None:
    job.run()
    lines = job.progress_lines()
    assert [line["batch_id"] for line in lines] == [0, 1, 2, 3]
    for before, after in pairwise(lines):
        assert after["start_offsets"] == before["end_offsets"]
    for line in lines:
        assert in_all(line["end_offsets"]) - in_all(line["start_offsets"]) == line["input_rows"] <= LIMIT
        # It lags until the last batch.
        assert line["lag"] == 30 - in_all(line["end_offsets"])
        assert (line["query"], line["latest_offsets"]) == ("job", {job.topic: {"0": 15, "1": 15}})
    assert parse_offsets(json.dumps(lines[-1]["end_offsets"])) == job.ends
    metrics = job.metrics.read_text().splitlines()
    assert 'kafkacompat_spark_input_rows_total{query="job"} 30.0' in metrics
    for partition in (0, 1):
        labels = f'{{partition="{partition}",query="job",topic="{job.topic}"}}'
        assert f"kafkacompat_spark_offset{labels} 15.0" in metrics
        assert f"kafkacompat_spark_lag{labels} 0.0" in metrics


@pytest.mark.spark
def test_commits_are_seen_by_lag_tools_and_never_ahead_of_the_checkpoint(job: Job) -> None:
    seen: list[tuple[Offsets, set[int]]] = []

    def look(progress: BatchProgress) -> None:
        assert progress.batch_id in job.finished_batches()
        seen.append((job.committed(), job.finished_batches()))

    job.run(look, group=job.group)
    # The observer is called after the committer.
    ends = [parse_offsets(json.dumps(line["end_offsets"])) for line in job.progress_lines()]
    for number, (committed, _) in enumerate(seen):
        assert committed == ends[number]
    assert len(seen) == 4
    assert job.committed() == job.ends
    job.scene.fill(make_values(5))
    words = ["--bootstrap-server", job.scene.broker.bootstrap, "--describe", "--group", job.group]
    rows = [line.split() for line in run_java(CONSUMER_GROUPS, words).stdout.splitlines() if job.topic in line]
    # GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG
    assert sorted(row[1:6] for row in rows) == [[job.topic, "0", "15", "20", "5"], [job.topic, "1", "15", "15", "0"]]


@pytest.mark.spark
def test_a_run_that_ended_before_its_commit_is_made_good(job: Job) -> None:
    """The start commits the finished batches of the checkpoint, and none that was only planned."""
    job.run()
    ends = [parse_offsets(json.dumps(line["end_offsets"])) for line in job.progress_lines()]
    # A kill within the last batch leaves this.
    for path in (job.checkpoint / "commits").glob("*3*"):
        path.unlink()
    committed: list[Offsets] = []

    class Noting(Cluster):
        def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
            committed.append(dict(offsets))
            super().commit(group, offsets)

    options = StreamOptions(str(job.checkpoint), commit_group=job.group)
    for _ in range(2):
        writer = job.scene.stream(maxOffsetsPerTrigger=str(LIMIT)).writeStream.format("noop")
        with Noting(job.spark, {"kafka.bootstrap.servers": job.scene.broker.bootstrap}) as cluster:
            run_query(job.spark, writer, options, name="job", cluster=cluster)
    moved = {partition: offset for partition, offset in ends[3].items() if offset != ends[2][partition]}
    assert committed == [ends[2], moved, ends[3]]


@pytest.mark.spark
def test_a_group_with_members_is_refused(job: Job) -> None:
    consumer = consumer_of(job.scene.broker, job.group)
    consumer.subscribe([job.topic])
    until(lambda: consumer.poll(0.2) is not None and consumer.assignment())
    with pytest.raises(PipelineError, match=f"the consumer group {job.group} has members of its own"):
        job.run(group=job.group)
    assert not job.checkpoint.exists()
    with job.cluster as cluster, pytest.raises(PipelineError, match="the consumer group has members of its own"):
        cluster.commit(job.group, job.ends)
    consumer.close()
    job.run(group=job.group)
    assert job.committed() == job.ends


@pytest.mark.spark
def test_members_that_come_later_end_the_telling_and_not_the_query(job: Job) -> None:
    consumer = consumer_of(job.scene.broker, job.group)

    def join(progress: BatchProgress) -> None:
        if progress.batch_id == 1:
            consumer.subscribe([job.topic])
            until(lambda: consumer.poll(0.2) is not None and consumer.assignment())

    with pytest.raises(PipelineError, match=r"the query succeeded, but reporting it failed: .* has members of its own"):
        job.run(join, group=job.group)
    consumer.close()
    assert [line["batch_id"] for line in job.progress_lines()] == [0, 1, 2, 3]
    assert job.finished_batches() == {0, 1, 2, 3}
    assert sum(job.committed().values()) == in_all(job.progress_lines()[1]["end_offsets"])


@pytest.mark.spark
def test_a_broker_that_is_away(job: Job) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    with Cluster(job.spark, {"kafka.bootstrap.servers": nobody, "kafka.default.api.timeout.ms": "1500"}) as cluster:
        with pytest.raises(PipelineError, match=f"{nobody}: no broker answered in time"):
            cluster.topic_names()
        with pytest.raises(PipelineError, match="no broker answered in time"):
            Committer(cluster, job.group).check()


@pytest.mark.spark
def test_a_group_that_one_may_not_touch(job: Job, tmp_path: Path) -> None:
    """Apache Kafka with an authorizer, which this broker does not have."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:nobody",
    }
    with KafkaBroker(tmp_path / "authorized", properties) as broker:
        scene = job.scene.on(broker)
        create_topic(broker, job.topic, 2)
        produce_values(broker, job.topic, make_values(3, 2))
        denied = AclBinding(
            ResourceType.GROUP,
            job.group,
            ResourcePatternType.LITERAL,
            "User:ANONYMOUS",
            "*",
            AclOperation.ALL,
            AclPermissionType.DENY,
        )
        (done,) = admin_of(broker).create_acls([denied]).values()
        done.result(30)
        job.scene = scene
        with pytest.raises(PipelineError, match=r"the broker forbids it \(.*\): grant this user what it needs"):
            job.run(group=job.group)
        assert not job.checkpoint.exists()
        job.run(group="another")


@pytest.mark.spark
def test_a_query_of_the_users_own(job: Job) -> None:
    """A job that uses nothing else of this package can add the listener itself."""
    cluster = job.cluster
    listener = KafkaListener([JsonLines(job.lines), Committer(cluster, job.group)])
    job.spark.streams.addListener(listener)
    query = job.scene.run(job.scene.stream(), availableNow=True)
    query.finish()
    assert listener.wait_until_ended(str(query.query.runId))
    job.spark.streams.removeListener(listener)
    cluster.close()
    assert [line["end_offsets"] for line in job.progress_lines()] == [{job.topic: {"0": 15, "1": 15}}]
    assert job.committed() == job.ends
    assert listener.failure is None
