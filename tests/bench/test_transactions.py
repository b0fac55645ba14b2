"""What the rows about transactions do to batches, and find in them."""

from __future__ import annotations

import pytest

from bench.rows.transactions import next_offset, stamp_batch
from compat_tests import batches
from kafkacompat.wire.record_batch import read_header


def batch_at(base_offset: int, count: int) -> bytes:
    batch = batches.build([b"value"] * count)
    return base_offset.to_bytes(8, "big") + batch[8:]


def test_a_batch_is_stamped_as_a_producers_first() -> None:
    stamp = stamp_batch(batches.build([b"a", b"b"], base_sequence=7), (1234, 5))
    header = read_header(stamp)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1234, 5, 0)
    assert stamp == batches.with_crc(stamp)


@pytest.mark.parametrize(("cut", "expected"), [(0, 16), (1, 15), (66, 15), (200, 10)])
def test_next_offset_follows_the_last_whole_batch(cut: int, expected: int) -> None:
    data = batch_at(10, 5) + batch_at(15, 1)
    assert next_offset(data[: len(data) - cut], 10) == expected
