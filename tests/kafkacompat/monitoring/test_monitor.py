"""The metrics of a whole broker: what clients did is what the figures say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.metrics.places import OTHER
from kafkacompat.monitoring.table import ROWS
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.replica_manager import ReplicaManager
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.record_batch import build_batch
from tests.kafkacompat.monitoring.world import World, make_key, read_samples
from tests.kafkacompat.test_broker_over_memory_network import make_fetch_request, records_of

TOPICS = "kafka_server_brokertopicmetrics_"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.run(world.broker.start())
    yield world
    world.connections.close()
    world.run(world.broker.stop())
    assert world.clock.site is None


def produce_many(world: World, topic: str, topic_id: bytes, records: int) -> int:
    """Produce one batch; return its bytes."""
    batch = build_batch([(int(world.clock.seconds() * 1000), b"k", b"value", [])] * records)
    partition = PartitionProduceData(index=0, records=batch)
    data = TopicProduceData(name=topic, topic_id=topic_id, partition_data=[partition])
    answered = world.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data])).responses[0]
    assert answered.partition_responses[0].error_code == 0
    return len(batch)


def test_records_and_bytes_are_those_of_the_clients(world: World) -> None:
    topic_id = world.make_topic("orders")
    size = sum(produce_many(world, "orders", topic_id, count) for count in (3, 4))
    fetched = records_of(world.ask(make_fetch_request("orders", topic_id, 0)))
    samples = world.scrape()
    for labels in ({}, {"topic": "orders"}):
        assert samples[make_key(f"{TOPICS}messagesin_total", **labels)] == 7
        assert samples[make_key(f"{TOPICS}bytesin_total", **labels)] == size
        assert samples[make_key(f"{TOPICS}bytesout_total", **labels)] == len(fetched) == size
        assert samples[make_key(f"{TOPICS}totalproducerequests_total", **labels)] == 2
        assert samples[make_key(f"{TOPICS}failedproducerequests_total", **labels)] == 0
        assert samples[make_key(f"{TOPICS}totalfetchrequests_total", **labels)] == 1
    assert samples[make_key("kafka_log_log_logendoffset", topic="orders", partition=0)] == 7
    assert samples[make_key("kafka_log_log_size", topic="orders", partition=0)] == size
    # A second scrape counts nothing twice.
    assert world.scrape()[make_key(f"{TOPICS}messagesin_total", topic="orders")] == 7


def test_a_refused_batch_is_an_error_of_its_request(world: World) -> None:
    topic_id = world.make_topic("orders")
    partition = PartitionProduceData(index=0, records=b"no batch" * 20)
    data = TopicProduceData(name="orders", topic_id=topic_id, partition_data=[partition])
    answered = world.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data])).responses[0]
    assert answered.partition_responses[0].error_code != 0
    samples = world.scrape()
    errors = {labels: value for (name, labels), value in samples.items() if name.endswith("_errors_total")}
    ((labels, count),) = errors.items()
    assert dict(labels)["request"] == "Produce" and count == 1
    assert samples[make_key(f"{TOPICS}failedproducerequests_total", topic="orders")] == 1
    assert samples[make_key(f"{TOPICS}messagesin_total")] == 0


def test_the_times_of_a_fetch_that_waits_are_remote(world: World) -> None:
    topic_id = world.make_topic("orders")
    begun_s = world.clock.seconds()
    world.ask(make_fetch_request("orders", topic_id, 0))
    waited_ms = (world.clock.seconds() - begun_s) * 1000
    samples = world.scrape()
    prefix = "kafka_network_requestmetrics_"
    for request in ("Fetch", "FetchConsumer"):
        assert samples[make_key(f"{prefix}totaltimems_count", request=request)] == 1
        for part in ("totaltimems", "remotetimems"):
            assert samples[make_key(f"{prefix}{part}_sum", request=request)] == pytest.approx(waited_ms, rel=0.1)
            median = samples[make_key(f"{prefix}{part}", request=request, quantile="0.50")]
            assert median == pytest.approx(waited_ms, rel=0.25)
    assert make_key(f"{prefix}totaltimems_count", request="FetchFollower") not in samples
    versions = [dict(labels)["version"] for name, labels in samples if name == f"{prefix}requests_total"]
    assert versions


def test_a_fetch_that_still_waits_is_in_flight(world: World) -> None:
    topic_id = world.make_topic("orders")
    waiting = world.begin(make_fetch_request("orders", topic_id, 0))
    for _ in range(10):
        world.clock.advance(0.01)
    samples = world.scrape()
    assert samples[make_key("kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Fetch")] == 1
    assert samples[make_key("kafkacompat_requests_in_flight", request="Fetch")] == 1
    world.run(waiting)
    assert make_key("kafkacompat_requests_in_flight", request="Fetch") not in world.scrape()


def test_groups_have_members_offsets_and_lag(world: World) -> None:
    topic_id = world.make_topic("orders")
    produce_many(world, "orders", topic_id, 10)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=4)
    topic = OffsetCommitRequestTopic(name="orders", topic_id=topic_id, partitions=[partition])
    request = OffsetCommitRequest(group_id="readers", generation_id_or_member_epoch=-1, topics=[topic])
    world.run(world.broker.coordinators.groups.ensure_offsets_topic())
    answered = world.ask(request)
    assert answered.topics[0].partitions[0].error_code == 0
    samples = world.scrape()
    offset = {"consumergroup": "readers", "topic": "orders"}
    assert samples[make_key("kafka_consumergroup_current_offset", **offset, partition=0)] == 4
    assert samples[make_key("kafka_consumergroup_lag", **offset, partition=0)] == 6
    assert samples[make_key("kafka_consumergroup_lag_sum", **offset)] == 6
    assert samples[make_key("kafka_consumergroup_members", consumergroup="readers")] == 0
    assert samples[make_key("kafka_coordinator_group_groupmetadatamanager_numgroups")] == 1
    assert samples[make_key("kafka_coordinator_group_groupmetadatamanager_numoffsets")] == 1


def test_a_deleted_topic_leaves_its_totals(world: World) -> None:
    topic_id = world.make_topic("orders")
    produce_many(world, "orders", topic_id, 5)
    assert world.scrape()[make_key(f"{TOPICS}messagesin_total", topic="orders")] == 5
    world.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=1000))
    samples = world.scrape()
    assert make_key(f"{TOPICS}messagesin_total", topic="orders") not in samples
    assert samples[make_key(f"{TOPICS}messagesin_total")] == 5


def test_topics_without_a_place_share_a_series(tmp_path: Path) -> None:
    world = World(tmp_path, kafkacompat_metrics_max_items="2")
    world.run(world.broker.start())
    for number in range(5):
        topic_id = world.make_topic(f"topic-{number}")
        produce_many(world, f"topic-{number}", topic_id, number + 1)
    samples = world.scrape()
    topics = {dict(labels).get("topic") for name, labels in samples if name == f"{TOPICS}messagesin_total"}
    assert topics == {None, "topic-0", "topic-1", OTHER}
    assert samples[make_key(f"{TOPICS}messagesin_total", topic=OTHER)] == 3 + 4 + 5
    assert samples[make_key(f"{TOPICS}messagesin_total")] == 15
    assert samples[make_key("kafka_log_log_numlogsegments", topic=OTHER, partition=OTHER)] == 3
    assert samples[make_key("kafka_server_replicamanager_partitioncount")] == 5
    world.run(world.broker.stop())


def test_a_scrape_passes_over_the_partitions_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.make_topic("orders")
    passes: list[ReplicaManager] = []
    iterate = ReplicaManager.__iter__

    def count(replicas: ReplicaManager) -> Iterator[Partition]:
        passes.append(replicas)
        return iterate(replicas)

    monkeypatch.setattr(ReplicaManager, "__iter__", count)
    assert world.scrape()[make_key("kafka_server_replicamanager_partitioncount")] == 1
    assert len(passes) == 1


ABSENT = ("process_", "kafkacompat_reactor_", "kafkacompat_instance_", "kafkacompat_test_", "kafkacompat_faults_")


def test_a_scrape_makes_only_what_the_table_has(world: World) -> None:
    """Every metric of a scrape is documented, and nearly every documented one is there."""
    topic_id = world.make_topic("orders")
    produce_many(world, "orders", topic_id, 1)
    answer = world.get("/metrics")
    types = dict(line.split(" ")[2:4] for line in answer.body.splitlines() if line.startswith("# TYPE"))
    rows = {row.sample_name: row.kind for row in ROWS.values()}
    assert {name: kind for name, kind in types.items() if name not in rows} == {}
    assert {name: kind for name, kind in types.items() if rows[name] != kind} == {}
    # The reactor of this test has no turns, the broker no cluster, no instances and no tests, and Python may count no process.
    missing = set(rows) - set(types)
    assert not {name for name in missing if not name.startswith(ABSENT)} - {
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "kafkacompat_zookeeper_connected",
    }
    labels: dict[str, set[str]] = {}
    for name, own in read_samples(answer.body):
        for suffix in ("", "_count", "_sum", "_bucket"):
            labels.setdefault(name.removesuffix(suffix), set()).update(dict(own))
    for row in ROWS.values():
        assert labels.get(row.sample_name, set()) <= set(row.labels), row.name


def test_openmetrics_has_the_same_samples(world: World) -> None:
    topic_id = world.make_topic("orders")
    produce_many(world, "orders", topic_id, 1)
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
    answer = world.get("/metrics", accept=accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.body.endswith("# EOF\n") and answer.body.count("# EOF") == 1
    samples: dict[Any, float] = read_samples(answer.body, openmetrics=True)
    assert set(samples) == set(world.scrape())
    assert samples[make_key(f"{TOPICS}messagesin_total", topic="orders")] == 1


def test_readiness_follows_the_broker(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(world.broker.start())
    assert (world.get("/readyz").status, world.get("/readyz").body) == (200, "ready\n")
    assert world.scrape()[make_key("kafka_server_kafkaserver_brokerstate")] == 3
    assert world.broker.monitor is not None
    world.broker.monitor.note_stopping()
    assert world.get("/readyz").status == 503
    assert "the broker stops" in world.get("/readyz").body
    assert world.get("/healthz").body == "ok\n"
    world.run(world.broker.stop())
    assert world.clock.site is None


def test_failed_directories_are_not_ready(world: World) -> None:
    for directory in world.broker.directories:
        world.broker.replica_manager.take_directory_offline(directory, OSError("broken"))
    answer = world.get("/readyz")
    assert (answer.status, answer.body) == (503, "not ready: every log directory is offline\n")
    samples = world.scrape()
    assert samples[make_key("kafka_log_logmanager_offlinelogdirectorycount")] == 1
    assert samples[make_key("kafkacompat_ready")] == 0
