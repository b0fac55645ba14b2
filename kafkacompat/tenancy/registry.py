"""All instances of a cluster, as one image holds them: by name, and by the physical names of what they have."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkacompat.config.instances import Instance
from kafkacompat.config.properties import ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.tenancy.names import Names, RenamedTopics
from kafkacompat.tenancy.resolving import RequestResolver, ResponseResolver
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.tenancy.traffic.metering import InstanceTraffic

log = logging.getLogger(__name__)

LONG_NAME_CONFIG = "kafkacompat.instance.topic"
"""The topic config that keeps the client's name of a topic with a short physical name."""


class TenantView:
    """An instance together with the translation of its names."""

    def __init__(self, instance: Instance, find_long_name: Callable[[str], str | None]) -> None:
        self.instance = instance
        self.name = instance.name
        self.names = Names(
            instance.prefix,
            instance.secret,
            instance.cluster_id,
            instance.tables,
            _find_renaming(instance),
            find_long_name,
        )
        self.in_requests = RequestResolver(self.names)
        self.in_responses = ResponseResolver(self.names)
        self.traffic: InstanceTraffic | None = None
        """What the instance uses on this broker; None before traffic control has begun."""


def _find_renaming(instance: Instance) -> RenamedTopics | None:
    forth, back = instance.string("topic.name.regex"), instance.string("topic.name.regex.back")
    if not forth:
        return None
    pair, reverse = forth.partition("=>"), back.partition("=>")
    return RenamedTopics((pair[0], pair[2]), (reverse[0], reverse[2]))


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
        if known is not None and known.instance.given == given:
            return known
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

    def list_topics(self, view: TenantView) -> list[str]:
        """List the physical names of an instance's topics, in order."""
        topics = self._image.topics
        known, index = self._topics
        if known is not topics:
            index = {}
            for topic in topics:
                owner = self.find_owner(entities.TOPIC, topic)
                if owner is not None:
                    index.setdefault(owner.name, []).append(topic)
            for names in index.values():
                names.sort()
            self._topics = topics, index
        return index.get(view.name, [])
