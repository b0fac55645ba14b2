"""`kafkacompat spark mirror`: topics of one cluster in another, record by record."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource, NewPartitions

from compat_tests.brokers import BROKERS, Broker
from compat_tests.confluent import admin_of, create_topic
from compat_tests.conftest import MakeBroker
from compat_tests.spark.copies import (
    RUN_SECONDS,
    Run,
    assert_copied,
    client_options,
    count_offsets,
    kill_count,
    kill_some_times,
    make_numbered_records,
    make_various_records,
    produce_records,
    read_contents,
    record_contents,
    record_origins,
    run_mirror,
)
from compat_tests.waiting import until
from spark_integration.errors import PipelineError
from spark_integration.mirror.pipeline import MirrorSummary
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.names import TargetNames
from spark_integration.topics.origin import add_origin
from spark_integration.topics.sink import write_batch
from spark_integration.topics.source import read_batch

SEED = 20261122


def list_topics(broker: Broker) -> set[str]:
    return {name for name in admin_of(broker).list_topics(timeout=30).topics if not name.startswith("__")}


def test_a_mirror_is_its_source(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, 2, retention_ms="77777777")
    records = make_various_records(random.Random(SEED), 200)
    produce_records(broker, name, records, 2)
    summary = run_mirror(spark, broker, broker, tmp_path / name, TargetNames("copy."), subscribe=name)
    assert summary == MirrorSummary(1, 200, 1, 0, f"map-{name}")
    assert_copied(broker, name, broker, f"copy.{name}")
    resource = ConfigResource(ConfigResource.Type.TOPIC, f"copy.{name}")
    configs = admin_of(broker).describe_configs([resource])[resource].result(30)
    assert configs["retention.ms"].value == "77777777"


@pytest.mark.spark
class TestContents:
    def test_aborted_records_are_not_mirrored(
        self, broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
    ) -> None:
        create_topic(broker, name, 2)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
        producer.init_transactions(30)
        for number in range(20):
            producer.begin_transaction()
            for value in range(10):
                producer.produce(name, b"%d/%d" % (number, value), partition=value % 2)
            (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)(30)
        target = make_broker()
        assert run_mirror(spark, broker, target, tmp_path / "c", subscribe=name).records_written == 130
        assert_copied(broker, name, target, name)

    def test_growth_and_new_topics_are_picked_up(
        self, broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
    ) -> None:
        target = make_broker()
        create_topic(broker, f"{name}-a", 1)
        produce_records(broker, f"{name}-a", make_numbered_records(50), 1)
        pattern = {"subscribePattern": f"{name}-.*", "maxOffsetsPerTrigger": "20"}
        run_mirror(spark, broker, target, tmp_path / "c", **pattern)
        admin_of(broker).create_partitions([NewPartitions(f"{name}-a", 3)])[f"{name}-a"].result(30)
        create_topic(broker, f"{name}-b", 2)
        create_topic(broker, f"{name}-empty", 4)
        until(lambda: list_topics(broker) >= {f"{name}-empty"})
        produce_records(broker, f"{name}-a", make_numbered_records(60), 3)
        produce_records(broker, f"{name}-b", make_numbered_records(30), 2)
        summary = run_mirror(spark, broker, target, tmp_path / "c", **pattern)
        assert (summary.records_written, summary.topics_created, summary.partitions_added) == (90, 2, 2)
        for suffix in ("a", "b", "empty"):
            assert_copied(broker, f"{name}-{suffix}", target, f"{name}-{suffix}")

    def test_two_mirrors_do_not_go_in_a_circle(
        self, broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
    ) -> None:
        other = make_broker()
        create_topic(broker, name, 2)
        produce_records(broker, name, make_numbered_records(40), 2)

        def mirror_to_other() -> int:
            return run_mirror(spark, broker, other, tmp_path / "c", subscribe=name).records_written

        def mirror_back() -> int:
            return run_mirror(spark, other, broker, tmp_path / "d" / "c", subscribe=name).records_written

        assert mirror_to_other() == 40
        produce_records(other, name, make_numbered_records(6), 2)
        assert mirror_back() == 6
        assert mirror_to_other() == 0
        assert mirror_back() == 0
        assert count_offsets(broker, name) == count_offsets(other, name) == 46
        own_contents = record_contents(read_contents(broker, name))
        other_contents = record_contents(read_contents(other, name))
        # The forty are the first in both; each cluster's own records are where they were produced.
        assert {partition: sorted(contents) for partition, contents in own_contents.items()} == {
            partition: sorted(contents) for partition, contents in other_contents.items()
        }

    def test_mirrors_with_prefixes_make_no_topics_of_mirrors(
        self, broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
    ) -> None:
        first, other = make_broker(), make_broker()
        create_topic(first, name, 1)
        create_topic(first, f"{name}-empty", 1)
        create_topic(other, f"{name}-other", 1)
        produce_records(first, name, make_numbered_records(10), 1)
        for times in range(2):
            to_other = run_mirror(spark, first, other, tmp_path / "c", TargetNames("first."), subscribePattern=".*")
            to_first = run_mirror(
                spark, other, first, tmp_path / "d" / "c", TargetNames("other."), subscribePattern=".*"
            )
            assert to_other.left_out == (f"other.{name}-other" if times else None)
            assert to_first.left_out == f"first.{name}, first.{name}-empty"
        assert list_topics(first) == {name, f"{name}-empty", f"other.{name}-other", "map-c"}
        assert list_topics(other) == {f"first.{name}", f"first.{name}-empty", f"{name}-other", "map-c"}


@pytest.mark.spark
class TestGoingOn:
    def test_a_lost_checkpoint_writes_nothing_twice(
        self, broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
    ) -> None:
        target = make_broker()
        create_topic(broker, name, 3)
        produce_records(broker, name, make_numbered_records(300), 3)
        run_mirror(spark, broker, target, tmp_path / "c", subscribe=name)
        produce_records(broker, name, make_numbered_records(60), 3)
        summary = run_mirror(spark, broker, target, tmp_path / "new" / "c", subscribe=name, maxOffsetsPerTrigger="100")
        assert summary.records_written == 60
        assert_copied(broker, name, target, name)

    def test_a_hole_is_written_again_with_all_after_it(
        self, broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
    ) -> None:
        target = make_broker()
        create_topic(broker, name, 2)
        produce_records(broker, name, make_numbered_records(2), 2)
        run_mirror(spark, broker, target, tmp_path / "c", subscribe=name)
        produce_records(broker, name, make_numbered_records(20), 2)
        with Cluster(spark, client_options(broker)) as cluster:
            cluster_id = cluster.cluster_id()
        # A producer that gave up on offset 4 of partition 1 leaves this.
        rows = read_batch(spark, client_options(broker, subscribe=name)).where(
            "partition = 1 and offset in (1, 2, 3, 5, 6) or partition = 0 and offset in (1, 2)"
        )
        write_batch(add_origin(rows, cluster_id).sortWithinPartitions("offset"), client_options(target))
        assert run_mirror(spark, broker, target, tmp_path / "c", subscribe=name).records_written == 8 + 7
        assert record_origins(read_contents(target, name)) == {0: list(range(11)), 1: [0, 1, 2, 3, 5, 6, *range(4, 11)]}

    def test_a_recreated_topic_is_mirrored_from_its_beginning(
        self, broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
    ) -> None:
        target = make_broker()
        create_topic(broker, name, 1)
        produce_records(broker, name, make_numbered_records(30), 1)
        run_mirror(spark, broker, target, tmp_path / "c", subscribe=name)
        admin_of(broker).delete_topics([name])[name].result(30)
        until(lambda: name not in list_topics(broker))
        create_topic(broker, name, 1)
        produce_records(broker, name, make_numbered_records(40)[::-1], 1)
        assert run_mirror(spark, broker, target, tmp_path / "new" / "c", subscribe=name).records_written == 40
        assert [value for _, value, _ in record_contents(read_contents(target, name))[0]] == [
            value for _, value, _ in [*make_numbered_records(30), *make_numbered_records(40)[::-1]]
        ]

    def test_killed_at_any_moment_it_goes_on(
        self, broker: Broker, make_broker: MakeBroker, name: str, tmp_path: Path
    ) -> None:
        target, count = make_broker(), 40_000 * kill_count()
        create_topic(broker, name, 3)
        produce_records(broker, name, make_numbered_records(count), 3)
        arguments = [
            "mirror",
            *("--bootstrap-server", broker.bootstrap, "--target-bootstrap-server", target.bootstrap),
            *("--subscribe", name, "--checkpointLocation", str(tmp_path / "c")),
            *("--maxOffsetsPerTrigger", "10000"),
        ]
        kill_some_times(tmp_path, arguments, lambda: count_offsets(target, name), count)
        last = Run(tmp_path / "last", *arguments)
        assert last.wait() == 0, last.stderr
        assert count_offsets(target, name) == count
        assert_copied(broker, name, target, name)


def wait_for(running: Run, target: Broker, topic: str, count: int) -> None:
    """Wait until the mirror has this many records, or has ended."""
    until(lambda: count_offsets(target, topic) >= count or running.has_ended, timeout_seconds=RUN_SECONDS)


@pytest.mark.spark
@pytest.mark.parametrize("kinds", [("kafkacompat", "kafka"), ("kafka", "kafkacompat")], ids="-to-".join)
def test_a_mirror_survives_restarts_of_both_clusters(kinds: tuple[str, str], name: str, tmp_path: Path) -> None:
    with BROKERS[kinds[0]](tmp_path / "source") as source, BROKERS[kinds[1]](tmp_path / "target") as target:
        create_topic(source, name, 3)
        produce_records(source, name, make_various_records(random.Random(1), 3000), 3)
        running = Run(
            tmp_path / "run",
            "mirror",
            *("--bootstrap-server", source.bootstrap, "--target-bootstrap-server", target.bootstrap),
            *("--subscribe", name, "--checkpointLocation", str(tmp_path / "c"), "--trigger", "500 milliseconds"),
            *("--option", "maxOffsetsPerTrigger=500"),
        )
        try:
            wait_for(running, target, name, 1)
            for number, broker in enumerate([target, source]):
                broker.stop()
                assert not running.has_ended
                broker.start()
                produce_records(source, name, make_various_records(random.Random(number), 3000), 3)
                wait_for(running, target, name, 6000 + 3000 * number)
            assert running.end() == 0, running.stderr
        finally:
            if not running.has_ended:
                running.kill()
        assert_copied(source, name, target, name)


@pytest.mark.spark
class TestRefusals:
    @pytest.mark.parametrize(
        ("wrong", "names", "message"),
        [
            ({"subscribe": "{topic}"}, TargetNames(), "would be mirrored into itself"),
            ({"subscribe": "missing"}, TargetNames(), "there is no topic missing"),
            ({"subscribe": "{topic}", "minPartitions": "9"}, TargetNames("x."), "minPartitions would mix up"),
            ({"subscribe": "{topic}"}, TargetNames("a b"), "which is no topic's name"),
            ({"subscribe": "{topic}"}, TargetNames("", {"other": "b"}), "no topic other, which --map names"),
        ],
    )
    def test_nothing_is_made(
        self,
        broker: Broker,
        spark: Any,
        name: str,
        tmp_path: Path,
        wrong: dict[str, str],
        names: TargetNames,
        message: str,
    ) -> None:
        create_topic(broker, name, 1)
        until(lambda: name in list_topics(broker))  # Kafka responds a moment before its brokers know the topic
        before = list_topics(broker)
        source = {key: value.replace("{topic}", name) for key, value in wrong.items()}
        with pytest.raises(PipelineError, match=message):
            run_mirror(spark, broker, broker, tmp_path / "c", names, **source)
        assert list_topics(broker) == before
        assert not (tmp_path / "c").exists()

    def test_a_target_that_is_not_there(self, broker: Broker, name: str, tmp_path: Path) -> None:
        create_topic(broker, name, 1)
        failed = Run(
            tmp_path / "run",
            "mirror",
            *("--bootstrap-server", broker.bootstrap, "--target-bootstrap-server", "127.0.0.1:1"),
            *("--subscribe", name, "--checkpointLocation", str(tmp_path / "c")),
        )
        assert failed.wait() == 2
        sentence = "no broker listens on 127.0.0.1:1: start it, or correct --target-bootstrap-server"
        assert failed.stderr.splitlines() == [f"Error: {sentence}"]
