"""The transaction index of a segment: the aborted transactions whose markers lie in it.

Format: docs/format/transaction-index.md. A segment without any has no such file. Everything here is a disk operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from kafkacompat.storage.files.checkpoints import overwrite_file
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.indexes import CorruptIndexError

VERSION = 0

ABORTED_ENTRY = Struct(">hqqqq")
"""Version, producer id, first offset, last offset, last stable offset."""


class AbortedTransaction(NamedTuple):
    """An aborted transaction: offsets of its first batch and its marker, and the last stable offset after the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(transactions: Iterable[AbortedTransaction]) -> bytes:
    """Encode a file's contents; the transactions are in the order of their markers."""
    return b"".join(ABORTED_ENTRY.pack(VERSION, *transaction) for transaction in transactions)


def decode_aborted(data: bytes) -> list[AbortedTransaction]:
    """Decode a file's contents. Raises CorruptIndexError."""
    if len(data) % ABORTED_ENTRY.size:
        raise CorruptIndexError(f"a transaction index of {len(data)} bytes is no whole number of entries")
    transactions = []
    for version, *fields in ABORTED_ENTRY.iter_unpack(data):
        if version != VERSION:
            raise CorruptIndexError(f"an entry of a transaction index has version {version}; only {VERSION} is known")
        transactions.append(AbortedTransaction(*fields))
    if not (all(map(_is_possible, transactions)) and all(map(_in_order, transactions, transactions[1:]))):
        raise CorruptIndexError("the offsets of a transaction index do not ascend")
    return transactions


def _is_possible(transaction: AbortedTransaction) -> bool:
    return (
        transaction.first_offset <= transaction.last_offset
        and transaction.last_stable_offset <= transaction.last_offset + 1
    )


def _in_order(transaction: AbortedTransaction, following: AbortedTransaction) -> bool:
    return (
        transaction.last_offset < following.last_offset
        and transaction.last_stable_offset <= following.last_stable_offset
    )


def read_aborted(files: Files, path: str) -> list[AbortedTransaction]:
    """Read a file; an absent one holds no transactions. Raises CorruptIndexError."""
    return decode_aborted(files.read(path)) if files.exists(path) else []


def write_aborted(files: Files, path: str, transactions: list[AbortedTransaction]) -> None:
    """Write and sync a file; without transactions, remove it."""
    if transactions:
        overwrite_file(files, path, encode_aborted(transactions))
    elif files.exists(path):
        files.remove(path)


def truncate_aborted(files: Files, path: str, offset: int) -> None:
    """Drop transactions from a file whose markers are at `offset` or later, where the log ends now. [disk]"""
    transactions = read_aborted(files, path)
    kept = [transaction for transaction in transactions if transaction.last_offset < offset]
    if len(kept) < len(transactions):
        write_aborted(files, path, kept)
