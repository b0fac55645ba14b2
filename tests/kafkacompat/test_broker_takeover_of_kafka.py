"""A start on log directories that Apache Kafka with controllers of its own left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkacompat.broker import START_ERRORS
from kafkacompat.config.resources import ResourceType
from kafkacompat.storage.directory.cluster_metadata import CLUSTER_METADATA_FOLDER
from kafkacompat.storage.directory.log_directory import CLEAN_SHUTDOWN_FILE
from kafkacompat.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES
from kafkacompat.storage.directory.takeover_mark import FILE_NAME as MARK
from kafkacompat.wire.metadata_records import ConfigRecord, PartitionRecord, TopicRecord, write_metadata_record
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Message
from tests.kafkacompat.test_broker import World, list_folders
from tests.kafkacompat.test_broker_takeover import UNKNOWN, find_epoch, keeps_everything, lose_store


class KafkaDirectory:
    """A directory with a topic and the records of Kafka's controllers, made of one of ours."""

    def __init__(self, world: World, name: str) -> None:
        broker = world.start()
        world.make_topic(broker, name, 1)
        self.topic_id = broker.metadata.image.topics[name].topic_id
        world.append(broker, name, 0)
        world.stop(broker)
        lose_store(world)
        self._folder = world.paths[1] / CLUSTER_METADATA_FOLDER
        self._folder.mkdir()
        self._offset = 0
        self.write(
            TopicRecord(name=name, topic_id=self.topic_id),
            PartitionRecord(partition_id=0, topic_id=self.topic_id, leader_epoch=20),
            ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=name, name="retention.ms", value="77"),
        )

    def write(self, *records: Message) -> None:
        """What its controllers write next."""
        with (self._folder / f"{0:020d}.log").open("ab") as log:
            values = [(0, None, write_metadata_record(record), ()) for record in records]
            log.write(build_batch(values, base_offset=self._offset))
        self._offset += len(records)


def test_kafkas_metadata_counts_when_it_is_taken_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    kafka = KafkaDirectory(world, "t")
    broker = world.start()
    assert broker.metadata.image.topics["t"].topic_id == kafka.topic_id
    assert find_epoch(broker, "t") == 21
    assert broker.metadata.image.config(ResourceType.TOPIC, "t") == {"retention.ms": "77"}
    assert UNKNOWN not in caplog.text
    world.stop(broker)
    again = world.start()
    assert find_epoch(again, "t") == 22
    world.stop(again)


def test_kafkas_metadata_does_not_count_once_ours_was_newer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    KafkaDirectory(world, "t")
    world.stop(world.start())
    lose_store(world)
    broker = world.start()
    assert keeps_everything(broker, "t")
    assert "is older than the metadata that was lost" in caplog.text
    world.stop(broker)


def test_a_start_after_kafka_ran_again_needs_a_decision(tmp_path: Path) -> None:
    world = World(tmp_path)
    kafka = KafkaDirectory(world, "t")
    world.stop(world.start())
    kafka.write(ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="retention.ms", value="88"))
    with pytest.raises(START_ERRORS, match=r"Apache Kafka has run on .*/b since this broker did: move .* away"):
        world.start()
    world.assert_unlocked()
    lose_store(world)
    broker = world.start()
    assert broker.metadata.image.config(ResourceType.TOPIC, "t") == {"retention.ms": "88"}
    world.stop(broker)
    kafka.write(ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="retention.ms", value="99"))
    (world.paths[1] / MARK).unlink()
    broker = world.start()
    assert broker.metadata.image.config(ResourceType.TOPIC, "t") == {"retention.ms": "88"}
    world.stop(broker)


def test_a_directory_of_another_cluster_leaves_no_mark_on_the_others(tmp_path: Path) -> None:
    world = World(tmp_path)
    KafkaDirectory(world, "t")
    before = {path.name for path in world.paths[1].iterdir()}
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / META_PROPERTIES).write_text(f"version=1\ncluster.id={'A' * 22}\nnode.id=1\n")
    log_dirs = f"{tmp_path / 'fresh'},{world.paths[1]},{foreign}"
    for properties in ({"log_dirs": log_dirs}, {"metadata_log_dir": str(foreign)}):
        with pytest.raises(START_ERRORS, match=r"foreign belongs to cluster A+, not .*; set log.dirs right"):
            world.start(**properties)
        assert not (tmp_path / "fresh").exists()
        assert {path.name for path in world.paths[1].iterdir()} == before


def test_metadata_that_knows_nothing_of_the_folders_sets_none_aside(tmp_path: Path) -> None:
    world = World(tmp_path)
    KafkaDirectory(world, "t")
    (world.paths[1] / CLUSTER_METADATA_FOLDER / f"{0:020d}.log").write_bytes(b"")
    with pytest.raises(START_ERRORS, match=f"{CLUSTER_METADATA_FOLDER} knows none of the topics that have folders"):
        world.start()
    assert list_folders(world.paths, "t-") == ["t-0"]


def test_metadata_of_two_clusters_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    KafkaDirectory(world, "t")
    other = shutil.copytree(world.paths[1] / CLUSTER_METADATA_FOLDER, world.paths[0] / CLUSTER_METADATA_FOLDER)
    with pytest.raises(START_ERRORS, match=f"a and .*b each have a {CLUSTER_METADATA_FOLDER}; move all away but"):
        world.start()
    shutil.rmtree(other)
    world.stop(world.start())


def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    KafkaDirectory(world, "t")
    (segment,) = (file for path in world.paths for file in path.glob(f"t-0/{0:020d}.log"))
    segment.rename(segment.with_name("kept"))
    segment.mkdir()
    (segment.parent.parent / CLEAN_SHUTDOWN_FILE).unlink()
    with pytest.raises(START_ERRORS, match=r"cannot be read .*; repair that"):
        world.start()
    world.assert_unlocked()


def test_kafkas_metadata_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    kafka = KafkaDirectory(world, "t")
    record = write_metadata_record(TopicRecord(name="x", topic_id=kafka.topic_id))
    with (world.paths[1] / CLUSTER_METADATA_FOLDER / f"{0:020d}.log").open("ab") as log:
        log.write(build_batch([(0, None, record[:2] + b"\x09" + record[3:], [])], base_offset=3))
    with pytest.raises(START_ERRORS, match=f"{CLUSTER_METADATA_FOLDER} in .* cannot be read"):
        world.start()
    world.assert_unlocked()
