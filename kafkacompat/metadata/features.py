"""The features whose levels clients look at before they speak a newer protocol (KIP-584)."""

from __future__ import annotations

from kafkacompat.wire.schema import Versions

GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"

SUPPORTED: dict[str, Versions] = {
    GROUP_VERSION: Versions(0, 1),
    TRANSACTION_VERSION: Versions(0, 2),
}
"""The levels that this broker could work at."""
