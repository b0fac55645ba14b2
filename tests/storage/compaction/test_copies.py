"""The state that compaction needs moves with a log and fits it."""

from __future__ import annotations

from kafkacompat.storage.directory.checkpoints import CLEANER_OFFSETS
from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.transaction_index import AbortedTransaction, read_aborted
from tests.storage.compaction.support import COMPACTED, append_pairs, list_records, roll_and_compact
from tests.storage.support import NOW_MS, TOPIC_ID, Store, roll_log


def open_directory(store: Store, name: str) -> LogDirectory:
    return LogDirectory.open(
        store.files, store.path(name), node_id=1, cluster_id="C", new_directory_id=name[-1:].encode() * 16
    )


def test_transaction_indexes_and_the_cleaner_offset_move_along(memory: Store) -> None:
    source, target = open_directory(memory, "a"), open_directory(memory, "b")
    log = source.open_log("t", 0, TOPIC_ID, LogConfig(**COMPACTED), NOW_MS)
    append_pairs(log, ("a", "1"))
    roll_log(log)
    append_pairs(log, ("a", "2"))
    aborted = {0: [AbortedTransaction(7, 0, 0, 1)], 1: [AbortedTransaction(8, 1, 1, 2), AbortedTransaction(7, 1, 2, 3)]}
    for segment in log.segments:
        segment.transactions.replace(aborted[segment.base_offset])
    log.cleaner_offset = 1
    copy = target.new_copy(log)
    copy.create()
    moved = target.adopt(copy)
    assert moved.cleaner_offset == 1
    for base_offset, entries in aborted.items():
        assert read_aborted(memory.files, memory.path("b", "t-0", f"{base_offset:020}.txnindex")) == entries
    assert memory.files.read(memory.path("b", CLEANER_OFFSETS)) == b"0\n1\nt 0 1\n"


def test_a_new_topic_of_the_same_name_was_never_compacted(memory: Store) -> None:
    home = open_directory(memory, "a")
    log = home.open_log("t", 0, TOPIC_ID, LogConfig(**COMPACTED), NOW_MS)
    log.cleaner_offset = 5
    home.save_cleaner_offset(log)
    home.delete_log(log)
    home.remove_deleted()
    again = home.open_log("t", 0, bytes(16), LogConfig(**COMPACTED), NOW_MS)
    assert again.cleaner_offset is None
    assert memory.files.read(memory.path("a", CLEANER_OFFSETS)) == b"0\n0\n"


def test_a_deleted_key_stays_deleted_if_its_tombstone_replaced_a_lost_record(memory: Store) -> None:
    home, config = open_directory(memory, "a"), LogConfig(delete_retention_ms=0, **COMPACTED)
    log = home.open_log("t", 0, TOPIC_ID, config, NOW_MS)
    append_pairs(log, ("a", "old"))
    roll_log(log)
    append_pairs(log, ("b", "lost"), ("c", "lost"))
    roll_log(log)
    log.cleaner_offset = 3
    home.save_cleaner_offset(log)
    log.release()
    home.release()
    for base_offset in (1, 3):
        memory.files.remove(memory.path("a", "t-0", f"{base_offset:020}.log"))
    log = open_directory(memory, "a").open_log("t", 0, TOPIC_ID, config, NOW_MS)
    assert log.log_end_offset == 1
    assert memory.files.read(memory.path("a", CLEANER_OFFSETS)) == b"0\n1\nt 0 1\n"
    append_pairs(log, ("a", None))
    for value in "xyz":
        append_pairs(log, ("d", value))
        roll_and_compact(memory, log)
    assert list_records(log) == [(4, "d", "z")]
