"""Removing what a deleted instance has in the metadata, on a draft and in portions: any of them may be the last before a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kafkacompat.config.instances import Instance, read_instance
from kafkacompat.config.properties import ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import CLIENT_ID, USER, ClientConfig, Entity
from kafkacompat.security.acls.model import Acl, AclResourceType
from kafkacompat.security.acls.table import RuleSet, group_acls
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.metadata.draft import MetadataDraft
    from kafkacompat.metadata.image import MetadataImage

ITEMS_A_PORTION = 200
"""Items that one change removes: a change of ZooKeeper's holds a mebibyte."""
NOTHING = ClientConfig()

NEVER_ADOPTED = ""
"""Stands for the entity of what an instance cannot adopt: its names have the prefix."""
_ACL_ENTITIES = {
    AclResourceType.TOPIC: entities.TOPIC,
    AclResourceType.GROUP: entities.GROUP,
    AclResourceType.CLUSTER: NEVER_ADOPTED,
    AclResourceType.TRANSACTIONAL_ID: entities.TRANSACTIONAL_ID,
    AclResourceType.DELEGATION_TOKEN: NEVER_ADOPTED,
}
_CONFIG_ENTITIES = {ResourceType.GROUP: entities.GROUP, ResourceType.CLIENT_METRICS: NEVER_ADOPTED}


class Possessions:
    """Recognises the users, quotas and rules of one instance."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance

    def has_principal(self, principal: str) -> bool:
        """Return whether a principal, TYPE:NAME, is a user of the instance."""
        return self.instance.owns(entities.USER, principal.partition(":")[2])

    def has_entity(self, entity: Entity) -> bool:
        """Return whether quotas or credentials belong to a user or a client id of the instance."""
        names = dict(entity)
        user, client_id = names.get(USER), names.get(CLIENT_ID)
        return (user is not None and self.instance.owns(entities.USER, user)) or (
            client_id is not None and self.instance.owns(NEVER_ADOPTED, client_id)
        )

    def has_acl(self, acl: Acl) -> bool:
        """Return whether a rule is about something of the instance, or about a user of it."""
        kind = _ACL_ENTITIES.get(acl.pattern.resource_type)
        if acl.pattern.resource_type == AclResourceType.USER:
            return self.has_principal(acl.pattern.name) or self.has_principal(acl.rule.principal)
        return (kind is not None and self.instance.owns(kind, acl.pattern.name)) or self.has_principal(
            acl.rule.principal
        )


def find_due(image: MetadataImage, now_ms: int) -> Iterator[tuple[str, int]]:
    """Yield the instances to be removed, each with the milliseconds until then, 0 or less for those that are due."""
    for (kind, name), given in image.configs.items():
        if kind == ResourceType.INSTANCE and "delete.at.ms" in given:
            try:
                instance = read_instance(name, given)
            except ConfigError:
                # The registry reports it. The others must not wait for it.
                continue
            if not instance.is_active and instance.int("delete.at.ms") >= 0:
                yield name, instance.int("delete.at.ms") - now_ms


def find_due_instance(draft: MetadataDraft | MetadataImage, name: str, now_ms: int) -> Instance | None:
    """Return an instance if its grace period has passed; None if it is gone, or was restored meanwhile."""
    given = draft.configs.get((ResourceType.INSTANCE, name))
    if given is None:
        return None
    instance = read_instance(name, given)
    is_due = not instance.is_active and 0 <= instance.int("delete.at.ms") <= now_ms
    return instance if is_due else None


def list_topics(image: MetadataImage, instance: Instance) -> list[str]:
    """List the physical names of an instance's topics."""
    return [name for name in image.topics if instance.owns(entities.TOPIC, name)]


def remove_portion(draft: MetadataDraft, name: str, now_ms: int) -> bool:
    """Remove a portion of an instance's users, quotas, rules, tokens and configs; the instance itself at last.

    Returns whether nothing is left to do: also if the instance was restored.
    """
    instance = find_due_instance(draft, name, now_ms)
    if instance is None:
        return True
    possessions = Possessions(instance)
    if any(remove(draft, possessions) for remove in _REMOVE):
        return False
    if any(instance.owns(entities.TOPIC, topic) for topic in draft.topics):
        return False
    draft.put_config((ResourceType.INSTANCE, name), {})
    return True


def _remove_clients(draft: MetadataDraft, possessions: Possessions) -> bool:
    portion = list(islice((entity for entity in draft.clients if possessions.has_entity(entity)), ITEMS_A_PORTION))
    for entity in portion:
        draft.put_client(entity, NOTHING)
    return bool(portion)


def _remove_rules(draft: MetadataDraft, possessions: Possessions) -> bool:
    acls = (Acl(pattern, rule) for pattern, rules in draft.acls.items() for rule in rules)
    portion = list(islice((acl for acl in acls if possessions.has_acl(acl)), ITEMS_A_PORTION))
    known = draft.acls
    draft.put_rules(
        {pattern: RuleSet(known.rules_of(pattern).rules - gone.rules) for pattern, gone in group_acls(portion).items()}
    )
    return bool(portion)


def _remove_tokens(draft: MetadataDraft, possessions: Possessions) -> bool:
    owned = (token_id for token_id, token in draft.tokens.items() if possessions.has_principal(str(token.owner)))
    portion = list(islice(owned, ITEMS_A_PORTION))
    for token_id in portion:
        draft.remove_token(token_id)
    return bool(portion)


def _remove_configs(draft: MetadataDraft, possessions: Possessions) -> bool:
    owned = (
        (kind, name)
        for kind, name in draft.configs
        if (entity := _CONFIG_ENTITIES.get(ResourceType(kind))) is not None and possessions.instance.owns(entity, name)
    )
    portion = list(islice(owned, ITEMS_A_PORTION))
    for key in portion:
        draft.put_config(key, {})
    return bool(portion)


_REMOVE: tuple[Callable[[MetadataDraft, Possessions], bool], ...] = (
    _remove_clients,
    _remove_rules,
    _remove_tokens,
    _remove_configs,
)
