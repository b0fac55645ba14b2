"""A broker whose machine can lose its power: unsynced bytes of its logs are lost then."""

from __future__ import annotations

import os
from pathlib import Path

from compat_tests.brokers import ROOT, KafkacompatBroker


class MortalBroker(KafkacompatBroker):
    """Ours, with a journal of every sync (`sync_journal/sitecustomize.py`)."""

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(ROOT / "compat_tests" / "sync_journal"), str(ROOT)])
        return {**super().environment(), "PYTHONPATH": path, "SYNC_JOURNAL": str(self._journal)}

    @property
    def _journal(self) -> Path:
        return self.folder / "syncs"

    def syncs(self, path: Path) -> list[int]:
        """Return how long a file was at each of its syncs."""
        lines = [line.split(" ", 1) for line in self._journal.read_text().splitlines()]
        return [int(size) for size, name in lines if name == str(path)]

    def log_file(self, topic: str, partition: int = 0) -> Path:
        """Return the first segment of a partition."""
        return self.data_folder / f"{topic}-{partition}" / f"{0:020d}.log"

    def lose_power(self) -> None:
        """Kill it, and cut every log file to its synced size."""
        self.kill()
        for file in self.data_folder.glob("*-*/*.log"):
            synced = [0, *self.syncs(file)][-1]
            os.truncate(file, min(synced, file.stat().st_size))
