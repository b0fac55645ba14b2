"""The whole broker in one process, with a reactor that turns when told and disks that work at once."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure

from kafkacompat.broker import START_ERRORS, Broker
from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.host import ReactorHost
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.metadata.sqlite_store import FILE_NAME
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.server.listener import ListenError
from kafkacompat.storage.directory.claim import LOCK_FILE
from kafkacompat.storage.directory.log_directory import CLEAN_SHUTDOWN_FILE, LogDirectory, LogDirectoryError
from kafkacompat.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES
from kafkacompat.storage.directory.meta_properties import read_meta_properties
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.disk import ImmediateDisk

START_S = 1_700_000_000
TURNS = 1000


class ClosableDisk(ImmediateDisk):
    pending = 0

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


class WorldHost(ReactorHost):
    """The machine of a World: its disks work at once, and its ids follow from the number of disks so far."""

    def __init__(self, world: World) -> None:
        super().__init__(world.reactor)
        self.rng = Random(len(world.disks))
        self._world = world

    def new_disk(self, name: str) -> ClosableDisk:
        self._world.disks.append(ClosableDisk())
        return self._world.disks[-1]


class World:
    """Processes one after the other over two log directories."""

    def __init__(self, folder: Path) -> None:
        self.paths = [folder / "a", folder / "b"]
        self.disks: list[ClosableDisk] = []
        self.reactor: Any = MemoryReactorClock()
        self.reactor.advance(START_S)

    def broker(self, **properties: str) -> Broker:
        given = {
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": ",".join(map(str, self.paths)),
            "offsets.topic.num.partitions": "1",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        return Broker(WorldHost(self), BrokerConfig(given))

    def run(self, work: Coroutine[Deferred[Any], Any, Any] | Deferred[Any]) -> Any:
        """Turn the reactor until *work* is done; returns its result or raises what it failed with."""
        results: list[Any] = []
        (work if isinstance(work, Deferred) else Deferred.fromCoroutine(work)).addBoth(results.append)
        for _ in range(TURNS):
            if results:
                break
            self.reactor.advance(0.01)
        assert results, "it does not end"
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return results[0]

    def start(self, **properties: str) -> Broker:
        broker = self.broker(**properties)
        self.run(broker.start())
        return broker

    def stop(self, broker: Broker) -> None:
        self.run(broker.stop())

    def clean(self) -> list[bool]:
        """Whether each log directory has its marker of a clean shutdown."""
        return [(path / CLEAN_SHUTDOWN_FILE).exists() for path in self.paths]

    def timers(self) -> int:
        return sum(call.active() for call in self.reactor.getDelayedCalls())

    def assert_unlocked(self) -> None:
        for path in self.paths:
            if path.exists():
                OsFiles().lock(str(path / LOCK_FILE)).release()
        assert all(disk.closed for disk in self.disks)

    def make_topic(self, broker: Broker, name: str, partitions: int = 2) -> None:
        self.run(broker.controller.create_topics([NewTopic(name, partitions, 1)]))

    def alter(self, broker: Broker, name: str, value: str) -> None:
        change = ResourceChange(ResourceType.BROKER, "1", [ConfigOperation(name, ConfigOperationType.SET, value)])
        assert self.run(broker.controller.alter_configs([change])) == [None]

    def append(self, broker: Broker, name: str, index: int) -> int:
        now_ms = int(self.reactor.seconds() * 1000)
        result: Any = broker.replica_manager.find(name, index).append(build_batch([(now_ms, b"k", b"v", [])]), now_ms)
        return int(result.base_offset)


def list_folders(paths: Iterable[Path], prefix: str) -> list[str]:
    return sorted(folder.name for path in paths for folder in path.iterdir() if folder.name.startswith(prefix))


def test_a_broker_starts_listens_and_lets_go_of_everything(tmp_path: Path) -> None:
    world = World(tmp_path)
    broker = world.start()
    assert len(broker.addresses) == 1
    assert broker.addresses[0].startswith("PLAINTEXT://127.0.0.1:")
    with pytest.raises(LogDirectoryError):
        world.start()
    world.stop(broker)
    assert world.clean() == [True, True]
    world.assert_unlocked()
    assert world.reactor.getReaders() == []
    assert world.timers() == 0
    # A second stop does nothing.
    world.stop(broker)


def test_data_metadata_and_the_cluster_id_outlive_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t")
    assert [world.append(first, "t", 0), world.append(first, "t", 1)] == [0, 0]
    world.run(first.coordinators.stored_offsets.commit("g", [OffsetToCommit("t", bytes(16), 1, 8, -1, None)]))
    world.stop(first)
    second = world.start()
    assert world.clean() == [False, False]
    assert second.cluster_id == first.cluster_id != ""
    assert second.metadata.image.topics["t"].topic_id == first.metadata.image.topics["t"].topic_id
    assert [world.append(second, "t", 0), world.append(second, "t", 0)] == [1, 2]
    assert world.run(second.coordinators.stored_offsets.fetch("g", [("t", 1)])) == {("t", 1): 8}
    assert second.replica_manager.find("t", 0).leader_epoch > first.replica_manager.find("t", 0).leader_epoch
    world.stop(second)


def test_a_lost_meta_properties_is_rewritten_from_the_store(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = world.start()
    world.stop(first)
    for path in world.paths:
        (path / META_PROPERTIES).unlink()
    second = world.start()
    assert second.cluster_id == first.cluster_id
    world.stop(second)
    properties_read = [read_meta_properties(OsFiles(), str(path)) for path in world.paths]
    assert [properties.cluster_id if properties else None for properties in properties_read] == [first.cluster_id] * 2


def test_a_lost_store_takes_the_cluster_of_the_directories_and_their_partitions(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t")
    world.stop(first)
    (world.paths[0] / FILE_NAME).unlink()
    second = world.start()
    assert second.cluster_id == first.cluster_id
    assert list_folders(world.paths, "t-") == ["t-0", "t-1"]
    world.stop(second)


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.stop(world.start())
    meta = world.paths[1] / META_PROPERTIES
    lines = meta.read_text().splitlines()
    meta.write_text("\n".join("cluster.id=other" if line.startswith("cluster.id") else line for line in lines))
    with pytest.raises(START_ERRORS, match="cluster other"):
        world.start()
    world.assert_unlocked()


def test_folders_of_no_topic_are_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    world.stop(world.start())
    for path in world.paths:
        Log.create(OsFiles(), str(path / "gone-0"), "gone", 0, b"x" * 16, LogConfig()).release()
        (path / "photos-2024").mkdir()
    broker = world.start()
    assert [name.rpartition("-")[2] for name in list_folders(world.paths, "gone-")] == ["stray", "stray"]
    assert list_folders(world.paths, "photos-") == ["photos-2024", "photos-2024"]
    assert caplog.text.count("set aside") == 2
    world.make_topic(broker, "gone", 1)
    assert world.append(broker, "gone", 0) == 0
    world.stop(broker)
    assert world.clean() == [True, True]


def test_the_folder_of_a_partition_that_a_topic_does_not_have_is_set_aside(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 1)
    topic_id = first.metadata.image.topics["t"].topic_id
    world.stop(first)
    Log.create(OsFiles(), str(world.paths[0] / "t-1"), "t", 1, topic_id, LogConfig()).release()
    second = world.start()
    assert [name.rpartition("-")[2] for name in list_folders(world.paths, "t-")] == ["0", "stray"]
    world.stop(second)


def test_a_folder_of_a_deleted_topic_is_not_taken_for_the_one_of_its_name(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = world.start()
    world.make_topic(first, "t", 1)
    assert world.append(first, "t", 0) == 0
    world.stop(first)
    other = next(path for path in world.paths if not (path / "t-0").exists())
    Log.create(OsFiles(), str(other / "t-0"), "t", 0, b"x" * 16, LogConfig()).release()
    second = world.start()
    assert world.append(second, "t", 0) == 1
    world.stop(second)


def test_a_directory_whose_close_fails_does_not_keep_the_other_from_its_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    broker = world.start()
    world.make_topic(broker, "t")
    checkpoint = LogDirectory.checkpoint

    def fail_on_the_first(directory: LogDirectory, *args: Any) -> None:
        if directory.path == str(world.paths[0]):
            raise OSError("the disk is gone")
        checkpoint(directory, *args)

    monkeypatch.setattr(LogDirectory, "checkpoint", fail_on_the_first)
    world.stop(broker)
    assert world.clean() == [False, True]
    assert "the disk is gone" in caplog.text
    world.assert_unlocked()


def test_a_failed_directory_is_unlocked_without_a_marker(tmp_path: Path) -> None:
    world = World(tmp_path)
    broker = world.start()
    first = next(iter(broker.directories))
    broker.replica_manager.take_directory_offline(first, OSError("the disk is gone"))
    world.stop(broker)
    assert world.clean() == [False, True]
    world.assert_unlocked()


def test_a_directory_in_use_releases_the_others(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.paths[1].mkdir(parents=True)
    held = OsFiles().lock(str(world.paths[1] / LOCK_FILE))
    with pytest.raises(LogDirectoryError):
        world.start()
    held.release()
    world.assert_unlocked()
    world.stop(world.start())


def test_cordoned_directories_get_no_partitions_until_that_is_changed(tmp_path: Path) -> None:
    world = World(tmp_path)
    broker = world.start(cordoned_log_dirs=str(world.paths[0]))
    world.make_topic(broker, "t", 3)
    assert list_folders(world.paths[:1], "t-") == []
    world.alter(broker, "cordoned.log.dirs", "")
    world.make_topic(broker, "u", 1)
    assert list_folders(world.paths[:1], "u-") == ["u-0"]
    world.stop(broker)


def test_partitions_move_as_fast_as_the_properties_say_at_the_moment(tmp_path: Path) -> None:
    world = World(tmp_path)
    broker = world.start(replica_alter_log_dirs_io_max_bytes_per_second="1000")
    assert broker.moves.rate() == 1000
    world.alter(broker, "replica.alter.log.dirs.io.max.bytes.per.second", "5000")
    assert broker.moves.rate() == 5000
    world.stop(broker)


def test_log_dirs_in_another_order_are_no_new_cluster(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.stop(world.start())
    other_order = f"{world.paths[1]},{world.paths[0]}"
    with pytest.raises(START_ERRORS, match=f"set metadata.log.dir={world.paths[0]}"):
        world.start(log_dirs=other_order)
    assert not (world.paths[1] / FILE_NAME).exists()
    world.stop(world.start(log_dirs=other_order, metadata_log_dir=str(world.paths[0])))


def test_an_address_in_use_releases_everything(tmp_path: Path) -> None:
    world, other = World(tmp_path), World(tmp_path / "other")
    holder = other.start()
    port = holder.addresses[0].rpartition(":")[2]
    with pytest.raises(ListenError):
        world.start(
            listeners=f"PLAINTEXT://127.0.0.1:0,SECOND://127.0.0.1:{port}",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT",
        )
    world.assert_unlocked()
    assert world.reactor.getReaders() == []
    assert world.timers() == 0
    other.stop(holder)
    world.stop(world.start())
