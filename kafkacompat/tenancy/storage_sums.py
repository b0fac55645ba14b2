"""What all instances store on all brokers, as the controller adds it up from the brokers' reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

GRACE_MS = 10_000
"""A new controller gives no totals before all live brokers have reported, or this time has passed."""


class StorageSums:
    """The last report of each broker, and the sums by instance. Times are milliseconds of one steady clock."""

    def __init__(self, now_ms: int) -> None:
        self._begun_ms = now_ms
        self._reports: dict[int, Mapping[str, int]] = {}
        self._totals: Counter[str] = Counter()

    def note(self, broker: int, stored: Mapping[str, int]) -> None:
        """Replace the last report of a broker."""
        self._subtract(broker)
        self._reports[broker] = stored
        self._totals.update(stored)

    def _subtract(self, broker: int) -> None:
        totals = self._totals
        for instance, stored_bytes in self._reports.pop(broker, {}).items():
            totals[instance] -= stored_bytes
            if not totals[instance]:
                del totals[instance]

    def find_totals(self, instances: Sequence[str], live: Collection[int], now_ms: int) -> dict[str, int]:
        """Return the totals of *instances* over the *live* brokers; {} while too few of these have reported."""
        for gone in self._reports.keys() - set(live):
            self._subtract(gone)
        is_complete = all(broker in self._reports for broker in live)
        if not is_complete and now_ms - self._begun_ms < GRACE_MS:
            return {}
        return {instance: self._totals[instance] for instance in instances}
