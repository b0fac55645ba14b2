"""Surveying a partition's folder."""

from __future__ import annotations

from kafkacompat.storage.directory.partition_survey import survey_partition
from kafkacompat.storage.files.checkpoints import write_checkpoint
from tests.storage.support import Store, append_batch, create_log, make_batch


def test_a_folder_without_a_log_is_no_partition(store: Store) -> None:
    store.files.make_directory(store.path("photos-2024"))
    assert survey_partition(store.files, store.path("photos-2024"), clean_shutdown=False) is None


def test_an_empty_log_names_no_epoch_and_no_producer(store: Store) -> None:
    create_log(store).close()
    assert survey_partition(store.files, store.path("t-0"), clean_shutdown=False) == (-1, -1)


def test_checkpoint_and_snapshot_are_asked(store: Store) -> None:
    log = create_log(store)
    append_batch(log, make_batch(producer_id=7, producer_epoch=0, base_sequence=0), leader_epoch=3)
    log.close()
    store.files.open(store.path("t-0", f"{0:020d}.log")).truncate(0)
    assert survey_partition(store.files, store.path("t-0"), clean_shutdown=True) == (3, 7)


def test_epochs_and_producers_that_only_batches_have_count(store: Store) -> None:
    log = create_log(store)
    append_batch(log, make_batch(producer_id=7, producer_epoch=0, base_sequence=0), leader_epoch=3)
    append_batch(log, make_batch(), leader_epoch=5)
    log.release()
    file = store.files.open(store.path("t-0", f"{0:020d}.log"))
    file.append((b"torn",), 4)
    file.close()
    assert survey_partition(store.files, store.path("t-0"), clean_shutdown=False) == (5, 7)
    assert survey_partition(store.files, store.path("t-0"), clean_shutdown=True) == (5, 7)
    write_checkpoint(store.files, store.path("t-0", "leader-epoch-checkpoint"), ["4 0"])
    # The log is not read if the other files are known to be right.
    assert survey_partition(store.files, store.path("t-0"), clean_shutdown=True) == (4, -1)


def test_producer_ids_that_a_client_made_up_do_not_count(store: Store) -> None:
    """After the largest id there would be none left."""
    log = create_log(store)
    for producer_id in (7, 2**63 - 1):
        append_batch(log, make_batch(producer_id=producer_id, producer_epoch=0, base_sequence=0))
    log.close()
    assert survey_partition(store.files, store.path("t-0"), clean_shutdown=True) == (0, 7)
    assert survey_partition(store.files, store.path("t-0"), clean_shutdown=False) == (0, 7)


def test_a_snapshot_that_cannot_be_read_is_passed_over(store: Store) -> None:
    create_log(store).close()
    file = store.files.open(store.path("t-0", f"{9:020d}.snapshot"), create=True)
    file.append((b"nothing",), 7)
    file.close()
    assert survey_partition(store.files, store.path("t-0"), clean_shutdown=False) == (-1, -1)
