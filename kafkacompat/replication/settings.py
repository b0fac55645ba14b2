"""The settings of replica fetches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """The settings that all fetchers of a broker share; the defaults are Kafka's.

    ``truncates_on_fetch``: whether ``inter.broker.protocol.version`` is at least 2.7. Then every fetch has version 12 or
    newer, and leaders name the epoch from which the logs diverge (KIP-595). Otherwise a follower asks with
    OffsetForLeaderEpoch before its first fetch in a leader epoch (KIP-101).
    """

    node_id: int
    truncates_on_fetch: bool = True
    fetcher_count: int = 1
    partition_max_bytes: int = 1 << 20
    response_max_bytes: int = 10 << 20
    min_bytes: int = 1
    wait_max_ms: int = 500
    backoff_ms: int = 1000
    timeout_ms: int = 30_000

    @classmethod
    def read(cls, config: BrokerConfig, *, truncates_on_fetch: bool) -> FetchSettings:
        """Read the properties of a broker."""
        return cls(
            node_id=config.node_id,
            truncates_on_fetch=truncates_on_fetch,
            fetcher_count=config.int("num.replica.fetchers"),
            partition_max_bytes=config.int("replica.fetch.max.bytes"),
            response_max_bytes=config.int("replica.fetch.response.max.bytes"),
            min_bytes=config.int("replica.fetch.min.bytes"),
            wait_max_ms=config.int("replica.fetch.wait.max.ms"),
            backoff_ms=config.int("replica.fetch.backoff.ms"),
            timeout_ms=config.int("replica.socket.timeout.ms"),
        )

    @property
    def backoff_s(self) -> float:
        """The pause after a failure."""
        return self.backoff_ms / 1000

    @property
    def timeout_s(self) -> float:
        """The longest wait for a response."""
        return self.timeout_ms / 1000
