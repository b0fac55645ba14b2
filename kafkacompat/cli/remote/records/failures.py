"""Failures as sentences and counts, and the watch over connections that librdkafka repeats without an end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from kafkacompat.cli.remote.errors import NO_RIGHT, RemoteError
from kafkacompat.cli.requests import NoResponseError

BROKERLESS_S = 30.0
"""Time without any connection after which a command gives up."""
PROBE_TIMEOUT_S = 5.0
MOST_REASONS = 20
OTHER_REASONS = "other reasons"

_SENTENCES: Mapping[str, str] = {
    "TOPIC_AUTHORIZATION_FAILED": NO_RIGHT,
    "GROUP_AUTHORIZATION_FAILED": NO_RIGHT,
    "CLUSTER_AUTHORIZATION_FAILED": NO_RIGHT,
    "MSG_SIZE_TOO_LARGE": "it is larger than the topic allows: raise max.message.bytes of the topic",
    "INVALID_RECORD": "the topic does not accept it: a compacted topic needs a key with each record",
    "NOT_ENOUGH_REPLICAS": "too few replicas are in sync (min.insync.replicas): see `kafkacompat status`",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "too few replicas are in sync (min.insync.replicas): see `kafkacompat status`",
    "UNKNOWN_TOPIC_OR_PART": "the topic does not exist any more",
    "_UNKNOWN_TOPIC": "the topic does not exist any more",
    "_UNKNOWN_PARTITION": "the topic has no such partition: see `kafkacompat topics describe`",
    "_MSG_TIMED_OUT": "no leader acknowledged it in time (delivery.timeout.ms): see `kafkacompat status`",
    "_PURGE_QUEUE": "the command ended before it was sent",
    "_PURGE_INFLIGHT": "the command ended before it was acknowledged",
    "INVALID_TIMESTAMP": "its timestamp is out of the topic's bounds (message.timestamp.before.max.ms, ...after.max.ms)",
}
"""Sentences about a record or a topic, by the names of librdkafka's errors."""


def explain_error(error: Any) -> str:
    """Return what an error of librdkafka means, and what to do."""
    sentence = _SENTENCES.get(error.name())
    return sentence if sentence is not None else f"{error.str()} ({error.name()})"


class ReasonCounts:
    """Counts failures by reason; all reasons after the first MOST_REASONS are counted as one."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, reason: str) -> None:
        """Count a failure."""
        if reason not in self.counts and len(self.counts) >= MOST_REASONS:
            reason = OTHER_REASONS
        self.counts[reason] += 1


class OptionError(ValueError):
    """The options are not valid, which shows only after they are parsed; the text is one sentence."""


class BrokerWatch:
    """Notices that librdkafka has no connection left, or an error that no waiting will mend.

    ``now_s`` returns a monotonic time, and ``probe`` requests the topic's metadata within a time and raises if no broker
    answers.
    """

    def __init__(self, bootstrap: str, now_s: Callable[[], float], limit_s: float = BROKERLESS_S) -> None:
        self._bootstrap = bootstrap
        self._now_s = now_s
        self._limit_s = limit_s
        self._down_since_s: float | None = None
        self._final: str | None = None

    def note_error(self, error: Any) -> None:
        """Receive an error of the client itself: librdkafka's error_cb."""
        name = error.name()
        if name == "_ALL_BROKERS_DOWN":
            self._down_since_s = self._now_s() if self._down_since_s is None else self._down_since_s
        elif name == "_AUTHENTICATION" or error.fatal():
            self._final = error.str()

    def note_life(self) -> None:
        """Notice that a broker has answered."""
        self._down_since_s = None

    def check(self, probe: Callable[[float], object]) -> None:
        """Raise NoResponseError if no broker can be reached for too long, RemoteError for an error that no waiting mends."""
        if self._final is not None:
            raise RemoteError(f"the connection to {self._bootstrap} failed for good: {self._final}")
        if self._down_since_s is None or self._now_s() - self._down_since_s < self._limit_s:
            return
        try:
            probe(PROBE_TIMEOUT_S)
        except Exception:  # whatever the reason, no broker answers
            text = f"{self._bootstrap} is unreachable for {self._limit_s:g} s"
            raise NoResponseError(f"{text}, so run `kafkacompat doctor` to find out why") from None
        self.note_life()
