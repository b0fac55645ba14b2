"""One instance together with the translation of its names; a broker without instances does not load this module."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from kafkacompat.config.instances import ARROW, Instance
from kafkacompat.security.acls.model import CLUSTER_NAME
from kafkacompat.tenancy.access_names import AclNames
from kafkacompat.tenancy.names import Names, RenamedTopics
from kafkacompat.tenancy.quota_names import QuotaNames
from kafkacompat.tenancy.resolving import RequestResolver, ResponseResolver
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.tenancy.traffic.metering import InstanceTraffic


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
        self.traffic: InstanceTraffic | None = None
        """What the instance uses on this broker; None before traffic control has begun."""
        self.acl_names = AclNames(self.names)
        self.quota_names = QuotaNames(self.names)
        self.in_requests = RequestResolver(self.names, self.acl_names, self.quota_names)
        self.in_responses = ResponseResolver(self.names, self.acl_names, self.quota_names)
        self.cluster_resource = f"{instance.prefix}{CLUSTER_NAME}"
        self.visible_brokers: Collection[int] = ()
        self.visible_basis: tuple[int, Mapping[str, frozenset[int]]] | None = None
        """The version of the image and the groups that ``visible_brokers`` belong to, see `placement.list_visible_brokers`."""

    @cached_property
    def super_users(self) -> frozenset[str]:
        """The physical principals of the users who may do everything in the instance."""
        return frozenset(map(self.names.to_physical[entities.PRINCIPAL].__getitem__, self.instance.super_users))

    @property
    def is_metered(self) -> bool:
        """Whether the requests of its clients are charged: it has a limit of traffic."""
        return self.traffic is not None and self.traffic.is_limited

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
    pair, reverse = forth.partition(ARROW), back.partition(ARROW)
    return RenamedTopics((pair[0], pair[2]), (reverse[0], reverse[2]))
