"""The faults of the brokers of a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkacompat.faults import Faults
    from kafkacompat.faults.active import FaultCounts


class BrokerFaults:
    """The rules by which all brokers of a test answer errors, or lose and damage responses; see docs/testing/faults.md."""

    def __init__(self, call: Callable[..., Any], faults: Faults) -> None:
        self._call = call
        self._faults = faults

    def add(self, **fields: Any) -> int:
        """Add a rule, such as ``api="Produce", topic="t", error="NOT_LEADER_OR_FOLLOWER", times=2``; return its number.

        Raises FaultError, one sentence, for a rule that can never match.
        """
        number: int = self._call(lambda: self._faults.add(**fields))
        return number

    def remove(self, number: int) -> None:
        """Remove a rule; raises FaultError if there is none with this number."""
        self._call(self._faults.remove, number)

    def clear(self, seed: int | None = None) -> None:
        """Remove all rules. Random shares begin again, by *seed* if it is given."""
        self._call(self._faults.clear, seed)

    def list(self) -> list[dict[str, Any]]:
        """Return the rules in order, each as it was given, with ``id``, ``matched`` and ``applied``."""
        rules: list[dict[str, Any]] = self._call(self._faults.list)
        return rules

    @property
    def counts(self) -> Mapping[int, FaultCounts]:
        """How many requests each rule has matched, and to how many it was applied, by number."""
        counts: Mapping[int, FaultCounts] = self._call(lambda: self._faults.counts)
        return counts
