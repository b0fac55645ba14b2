"""What a transaction coordinator has written at the end of a transaction to each of its partitions."""

from __future__ import annotations

from typing import NamedTuple


class Marker(NamedTuple):
    """The end of one transaction.

    ``producer_epoch`` is that of the transaction's records up to transaction version 1, a newer one from version 2 on;
    ``coordinator_epoch`` is the leader epoch of the coordinator's partition.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int
