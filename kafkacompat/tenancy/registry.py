"""All instances of a cluster, as one image holds them: by name, and by the physical names of what they have."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from kafkacompat.config.instances import DELETING, LONG_NAME_CONFIG, Instance
from kafkacompat.config.properties import ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.security.acls.model import CLUSTER_NAME
from kafkacompat.tenancy.access_names import USER_TYPE, AclNames
from kafkacompat.tenancy.names import Names, RenamedTopics
from kafkacompat.tenancy.quota_names import QuotaNames
from kafkacompat.tenancy.resolving import RequestResolver, ResponseResolver
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.tenancy.traffic.metering import InstanceTraffic

log = logging.getLogger(__name__)


class TenantView:
    """An instance together with the translation of its names.

    ``cluster_resource`` is the physical name of the cluster that its access rules protect.
    """

    def __init__(
        self,
        instance: Instance,
        find_long_name: Callable[[str], str | None],
        find_topic_name: Callable[[bytes], str | None] = lambda _: None,
    ) -> None:
        instance.parse_routes()
        self.instance = instance
        self.name = instance.name
        self.names = Names(
            instance.prefix,
            instance.secret,
            instance.cluster_id,
            instance.tables,
            _find_renaming(instance),
            find_long_name,
            find_topic_name,
        )
        self.in_requests = RequestResolver(self.names)
        self.in_responses = ResponseResolver(self.names)
        self.traffic: InstanceTraffic | None = None
        """What the instance uses on this broker; None before traffic control has begun."""
        self.acl_names = AclNames(self.names)
        self.quota_names = QuotaNames(self.names)
        self.cluster_resource = f"{instance.prefix}{CLUSTER_NAME}"
        self.visible_brokers: Collection[int] = ()
        self.visible_basis: tuple[int, Mapping[str, frozenset[int]]] | None = None
        """The version of the image and the groups that ``visible_brokers`` belong to, see `placement.list_visible_brokers`."""

    @cached_property
    def super_users(self) -> frozenset[str]:
        """The physical principals of the users who may do everything in the instance."""
        return frozenset(map(self.names.to_physical[entities.PRINCIPAL].__getitem__, self.instance.super_users))

    def has_user(self, physical: str) -> bool:
        """Return whether a user is the instance's."""
        return self.names.is_own(entities.USER, physical)

    def find_physical_user(self, name: str) -> str:
        """Return the physical name of a user; raises KafkaError for a name that is too long."""
        physical: str = self.names.to_physical[entities.USER][name]
        return physical


def _find_renaming(instance: Instance) -> RenamedTopics | None:
    forth, back = instance.string("topic.name.regex"), instance.string("topic.name.regex.back")
    if not forth:
        return None
    pair, reverse = forth.partition("=>"), back.partition("=>")
    return RenamedTopics((pair[0], pair[2]), (reverse[0], reverse[2]))


def _is_usable(name: str, option: str, text: str) -> bool:
    """Return whether a property can be read by itself."""
    try:
        instance = Instance(name, {option: text})
        instance.parse_routes()
        _ = instance.tables
    except ConfigError:
        return False
    return True


class Instances:
    """The instances that the metadata hold; `update` follows a new image. ``on_changed`` is called after a change of any instance."""

    def __init__(self) -> None:
        self.by_name: dict[str, TenantView] = {}
        self.watchers: list[Callable[[], None]] = []
        self._configs: Mapping[str, Mapping[str, str]] = {}
        self._image = MetadataImage()
        self._topics: tuple[Mapping[str, object], dict[str, list[str]]] = ({}, {})
        self._adopted: dict[str, dict[str, TenantView]] = {}
        self._by_prefix: dict[str, TenantView] = {}
        self._prefix_lengths: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def update(self, image: MetadataImage) -> None:
        """Follow an image; only instances with other properties are built anew. One that is damaged keeps its last form."""
        before, self._image = self._image, image
        if image.configs is before.configs:
            return
        found = {name: given for (kind, name), given in image.configs.items() if kind == ResourceType.INSTANCE}
        if found == self._configs:
            return
        self.by_name = {
            name: view for name, given in found.items() if (view := self._find_view(name, given)) is not None
        }
        self._configs = found
        self._index()
        for on_changed in self.watchers:
            on_changed()

    def _find_view(self, name: str, given: Mapping[str, str]) -> TenantView | None:
        known = self.by_name.get(name)
        if known is not None and (known.instance.source is given or known.instance.given == given):
            return known
        try:
            return self._build_view(name, given)
        except ConfigError as problem:
            if known is not None:
                log.error("The instance %s keeps its last properties: %s", name, problem)
                return known
            log.error("The instance %s serves nobody, as its properties cannot be used: %s", name, problem)
            return self._close(name, given)

    def _build_view(self, name: str, given: Mapping[str, str]) -> TenantView:
        return TenantView(Instance(name, given), self._find_long_name, self._find_topic_name)

    def _close(self, name: str, given: Mapping[str, str]) -> TenantView | None:
        """Return a form of a damaged instance that serves nobody: what it has must not count as the operator's."""
        usable = {option: text for option, text in given.items() if _is_usable(name, option, text)}
        try:
            return self._build_view(name, {**usable, "state": DELETING})
        except ConfigError:
            return None

    def _index(self) -> None:
        views = self.by_name.values()
        self._by_prefix = {view.names.prefix: view for view in views}
        self._prefix_lengths = tuple(sorted({len(prefix) for prefix in self._by_prefix}, reverse=True))
        self._adopted = {
            entity: {} for entity in (entities.TOPIC, entities.GROUP, entities.TRANSACTIONAL_ID, entities.USER)
        }
        for view in views:
            for entity, table in view.instance.tables.items():
                self._adopted[entity].update(dict.fromkeys(table.values(), view))
        self._topics = ({}, {})

    def _find_long_name(self, physical: str) -> str | None:
        return self._image.config(ResourceType.TOPIC, physical).get(LONG_NAME_CONFIG)

    def _find_topic_name(self, topic_id: bytes) -> str | None:
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def find_owner(self, entity: str, physical: str) -> TenantView | None:
        """Return the instance that a physical name belongs to; None for what is the operator's own."""
        adopted = self._adopted.get(entity)
        if adopted and physical in adopted:
            return adopted[physical]
        for length in self._prefix_lengths:
            view = self._by_prefix.get(physical[:length])
            if view is not None:
                return view
        return None

    def find_user_prefix(self, user: str) -> str:
        """Return the prefix of the instance that a physical user belongs to; "" for the operator's users."""
        owner = self.find_owner(entities.USER, user) if self.by_name else None
        return "" if owner is None else owner.names.prefix

    def is_prefix(self, name: str) -> bool:
        """Return whether a name is no more than the prefix of an instance."""
        return name in self._by_prefix or name.removeprefix(USER_TYPE) in self._by_prefix

    def is_cluster_name(self, name: str) -> bool:
        """Return whether access rules may protect a cluster of this name: the whole cluster, or that of an instance."""
        return name.endswith(CLUSTER_NAME) and (
            name == CLUSTER_NAME or name.removesuffix(CLUSTER_NAME) in self._by_prefix
        )

    def find_instance(self, topic: str) -> Instance | None:
        """Return the properties of the instance that a topic's physical name belongs to."""
        view = self.find_owner(entities.TOPIC, topic)
        return None if view is None else view.instance

    def find_group_instance(self, group_id: str) -> Instance | None:
        """Return the properties of the instance that a group's physical id belongs to."""
        view = self.find_owner(entities.GROUP, group_id)
        return None if view is None else view.instance

    def list_topics(self, view: TenantView) -> list[str]:
        """List the physical names of an instance's topics, in order."""
        topics = self._image.topics
        known, index = self._topics
        if known is not topics:
            self._follow_topics(known, topics, index)
            self._topics = topics, index
        return index.get(view.name, [])

    def _follow_topics(
        self, known: Mapping[str, object], topics: Mapping[str, object], index: dict[str, list[str]]
    ) -> None:
        """Bring the sorted names of each instance's topics up to date."""
        added: dict[str, list[str]] = {}
        for topic in topics.keys() - known.keys():
            owner = self.find_owner(entities.TOPIC, topic)
            if owner is not None:
                added.setdefault(owner.name, []).append(topic)
        for topic in known.keys() - topics.keys():
            owner = self.find_owner(entities.TOPIC, topic)
            if owner is not None:
                added.setdefault(owner.name, [])
        for name, new in added.items():
            index[name] = sorted([*(topic for topic in index.get(name, ()) if topic in topics), *new])
