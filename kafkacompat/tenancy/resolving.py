"""Names whose kind depends on a field beside them: keys of coordinators, resources of configs and access rules, quota entities."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import CLIENT_ID, USER
from kafkacompat.security.acls.model import AclResourceType, PatternType
from kafkacompat.tenancy.names import ALL_NAMES, FOREIGN
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.tenancy.names import Names

TRANSACTION_KEY = 1
"""The key type of transactional ids in FindCoordinator."""

_CONFIG_ENTITIES = {
    ResourceType.TOPIC: entities.TOPIC,
    ResourceType.GROUP: entities.GROUP,
    ResourceType.CLIENT_METRICS: entities.GROUP,
}
_ACL_ENTITIES = {
    AclResourceType.TOPIC: entities.TOPIC,
    AclResourceType.GROUP: entities.GROUP,
    AclResourceType.TRANSACTIONAL_ID: entities.TRANSACTIONAL_ID,
    AclResourceType.USER: entities.PRINCIPAL,
    AclResourceType.CLUSTER: entities.GROUP,
}
_QUOTA_ENTITIES = {USER: entities.USER, CLIENT_ID: entities.GROUP}

Resolve = Callable[[str, Any, Any], Any]


def _sibling(owner: Any, name: str) -> Any:
    value = getattr(owner, name, None)
    return getattr(owner, f"{name}_filter", None) if value is None else value


class RequestResolver:
    """Translates such names of a request into physical ones; ``resolve`` may change the pattern type of an access rule."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._rules: dict[str, Callable[[Any, Any], Any]] = {
            entities.COORDINATOR_KEY: self._resolve_key,
            entities.CONFIG_RESOURCE: self._resolve_config,
            entities.ACL_RESOURCE: self._resolve_acl,
            entities.QUOTA_ENTITY: self._resolve_quota,
        }

    def resolve(self, entity: str, name: Any, owner: Any) -> Any:
        """Return the physical name of *name*, which is a field of *owner*."""
        return self._rules[entity](name, owner)

    def _resolve_key(self, key: str, owner: Any) -> str:
        kind = entities.TRANSACTIONAL_ID if owner.key_type == TRANSACTION_KEY else entities.GROUP
        physical: str = self._names.to_physical[kind][key]
        return physical

    def _resolve_config(self, name: str, owner: Any) -> str:
        entity = _CONFIG_ENTITIES.get(owner.resource_type)
        return self._names.to_physical[entity][name] if entity and name else name

    def _resolve_acl(self, name: str | None, owner: Any) -> str | None:
        entity = _ACL_ENTITIES.get(_sibling(owner, "resource_type"))
        if name is None or entity is None:
            return name
        if name == ALL_NAMES and _sibling(owner, "pattern_type") == PatternType.LITERAL:
            attribute = "pattern_type" if hasattr(owner, "pattern_type") else "pattern_type_filter"
            setattr(owner, attribute, int(PatternType.PREFIXED))
            return f"User:{self._names.prefix}" if entity == entities.PRINCIPAL else self._names.prefix
        physical: str = self._names.to_physical[entity][name]
        return physical

    def _resolve_quota(self, name: str | None, owner: Any) -> str | None:
        entity = _QUOTA_ENTITIES.get(owner.entity_type)
        if entity is None:
            return name
        # The default of an instance is the entity that only its prefix names.
        physical: str = self._names.prefix if name is None else self._names.to_physical[entity][name]
        return physical


class ResponseResolver:
    """Translates such names of a response into those that clients know, or into `FOREIGN`."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._rules: dict[str, Callable[[Any, Any], Any]] = {
            # Its kind is in the request: see handlers/tenants/hooks.
            entities.COORDINATOR_KEY: lambda key, _: key,
            entities.CONFIG_RESOURCE: self._resolve_config,
            entities.ACL_RESOURCE: self._resolve_acl,
            entities.QUOTA_ENTITY: self._resolve_quota,
        }

    def resolve(self, entity: str, name: Any, owner: Any) -> Any:
        """Return the client's name for *name*, which is a field of *owner*."""
        return self._rules[entity](name, owner)

    def _resolve_config(self, name: str, owner: Any) -> Any:
        entity = _CONFIG_ENTITIES.get(owner.resource_type)
        if entity is None:
            return FOREIGN if owner.resource_type == ResourceType.INSTANCE else name
        return self._names.to_client[entity][name] if name else name

    def _resolve_acl(self, name: str, owner: Any) -> Any:
        entity = _ACL_ENTITIES.get(owner.resource_type)
        prefix = f"User:{self._names.prefix}" if entity == entities.PRINCIPAL else self._names.prefix
        if owner.pattern_type == PatternType.PREFIXED and name == prefix:
            owner.pattern_type = int(PatternType.LITERAL)
            return ALL_NAMES
        return FOREIGN if entity is None else self._names.to_client[entity][name]

    def _resolve_quota(self, name: str | None, owner: Any) -> Any:
        entity = _QUOTA_ENTITIES.get(owner.entity_type)
        if entity is None or name is None:
            return FOREIGN
        return None if name == self._names.prefix else self._names.to_client[entity][name]
