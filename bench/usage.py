"""The cost of a load for the broker: CPU time and memory, read from its process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.row import Samples
from compat_tests.brokers import Broker

if TYPE_CHECKING:
    from typing_extensions import Self


class Usage:
    """Measures a ``with`` block on one broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    def __enter__(self) -> Self:
        self._cpu = self.broker.cpu_seconds()
        self._begun = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._begun
        self.cpu_seconds = self.broker.cpu_seconds() - self._cpu

    def samples(self, records: int, size_bytes: int, seconds: float | None = None) -> Samples:
        """Return the figures of the block; *seconds* replaces its duration if the load measured its own."""
        elapsed = seconds or self.seconds
        return {
            "records/s": records / elapsed,
            "MB/s": size_bytes / elapsed / 1e6,
            "broker CPU s per million records": self.cpu_seconds / records * 1e6,
            "resident MB": self.broker.resident_bytes() / 1e6,
        }
