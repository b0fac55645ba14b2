"""What a broker counts of an instance, and what the sum over the brokers decides; sent between brokers at each interval."""

from __future__ import annotations

from typing import NamedTuple


class BrokerFigures(NamedTuple):
    """The figures of one instance on one broker.

    ``produced_bytes`` and ``fetched_bytes`` are those of the last interval. ``held_bytes`` are those whose answers were delayed.
    ``stored_bytes`` are the bytes of the instance's logs on the broker that count for limit.storage.bytes, and ``partitions`` the
    partitions of the instance that the broker leads.
    """

    instance: str
    produced_bytes: int
    fetched_bytes: int
    held_bytes: int
    stored_bytes: int
    partitions: int
