"""How clients behave; the names are those of the Java client's properties, in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClientSettings:
    """What all clients share. Times are shorter than Kafka's defaults, so that a short simulation sees them pass."""

    request_timeout_s: float = 8.0
    retry_backoff_s: float = 0.1
    max_retry_backoff_s: float = 1.0
    reconnect_backoff_s: float = 0.05
    max_reconnect_backoff_s: float = 1.0
    metadata_max_age_s: float = 30.0


@dataclass(frozen=True)
class ProducerSettings(ClientSettings):
    """How a producer sends.

    A producer without idempotence never repeats a batch (``retries=0``), so that a record is in the log at most once. It is also the
    only one for which *acks* counts. ``pause_s`` is the range of the pause between two values.
    """

    acks: int = -1
    is_idempotent: bool = True
    max_in_flight: int = 5
    max_batch_records: int = 4
    max_queued_batches: int = 20
    delivery_timeout_s: float = 40.0
    produce_timeout_s: float = 5.0
    pause_s: tuple[float, float] = (0.005, 0.1)
    codec: int = 0


@dataclass(frozen=True)
class TransactionalSettings(ProducerSettings):
    """How a transactional producer works.

    ``transaction_version`` is the newest that the client knows: 2 uses the implicit way of KIP-890 where the cluster has it, 0 is a
    client from before. The shares are those of the transactions that the client aborts; that it leaves open for longer than
    ``transaction_timeout_s``; and that it still tries to commit while its next incarnation begins, as a process does that others take for
    dead.
    """

    transactional_id: str = "transactional"
    transaction_version: int = 2
    transaction_timeout_s: float = 15.0
    max_transaction_records: int = 12
    abort_share: float = 0.2
    stall_share: float = 0.01
    zombie_share: float = 0.03


@dataclass(frozen=True)
class ConsumerSettings(ClientSettings):
    """How a consumer fetches."""

    isolation: str = "read_uncommitted"
    max_wait_s: float = 0.2
    fetch_max_bytes: int = 1 << 20
    partition_max_bytes: int = 1 << 16
    list_interval_s: float = 2.0


@dataclass(frozen=True)
class MemberSettings(ConsumerSettings):
    """How a member of a group behaves.

    ``protocol`` is `classic` or `consumer` (KIP-848). The ranges are those of the pause between two commits, of the time that the member
    stays, and of the time that it is away. ``silent_share`` is the share of its stays that it ends without a word.
    """

    group: str = "members"
    protocol: str = "classic"
    session_timeout_s: float = 6.0
    rebalance_timeout_s: float = 10.0
    heartbeat_interval_s: float = 1.0
    commit_interval_s: tuple[float, float] = (0.3, 2.0)
    stay_s: tuple[float, float] = (5.0, 40.0)
    away_s: tuple[float, float] = (0.0, 5.0)
    silent_share: float = 0.3


@dataclass(frozen=True)
class CopierSettings:
    """How a copier works: as a member of its group, which reads at read_committed, and as a transactional producer."""

    member: MemberSettings = MemberSettings(isolation="read_committed", group="copiers")
    producer: TransactionalSettings = TransactionalSettings(transactional_id="copier")
    max_records: int = 20
    pause_s: tuple[float, float] = (0.05, 0.3)


@dataclass(frozen=True)
class AdminSettings(ClientSettings):
    """How an administrator's client works; it gives a request up after ``give_up_s``."""

    operation_timeout_s: float = 5.0
    give_up_s: float = 60.0
