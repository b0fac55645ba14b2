"""Sending regions while the log gets shorter: a region sends its announced bytes, or fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.segment.shared_files import FileRegion, RegionGoneError
from tests.storage.compaction.support import roll_and_compact
from tests.storage.support import Store, append_batch, create_log, fill_log, make_batch, read_headers, roll_log

SIZE = len(make_batch())
BATCHES = 6
PIECE = 50


def truncate_log(log: Log) -> None:
    log.trimmer.truncate_to(2)


def truncate_and_grow(log: Log) -> None:
    log.trimmer.truncate_to(2)
    for _ in range(BATCHES):
        append_batch(log, make_batch(size_bytes=17))


def truncate_twice(log: Log) -> None:
    """The second cut is lower, in bytes that were written after the first."""
    log.trimmer.truncate_to(BATCHES - 1)
    append_batch(log, make_batch(size_bytes=17))
    truncate_and_grow(log)


def empty_log(log: Log) -> None:
    log.trimmer.truncate_to(0)
    fill_log(log, BATCHES, size_bytes=17)


def forget_open_files(log: Log) -> None:
    """Close the file as the cache does, so that the log is cut by another open file."""
    roll_log(log)
    log.segments[0].unload()
    truncate_and_grow(log)


CUTS = [truncate_log, truncate_and_grow, truncate_twice, empty_log, forget_open_files]


def delete_segment(log: Log) -> None:
    roll_log(log)
    old = [log.segments[0]]
    log.trimmer.detach(old)
    log.trimmer.mark_deleted(old)
    log.trimmer.delete_segments(old)


def give_up(log: Log) -> None:
    """As a deletion of the partition or a failure of its directory does."""
    log.release()


def in_flight(log: Log) -> tuple[FileRegion, bytes]:
    region = log.read(0, 1 << 20)
    assert region is not None
    return region, region.pread(0, region.size_bytes)


def receive_region(region: FileRegion, log: Log, event: Callable[[Log], None], after: int) -> bytes:
    """Read a region piece by piece, with an event in between; return the bytes read before it failed."""
    received = b""
    for index in range(1 + region.size_bytes // PIECE):
        if index == after:
            event(log)
        try:
            received += region.pread(len(received), PIECE)
        except RegionGoneError:
            break
    region.release()
    return received


@pytest.mark.parametrize("after", [0, 1, 3, 5])
@pytest.mark.parametrize("event", CUTS)
def test_a_cut_ends_the_sending_before_anything_else_is_sent(
    store: Store, event: Callable[[Log], None], after: int
) -> None:
    log = create_log(store)
    fill_log(log, BATCHES)
    region, promised = in_flight(log)
    received = receive_region(region, log, event, after)
    assert received == promised[: after * PIECE]


@pytest.mark.parametrize("after", [0, 1, 3, 5])
def test_bytes_before_a_cut_are_sent(store: Store, after: int) -> None:
    log = create_log(store)
    fill_log(log, BATCHES)
    region = log.read(0, 2 * SIZE)
    assert region is not None
    promised = region.pread(0, region.size_bytes)
    assert receive_region(region, log, truncate_and_grow, after) == promised


def test_a_read_after_a_cut_returns_the_new_bytes(store: Store) -> None:
    log = create_log(store)
    fill_log(log, BATCHES)
    truncate_and_grow(log)
    region, promised = in_flight(log)
    assert receive_region(region.share(), log, delete_segment, 1) == promised
    region.release()


def test_a_segment_that_is_compacted_away_is_sent_to_its_end(store: Store) -> None:
    """The new segment has the same name; later reads use it."""
    for after in (0, 1, 3):
        log = create_log(store, cleanup_policy=frozenset({"compact"}))
        fill_log(log, BATCHES)
        roll_log(log)
        fill_log(log, 1)
        region, promised = in_flight(log)

        def compact(log: Log) -> None:
            assert roll_and_compact(store, log) is not None

        assert receive_region(region, log, compact, after) == promised
        _, compacted = in_flight(log)
        assert compacted != promised and read_headers(compacted)[-1].last_offset == BATCHES
        log.close()
        store.files.rename(store.path("t-0"), store.path(f"done-{after}"))


@pytest.mark.parametrize("after", [0, 1, 5])
@pytest.mark.parametrize("event", [delete_segment, give_up])
def test_a_segment_that_is_deleted_is_sent_to_its_end(store: Store, event: Callable[[Log], None], after: int) -> None:
    log = create_log(store)
    fill_log(log, BATCHES)
    region, promised = in_flight(log)
    assert receive_region(region, log, event, after) == promised


def test_a_share_of_a_region_is_cut_off_with_it(store: Store) -> None:
    log = create_log(store)
    fill_log(log, BATCHES)
    region, _ = in_flight(log)
    truncate_and_grow(log)
    shared = region.share()
    for handle in (region, shared):
        with pytest.raises(RegionGoneError):
            handle.pread(0, 1)
        with pytest.raises(RegionGoneError):
            handle.send(-1, 0, 1)
        handle.release()
