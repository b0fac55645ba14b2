"""The rules of one broker or cluster, in order, with their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, Protocol
from weakref import ReferenceType, ref

from kafkacompat.faults.parsing import FETCHED_RECORDS, parse_rule
from kafkacompat.faults.rules import NEGOTIATION, FaultError, FaultRule, RequestFacts

MOST_RULES = 1_000
"""Rules at a time: each request is compared with each of them."""


class FaultCounts(NamedTuple):
    """How many requests a rule has matched, and to how many it was applied."""

    matched: int
    applied: int


class ActiveFault:
    """A rule with its counts and its source of random numbers. ``number`` identifies it."""

    def __init__(self, number: int, rule: FaultRule, seed: int) -> None:
        self.number = number
        self.rule = rule
        self.matched = 0
        self.applied = 0
        self._rng = Random(f"{seed} {number}" if rule.seed is None else rule.seed)

    def choose(self) -> bool:
        """Count a matching request; return whether the rule applies to it."""
        rule = self.rule
        self.matched += 1
        candidate = self.matched - rule.after - 1
        if candidate < 0 or candidate % rule.every or (rule.times is not None and self.applied >= rule.times):
            return False
        if rule.share < 1 and self._rng.random() >= rule.share:
            return False
        self.applied += 1
        return True

    def describe(self) -> dict[str, Any]:
        """Return the rule as it was given, with its number and its counts."""
        return {"id": self.number, **self.rule.given, "matched": self.matched, "applied": self.applied}


class Effect(Protocol):
    """An effect that outlasts the request of its rule, such as a pause."""

    def end(self) -> None:
        """End the effect, unless it has ended."""


class Faults:
    """The rules of one broker, or of all brokers of a cluster. All methods are for the reactor's thread.

    The first rule in order that chooses a request is applied to it; the rules after that do not count it. *seed* is for the
    rules without a seed of their own: the same rules and the same requests in the same order give the same faults.
    """

    def __init__(self, seed: int = 0, *, in_cluster: bool = False) -> None:
        self.seed = seed
        self._in_cluster = in_cluster
        self._active: dict[int, ActiveFault] = {}
        self._effects: list[ReferenceType[Effect]] = []
        self._last_number = 0

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self._active)

    def add(self, **fields: Any) -> int:
        """Add a rule after the others; return its number. Raises FaultError for a rule that can never match."""
        return self.add_rule(parse_rule(fields))

    def add_rule(self, rule: FaultRule) -> int:
        """Add a parsed rule; raises FaultError if this broker can never apply it."""
        if rule.action == "move_leader" and not self._in_cluster:
            raise FaultError("move_leader: a single broker leads every partition itself: use a cluster")
        if len(self._active) >= MOST_RULES:
            raise FaultError(f"there are {MOST_RULES} rules, and no more are allowed: remove some")
        self._last_number += 1
        self._active[self._last_number] = ActiveFault(self._last_number, rule, self.seed)
        return self._last_number

    def remove(self, number: int) -> None:
        """Remove a rule; raises FaultError if there is none with this number."""
        if self._active.pop(number, None) is None:
            raise FaultError(f"there is no rule {number}")

    def clear(self, seed: int | None = None) -> None:
        """Remove all rules, end the pauses that they have begun, and count from 1 again; *seed* replaces the seed."""
        self._active.clear()
        for effect in self._list_effects():
            effect.end()
        self._last_number = 0
        self.seed = self.seed if seed is None else seed

    def watch(self, effect: Effect) -> None:
        """Let `clear` end an effect that outlasts the request of its rule. The rules keep no reference to it."""
        self._effects = [ref(other) for other in (*self._list_effects(), effect)]

    def _list_effects(self) -> Sequence[Effect]:
        return [effect for reference in self._effects if (effect := reference()) is not None]

    def list(self) -> list[dict[str, Any]]:
        """Return the rules in order, each as it was given, with ``id``, ``matched`` and ``applied``."""
        return [fault.describe() for fault in self._active.values()]

    @property
    def counts(self) -> Mapping[int, FaultCounts]:
        """The counts by the numbers of the rules."""
        return {number: FaultCounts(fault.matched, fault.applied) for number, fault in self._active.items()}

    def concerns(self, api: str) -> bool:
        """Return whether any rule may match requests of an API."""
        return any(api in fault.rule.apis if fault.rule.apis else api != NEGOTIATION for fault in self._active.values())

    @property
    def has_record_rules(self) -> bool:
        """Whether any rule damages fetched records."""
        return any(fault.rule.action in FETCHED_RECORDS for fault in self._active.values())

    def choose(self, facts: RequestFacts) -> FaultRule | None:
        """Return the rule that applies to a request, and count. Rules that damage records wait for `choose_records`."""
        return self._choose(facts, damages_records=False)

    def choose_records(self, facts: RequestFacts) -> FaultRule | None:
        """Return the rule that damages the records of a response, and count. The targets are the partitions with records."""
        return self._choose(facts, damages_records=True) if facts.targets else None

    def _choose(self, facts: RequestFacts, *, damages_records: bool) -> FaultRule | None:
        for fault in self._active.values():
            rule = fault.rule
            if (rule.action in FETCHED_RECORDS) == damages_records and rule.matches(facts) and fault.choose():
                return rule
        return None
