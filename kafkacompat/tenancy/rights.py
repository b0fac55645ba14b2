"""The part of access control that follows from instances: their super users, and the names that their rules may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.metadata.topic_names import is_legal_name
from kafkacompat.security.acls.model import AclResourceType, PatternType
from kafkacompat.security.principals import USER_PREFIX
from kafkacompat.tenancy.names import FOREIGN
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.tenancy.tenant_view import TenantView

_ADOPTABLE = {
    AclResourceType.TOPIC: entities.TOPIC,
    AclResourceType.GROUP: entities.GROUP,
    AclResourceType.TRANSACTIONAL_ID: entities.TRANSACTIONAL_ID,
    AclResourceType.USER: entities.USER,
}
"""The resources that an instance may have adopted; the physical names of all others have the instance's prefix."""


def owns(view: TenantView, kind: AclResourceType, physical: str) -> bool:
    """Return whether a resource is the instance's. A name that nothing may have is everybody's: handlers reject it."""
    if not physical or (kind is AclResourceType.TOPIC and not is_legal_name(physical)):
        return True
    return view.acl_names.to_client(kind, PatternType.LITERAL, physical) is not None


class InstanceRights:
    """What all *instances* add to the rules of an authorizer."""

    def __init__(self, instances: Instances) -> None:
        self._instances = instances

    def _find_owner(self, principal: str) -> TenantView | None:
        if not self._instances or not principal.startswith(USER_PREFIX):
            return None
        return self._instances.find_owner(entities.USER, principal.removeprefix(USER_PREFIX))

    def is_super_user(self, principal: str, kind: AclResourceType, name: str | None) -> bool:
        """Return whether a principal is a super user of the instance that has a resource.

        Without a name the answer is that for some resource of its instance.
        """
        owner = self._find_owner(principal)
        return owner is not None and principal in owner.super_users and (name is None or owns(owner, kind, name))

    def find_prefix(self, principal: str) -> str:
        """Return the beginning of the names of all resources that a principal can reach; "" for all resources."""
        return self._instances.find_user_prefix(principal.removeprefix(USER_PREFIX))

    def find_alias(self, kind: AclResourceType, name: str) -> str | None:
        """Return the prefix with the client's name of a resource whose physical name is another; None for other resources.

        A rule for all names with some beginning is stored with the prefix. It selects adopted topics, and those with a short name,
        by this name.
        """
        entity = _ADOPTABLE.get(kind)
        if entity is None or not self._instances:
            return None
        front = USER_PREFIX if kind is AclResourceType.USER else ""
        physical = name.removeprefix(front)
        owner = self._instances.find_owner(entity, physical)
        client_name = FOREIGN if owner is None else owner.names.to_client[entity][physical]
        if owner is None or client_name is FOREIGN:
            return None
        alias = f"{front}{owner.names.prefix}{client_name}"
        return None if alias == name else alias
