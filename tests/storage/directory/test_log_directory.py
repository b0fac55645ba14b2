"""Log directories: owners, locks, partitions, checkpoints and restarts."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from kafkacompat.storage.directory.log_directory import LogDirectory, LogDirectoryError, StoredPartition
from kafkacompat.storage.directory.partition_survey import survey_partition
from kafkacompat.storage.files.checkpoints import replace_file
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID
from tests.fakes.memory_files import MemoryFiles
from tests.storage.inspection.support import list_problems
from tests.storage.support import (
    DIRECTORY_ID,
    NOW_MS,
    TOPIC_ID,
    Store,
    append_batch,
    catch_refusal,
    fill_log,
    list_offsets,
    make_batch,
    stored_headers,
    take_directory,
)

OTHER_ID = bytes(range(200, 216))


def test_a_new_directory_is_made_and_marked(store: Store) -> None:
    directory = take_directory(store)
    text = store.files.read(store.path("data", "meta.properties"))
    assert text == b"#\nversion=1\nnode.id=1\ncluster.id=C\ndirectory.id=ZGVmZ2hpamtsbW5vcHFycw\n"
    assert directory.directory_id == DIRECTORY_ID
    assert not directory.clean_shutdown
    directory.close([])
    again = take_directory(store, new_directory_id=OTHER_ID)
    assert again.directory_id == DIRECTORY_ID
    assert again.clean_shutdown
    again.release()


def test_a_second_opener_is_refused(store: Store) -> None:
    directory = take_directory(store)
    assert "is in use by another broker" in catch_refusal(store)
    directory.release()
    take_directory(store).release()


@pytest.mark.parametrize("operation", ["open", "append", "sync", "sync_directory"])
def test_a_directory_that_cannot_be_written_is_refused_in_one_sentence(memory: Store, operation: str) -> None:
    assert isinstance(memory.files, MemoryFiles)
    take_directory(memory).release()
    memory.files.crash(lose_unsynced=False)
    memory.files.remove(memory.path("data", "meta.properties"))
    memory.files.fail_on(operation, errno.ENOSPC)
    with pytest.raises(LogDirectoryError, match="the disk is full"):
        take_directory(memory)
    take_directory(memory).release()


def test_another_process_is_refused_by_fcntl(tmp_path: Path) -> None:
    """As Kafka's own FileLock would be: it is the same fcntl lock."""
    directory = take_directory(Store(OsFiles(), str(tmp_path)))
    program = (
        "import fcntl, sys\n"
        "with open(sys.argv[1], 'r+') as file:\n"
        "    try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "    except OSError: sys.exit(7)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "data" / ".lock")]
    assert subprocess.run(command, check=False).returncode == 7
    directory.release()
    assert subprocess.run(command, check=False).returncode == 0


def test_another_node_or_cluster_is_refused(store: Store) -> None:
    take_directory(store).release()
    assert "belongs to node 1, not 2" in catch_refusal(store, node_id=2)
    assert "belongs to cluster C, not D" in catch_refusal(store, cluster_id="D")
    take_directory(store).release()


def test_a_directory_that_cannot_be_made_is_refused(store: Store) -> None:
    replace_file(store.files, store.path("data"), b"a file")
    assert "cannot be used" in catch_refusal(store)


def test_logs_are_made_opened_and_listed(store: Store) -> None:
    directory = take_directory(store)
    log = directory.open_log("a-b", 3, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(log, 3)
    log.maintenance.make_durable()
    store.files.make_directory(store.path("data", "__cluster_metadata-0"))
    store.files.make_directory(store.path("data", "no partition"))
    assert directory.list_partitions() == [StoredPartition("a-b", 3, TOPIC_ID)]
    directory.close([log])
    again = take_directory(store)
    log = again.open_log("a-b", 3, TOPIC_ID, LogConfig(), NOW_MS)
    assert log.log_end_offset == 3
    assert again.checkpoints.high_watermarks == {("a-b", 3): 3}
    assert again.disk_usage().free_bytes > 0
    again.close([log])


def test_a_folder_of_another_topic_of_that_name_is_set_aside(store: Store) -> None:
    directory = take_directory(store)
    old = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(old, 3)
    old.close()
    new = directory.open_log("t", 0, OTHER_ID, LogConfig(), NOW_MS)
    assert (new.log_start_offset, new.log_end_offset) == (0, 0)
    (folder,) = [name for name in store.files.list(store.path("data")) if name.endswith("-stray")]
    kept = Log.open(
        store.files,
        store.path("data", folder),
        "t",
        0,
        TOPIC_ID,
        LogConfig(),
        clean_shutdown=True,
        recovery_point=0,
        log_start_offset=0,
        now_ms=NOW_MS,
    )
    assert kept.log_end_offset == 3
    directory.release()


def test_a_log_that_was_new_when_its_process_ended_is_new_again(store: Store) -> None:
    directory = take_directory(store)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(log, 2)
    directory.checkpoint([log])
    directory.release()
    again = take_directory(store)
    assert again.checkpoints.recovery_points == {}
    log = again.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert log.is_new
    log.maintenance.make_durable()
    assert again.list_partitions() == [StoredPartition("t", 0, TOPIC_ID)]
    assert list_offsets(log) == [0, 1]
    again.close([log])


def test_a_log_of_a_kafka_that_named_no_ids_is_not_new(store: Store) -> None:
    directory = take_directory(store)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(log, 2)
    directory.close([log])
    store.files.remove(store.path("data", "t-0", "partition.metadata"))
    again = take_directory(store)
    log = again.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    again.close([log])
    assert again.list_partitions() == [StoredPartition("t", 0, ZERO_UUID)]


def test_damaged_partition_metadata_names_the_file(store: Store) -> None:
    directory = take_directory(store)
    directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS).close()
    replace_file(store.files, store.path("data", "t-0", "partition.metadata"), b"?")
    with pytest.raises(LogDirectoryError, match=r"partition\.metadata"):
        directory.list_partitions()
    directory.release()


def test_checkpoints_are_kafkas_and_keep_logs_that_are_not_open(store: Store) -> None:
    directory = take_directory(store)
    first = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    second = directory.open_log("t", 1, TOPIC_ID, LogConfig(), NOW_MS)
    for log in (first, second):
        fill_log(log, 5)
        log.flush()
    first.trimmer.advance_log_start_offset(2)
    directory.checkpoint([first, second], {("t", 1): 4})
    directory.checkpoint([])

    def lines(name: str) -> list[bytes]:
        return store.files.read(store.path("data", name)).splitlines()

    assert lines("recovery-point-offset-checkpoint") == [b"0", b"2", b"t 0 5", b"t 1 5"]
    assert lines("log-start-offset-checkpoint") == [b"0", b"1", b"t 0 2"]
    assert lines("replication-offset-checkpoint") == [b"0", b"2", b"t 0 5", b"t 1 4"]
    directory.release()
    again = take_directory(store)
    assert not again.clean_shutdown
    assert again.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS).log_start_offset == 2
    again.release()


def test_a_moved_log_start_survives_a_crash(memory: Store) -> None:
    assert isinstance(memory.files, MemoryFiles)
    directory = take_directory(memory)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(log, 5)
    log.flush()
    log.trimmer.advance_log_start_offset(3)
    directory.save_log_start_offset(log)
    memory.files.crash()
    again = take_directory(memory)
    log = again.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert (log.log_start_offset, log.log_end_offset) == (3, 5)
    again.close([log])


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_a_damaged_checkpoint_costs_time_not_data(store: Store, name: str) -> None:
    directory = take_directory(store)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(log, 5)
    directory.close([log])
    replace_file(store.files, store.path("data", name), b"rubbish\nof two lines\n")
    again = take_directory(store)
    log = again.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert log.log_end_offset == 5
    again.close([log])


def test_only_a_clean_end_leaves_the_marker(memory: Store) -> None:
    files = memory.files
    assert isinstance(files, MemoryFiles)
    directory = take_directory(memory)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(log, 2)
    directory.close([log])
    files.crash()
    assert files.read(memory.path("data", ".kafka_cleanshutdown")) == b'{"version":0,"brokerEpoch":-1}'
    again = take_directory(memory)
    assert again.clean_shutdown
    assert not files.exists(memory.path("data", ".kafka_cleanshutdown"))
    files.crash()
    assert not take_directory(memory).clean_shutdown


def test_a_log_that_is_offline_keeps_the_marker_away(memory: Store) -> None:
    files = memory.files
    assert isinstance(files, MemoryFiles)
    directory = take_directory(memory)
    logs = [directory.open_log("t", index, TOPIC_ID, LogConfig(), NOW_MS) for index in range(2)]
    files.fail_on("append", 5)
    with pytest.raises(KafkaError):
        append_batch(logs[0], make_batch())
    append_batch(logs[1], make_batch())
    directory.close(logs)
    assert logs[1].state.closed
    again = take_directory(memory)
    assert not again.clean_shutdown
    assert again.open_log("t", 1, TOPIC_ID, LogConfig(), NOW_MS).log_end_offset == 1


def test_logs_that_were_closed_before_count_as_closed(store: Store) -> None:
    directory = take_directory(store)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    log.close()
    directory.close([log])
    again = take_directory(store)
    assert again.clean_shutdown
    again.release()


def test_a_deleted_log_is_out_of_the_way_at_once(store: Store) -> None:
    directory = take_directory(store)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(log, 3)
    directory.checkpoint([log])
    region = log.read(0, 1000)
    assert region is not None
    directory.delete_log(log)
    assert directory.list_partitions() == []
    (folder,) = [name for name in store.files.list(store.path("data")) if name.endswith("-delete")]
    assert folder.startswith("t-0.")
    again = directory.open_log("t", 0, OTHER_ID, LogConfig(), NOW_MS)
    assert again.log_end_offset == 0
    assert directory.checkpoints.high_watermarks == {}
    assert len(region.pread(0, 1000)) == region.size_bytes
    region.release()
    directory.remove_deleted()
    assert not any(name.endswith("-delete") for name in store.files.list(store.path("data")))
    directory.close([again])


def test_a_start_completes_deletions(store: Store) -> None:
    directory = take_directory(store)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    directory.delete_log(log)
    directory.release()
    again = take_directory(store)
    assert store.files.list(store.path("data")) == [".lock", "meta.properties"]
    again.release()


def test_only_folders_named_like_a_deleted_partition_are_removed(store: Store) -> None:
    for name in ("please-delete", "t-0.12-delete"):
        store.files.make_directory(store.path("data", name))
        store.files.open(store.path("data", name, "precious"), create=True).close()
    take_directory(store).release()
    assert store.files.exists(store.path("data", "please-delete", "precious"))
    assert store.files.exists(store.path("data", "t-0.12-delete", "precious"))


def test_a_deleted_partition_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    store = Store(OsFiles(), str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / f"t-0.{'ab' * 16}-delete").symlink_to(tmp_path / "elsewhere")
    take_directory(store).release()
    assert store.files.list(store.path("data")) == [".lock", "meta.properties"]


def write_linked_directory(tmp_path: Path) -> tuple[Store, Path]:
    """Write a log directory whose partition t-0, with three batches, is a link to another disk."""
    store = Store(OsFiles(), str(tmp_path))
    directory = take_directory(store)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(log, 3)
    directory.close([log])
    (tmp_path / "data" / "t-0").rename(tmp_path / "elsewhere")
    (tmp_path / "data" / "t-0").symlink_to(tmp_path / "elsewhere")
    return store, tmp_path / "elsewhere"


def test_a_partition_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    store, elsewhere = write_linked_directory(tmp_path)
    directory = take_directory(store)
    assert directory.list_partitions() == [("t", 0, TOPIC_ID)]
    assert survey_partition(store.files, directory.folder("t", 0), clean_shutdown=True) == (0, -1)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert append_batch(log, make_batch()).base_offset == 3
    directory.close([log])
    assert (tmp_path / "data" / "t-0").is_symlink() and (elsewhere / "00000000000000000000.log").stat().st_size
    assert list_problems(store) == list_problems(store, "data/t-0") == []
    again = take_directory(store)
    again.delete_log(again.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS))
    again.remove_deleted()
    assert not any(name.startswith("t-0") for name in store.files.list(store.path("data")))
    assert list(elsewhere.iterdir()) == []
    again.release()


def test_a_partition_that_is_a_link_moves_to_another_directory_and_back(tmp_path: Path) -> None:
    store, elsewhere = write_linked_directory(tmp_path)
    home = take_directory(store)
    other = LogDirectory.open(
        store.files, store.path("other"), node_id=1, cluster_id="C", new_directory_id=bytes(range(1, 17))
    )
    log = home.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    for source, target in ((home, other), (other, home)):
        copy = target.new_copy(log)
        copy.create()
        while copy.count_remaining_bytes():
            copy.advance(copy.list_extents(), 1 << 20)
        moved = target.adopt(copy)
        source.delete_log(log)
        source.remove_deleted()
        log = moved
    assert list_offsets(log) == [0, 1, 2]
    assert list(elsewhere.iterdir()) == []
    assert not (tmp_path / "data" / "t-0").is_symlink()
    home.close([log])
    other.close([])


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    store, elsewhere = write_linked_directory(tmp_path)
    elsewhere.rename(tmp_path / "unmounted")
    directory = take_directory(store)
    with pytest.raises(LogDirectoryError, match="t-0 is a link that leads nowhere: mount the disk"):
        directory.list_partitions()
    directory.release()
    (finding,) = list_problems(store)
    assert (finding.path, finding.fault) == (
        store.path("data", "t-0"),
        "a link that leads nowhere; a broker does not start",
    )


@pytest.mark.parametrize("name", ["t-01", "t-\u00b2", "t-\u0663", "t-", "-0", "__cluster_metadata-0"])
def test_a_folder_that_no_broker_would_name_so_is_no_partition(store: Store, name: str) -> None:
    store.files.make_directory(store.path("data", name))
    directory = take_directory(store)
    assert directory.list_partitions() == []
    directory.release()


def test_a_disk_that_fails_while_opening_is_a_storage_error(memory: Store) -> None:
    files = memory.files
    assert isinstance(files, MemoryFiles)
    directory = take_directory(memory)
    files.fail_on("open", 5)
    with pytest.raises(KafkaError) as refused:
        directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_recovery_begins_at_the_checkpoint(memory: Store) -> None:
    directory = take_directory(memory)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(log, 3)
    log.flush()
    directory.checkpoint([log])
    fill_log(log, 3)
    assert isinstance(memory.files, MemoryFiles)
    memory.files.crash()
    again = take_directory(memory)
    log = again.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert [header.base_offset for header in stored_headers(log)] == [0, 1, 2]
    again.close([log])


def test_a_folder_of_no_topic_is_set_aside_and_kept(store: Store) -> None:
    directory = take_directory(store)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(log, 3)
    log.close()
    name = directory.set_aside("t", 0)
    assert name.startswith("t-0.") and name.endswith("-stray")
    assert directory.list_partitions() == []
    directory.remove_deleted()
    assert store.files.exists(store.path("data", name, "00000000000000000000.log"))
    directory.release()


def test_the_longest_topic_name_can_be_deleted(store: Store) -> None:
    directory = take_directory(store)
    log = directory.open_log("n" * 249, 10_000, TOPIC_ID, LogConfig(), NOW_MS)
    directory.delete_log(log)
    assert directory.list_partitions() == []
    directory.release()


def test_a_new_log_does_not_get_the_checkpoints_of_a_deleted_one(store: Store) -> None:
    directory = take_directory(store)
    old = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fill_log(old, 5)
    old.trimmer.advance_log_start_offset(4)
    directory.save_log_start_offset(old)
    directory.delete_log(old)
    new = directory.open_log("t", 0, OTHER_ID, LogConfig(), NOW_MS)
    fill_log(new, 3)
    new.flush()
    directory.release()  # as a crash would
    reopened = take_directory(store).open_log("t", 0, OTHER_ID, LogConfig(), NOW_MS)
    assert (reopened.log_start_offset, reopened.log_end_offset) == (0, 3)


def test_a_log_that_could_not_be_opened_is_recovered_at_the_next_start(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = take_directory(store)
    fill_log(directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS), 3)
    directory.release()  # as a crash would

    def fail(*_: object, **__: object) -> None:
        raise OSError("too many open files")

    directory = take_directory(store)
    with monkeypatch.context() as patch:
        patch.setattr(Log, "open", fail)
        with pytest.raises(KafkaError, match="too many open files"):
            directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    directory.close([])
    again = take_directory(store)
    assert not again.clean_shutdown
    again.release()


@pytest.mark.parametrize(("file", "is_log"), [(f"{0:020d}.index", True), (f"{0:020d}.log", True), ("notes.log", False)])
def test_a_folder_without_a_topic_is_set_aside_if_it_has_a_log(store: Store, file: str, is_log: bool) -> None:
    directory = take_directory(store)
    store.files.make_directory(store.path("data", "t-0"))
    replace_file(store.files, store.path("data", "t-0", file), b"")
    assert (directory.set_stray_aside("t", 0) is not None) == is_log
    directory.release()
