"""The features whose levels clients read before they use a newer protocol (KIP-584)."""

from __future__ import annotations

from kafkacompat.wire.schema import Versions

GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"

SUPPORTED_LEVELS: dict[str, Versions] = {
    GROUP_VERSION: Versions(0, 1),
    TRANSACTION_VERSION: Versions(0, 2),
}
"""The levels of each feature that this broker supports."""
