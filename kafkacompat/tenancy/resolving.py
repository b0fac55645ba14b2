"""Names whose kind depends on a field beside them: keys of coordinators, resources of configs and access rules, quota entities."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkacompat.config.resources import ResourceType
from kafkacompat.tenancy.names import FOREIGN
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.tenancy.access_names import AclNames
    from kafkacompat.tenancy.names import Names
    from kafkacompat.tenancy.quota_names import QuotaNames

TRANSACTION_KEY = 1
"""The key type of transactional ids in FindCoordinator."""

_CONFIG_ENTITIES = {
    ResourceType.TOPIC: entities.TOPIC,
    ResourceType.GROUP: entities.GROUP,
    ResourceType.CLIENT_METRICS: entities.GROUP,
}

Resolve = Callable[[str, Any, Any], Any]


class RequestResolver:
    """Translates such names of a request into physical ones; ``resolve`` may change the pattern type of an access rule."""

    def __init__(self, names: Names, acl_names: AclNames, quota_names: QuotaNames) -> None:
        self._names = names
        self._acl_names = acl_names
        self._quota_names = quota_names
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

    def _resolve_acl(self, name: str, owner: Any) -> str:
        owner.resource_pattern_type, physical = self._acl_names.to_physical(
            owner.resource_type, owner.resource_pattern_type, name
        )
        return physical

    def _resolve_quota(self, name: str | None, owner: Any) -> str | None:
        return self._quota_names.to_physical(owner.entity_type, name)


class ResponseResolver:
    """Translates such names of a response into those that clients know, or into `FOREIGN`."""

    def __init__(self, names: Names, acl_names: AclNames, quota_names: QuotaNames) -> None:
        self._names = names
        self._acl_names = acl_names
        self._quota_names = quota_names
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
        return self._names.to_client[entity][name] if entity and name else name

    def _resolve_acl(self, name: str, owner: Any) -> Any:
        pattern = self._acl_names.to_client(owner.resource_type, owner.pattern_type, name)
        if pattern is None:
            return FOREIGN
        owner.pattern_type, client_name = int(pattern[0]), pattern[1]
        return client_name

    def _resolve_quota(self, name: str | None, owner: Any) -> Any:
        return self._quota_names.to_client(owner.entity_type, name)
