"""What one broker does for instances: it routes connections, limits and measures, records usage, and removes deleted instances.

A broker without instances loads none of these parts. They begin with the first instance, in the order that `BrokerInstances` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from kafkacompat.config import ConfigError
from kafkacompat.config.instances import make_listener_name
from kafkacompat.tenancy.registry import Instances
from kafkacompat.tenancy.whitelists import TopicWhitelists

if TYPE_CHECKING:
    from kafkacompat.access_control import AccessControl
    from kafkacompat.bound_listeners import BoundListeners
    from kafkacompat.cluster.instance_traffic import BrokerTraffic
    from kafkacompat.cluster.storage_reports import StorageReports
    from kafkacompat.cluster_node import ClusterNode
    from kafkacompat.config import BrokerConfig
    from kafkacompat.coordinators import Coordinators
    from kafkacompat.disk import Disk
    from kafkacompat.host import Host
    from kafkacompat.instance_removal import InstanceRemoval
    from kafkacompat.instances_file import InstancesFile
    from kafkacompat.metadata.administration import Administration
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.partitions.directories import Directories
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.quotas.client_quotas import ClientQuotas
    from kafkacompat.server.listener import KafkaServer
    from kafkacompat.upkeep.instance_storage import InstanceStorage
    from kafkacompat.usage.figures import UsageFigures
    from kafkacompat.usage.recorder import UsageRecorder


class BrokerInstances:
    """Follows the instances of the metadata, in this order after each change of some:

    1. quotas and access rules: what was resolved before is resolved again;
    2. traffic control, which gives each instance its meter;
    3. storage: accounts, and in a cluster their reports to the controller;
    4. routes: connections get the new properties or end, listeners are bound and unbound (after `serve`);
    5. removal of deleted instances and records of usage (after `start`).

    ``registry`` has the instances, ``whitelists`` those of topics. *node* is None on a single node, *access* without an authorizer.
    """

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        metadata: ImageHolder,
        controller: Administration,
        node: ClusterNode | None,
        replicas: ReplicaManager,
        coordinators: Coordinators,
        quotas: ClientQuotas,
        access: AccessControl | None,
    ) -> None:
        self.registry = Instances()
        self.whitelists = TopicWhitelists()
        self.storage: InstanceStorage | None = None
        """What instances store; None as long as there was none."""
        self.usage: UsageFigures | None = None
        """What instances use of this broker; None as long as there was none."""
        self.traffic: BrokerTraffic | None = None
        self._host = host
        self._clock = host.reactor
        self._config = config
        self._metadata = metadata
        self._controller = controller
        self._node = node
        self._replicas = replicas
        self._coordinators = coordinators
        self._quotas = quotas
        self._access = access
        self._server: KafkaServer | None = None
        self._listeners: BoundListeners | None = None
        self._directories: Directories | None = None
        self._is_stopped = False
        self._file: InstancesFile | None = None
        self._storage_reports: StorageReports | None = None
        self._removal: InstanceRemoval | None = None
        self._recorder: UsageRecorder | None = None
        quotas.find_prefix = self.registry.find_user_prefix
        coordinators.find_group_instance = self.registry.find_group_instance
        self.registry.watchers.append(self._follow)
        # A broker of a cluster knows instances by now.
        metadata.watch(self.registry.update)
        metadata.watch(self.whitelists.update)

    # Start and stop

    def serve(self, server: KafkaServer, listeners: BoundListeners) -> None:
        """Route the connections of a server from now on, which accepts none yet."""
        self._server, self._listeners = server, listeners
        self._follow_routes(self.registry.by_name)

    async def load_file(self, find_disk: Callable[[], Disk]) -> None:
        """Apply the file of instances, if there is one; raises ConfigError. To be called on a single node only."""
        path = self._config.optional_string("kafkacompat.instances.file")
        if path is not None:
            # Most brokers have none, and do not pay for YAML.
            from kafkacompat.instances_file import InstancesFile

            self._file = InstancesFile(path, self._controller, self._clock, find_disk, self._host.rng)
            await self._file.load()

    def start(self, directories: Directories) -> None:
        """Begin to remove instances and to record their usage, as the broker runs now."""
        self._directories = directories
        self._begin_upkeep(directories)
        if self._file is not None:
            self._file.start()

    async def stop(self) -> None:
        """Stop everything; the usage of the last hour is written."""
        self._directories, self._is_stopped = None, True
        for service in (self._storage_reports, self.traffic, self._removal, self._file):
            if service is not None:
                service.stop()
        if self._recorder is not None:
            await self._recorder.stop()

    # Changes of instances

    def _follow(self, changed: Collection[str]) -> None:
        if self._is_stopped:
            return
        self._quotas.forget()
        if self._access is not None:
            self._access.follow(self.registry)
        self._follow_traffic(changed)
        self._follow_storage(changed)
        self._follow_routes(changed)
        if self._directories is not None:
            self._begin_upkeep(self._directories)

    def _follow_traffic(self, changed: Collection[str]) -> None:
        if self.traffic is not None:
            self.traffic.update(changed)
            return
        from kafkacompat.cluster.instance_traffic import BrokerTraffic

        member = None if self._node is None else self._node.member
        self.traffic = BrokerTraffic(self._config, self.registry, self._metadata, member, self._clock)

    def _follow_storage(self, changed: Collection[str]) -> None:
        if self.storage is not None:
            self.storage.update(changed)
        else:
            from kafkacompat.upkeep.instance_storage import InstanceStorage

            self.storage = InstanceStorage(self.registry, self._replicas, self._clock)
            self.storage.start()
            if self._node is not None:
                self._storage_reports = self._node.build_storage_reports(self.storage)
        if self._storage_reports is not None:
            self._storage_reports.start()

    def _follow_routes(self, changed: Collection[str]) -> None:
        if self._server is not None and self._listeners is not None:
            assert self._server.tenants is not None
            self._server.tenants.update(changed)
            self._listeners.update_instances()

    def _begin_upkeep(self, directories: Directories) -> None:
        """Begin with the first instance."""
        if self._removal is None and self.registry:
            from kafkacompat.instance_removal import InstanceRemoval

            self._removal = InstanceRemoval(
                self._config.node_id,
                self._clock,
                self._metadata,
                self._controller,
                lambda: self._coordinators.groups,
                None if self._node is None else self._node.member.brokers.send,
            )
            self._removal.start()
        if self._recorder is None and self.storage is not None:
            self._begin_records(self.storage, directories)

    def _begin_records(self, storage: InstanceStorage, directories: Directories) -> None:
        from kafkacompat.usage.figures import UsageFigures
        from kafkacompat.usage.recorder import UsageRecorder
        from kafkacompat.usage.state_file import DirectoryStateFile

        self.usage = UsageFigures(self.registry, storage, self._coordinators.count_groups_of)
        if self._server is not None and self._server.tenants is not None:
            self.usage.count_connections = self._server.tenants.count
        file = DirectoryStateFile(self._host.files, directories)
        topic = self._coordinators.open_usage_topic()
        self._recorder = UsageRecorder(self._config.node_id, self.usage, topic, file, self._clock)
        self._recorder.start()

    # Figures

    def describe_usage(self, instance_name: str) -> dict[str, Any]:
        """Return what an instance has in the cluster, and what it uses of this broker."""
        from kafkacompat.tenancy.usage import describe_usage

        view = self.registry.by_name.get(instance_name)
        entries = () if view is None else view.instance.list("listeners")
        unbound = {} if self._listeners is None else self._listeners.list_unbound()
        used = None if self.usage is None else self.usage.describe(instance_name)
        return {
            **describe_usage(self.registry, self._metadata.image, instance_name),
            "broker": {
                "node.id": self._config.node_id,
                **{name.replace("_", "."): value for name, value in (used or {}).items()},
                "unbound.listeners": {
                    entry: reason
                    for index, entry in enumerate(entries)
                    if (reason := unbound.get(make_listener_name(instance_name, index))) is not None
                },
            },
        }


def check_no_instances_file(config: BrokerConfig) -> None:
    """Raise ConfigError for a file of instances at a broker of a cluster."""
    if config.optional_string("kafkacompat.instances.file") is not None:
        raise ConfigError("kafkacompat.instances.file is for a single node: use `kafkacompat instances` in a cluster")
