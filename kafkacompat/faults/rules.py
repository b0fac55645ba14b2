"""What a fault is: which requests it matches, which of these it applies to, and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Versions

NEGOTIATION = "ApiVersions"
"""The API with which clients begin their connections: rules without an API are about all others."""


class FaultError(ValueError):
    """A rule cannot be used, or can never match; one sentence for the user."""


class RequestTarget(NamedTuple):
    """A topic that a request names, and a partition of it if the request names that."""

    topic: str
    partition: int | None


@dataclass(frozen=True)
class RequestFacts:
    """What rules compare of a request. ``api`` is Kafka's name of the API; ``targets`` are its topics and partitions."""

    api: str
    version: int
    client_id: str = ""
    listener: str = ""
    principal: str = ""
    targets: Sequence[RequestTarget] = ()
    names_all_topics: bool = False
    """Whether the request is about every topic, as a Metadata request may be."""


@dataclass(frozen=True)
class FaultRule:
    """One rule. Patterns have ``*`` and ``?`` as in file names; None matches everything.

    ``after``, ``every``, ``share`` and ``times`` choose among the matching requests. The first *after* are left alone. Each *every*-th
    of the others is a candidate, beginning with the first. A candidate is chosen with the probability *share*, by random numbers from
    *seed*. The choice ends with *times* chosen requests. ``given`` are the fields as the user has given them.
    """

    action: str
    apis: tuple[str, ...] = ()
    versions: Versions | None = None
    client_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    listener: str | None = None
    principal: str | None = None
    after: int = 0
    every: int = 1
    times: int | None = None
    share: float = 1.0
    seed: int | None = None
    error: ErrorCode | None = None
    delay_ms: int = 0
    amount: int = 0
    """Bytes of ``cut_after_bytes``, milliseconds of ``throttle_ms`` and ``pause_ms``, the broker of ``move_leader``; -1: any."""
    carry_out: bool = False
    """Whether the broker carries out the request, although its client does not receive the response."""
    given: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def has_targets(self) -> bool:
        """Whether the rule is about some topics or partitions only."""
        return self.topic is not None or self.partition is not None

    def matches(self, facts: RequestFacts) -> bool:
        """Return whether a request is one that the rule is about."""
        return (
            (facts.api in self.apis if self.apis else facts.api != NEGOTIATION)
            and (self.versions is None or facts.version in self.versions)
            and _fits(self.client_id, facts.client_id)
            and _fits(self.listener, facts.listener)
            and _fits(self.principal, facts.principal)
            and (
                not self.has_targets
                or any(self.covers(*target) for target in facts.targets)
                or (facts.names_all_topics and self.topic is not None)
            )
        )

    def covers(self, topic: str | None, partition: int | None) -> bool:
        """Return whether the rule is about a partition; *partition* None is a topic as a whole."""
        if topic is None:
            return not self.has_targets
        return _fits(self.topic, topic) and (self.partition is None or partition is None or partition == self.partition)


def _fits(pattern: str | None, text: str) -> bool:
    return pattern is None or fnmatchcase(text, pattern.replace("[", "[[]"))
