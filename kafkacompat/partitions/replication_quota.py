"""The throttle of replication: a byte rate for the partitions that a topic config names (KIP-73)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from kafkacompat.timers import Clock, steady_ms

UNLIMITED = 2**63 - 1
"""The rate, in bytes a second, that stands for no limit."""

ALL_REPLICAS = "*"


class RateWindow:
    """Bytes a second, over the last ``sample_count`` samples of ``sample_ms`` each.

    The rate is that of the time since the oldest sample began, and of one whole sample at least, so that the first bytes
    after a pause do not count as a peak.
    """

    def __init__(self, clock: Clock, sample_count: int, sample_ms: int) -> None:
        self._clock = clock
        self._span_ms = sample_count * sample_ms
        self._sample_ms = sample_ms
        self._samples: deque[list[int]] = deque()

    def record(self, size_bytes: int) -> None:
        """Count bytes."""
        now = steady_ms(self._clock)
        if not self._samples or now - self._samples[-1][0] >= self._sample_ms:
            self._samples.append([now, 0])
        self._samples[-1][1] += size_bytes

    def bytes_per_second(self) -> float:
        """Return the rate."""
        now, samples = steady_ms(self._clock), self._samples
        while samples and now - samples[0][0] >= self._span_ms:
            samples.popleft()
        if not samples:
            return 0.0
        elapsed_ms = max(now - samples[0][0], self._sample_ms)
        return sum(size_bytes for _, size_bytes in samples) * 1000 / elapsed_ms


class ReplicationQuota:
    """The throttled partitions of one side, leader or follower, and their byte rate.

    ``rate`` is ``leader.replication.throttled.rate`` or ``follower.replication.throttled.rate``; the samples are
    ``replication.quota.window.num`` and ``replication.quota.window.size.seconds``.
    """

    def __init__(self, node_id: int, window: RateWindow, rate: int = UNLIMITED) -> None:
        self.rate = rate
        self._node_id = node_id
        self._window = window
        self._throttled: dict[str, frozenset[int] | None] = {}

    def replace_throttled(self, replicas_by_topic: Mapping[str, Iterable[str]]) -> None:
        """Take over the configs of all topics that have one; the other topics are not throttled."""
        self._throttled.clear()
        for topic, replicas in replicas_by_topic.items():
            self.set_throttled(topic, replicas)

    def set_throttled(self, topic: str, replicas: Iterable[str]) -> None:
        """Take over ``….replication.throttled.replicas`` of a topic: pairs ``partition:broker``, or ``*`` for all."""
        entries = list(replicas)
        if ALL_REPLICAS in map(str.strip, entries):
            self._throttled[topic] = None
            return
        pairs = [entry.strip().split(":") for entry in entries]
        indexes = frozenset(int(index) for index, node_id in pairs if int(node_id) == self._node_id)
        if indexes:
            self._throttled[topic] = indexes
        else:
            self._throttled.pop(topic, None)

    def is_throttled(self, topic: str, index: int) -> bool:
        """Return whether a partition counts for the rate."""
        indexes = self._throttled.get(topic, frozenset())
        return indexes is None or index in indexes

    def record(self, topic: str, index: int, size_bytes: int) -> None:
        """Count bytes that were replicated, if the partition is throttled."""
        if size_bytes and self._throttled and self.is_throttled(topic, index):
            self._window.record(size_bytes)

    def is_exceeded(self) -> bool:
        """Return whether throttled partitions must pause."""
        return bool(self._throttled) and self.rate < UNLIMITED and self._window.bytes_per_second() > self.rate
