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

ENTRY = Struct(">hqqqq")
"""Version, producer id, first offset, last offset, last stable offset."""


class AbortedTransaction(NamedTuple):
    """A transaction from its first batch to its marker, and where the log was stable up to when the marker came."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode(transactions: Iterable[AbortedTransaction]) -> bytes:
    """The file's contents; the entries are in the order of their markers."""
    return b"".join(ENTRY.pack(VERSION, *each) for each in transactions)


def decode(data: bytes) -> list[AbortedTransaction]:
    """Read a file's contents; raises CorruptIndexError."""
    if len(data) % ENTRY.size:
        raise CorruptIndexError(f"a transaction index of {len(data)} bytes is no whole number of entries")
    found = []
    for version, *fields in ENTRY.iter_unpack(data):
        if version != VERSION:
            raise CorruptIndexError(f"an entry of a transaction index has version {version}, only {VERSION} is known")
        found.append(AbortedTransaction(*fields))
    if not (all(map(_is_possible, found)) and all(map(_in_order, found, found[1:]))):
        raise CorruptIndexError("a transaction index whose offsets do not ascend")
    return found


def _is_possible(one: AbortedTransaction) -> bool:
    return one.first_offset <= one.last_offset and one.last_stable_offset <= one.last_offset + 1


def _in_order(one: AbortedTransaction, other: AbortedTransaction) -> bool:
    return one.last_offset < other.last_offset and one.last_stable_offset <= other.last_stable_offset


def read_aborted(files: Files, path: str) -> list[AbortedTransaction]:
    """Read a file, which need not be there; raises CorruptIndexError."""
    return decode(files.read(path)) if files.exists(path) else []


def write_aborted(files: Files, path: str, transactions: list[AbortedTransaction]) -> None:
    """Write a file and sync it; none for no transactions."""
    if transactions:
        overwrite_file(files, path, encode(transactions))
    elif files.exists(path):
        files.remove(path)


def truncate_aborted(files: Files, path: str, offset: int) -> None:
    """Let an index forget transactions whose markers are not in the log any more, which ends at `offset`. [disk]"""
    found = read_aborted(files, path)
    kept = [each for each in found if each.last_offset < offset]
    if len(kept) < len(found):
        write_aborted(files, path, kept)
