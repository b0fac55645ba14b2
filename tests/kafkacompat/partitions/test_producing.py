"""Which batches belong to a transaction; how batches are appended is tested with the handler (`test_long_produce`)."""

from __future__ import annotations

from kafkacompat.partitions.producing import any_is_transactional, transactional_header
from kafkacompat.wire.record_batch import ATTRIBUTES_POSITION, NewRecord, build_batch

RECORDS: list[NewRecord] = [(0, b"k", b"v", [])]
PLAIN = build_batch(RECORDS, producer_id=7, producer_epoch=1, base_sequence=0)
TRANSACTIONAL = build_batch(RECORDS, producer_id=7, producer_epoch=1, base_sequence=0, transactional=True)


def of_magic(batch: bytes, magic: int) -> bytes:
    """The batch with the magic byte of another format; in a message set the attributes are elsewhere."""
    changed = bytearray(batch)
    changed[16] = magic
    return bytes(changed)


def test_one_transactional_batch_is_found_among_others() -> None:
    assert any_is_transactional([b"", PLAIN, TRANSACTIONAL])


def test_plain_batches_short_ones_and_message_sets_are_not_transactional() -> None:
    assert not any_is_transactional([b"", PLAIN, TRANSACTIONAL[:ATTRIBUTES_POSITION], of_magic(TRANSACTIONAL, 1)])


def test_the_header_of_a_transactional_batch_names_its_producer() -> None:
    header = transactional_header(TRANSACTIONAL)
    assert header is not None
    assert (header.producer_id, header.producer_epoch) == (7, 1)


def test_other_records_have_no_transactional_header() -> None:
    without_producer = build_batch(RECORDS, transactional=True)
    for records in (None, b"", PLAIN, TRANSACTIONAL[:60], of_magic(TRANSACTIONAL, 1), without_producer):
        assert transactional_header(records) is None
