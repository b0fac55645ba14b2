"""Leader epochs (KIP-101, KIP-279)."""

from __future__ import annotations

import pytest

from kafkacompat.storage.log.leader_epochs import EpochEntry, LeaderEpochs
from tests.storage.support import Store


def make_epochs(store: Store, *entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(store.files, store.root, [EpochEntry(*entry) for entry in entries])


def test_entries_are_written_in_kafkas_format_and_read_again(store: Store) -> None:
    made = make_epochs(store, (2, 0), (5, 30))
    made.write()
    assert store.files.read(store.path("leader-epoch-checkpoint")) == b"0\n2\n2 0\n5 30\n"
    again = LeaderEpochs.load(store.files, store.root)
    assert again.entries == [(2, 0), (5, 30)]
    assert again.latest == 5


def test_nothing_is_written_when_nothing_changed(store: Store) -> None:
    made = make_epochs(store, (2, 0))
    made.write()
    store.files.remove(store.path("leader-epoch-checkpoint"))
    made.assign(2, 10)
    made.write()
    assert not store.files.exists(store.path("leader-epoch-checkpoint"))


@pytest.mark.parametrize("damage", [b"", b"0\n", b"0\n2\n1 2\n", b"1\n0\n", b"0\n1\nx y\n", b"\xff\xfe"])
def test_a_damaged_file_counts_as_empty(store: Store, damage: bytes) -> None:
    file = store.files.open(store.path("leader-epoch-checkpoint"), create=True)
    file.append((damage,), len(damage))
    file.close()
    assert LeaderEpochs.load(store.files, store.root).entries == []


def test_an_entry_drops_contradicting_entries(store: Store) -> None:
    made = make_epochs(store, (1, 0), (2, 10), (3, 20))
    made.assign(4, 15)
    assert made.entries == [(1, 0), (2, 10), (4, 15)]
    made.assign(2, 12)
    assert made.entries == [(1, 0), (2, 12)]
    made.assign(2, 11)
    assert made.entries == [(1, 0), (2, 11)]
    made.assign(-1, 50)
    assert made.latest == 2


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (-1, -1)), (1, (1, 5)), (2, (2, 10)), (3, (2, 10)), (4, (4, 20)), (6, (6, 99)), (7, (-1, -1))],
)
def test_an_epoch_ends_where_the_next_begins(store: Store, epoch: int, answer: tuple[int, int]) -> None:
    assert make_epochs(store, (2, 5), (4, 10), (6, 20)).end_offset_for(epoch, 99) == answer


def test_without_epochs_none_is_known(store: Store) -> None:
    assert make_epochs(store).end_offset_for(0, 99) == (-1, -1)
    assert make_epochs(store).epoch_for_offset(0) == -1


@pytest.mark.parametrize(("offset", "epoch"), [(4, -1), (5, 2), (9, 2), (10, 4), (1000, 4)])
def test_the_epoch_of_an_offset(store: Store, offset: int, epoch: int) -> None:
    assert make_epochs(store, (2, 5), (4, 10)).epoch_for_offset(offset) == epoch


def test_truncation_at_either_end(store: Store) -> None:
    made = make_epochs(store, (1, 0), (2, 10), (3, 20))
    made.truncate_from_end(20)
    assert made.entries == [(1, 0), (2, 10)]
    assert made.latest == 2
    made.truncate_from_start(15)
    assert made.entries == [(2, 15)]
    made.truncate_from_end(15)
    assert made.entries == []
    assert made.latest == -1
