"""How much memory the members of all groups may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class MemoryBudget:
    """How much the members of all groups take together, about, and may take."""

    limit_bytes: int
    used_bytes: int = 0

    def has_room(self, size_bytes: int) -> bool:
        """Whether *size_bytes* more are within the limit."""
        return self.used_bytes + size_bytes <= self.limit_bytes
