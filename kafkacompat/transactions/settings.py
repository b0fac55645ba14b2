"""The broker properties of the transaction coordinator, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class TransactionSettings:
    """Kafka's properties by their names in snake case, with Kafka's defaults, and below them settings of this broker's own.

    ``transaction_version`` is the level of the feature transaction.version: 2, or 0 if an older Kafka has to be able to read the
    log.
    """

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 7 * 24 * HOUR_MS
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = HOUR_MS
    request_timeout_ms: int = 30_000
    transaction_version: int = 2
    marker_retry_backoff_ms: int = 20
    marker_retry_backoff_max_ms: int = 5000
    concurrent_wait_ms: int = 100
    transactional_ids_max_bytes: int = 512 << 20

    @property
    def log_value_version(self) -> int:
        """The version of the records' values. Version 0 lacks the fields of transaction version 2."""
        return 1 if self.transaction_version else 0

    @classmethod
    def from_config(cls, config: BrokerConfig, *, transaction_version: int = 2) -> TransactionSettings:
        """Read the properties of one broker."""
        return cls(
            transaction_max_timeout_ms=config.int("transaction.max.timeout.ms"),
            transactional_id_expiration_ms=config.int("transactional.id.expiration.ms"),
            abort_timed_out_interval_ms=config.int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            remove_expired_interval_ms=config.int("transaction.remove.expired.transaction.cleanup.interval.ms"),
            request_timeout_ms=config.int("request.timeout.ms"),
            concurrent_wait_ms=config.int("add.partitions.to.txn.retry.backoff.max.ms"),
            transaction_version=transaction_version,
        )
