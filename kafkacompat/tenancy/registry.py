"""All instances of a cluster, as one image holds them: by name, and by the physical names of what they have."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from kafkacompat.config.instances import DELETING, LONG_NAME_CONFIG, Instance, read_instance
from kafkacompat.config.properties import ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import MetadataImage, list_changed_configs
from kafkacompat.security.acls.model import CLUSTER_NAME
from kafkacompat.security.principals import USER_PREFIX
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.tenancy.tenant_view import TenantView

log = logging.getLogger(__name__)


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
    """The instances that the metadata hold; `update` follows a new image.

    Each of ``watchers`` is called after a change with the names of the instances that are new, gone, or have other properties.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, TenantView] = {}
        self.watchers: list[Callable[[Collection[str]], None]] = []
        self._image = MetadataImage()
        self._topics: Mapping[str, object] = {}
        self._topics_by_instance: dict[str, list[str]] = {}
        self._unlisted: set[str] = set()
        self._adopted: dict[str, dict[str, TenantView]] = {
            entity: {} for entity in (entities.TOPIC, entities.GROUP, entities.TRANSACTIONAL_ID, entities.USER)
        }
        self._by_prefix: dict[str, TenantView] = {}
        self._prefix_lengths: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def update(self, image: MetadataImage) -> None:
        """Follow an image; only instances with other properties are built anew. One that is damaged keeps its last form."""
        before, self._image = self._image, image
        changed = [
            name for kind, name in list_changed_configs(before.configs, image.configs) if kind == ResourceType.INSTANCE
        ]
        if not changed:
            return
        # Another dictionary after each change: others may be on their way through it, or compare it with a former one.
        self.by_name = dict(self.by_name)
        known = {name: view for name in changed if (view := self.by_name.pop(name, None)) is not None}
        for view in known.values():
            self._forget(view)
        for name in changed:
            given = image.configs.get((ResourceType.INSTANCE, name))
            view = None if given is None else self._find_view(name, given, known.get(name))
            if view is not None:
                self.by_name[name] = view
                self._add(view)
        self._prefix_lengths = tuple(sorted(set(map(len, self._by_prefix)), reverse=True))
        self._unlisted.update(changed)
        for on_changed in self.watchers:
            on_changed(changed)

    def _find_view(self, name: str, given: Mapping[str, str], known: TenantView | None) -> TenantView | None:
        try:
            return self._build_view(name, given)
        except ConfigError as problem:
            if known is not None:
                log.error("The instance %s keeps its last properties: %s", name, problem)
                return known
            log.error("The instance %s serves nobody, as its properties cannot be used: %s", name, problem)
            return self._close(name, given)

    def _build_view(self, name: str, given: Mapping[str, str]) -> TenantView:
        # A broker without instances does not pay for the translation of names.
        from kafkacompat.tenancy.tenant_view import TenantView

        return TenantView(read_instance(name, given), self._find_long_name, self._find_topic_name)

    def _close(self, name: str, given: Mapping[str, str]) -> TenantView | None:
        """Return a form of a damaged instance that serves nobody: what it has must not count as the operator's."""
        usable = {option: text for option, text in given.items() if _is_usable(name, option, text)}
        try:
            return self._build_view(name, {**usable, "state": DELETING})
        except ConfigError:
            return None

    def _add(self, view: TenantView) -> None:
        """Let what has the instance's names be its own from now on."""
        self._by_prefix[view.names.prefix] = view
        for entity, table in view.instance.tables.items():
            self._adopted[entity].update(dict.fromkeys(table.values(), view))

    def _forget(self, view: TenantView) -> None:
        self._by_prefix.pop(view.names.prefix, None)
        for entity, table in view.instance.tables.items():
            for physical in table.values():
                self._adopted[entity].pop(physical, None)

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
        if self._topics is not topics:
            self._index_topics(topics.keys() - self._topics.keys(), self._topics.keys() - topics.keys())
            self._topics = topics
        if view.name in self._unlisted:
            # The topics of instances whose names have changed.
            for name in self._unlisted:
                self._topics_by_instance.pop(name, None)
            self._index_topics([topic for topic in topics if self._find_owner_name(topic) in self._unlisted], ())
            self._unlisted.clear()
        return self._topics_by_instance.get(view.name, [])

    def _find_owner_name(self, topic: str) -> str | None:
        owner = self.find_owner(entities.TOPIC, topic)
        return None if owner is None else owner.name

    def _index_topics(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """Bring the sorted names of each instance's topics up to date; the lists themselves stay as they are."""
        changed: dict[str, set[str]] = {}
        for topic in removed:
            if (name := self._find_owner_name(topic)) is not None:
                changed.setdefault(name, set(self._topics_by_instance.get(name, ()))).discard(topic)
        for topic in added:
            if (name := self._find_owner_name(topic)) is not None:
                changed.setdefault(name, set(self._topics_by_instance.get(name, ()))).add(topic)
        for name, topics in changed.items():
            self._topics_by_instance[name] = sorted(topics)
