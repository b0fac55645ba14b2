"""A start on log directories with partitions of which the metadata store knows nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkacompat.broker import START_ERRORS, Broker
from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.metadata.inheritance import KEEP_EVERYTHING
from kafkacompat.metadata.sqlite_store import FILE_NAME
from kafkacompat.partitions.takeover import belonged_to_kafka
from kafkacompat.storage.directory.cluster_metadata import CLUSTER_METADATA_FOLDER
from kafkacompat.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.message_set import make_entry_writer
from tests.kafkacompat.test_broker import World, list_folders

UNKNOWN = "topics with unknown configs"


def find_epoch(broker: Broker, name: str) -> int:
    return broker.metadata.image.topics[name].partitions[0].leader_epoch


def lose_store(world: World) -> None:
    (world.paths[0] / FILE_NAME).unlink()


def keeps_everything(broker: Broker, name: str) -> bool:
    configs = broker.metadata.image.config(ResourceType.TOPIC, name)
    return KEEP_EVERYTHING.items() <= configs.items()


def alter_topic(broker: Broker, world: World, name: str, value: str) -> None:
    operation = ConfigOperation(name, ConfigOperationType.SET, value)
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
    assert find_epoch(second, "t") > find_epoch(first, "t")
    assert world.append(second, "t", 0) == 1
    assert "is new: topics, with 3 folders of partitions, are taken over" in caplog.text
    world.stop(second)


def appended_in_epoch_7(world: World) -> Broker:
    """A broker with one batch, which was written in that epoch."""
    broker = world.start()
    world.make_topic(broker, "t", 1)
    for partition in broker.replica_manager:
        partition.state.leader_epoch = 7
    world.append(broker, "t", 0)
    return broker


def assert_goes_on_in_epoch_8(world: World) -> None:
    lose_store(world)
    broker = world.start()
    assert find_epoch(broker, "t") == 8
    world.stop(broker)


def test_a_store_lost_in_a_crash_does_not_take_the_epochs_back(tmp_path: Path) -> None:
    """No checkpoint says yet in which epoch the last batch was written."""
    world = World(tmp_path)
    broker = appended_in_epoch_7(world)
    broker.housekeeping.stop()
    world.run(broker._release())
    assert_goes_on_in_epoch_8(world)


def test_epochs_that_no_checkpoint_tells_come_from_the_batches(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.stop(appended_in_epoch_7(world))
    (checkpoint,) = (file for path in world.paths for file in path.glob("t-0/leader-epoch-checkpoint"))
    checkpoint.write_bytes(b"\0" * 9)
    assert_goes_on_in_epoch_8(world)


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
    alter_topic(broker, world, "max.message.bytes", "1000")
    assert keeps_everything(broker, "t")
    alter_topic(broker, world, "retention.ms", "1000")
    world.stop(broker)
    caplog.clear()
    world.stop(world.start())
    assert UNKNOWN not in caplog.text


def test_a_directory_whose_disk_is_not_mounted_is_not_taken_for_a_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 2)
    appended = {index: world.append(first, "t", index) for index in (0, 1)}
    world.stop(first)
    mounted, unmounted = world.paths[1], world.paths[1].with_name("unmounted")
    (name,) = list_folders([mounted], "t-")
    mounted.rename(unmounted)
    for _ in range(2):
        with pytest.raises(START_ERRORS, match=f"b is new, but 1 partitions, such as {name}, .* mount its disk, or"):
            world.start()
        world.assert_unlocked()
    assert not mounted.exists()
    unmounted.rename(mounted)
    second = world.start()
    assert {index: world.append(second, "t", index) for index in (0, 1)} == {0: 1, 1: 1} != appended
    world.stop(second)
    shutil.rmtree(mounted)
    mounted.mkdir()
    (mounted / META_PROPERTIES).write_text(f"version=1\nnode.id=1\ncluster.id={second.cluster_id}\n")
    third = world.start()
    assert f"1 partitions have no folder in any of log.dirs and begin empty: {name}\n" in caplog.text
    assert sorted(world.append(third, "t", index) for index in (0, 1)) == [0, 2]
    world.stop(third)


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
    assert list_folders(world.paths, f"{FILE_NAME}.damaged") == ([f"{FILE_NAME}.damaged-1"] if contents else [])
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
    assert [name.rpartition("-")[2] for name in list_folders(world.paths, "u-")] == ["stray"]
    world.stop(third)


def test_a_damaged_log_of_an_old_format_is_offline_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 2)
    world.append(first, "t", 1)
    world.stop(first)
    (segment,) = (file for path in world.paths for file in path.glob(f"t-0/{0:020d}.log"))
    damaged = make_entry_writer(1, 0)(0, 0, b"k", b"v")[:-1] + b"x"
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
    assert not belonged_to_kafka(OsFiles(), config)
    (tmp_path / "b" / CLUSTER_METADATA_FOLDER).mkdir(parents=True)
    assert belonged_to_kafka(OsFiles(), config)
    (tmp_path / "b" / CLUSTER_METADATA_FOLDER).rmdir()
    for version, expected in ((1, False), (0, True)):
        (tmp_path / "b" / "meta.properties").write_text(f"version={version}\nnode.id=1\ncluster.id=C\n")
        assert belonged_to_kafka(OsFiles(), config) == expected
