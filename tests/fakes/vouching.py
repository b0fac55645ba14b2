"""A transaction coordinator that vouches as a test wishes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.wire.errors import ErrorCode

Codes = dict[tuple[str, int], ErrorCode]


class Asked(NamedTuple):
    """One request for a verification."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: list[tuple[str, int]]
    add: bool


@dataclass
class FakeVouching:
    """Answers ``code`` for all partitions, at once or, with ``hold``, when ``release`` is called for the oldest answer."""

    code: ErrorCode = ErrorCode.NONE
    hold: bool = False
    asked: list[Asked] = field(default_factory=list)
    held: list[tuple[Codes, Deferred[Codes]]] = field(default_factory=list)

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[tuple[str, int]],
        *,
        add: bool,
    ) -> Codes | Deferred[Codes]:
        """See TransactionCoordinator."""
        self.asked.append(Asked(transactional_id, producer_id, producer_epoch, list(partitions), add))
        codes = dict.fromkeys(partitions, self.code)
        if not self.hold:
            return codes
        self.held.append((codes, Deferred()))
        return self.held[-1][1]

    def release(self) -> None:
        """Give the oldest answer."""
        codes, answer = self.held.pop(0)
        answer.callback(codes)
