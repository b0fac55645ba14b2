"""All instances of a cluster, as one image holds them: by name, and by the physical names of what they have."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkacompat.config.instances import LONG_NAME_CONFIG, Instance
from kafkacompat.config.properties import ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.security.acls.model import CLUSTER_NAME
from kafkacompat.security.principals import USER_PREFIX
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.tenancy.tenant_view import TenantView

log = logging.getLogger(__name__)


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
        # A broker without instances does not pay for the translation of names.
        from kafkacompat.tenancy.tenant_view import TenantView

        try:
            return TenantView(Instance(name, given), self._find_long_name)
        except ConfigError as problem:
            log.error("The instance %s keeps its last properties: %s", name, problem)
            return known

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
        return name in self._by_prefix or name.removeprefix(USER_PREFIX) in self._by_prefix

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
