"""The entities that quotas belong to: as an instance's clients name them, and as they are stored.

The default user and the default client id of an instance are stored as the entities that only its prefix names, so that the
operator's defaults and those of an instance do not meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacompat.metadata.client_entities import CLIENT_ID, IP, USER, Entity
from kafkacompat.tenancy.names import FOREIGN
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.tenancy.names import Names


class QuotaNames:
    """Translates the names of one instance's quota entities. Types come from the wire, and may be invalid."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def to_physical(self, kind: str, name: str | None) -> str | None:
        """Return the physical name; None stands for the default in *name*. An empty name is not valid, and stays."""
        if kind not in (USER, CLIENT_ID) or name == "":
            return name
        if name is None:
            return self._names.prefix
        if kind == CLIENT_ID:
            return self._names.prefix + name
        physical: str = self._names.to_physical[entities.USER][name]
        return physical

    def to_client(self, kind: str, physical: str | None) -> Any:
        """Return the name that clients know, None for the default, or FOREIGN. A type or a name that is not valid stays."""
        if kind not in (USER, CLIENT_ID, IP) or physical == "":
            return physical
        if kind == IP or physical is None:
            return FOREIGN
        if physical == self._names.prefix:
            return None
        if kind == USER:
            return self._names.to_client[entities.USER][physical]
        return physical.removeprefix(self._names.prefix) if physical.startswith(self._names.prefix) else FOREIGN

    def find_own(self, entity: Entity) -> Entity | None:
        """Return an entity as clients know it; None if a part of it is not the instance's."""
        for kind, physical in entity:
            # Most entities belong to others: they take no time.
            if physical is None or not (physical.startswith(self._names.prefix) or self._is_adopted(kind, physical)):
                return None
        parts = [(kind, self.to_client(kind, physical)) for kind, physical in entity]
        return None if any(name is FOREIGN for _, name in parts) else tuple(parts)

    def _is_adopted(self, kind: str, physical: str) -> bool:
        return kind == USER and self._names.is_own(entities.USER, physical)
