"""Data directories that Apache Kafka 0.11, 2.8 and 4.3 left, stopped or killed, are ours from the first start on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType, ScramMechanism

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import Broker, KafkacompatBroker
from compat_tests.dumps import kafkas_dump, list_complaints
from compat_tests.predecessors import (
    COMMITTED,
    QUIET,
    QUOTA,
    RELEASES,
    SEVERAL,
    USER,
    Predecessor,
    Stored,
    commit_offset,
    committed_offset,
    read_records,
    run_predecessor,
    send_records,
)
from compat_tests.raw_client import RawClient
from kafkacompat.wire.apis.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

NEW = [Stored(b"new-%d" % index, b"ours", (("h", b"x"),), RECENT_MS + 5000 + index) for index in range(30)]


DAILY_RELEASE = "4.3"
"""The one that is taken over in every run; ``make migrate`` takes over the others too."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(release, marks=[] if release == DAILY_RELEASE else pytest.mark.migration) for release in RELEASES
    ],
)
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Predecessor:
    """The directories of one run of Kafka."""
    return run_predecessor(request.param, tmp_path_factory.mktemp("predecessor"))


def make_successor(left: Predecessor, image: str, folder: Path) -> KafkacompatBroker:
    """Our broker over a copy of a directory, not started yet."""
    broker = KafkacompatBroker(folder)
    broker.prepare()
    left.copy(image, broker.data_folder)
    return broker


def count_records(left: Predecessor, more: int = 0) -> dict[tuple[str, int], int]:
    return {name: len(records) + (more if name[0] == SEVERAL else 0) for name, records in left.records.items()}


def folder_ids(data: Path) -> dict[str, str]:
    """Return the topics' ids from their partition.metadata."""
    texts = ((path.parent.name.rpartition("-")[0], path.read_text()) for path in data.glob("*-0/partition.metadata"))
    return {topic: text.split("topic_id: ")[1].strip() for topic, text in texts if topic != "__cluster_metadata"}


def topic_ids(bootstrap: str, names: list[str]) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    described = admin.describe_topics(TopicCollection(names))
    # librdkafka writes them in the alphabet that Kafka does not use.
    texts = {name: str(future.result(30).topic_id) for name, future in described.items()}
    return {name: text.replace("+", "-").replace("/", "_") for name, text in texts.items()}


def topic_configs(bootstrap: str, name: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, name)
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    (future,) = admin.describe_configs([resource]).values()
    return {key: entry.value for key, entry in future.result(30).items()}


@pytest.mark.parametrize("image", ["stopped", "killed"])
def test_everything_is_served_and_goes_on(left: Predecessor, image: str, tmp_path: Path) -> None:
    broker = make_successor(left, image, tmp_path / "node")
    ids = folder_ids(broker.data_folder)
    with broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        listed = admin.list_topics(timeout=30).topics
        assert {name: len(topic.partitions) for name, topic in listed.items()} == left.topics()
        assert read_records(broker.bootstrap, count_records(left)) == left.records
        assert committed_offset(broker.bootstrap) == COMMITTED
        assert ids.items() <= topic_ids(broker.bootstrap, list(left.topics())).items()
        send_records(broker.bootstrap, SEVERAL, 3, NEW, {"enable.idempotence": True})
        after = read_records(broker.bootstrap, count_records(left, more=10))
        assert after[SEVERAL, 0] == left.records[SEVERAL, 0] + NEW[::3]
        check_configs(left, broker)
    assert (len(ids) == len(left.topics())) == (left.release == "4.3")


def check_configs(left: Predecessor, broker: Broker) -> None:
    several, compacted = (topic_configs(broker.bootstrap, name) for name in (SEVERAL, "compacted"))
    known = left.release == "4.3"
    assert several["retention.ms"] == ("987654321000" if known else "-1")
    assert several["max.message.bytes"] == ("900000" if known else "1048588")
    assert compacted["cleanup.policy"] == ("compact" if known else "delete")
    assert topic_configs(broker.bootstrap, "__consumer_offsets")["cleanup.policy"] == "compact"
    assert ("topics with unknown configs" in broker.stderr()) != known


@pytest.mark.parametrize("left", ["4.3"], indirect=True)
def test_settings_of_users_are_taken_over_from_a_snapshot(left: Predecessor, tmp_path: Path) -> None:
    broker = make_successor(left, "stopped", tmp_path / "node")
    snapshots = broker.data_folder.glob("__cluster_metadata-0/*.checkpoint")
    assert max(int(path.name.partition("-")[0]) for path in snapshots) > 0
    with broker, RawClient(broker.port) as client:
        quotas = client.call(DescribeClientQuotasRequest(), DescribeClientQuotasResponse, 1).entries or []
        assert [(quota.entity[0].entity_name, quota.values[0].value) for quota in quotas] == [(USER, QUOTA)]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        (described,) = admin.describe_user_scram_credentials([USER]).values()
        (info,) = described.result(30).scram_credential_infos
        assert (info.mechanism, info.iterations) == (ScramMechanism.SCRAM_SHA_256, 4096)


def takes_it_back(left: Predecessor, tmp_path: Path) -> Path:
    """Let our broker append, then the same Kafka continue; return Kafka's directory."""
    broker = make_successor(left, "stopped", tmp_path / "node")
    with broker:
        send_records(broker.bootstrap, SEVERAL, 3, NEW, {"enable.idempotence": True})
        send_records(broker.bootstrap, "made-here", 1, NEW, {})
        commit_offset(broker.bootstrap, COMMITTED + 1)
    kafka = left.broker
    shutil.rmtree(kafka.data_folder)
    shutil.copytree(broker.data_folder, kafka.data_folder)
    with kafka:
        stored = read_records(kafka.bootstrap, count_records(left, more=10))
        assert stored == {
            (topic, index): records + (NEW[index::3] if topic == SEVERAL else [])
            for (topic, index), records in left.records.items()
        }
        assert committed_offset(kafka.bootstrap) == COMMITTED + 1
        send_records(kafka.bootstrap, SEVERAL, 3, NEW, {"enable.idempotence": True})
        again = read_records(kafka.bootstrap, count_records(left, more=20))
        assert again[SEVERAL, 2] == left.records[SEVERAL, 2] + 2 * NEW[2::3]
    return kafka.data_folder


@pytest.mark.migration
@pytest.mark.parametrize("left", ["0.11", "2.8"], indirect=True)
def test_an_older_kafka_takes_its_directory_back(left: Predecessor, tmp_path: Path) -> None:
    takes_it_back(left, tmp_path)


@pytest.mark.migration
@pytest.mark.parametrize("left", ["4.3"], indirect=True)
def test_kafka_4_takes_its_directory_back(left: Predecessor, tmp_path: Path) -> None:
    data = takes_it_back(left, tmp_path)
    # Topics that its controllers do not know become stray there.
    assert [path.name.rpartition("-")[2] for path in data.glob("made-here-*")] == ["stray"]
    output, errors = kafkas_dump(data.glob(f"{SEVERAL}-*/*.log"), "--deep-iteration")
    assert list_complaints(errors) == []
    assert set(re.findall(r"isvalid: (\w+)$", output, re.MULTILINE)) == {"true"}


@pytest.mark.parametrize("left", ["4.3"], indirect=True)
def test_a_directory_for_another_node_is_refused(left: Predecessor, tmp_path: Path) -> None:
    broker = make_successor(left, "stopped", tmp_path / "node")
    broker.properties["node.id"] = "7"
    with pytest.raises(AssertionError, match="belongs to node 1, not 7"):
        broker.start()


@pytest.mark.parametrize("left", ["4.3"], indirect=True)
def test_a_new_directory_may_be_added_at_once(left: Predecessor, tmp_path: Path) -> None:
    broker = make_successor(left, "killed", tmp_path / "node")
    broker.properties["log.dirs"] = f"{tmp_path / 'added'},{broker.data_folder}"
    with broker:
        assert read_records(broker.bootstrap, count_records(left)) == left.records
        send_records(broker.bootstrap, "made-here", 1, NEW, {})
    assert (tmp_path / "added" / "made-here-0").is_dir()


@pytest.mark.parametrize("image", ["stopped", "killed"])
def test_verify_finds_nothing_wrong_with_kafkas_directories(left: Predecessor, image: str) -> None:
    command = [sys.executable, "-m", "kafkacompat", "log", "verify", "--json", str(left.images[image])]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
