"""A start on log directories with partitions of which the metadata store knows nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.broker import START_ERRORS, Broker
from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, Operation, ResourceChange
from kafkacompat.metadata.inheritance import KEEP_EVERYTHING
from kafkacompat.metadata.sqlite_store import FILE_NAME
from kafkacompat.replication.takeover import may_go_back
from kafkacompat.storage.cluster_metadata import FOLDER
from kafkacompat.storage.files import OsFiles
from kafkacompat.storage.takeover_mark import FILE_NAME as MARK
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.message_set import entry_writer
from kafkacompat.wire.metadata_records import ConfigRecord, PartitionRecord, TopicRecord, write_metadata_record
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Message
from tests.kafkacompat.test_broker import World, folders

UNKNOWN = "the configs of these topics are not known"


def epoch(broker: Broker, name: str) -> int:
    return broker.metadata.image.topics[name].partitions[0].leader_epoch


def lose_store(world: World) -> None:
    (world.paths[0] / FILE_NAME).unlink()


def keeps_everything(broker: Broker, name: str) -> bool:
    configs = broker.metadata.image.config(ResourceType.TOPIC, name)
    return KEEP_EVERYTHING.items() <= configs.items()


def alter(broker: Broker, world: World, name: str, value: str) -> None:
    operation = ConfigOperation(name, Operation.SET, value)
    assert world.run(broker.controller.alter_configs([ResourceChange(ResourceType.TOPIC, "t", [operation])])) == [None]


def test_a_lost_store_is_made_again_from_the_folders(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 3)
    topic_id = first.metadata.image.topics["t"].topic_id
    assert world.append(first, "t", 0) == 0
    world.stop(first)
    lose_store(world)
    second = world.start()
    topic = second.metadata.image.topics["t"]
    assert (topic.topic_id, len(topic.partitions)) == (topic_id, 3)
    assert epoch(second, "t") > epoch(first, "t")
    assert world.append(second, "t", 0) == 1
    assert "is new: topics, with 3 folders of partitions, are taken over" in caplog.text
    world.stop(second)


def test_a_store_lost_in_a_crash_does_not_take_the_epochs_back(tmp_path: Path) -> None:
    """No checkpoint says yet in which epoch the last batch was written."""
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 1)
    for partition in first.replica_manager:
        partition.leader_epoch = 7
    world.append(first, "t", 0)
    first.housekeeping.stop()
    world.run(first._let_go())
    lose_store(world)
    second = world.start()
    assert epoch(second, "t") == 8
    world.stop(second)


def test_unknown_configs_keep_everything_until_they_are_altered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 1)
    world.stop(first)
    lose_store(world)
    for _ in range(2):
        caplog.clear()
        broker = world.start()
        assert UNKNOWN in caplog.text
        assert keeps_everything(broker, "t")
        (partition,) = broker.replica_manager
        assert (partition.log.config.retention_ms, partition.log.config.retention_bytes) == (-1, -1)
        world.stop(broker)
    broker = world.start()
    alter(broker, world, "max.message.bytes", "1000")
    assert keeps_everything(broker, "t")
    alter(broker, world, "retention.ms", "1000")
    world.stop(broker)
    caplog.clear()
    world.stop(world.start())
    assert UNKNOWN not in caplog.text


@pytest.mark.parametrize("contents", [b"", b"no database at all" * 100])
def test_a_damaged_store_is_set_aside_and_made_again(tmp_path: Path, contents: bytes) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 1)
    world.append(first, "t", 0)
    world.stop(first)
    (world.paths[0] / FILE_NAME).write_bytes(contents)
    second = world.start()
    assert world.append(second, "t", 0) == 1
    assert folders(world.paths, f"{FILE_NAME}.damaged") == ([f"{FILE_NAME}.damaged-1"] if contents else [])
    world.stop(second)


def test_an_intact_store_takes_nothing_over(tmp_path: Path) -> None:
    """A topic that was deleted when a crash came does not come back."""
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 1)
    world.stop(first)
    kept = (world.paths[0] / FILE_NAME).read_bytes()
    second = world.start()
    world.make_topic(second, "u", 1)
    world.stop(second)
    (world.paths[0] / FILE_NAME).write_bytes(kept)
    third = world.start()
    assert set(third.metadata.image.topics) == {"t"}
    assert [name.rpartition("-")[2] for name in folders(world.paths, "u-")] == ["stray"]
    world.stop(third)


def test_a_damaged_log_of_an_old_format_is_offline_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 2)
    world.append(first, "t", 1)
    world.stop(first)
    (segment,) = (file for path in world.paths for file in path.glob(f"t-0/{0:020d}.log"))
    damaged = entry_writer(1, 0)(0, 0, b"k", b"v")[:-1] + b"x"
    segment.write_bytes(damaged)
    second = world.start()
    with pytest.raises(KafkaError) as refusal:
        second.replica_manager.find("t", 0)
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "the message of an old format at byte 0 is damaged" in caplog.text
    assert segment.read_bytes() == damaged
    assert world.append(second, "t", 1) == 1
    world.stop(second)


def test_a_copy_is_kept_when_it_is_all_there_is_of_a_partition(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 1)
    world.append(first, "t", 0)
    world.stop(first)
    (folder,) = (file for path in world.paths for file in path.glob("t-0"))
    copy = folder.rename(folder.with_name(f"t-0.{'ab' * 16}-future"))
    content = (copy / f"{0:020d}.log").read_bytes()
    world.stop(world.start())
    (aside,) = (file for path in world.paths for file in path.glob("*-stray"))
    assert (aside / f"{0:020d}.log").read_bytes() == content != b""
    assert "is a copy of a partition that is nowhere else" in caplog.text


def test_only_directories_that_were_kafkas_may_go_back_to_it(tmp_path: Path) -> None:
    config = BrokerConfig({"node.id": "1", "log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"})
    assert not may_go_back(OsFiles(), config)
    (tmp_path / "b" / FOLDER).mkdir(parents=True)
    assert may_go_back(OsFiles(), config)
    (tmp_path / "b" / FOLDER).rmdir()
    for version, expected in ((1, False), (0, True)):
        (tmp_path / "b" / "meta.properties").write_text(f"version={version}\n")
        assert may_go_back(OsFiles(), config) == expected


# Directories of Kafka


class KafkaDirectory:
    """A directory with a topic and the records of Kafka's controllers, made of one of ours."""

    def __init__(self, world: World, name: str) -> None:
        broker = world.start()
        world.make_topic(broker, name, 1)
        self.topic_id = broker.metadata.image.topics[name].topic_id
        world.append(broker, name, 0)
        world.stop(broker)
        lose_store(world)
        self._folder = world.paths[1] / FOLDER
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
    assert epoch(broker, "t") == 21
    assert broker.metadata.image.config(ResourceType.TOPIC, "t") == {"retention.ms": "77"}
    assert UNKNOWN not in caplog.text
    world.stop(broker)
    again = world.start()
    assert epoch(again, "t") == 22
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


def test_a_start_after_kafka_ran_again_is_refused_until_somebody_says_what_counts(tmp_path: Path) -> None:
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


def test_kafkas_metadata_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    kafka = KafkaDirectory(world, "t")
    record = write_metadata_record(TopicRecord(name="x", topic_id=kafka.topic_id))
    with (world.paths[1] / FOLDER / f"{0:020d}.log").open("ab") as log:
        log.write(build_batch([(0, None, record[:2] + b"\x09" + record[3:], [])], base_offset=3))
    with pytest.raises(START_ERRORS, match=f"{FOLDER} in .* cannot be read"):
        world.start()
    world.assert_unlocked()
