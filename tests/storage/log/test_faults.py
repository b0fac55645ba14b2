"""Failures of the disk: only written batches are acknowledged, and the log stays sound or goes offline."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log.partition_metadata import read_partition_metadata
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.memory_files import Failure, MemoryFiles
from tests.storage.support import (
    NOW_MS,
    TOPIC_ID,
    Store,
    append_batch,
    create_log,
    fill_log,
    list_offsets,
    make_batch,
    name_file,
    read_log,
    reopen_log,
    rewrite_file,
    roll_log,
    stored_headers,
)

PRODUCED: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}


@pytest.fixture
def files(memory: Store) -> MemoryFiles:
    assert isinstance(memory.files, MemoryFiles)
    return memory.files


def refused_append(log: Log, records: bytes) -> None:
    with pytest.raises(KafkaError) as refused:
        append_batch(log, records, leader_epoch=3)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("written", [0, 1, 60, 61, 1000])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_fails_an_append_and_the_log_continues(
    memory: Store, files: MemoryFiles, written: int, error: int
) -> None:
    log = create_log(memory, index_interval_bytes=0)
    append_batch(log, make_batch(base_sequence=0, **PRODUCED))
    before = (log.end_position(), log.segments.active.index_entries, read_log(log, 0))
    files.fail_on("append", error, after_bytes=written)
    refused_append(log, make_batch(base_sequence=1, **PRODUCED))
    assert (log.end_position(), log.segments.active.index_entries, read_log(log, 0)) == before
    assert log.leader_epochs.latest == 0
    assert not log.offline
    again = append_batch(log, make_batch(base_sequence=1, **PRODUCED))
    assert (again.base_offset, again.duplicate) == (1, False)
    assert [header.base_offset for header in stored_headers(log)] == [0, 1]
    log.close()


def test_a_write_that_cannot_be_undone_takes_the_log_offline(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory)
    fill_log(log, 2)
    files.fail_on("append", errno.ENOSPC, after_bytes=30)
    files.fail_on("truncate", errno.EIO)
    refused_append(log, make_batch())
    assert log.offline
    refused_append(log, make_batch())
    with pytest.raises(KafkaError):
        log.read(0, 100)
    with pytest.raises(KafkaError):
        log.flush()
    files.crash(lose_unsynced=False)
    again = reopen_log(memory)
    assert again.state.truncated_bytes == 30
    assert again.log_end_offset == 2
    again.close()


def test_a_short_write_without_memory_is_undone(
    memory: Store, files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of a short write is copied, for which memory may be short."""
    log = create_log(memory)
    fill_log(log, 2)
    with monkeypatch.context() as short:
        short.setattr(files, "fail", lambda *_: Failure(MemoryError(), 30))  # type: ignore[arg-type]
        short.setattr(files, "fail_plainly", lambda _: None)
        with pytest.raises(MemoryError):
            append_batch(log, make_batch())
    fill_log(log, 1)
    files.crash(lose_unsynced=False)
    again = reopen_log(memory)
    assert (again.log_end_offset, again.state.truncated_bytes) == (3, 0)
    again.close()


def test_a_broken_disk_takes_the_log_offline(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory)
    files.fail_on("append", errno.EIO)
    refused_append(log, make_batch())
    assert log.offline


@pytest.mark.parametrize("operation", ["append", "pread"])
def test_a_transient_error_does_not_reset_a_failure_of_another_thread(
    memory: Store, files: MemoryFiles, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    log = create_log(memory)
    fill_log(log, 300)

    def fail_beside(failing: str, size_bytes: int = 0) -> Failure | None:
        if failing != operation:
            return None
        log.take_offline("its disk failed")
        return Failure(OSError(errno.ENOSPC, "full"))

    monkeypatch.setattr(files, "fail", fail_beside)
    with pytest.raises(KafkaError):
        append_batch(log, make_batch()) if operation == "append" else log.read(0, 100)
    assert log.offline


def test_a_failed_sync_is_never_tried_again(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory)
    fill_log(log, 2)
    files.fail_on("sync", errno.EIO)
    for _ in range(2):
        with pytest.raises(KafkaError, match="the disk reports an input/output error") as refused:
            log.flush()
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.offline
    assert log.recovery_point == 0


@pytest.mark.parametrize(("error", "is_passing"), [(errno.EIO, False), (errno.EMFILE, True)])
def test_a_read_that_fails_is_the_logs_last_unless_the_cause_passes(
    memory: Store, files: MemoryFiles, error: int, is_passing: bool
) -> None:
    log = create_log(memory)
    fill_log(log, 300)
    files.fail_on("pread", error)
    with pytest.raises(KafkaError) as refused:
        log.read(0, 100)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.offline is not is_passing
    if is_passing:
        assert read_log(log, 0)
        log.close()
    log.release()
    assert files.open_handles == 0


@pytest.mark.parametrize("operation", ["open", "append", "truncate"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
def test_want_of_room_for_a_segment_passes(memory: Store, files: MemoryFiles, operation: str, error: int) -> None:
    log = create_log(memory)
    fill_log(log, 2)
    handles = files.open_handles
    files.fail_on(operation, error)
    with pytest.raises(KafkaError) as refused:
        log.maintenance.prepare_segment(2)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not log.offline
    assert files.open_handles == handles
    fill_log(log, 1)
    roll_log(log)
    fill_log(log, 1)
    assert list_offsets(log) == [0, 1, 2, 3]
    log.close()
    assert files.open_handles == 0


@pytest.mark.parametrize("operation", ["open", "append", "truncate"])
def test_want_of_room_for_indexes_passes(memory: Store, files: MemoryFiles, operation: str) -> None:
    log = create_log(memory, flush_ms=1000)
    fill_log(log, 2)
    sealed = log.maintenance.roll(log.maintenance.prepare_segment(2))
    fill_log(log, 1)
    for work in (lambda: log.maintenance.seal(sealed), log.flush):
        files.fail_on(operation, errno.ENOSPC)
        with pytest.raises(KafkaError):
            work()
        assert not (log.offline or sealed.sealed)
        assert log.maintenance.flush_is_overdue(NOW_MS + 10_000)
    assert log.flush() == 3
    log.close()


@pytest.mark.parametrize(
    ("operation", "error"),
    [("open", errno.EIO), ("append", errno.EIO), ("truncate", errno.EIO), ("sync", errno.EIO), ("sync", errno.ENOSPC)],
)
def test_a_segment_that_cannot_be_made_leaves_the_old_one(
    memory: Store, files: MemoryFiles, operation: str, error: int
) -> None:
    """A failed sync is final, even for lack of room."""
    log = create_log(memory)
    fill_log(log, 2)
    files.fail_on(operation, error)
    with pytest.raises(KafkaError):
        log.maintenance.prepare_segment(2)
    assert log.offline
    files.crash(lose_unsynced=False)
    again = reopen_log(memory)
    assert again.log_end_offset == 2
    append_batch(again, make_batch())
    again.close()


def test_flushed_batches_survive_a_power_failure(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory, segment_bytes=300)
    fill_log(log, 10)
    expected = list(stored_headers(log))
    recovery_point = log.flush()
    assert recovery_point == 10
    fill_log(log, 5)
    files.crash()
    again = reopen_log(memory, recovery_point=recovery_point, segment_bytes=300)
    assert list(stored_headers(again))[:10] == expected
    assert again.leader_epochs.entries == [(0, 0)]
    again.close()


def test_sealed_segments_survive_a_power_failure(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory)
    fill_log(log, 4)
    roll_log(log)
    assert log.recovery_point == 4
    fill_log(log, 4)
    files.crash()
    again = reopen_log(memory, recovery_point=4)
    assert [header.base_offset for header in stored_headers(again)] == [0, 1, 2, 3]
    assert append_batch(again, make_batch()).base_offset == 4
    again.close()


def test_removed_files_do_not_come_back_after_recovery(memory: Store, files: MemoryFiles) -> None:
    """Segments after the damage would overlap new batches."""
    log = create_log(memory, segment_bytes=300)
    fill_log(log, 20)
    log.flush()
    log.release()
    damaged = log.segments[1].base_offset
    rewrite_file(memory, name_file(damaged, ".log"), lambda data: data[:-1])
    again = reopen_log(memory, segment_bytes=300)
    end = again.log_end_offset
    assert damaged <= end < 10
    fill_log(again, 10)
    recovery_point = again.flush()
    files.crash()
    last = reopen_log(memory, recovery_point=recovery_point, segment_bytes=300)
    assert list_offsets(last) == list(range(end + 10))
    last.close()


def test_a_new_log_is_on_the_disk_when_that_was_asked_for(memory: Store, files: MemoryFiles) -> None:
    create_log(memory).maintenance.make_durable()
    files.crash()
    assert read_partition_metadata(files, memory.path("t-0")) == TOPIC_ID
    again = reopen_log(memory)
    assert (again.log_start_offset, again.log_end_offset) == (0, 0)
    assert again.reader.offset_for_timestamp(NOW_MS) is None
    again.close()


def test_the_first_flush_puts_a_new_log_on_the_disk(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory)
    fill_log(log, 2)
    log.flush()
    files.crash()
    assert read_partition_metadata(files, memory.path("t-0")) == TOPIC_ID
    assert list_offsets(reopen_log(memory)) == [0, 1]


def test_a_new_log_is_synced_before_its_second_segment(memory: Store, files: MemoryFiles) -> None:
    """Otherwise a crash might leave the second segment alone."""
    log = create_log(memory)
    fill_log(log, 2)
    log.maintenance.prepare_segment(2)
    files.crash()
    assert files.exists(memory.path(name_file(0, ".log")))


def test_a_new_log_without_room_is_synced_by_the_next_flush(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory)
    files.fail_on("append", errno.ENOSPC)
    with pytest.raises(KafkaError):
        log.maintenance.make_durable()
    fill_log(log, 2)
    log.flush()
    assert read_partition_metadata(files, memory.path("t-0")) == TOPIC_ID


@pytest.mark.parametrize("operation", ["sync", "sync_directory"])
def test_a_new_log_that_cannot_be_synced_is_offline(memory: Store, files: MemoryFiles, operation: str) -> None:
    log = create_log(memory)
    files.fail_on(operation, errno.ENOSPC)
    with pytest.raises(KafkaError):
        log.maintenance.make_durable()
    assert log.offline


def test_a_new_log_that_was_deleted_is_left_alone(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory)
    log.release()
    files.rename(memory.path("t-0"), memory.path("gone"))
    log.maintenance.make_durable()
    assert files.list(memory.root) == ["gone"]


def test_a_clean_close_is_on_the_disk(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory, segment_bytes=300)
    for index in range(10):
        append_batch(log, make_batch(base_sequence=index, **PRODUCED), leader_epoch=index // 5)
    expected = list(stored_headers(log))
    log.close()
    files.crash()
    again = reopen_log(memory, clean=True)
    assert list(stored_headers(again)) == expected
    assert again.leader_epochs.entries == [(0, 0), (1, 5)]
    assert again.producer_state.producers[7].batches[-1].last_sequence == 9
    assert again.recovery_point == 10
    again.close()


def test_a_truncation_is_durable_when_it_returns(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory, segment_bytes=300)
    fill_log(log, 20)
    log.flush()
    log.trimmer.truncate_to(7)
    recovery_point = log.recovery_point
    files.crash()
    again = reopen_log(memory, recovery_point=recovery_point, segment_bytes=300)
    assert [header.base_offset for header in stored_headers(again)] == list(range(7))
    again.close()
