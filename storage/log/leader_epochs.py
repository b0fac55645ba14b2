"""The start offset of each leader epoch, as the batches of the log say (KIP-101, KIP-279, KIP-320).

Format: docs/format/leader-epoch-checkpoint.md. The list is short, one entry a leadership. It is kept in memory and
written when the log is flushed; after a crash recovery takes the missing entries from the batches.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from kafkacompat.storage.files.checkpoints import CorruptCheckpointError, read_checkpoint, write_checkpoint
from kafkacompat.storage.files.filesystem import Files

FILE_NAME = "leader-epoch-checkpoint"

UNDEFINED = (-1, -1)
LARGEST_OFFSET = 2**63 - 1


class EpochEntry(NamedTuple):
    """An epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """A partition's epochs, ascending in epoch and in start offset."""

    __slots__ = ("_entries", "_files", "_path", "_written", "latest")

    def __init__(self, files: Files, directory: str, entries: Iterable[EpochEntry] = ()) -> None:
        self._files = files
        self._path = os.path.join(directory, FILE_NAME)
        self._entries: list[EpochEntry] = []
        self._written: list[EpochEntry] = []
        self.latest = -1
        """The newest epoch; -1 before any."""
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    @classmethod
    def load(cls, files: Files, directory: str) -> LeaderEpochs:
        """Read the file; a corrupt one counts as empty, because the batches have the epochs. [disk]"""
        try:
            lines = read_checkpoint(files, os.path.join(directory, FILE_NAME), 2)
            epochs = cls(files, directory, [EpochEntry(int(epoch), int(offset)) for epoch, offset in lines])
        except (CorruptCheckpointError, ValueError):
            return cls(files, directory)
        epochs._written = list(epochs._entries)
        return epochs

    @property
    def entries(self) -> list[EpochEntry]:
        """All entries, oldest first."""
        return list(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Let `epoch` begin at `start_offset`, dropping entries that contradict it. [loop]"""
        if epoch < 0 or (epoch == self.latest and start_offset >= self._entries[-1].start_offset):
            return
        entries = self._entries
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        self.latest = epoch

    def epoch_for_offset(self, offset: int) -> int:
        """Return the epoch of the record at `offset`; -1 if it is unknown. [loop]"""
        slot = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset) - 1
        return self._entries[slot].epoch if slot >= 0 else -1

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (largest epoch <= `epoch`, its end offset); (-1, -1) if `epoch` is newer than all known ones. [loop]

        An epoch older than all known ones ends where the first known one begins: its records were deleted.
        """
        if epoch < 0 or epoch > self.latest:
            return UNDEFINED
        if epoch == self.latest:
            return epoch, log_end_offset
        slot = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        return self._entries[slot - 1].epoch if slot else epoch, self._entries[slot].start_offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop epochs that begin at `end_offset` or later. [loop]"""
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        self.latest = self._entries[-1].epoch if self._entries else -1

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs that end before `start_offset`, and let the one that holds it begin there. [loop]"""
        slot = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if slot:
            self._entries[:slot] = [EpochEntry(self._entries[slot - 1].epoch, start_offset)]

    def write(self, end_offset: int = LARGEST_OFFSET) -> None:
        """Write the file if the list has changed since the last write. [disk]

        An epoch that begins at `end_offset` or later is left out, as a start would drop it.
        """
        entries = [entry for entry in list(self._entries) if entry.start_offset < end_offset]
        if entries != self._written:
            write_checkpoint(self._files, self._path, (f"{entry.epoch} {entry.start_offset}" for entry in entries))
            self._written = entries
