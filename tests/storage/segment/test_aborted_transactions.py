"""Transaction indexes: their entries, the entries that a range of offsets collects, and their memory."""

from __future__ import annotations

import errno
from random import Random

import pytest

from kafkacompat.storage.log import committed_reader
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.producers.state import ProducerState
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import MOST_GUARDS, Verifications
from kafkacompat.storage.segment.aborted_transactions import AbortedTransactions
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.storage.segment.segment_transactions import MOST_KEPT
from kafkacompat.storage.segment.transaction_index import AbortedTransaction, read_aborted
from kafkacompat.wire.errors import KafkaError
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import (
    Store,
    append_batch,
    append_marker,
    create_log,
    make_batch,
    name_file,
    reopen_log,
    roll_log,
)


def append_transactional(log: Log, producer_id: int, sequence: int = 0) -> None:
    sent = make_batch(producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    append_batch(log, sent, from_client=False)


def test_an_entry_says_up_to_where_the_log_was_stable_when_the_marker_came(store: Store) -> None:
    log = create_log(store)
    for producer_id in (1, 2, 3):
        append_transactional(log, producer_id)
    for producer_id, is_commit in ((2, False), (1, False), (3, True), (2, False)):
        append_marker(log, Marker(producer_id, 0, 0, is_commit, 0))
    append_transactional(log, 1, 1)
    append_marker(log, Marker(1, 0, 0, False, 0))
    expected = [AbortedTransaction(2, 1, 3, 0), AbortedTransaction(1, 0, 4, 2), AbortedTransaction(1, 7, 8, 9)]
    assert log.segments.active.aborted().since() == expected
    path = store.path(name_file(0, ".txnindex"))
    assert read_aborted(store.files, path) == []
    log.flush()
    assert read_aborted(store.files, path) == expected
    log.release()
    # A start that reads the markers rebuilds the same entries.
    store.files.remove(path)
    again = reopen_log(store)
    assert read_aborted(store.files, path) == expected
    again.close()


def test_a_range_collects_just_the_transactions_that_overlap_it() -> None:
    rng = Random(3)
    for _ in range(50):
        known = generate_transactions(rng)
        index = AbortedTransactions(known)
        for start in range(0, 60, 7):
            for end in range(start + 1, 60, 5):
                transactions: list[AbortedTransaction] = []
                is_complete = index.collect(start, end, transactions)
                meeting = [
                    transaction
                    for transaction in known
                    if transaction.last_offset >= start and transaction.first_offset < end
                ]
                assert transactions == meeting
                assert is_complete == any(transaction.last_stable_offset >= end for transaction in known)


def generate_transactions(rng: Random) -> list[AbortedTransaction]:
    """Generate aborted transactions of a few producers that take turns."""
    opened: dict[int, int] = {}
    transactions = []
    for offset in range(60):
        producer_id = rng.randrange(5)
        if producer_id not in opened:
            opened[producer_id] = offset
        elif rng.random() < 0.6:
            first = opened.pop(producer_id)
            stable = min(opened.values(), default=offset + 1)
            transactions.append(AbortedTransaction(producer_id, first, offset, stable))
    return transactions


def test_many_are_read_again_when_they_are_needed_and_not_before(memory: Store) -> None:
    log = create_log(memory)
    for sequence in range(MOST_KEPT + 1):
        append_transactional(log, 1, sequence)
        append_marker(log, Marker(1, 0, 0, False, 0))
    roll_log(log)
    first = log.segments[0]
    first.unload()
    assert not first.collect_aborted(5000, 5001, [], may_block=True)
    first.unload()
    assert first.collect_aborted(0, 0, [], may_block=False)  # their bounds are known
    with pytest.raises(ColdDataError):
        first.collect_aborted(0, 10, [], may_block=False)
    transactions: list[AbortedTransaction] = []
    assert first.collect_aborted(0, 10, transactions, may_block=True)
    assert [transaction.first_offset for transaction in transactions] == [0, 2, 4, 6, 8]
    log.close()


def test_a_transaction_that_ends_after_very_many_others_is_collected(memory: Store) -> None:
    log = create_log(memory)
    append_transactional(log, 2)
    roll_log(log)
    for sequence in range(MOST_KEPT + 1):
        append_transactional(log, 1, sequence)
        append_marker(log, Marker(1, 0, 0, False, 0))
    roll_log(log)
    append_marker(log, Marker(2, 0, 0, False, 0))
    log.producer_state.open.remove_decided(log.log_end_offset)
    many = log.segments[1]
    many.aborted()
    many.unload()  # so that only their bounds are known
    for _ in range(2):
        committed_read = log.read_committed(0, 1, log.end_position())
        assert committed_read.region is not None
        assert [transaction.producer_id for transaction in committed_read.aborted] == [2]
        committed_read.region.release()
    log.close()


def test_less_is_read_at_once_where_very_many_were_aborted(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_reader, "MOST_ABORTED", 30)
    monkeypatch.setattr(committed_reader, "LEAST_READ_BYTES", 2000)
    log = create_log(memory, index_interval_bytes=0)
    for sequence in range(50):
        append_transactional(log, 1, sequence)
        append_marker(log, Marker(1, 0, 0, False, 0))
    log.producer_state.open.remove_decided(log.log_end_offset)
    committed_read = log.read_committed(0, 1 << 30, log.end_position())
    assert committed_read.region is not None and committed_read.region.size_bytes == 2000 < log.size_bytes
    assert 0 < len(committed_read.aborted) < 30
    committed_read.region.release()
    few = log.read_committed(80, 1 << 30, log.end_position())
    assert few.region is not None and len(few.aborted) == 10
    few.region.release()
    log.release()


@pytest.mark.parametrize("after_bytes", [0, 10])
def test_entries_without_room_are_written_with_the_next_sync(memory: Store, after_bytes: int) -> None:
    log = create_log(memory)
    append_transactional(log, 1)
    append_marker(log, Marker(1, 0, 0, False, 0))
    assert isinstance(memory.files, MemoryFiles)
    memory.files.fail_on("append", errno.ENOSPC, after_bytes)
    with pytest.raises(KafkaError):
        log.flush()
    assert (log.offline, log.recovery_point) == (False, 0)
    assert log.flush() == 2
    assert read_aborted(memory.files, memory.path(name_file(0, ".txnindex"))) == [AbortedTransaction(1, 0, 1, 2)]
    memory.files.crash()
    again = reopen_log(memory, recovery_point=2)
    assert again.segments.active.aborted().since() == [AbortedTransaction(1, 0, 1, 2)]
    again.close()


def test_a_new_segment_has_no_transactions_of_an_earlier_one_of_its_name(memory: Store) -> None:
    log = create_log(memory)
    append_transactional(log, 1)
    path = memory.path(name_file(1, ".txnindex"))
    memory.files.open(path, create=True).append((bytes(34),), 34)
    roll_log(log)
    assert not memory.files.exists(path)
    log.close()


def test_guards_of_producers_that_never_come_back_are_bounded() -> None:
    verifications = Verifications()
    first = verifications.begin(0, 0, 0, False)
    for producer_id in range(1, MOST_GUARDS + 1):
        last = verifications.begin(producer_id, 0, 0, False)
    verifications.check(MOST_GUARDS, last)
    with pytest.raises(KafkaError):
        verifications.check(0, first)


def test_a_transaction_that_was_open_in_a_snapshot_is_open_after_a_restart() -> None:
    again = ProducerState()
    again.open.restore([9, 7])
    assert (again.open.first, len(again.open)) == ((7, -1, -1), 2)
    again.open.end(7, 12)
    again.open.remove_decided(12)
    assert again.open.first == (7, -1, -1)
    again.open.remove_decided(13)
    assert again.open.first == (9, -1, -1)
