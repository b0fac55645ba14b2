"""How much memory the items of a coordinator may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class MemoryBudget:
    """About how much memory the items of a coordinator (members, transactional ids) take together, and may take."""

    limit_bytes: int
    used_bytes: int = 0

    def has_room(self, size_bytes: int) -> bool:
        """Return whether *size_bytes* more are within the limit."""
        return self.used_bytes + size_bytes <= self.limit_bytes
