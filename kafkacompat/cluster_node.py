"""A broker in a cluster: its metadata is in ZooKeeper, and it obeys the cluster's controller."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.inter_broker_login import find_inter_broker_login
from kafkacompat.client.settings import ConnectionSettings
from kafkacompat.cluster.assigned_replicas import AssignedReplicas, RoleReceiver
from kafkacompat.cluster.broker_id import choose_broker_id
from kafkacompat.cluster.decisions.situation import UNCLEAN_ELECTION
from kafkacompat.cluster.errors import ClusterError
from kafkacompat.cluster.in_sync_updates import AlterPartitionUpdates
from kafkacompat.cluster.losses import ReplicaLosses
from kafkacompat.cluster.member import ClusterMember
from kafkacompat.config import ConfigError
from kafkacompat.config.listeners import WILDCARD_HOSTS
from kafkacompat.config.protocol_version import find_protocol_release, find_version_cap
from kafkacompat.config.resources import ResourceType
from kafkacompat.coordinators import CoordinatorCluster
from kafkacompat.metadata.codec import StoredTopics
from kafkacompat.metadata.image import BrokerImage, ImageHolder, MetadataImage
from kafkacompat.metadata.znodes.brokers import ProcessHome
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.topics import decode_topic
from kafkacompat.metrics.partitions import InSyncCounts
from kafkacompat.partitions.cluster_view import ClusterView
from kafkacompat.partitions.discovery import find_partitions
from kafkacompat.partitions.replication_quota import RateWindow, ReplicationQuota
from kafkacompat.partitions.takeover import find_owning_cluster
from kafkacompat.replication.local_follower import LocalFollowing
from kafkacompat.replication.replica_fetcher_manager import ReplicaFetcherManager
from kafkacompat.replication.settings import FetchSettings
from kafkacompat.security.sasl.client import LoginUnavailableError
from kafkacompat.storage.directory.meta_properties import find_directory_ids
from kafkacompat.timers import PeriodicCall, steady_ms, yield_in_turns
from kafkacompat.wire.primitives import ZERO_UUID, format_uuid
from kafkacompat.zookeeper.settings import ZooKeeperSettings, ZooKeeperTlsSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafkacompat.cluster.storage_reports import LimitedStorage, StorageReports
    from kafkacompat.config import BrokerConfig
    from kafkacompat.host import Host
    from kafkacompat.metadata.effective import EffectiveConfig
    from kafkacompat.metadata.store import StoreEntry
    from kafkacompat.network import Network
    from kafkacompat.partitions.directories import Directories
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.wire.schema import Request


THROTTLES = {
    "leader": ("leader.replication.throttled.rate", "leader.replication.throttled.replicas"),
    "follower": ("follower.replication.throttled.rate", "follower.replication.throttled.replicas"),
}
"""The rate of a broker and the replicas of a topic, by the side that is throttled (KIP-73)."""


class FetcherSender:
    """Sends the requests of one fetcher number, on connections of its own."""

    def __init__(self, member: ClusterMember, number: int) -> None:
        self._member = member
        self._purpose = f"replica fetcher {number}"

    def send(self, node_id: int, request: Request, timeout_s: float) -> Deferred[Any]:
        """See replication.follower.Sender."""
        return self._member.brokers.send(node_id, self._purpose, request, timeout_s)


class ClusterNode:
    """The metadata side of a broker in a cluster, the counterpart of `Standalone`. Call the methods in their order.

    ``network`` connects to other brokers.

    The constructor raises ClusterError, LogDirectoryError and ZooKeeperError.
    """

    def __init__(
        self, host: Host, config: BrokerConfig, metadata: ImageHolder, effective: EffectiveConfig, network: Network
    ) -> None:
        self._host = host
        self._config = config
        self._metadata = metadata
        self._effective = effective
        release = find_protocol_release(config.string("inter.broker.protocol.version"))
        assert release is not None  # the configuration is checked
        self._release = release
        self.listener = config.inter_broker_listener.name
        self._addresses = find_configured_addresses(config)
        self._own_cluster_id = find_owning_cluster(host.files, config)
        # Directories of a cluster show that its chroot exists: a missing one is a wrong one.
        settings = read_zookeeper_settings(config)._replace(create_chroot=self._own_cluster_id is None)
        zookeeper = host.open_zookeeper(settings)
        try:
            self._login = find_inter_broker_login(config, self.listener, host.reactor, host.rng)
        except ConfigError as problem:
            raise ClusterError(str(problem)) from None
        connections = BrokerConnections(
            ConnectionSettings(
                f"broker-{config.node_id}",
                cap=partial(find_version_cap, self._release),
                login=self._login,
                listener_name=self.listener,
            ),
            network,
            host.reactor,
            host.rng,
        )
        self.member = ClusterMember(
            config, zookeeper, connections, metadata, effective, self.listener, host.reactor, host.rng
        )
        self.member.registration.home = self._describe_home(find_directory_ids(host.files, config.log_dirs))
        self.store = self.member.store
        self.controller = self.member.administration
        self.in_sync_counts = InSyncCounts()
        self._quotas = {side: self._build_quota() for side in THROTTLES}
        self._fetchers = self._build_fetchers()
        self._in_sync_checks = PeriodicCall(host.reactor, self._check_in_sync)
        self._replicas: ReplicaManager | None = None
        self._topics = StoredTopics({}, frozenset())
        self._losses: ReplicaLosses

    @property
    def is_connected(self) -> bool:
        """Whether the session with ZooKeeper is connected."""
        return self.member.is_connected

    def find_controlled_image(self) -> MetadataImage | None:
        """Return the metadata that this broker has as the controller; None if it is not the controller."""
        return self.member.find_controlled_image()

    def _describe_home(self, directory_ids: Iterable[bytes]) -> ProcessHome:
        return ProcessHome(frozenset(map(format_uuid, directory_ids)), self._host.boot_id)

    def _build_fetchers(self) -> ReplicaFetcherManager:
        return ReplicaFetcherManager(
            lambda number: FetcherSender(self.member, number),
            FetchSettings.read(self._config, truncates_on_fetch=True),
            self._host.reactor,
            self._quotas["follower"],
            lambda: self.member.registration.epoch,
        )

    def _build_quota(self) -> ReplicationQuota:
        config = self._config
        samples = config.int("replication.quota.window.num")
        sample_ms = config.int("replication.quota.window.size.seconds") * 1000
        return ReplicationQuota(config.node_id, RateWindow(self._host.reactor, samples, sample_ms))

    def _apply_configs(self) -> None:
        """Apply changed configurations to the logs, the throttles and the fetchers."""
        assert self._replicas is not None
        self._replicas.reconfigure_all()
        config = self._effective.config
        for side, quota in self._quotas.items():
            rate, name = THROTTLES[side]
            quota.rate = config.int(rate)
            quota.replace_throttled(
                {
                    topic: configs[name].split(",")
                    for (kind, topic), configs in self.member.configs.image.configs.items()
                    if kind == ResourceType.TOPIC and configs.get(name)
                }
            )
        self._fetchers.resize(config.int("num.replica.fetchers"))

    async def find_cluster_id(self) -> str:
        """Join the cluster; returns its id. Raises ClusterError, StoreError and ZooKeeperError, and has changed nothing then."""
        await self._log_in()
        new_cluster_id = format_uuid(self._host.rng.randbytes(16))
        self._topics = await self.member.join(self._own_cluster_id, new_cluster_id, self._addresses)
        return self._metadata.image.cluster_id

    async def _log_in(self) -> None:
        """Retrieve what this broker authenticates itself with at others; raises ClusterError."""
        try:
            if self._login is not None:
                await self._login.begin()
        except LoginUnavailableError as problem:
            raise ClusterError(f"listener {self.listener}: this broker cannot log in at others: {problem}") from None

    def serve_replicas(self, replicas: ReplicaManager, roles: RoleReceiver) -> None:
        """Carry out the controller's orders on *replicas*; *roles* learns what this broker leads."""
        self._replicas = replicas
        config, clock, member = self._config, self._host.reactor, self.member
        updates = AlterPartitionUpdates(config.node_id, lambda: member.registration.epoch, member.link, clock)
        view = ClusterView(
            config.node_id,
            config.int("replica.lag.time.max.ms"),
            member.find_broker_epoch,
            updates,
            self._quotas["leader"],
            self.in_sync_counts,
        )
        following = LocalFollowing(self._fetchers, lambda: replicas, clock)
        self._losses = losses = ReplicaLosses(
            config.node_id,
            replicas.directories,
            self._allows_unclean_election,
            syncs_always=config.string("kafkacompat.acks.after") == "fsync",
        )
        member.registration.find_losses = losses.find
        member.replicas = AssignedReplicas(
            replicas, view, following, roles, member.configs.read_topics, member.list_assigned, losses, clock
        )
        member.on_topics_reconfigured = self._apply_configs
        self._apply_configs()
        replicas.is_elsewhere = self._metadata_has_partition
        replicas.on_directory_offline = member.report_failed_directory
        member.on_topic_deleted = roles.forget
        member.on_brokers_lost = lambda lost: Deferred.fromCoroutine(self._note_lost_brokers(lost))

    def _allows_unclean_election(self, topic: str) -> bool:
        value = self.member.configs.image.config(ResourceType.TOPIC, topic).get(UNCLEAN_ELECTION)
        return self._effective.config.bool(UNCLEAN_ELECTION) if value is None else value.strip().lower() == "true"

    def coordinator_cluster(self) -> CoordinatorCluster:
        """Return what the coordinators need of the other brokers."""
        return CoordinatorCluster(self.member.brokers.send, self._is_deleted)

    def build_storage_reports(self, storage: LimitedStorage) -> StorageReports:
        """Return the reports of what instances store on this broker."""
        from kafkacompat.cluster.storage_reports import StorageReports

        member = self.member
        return StorageReports(
            self._config.node_id, lambda: member.registration.epoch, member.link, storage, self._host.reactor
        )

    def _is_deleted(self, topic: str, index: int) -> Deferred[bool]:
        """Ask ZooKeeper whether a partition is gone: a broker's image may lag."""
        key = Znode.TOPIC.path(topic=topic)

        def has_no_partition(entries: Mapping[str, StoreEntry]) -> bool:
            return key not in entries or index >= len(decode_topic(topic, entries[key].value).partitions)

        return self.store.read([key]).addCallback(has_no_partition)

    def _metadata_has_partition(self, topic: str | bytes, index: int) -> bool:
        return self._metadata.image.has_partition(topic, index)

    async def start(self, directories: Directories) -> None:
        """Open the logs that this broker has of the cluster's topics; their roles come with the controller's orders."""
        assert self._replicas is not None
        # New directories have their ids now, and all are locked.
        self.member.registration.home = self._describe_home(directory.storage.directory_id for directory in directories)
        await find_partitions(directories, self._topics.sound, damaged=self._topics.damaged, strays_stay=True)
        for topic in self._topics.sound.values():
            own = tuple(
                partition
                for partition in topic.partitions
                if directories.find_home((topic.name, partition.partition)) is not None
            )
            if own:
                await self._replicas.open_partitions(topic._replace(partitions=own))
        self._losses.examine(self._topics.sound)
        await self.member.restore_topic_ids(self._list_lost_topic_ids(self._replicas))
        self._in_sync_checks.start(self._config.int("replica.lag.time.max.ms") / 2000, now=False)

    def _list_lost_topic_ids(self, replicas: ReplicaManager) -> dict[str, bytes]:
        """Return the ids that in-sync replicas of this broker have, and that their topics have lost in ZooKeeper."""
        topics = self._topics.sound
        return {
            partition.topic: partition.log.topic_id
            for partition in replicas
            if topics[partition.topic].topic_id == ZERO_UUID != partition.log.topic_id
            and self._config.node_id in topics[partition.topic].partitions[partition.index].in_sync_replicas
        }

    def _check_in_sync(self) -> None:
        assert self._replicas is not None
        now = steady_ms(self._host.reactor)
        for partition in self._replicas:
            partition.check_in_sync(now)

    async def _note_lost_brokers(self, lost: AbstractSet[int]) -> None:
        assert self._replicas is not None
        clock = self._host.reactor
        async for partition in yield_in_turns(clock, list(self._replicas)):
            partition.note_lost_brokers(lost, steady_ms(clock))

    async def announce(self, bound: Mapping[str, tuple[str, int]]) -> None:
        """Register the broker, whose listeners are *bound* to these addresses, and wait for metadata; raises ClusterError."""
        config = self._config
        protocols = {listener.name: listener.protocol for listener in config.listeners}
        rack = config.optional_string("broker.rack")
        endpoints = find_addresses(config, bound)
        await self.member.announce(BrokerImage(config.node_id, rack, endpoints, security_protocols=protocols))
        await self.member.wait_until_informed()

    async def leave(self) -> None:
        """Hand over leaderships, while clients are still served."""
        await self.member.hand_over()

    async def stop_fetching(self) -> None:
        """Follow nothing any more; returns when nothing changes a log."""
        if self._in_sync_checks.running:
            self._in_sync_checks.stop()
        await self.member.resign()
        await self._fetchers.stop_all()

    async def close(self) -> None:
        """Leave the cluster."""
        if self._in_sync_checks.running:
            self._in_sync_checks.stop()
        if self._login is not None:
            self._login.stop()
        await self.member.leave()


def find_configured_addresses(config: BrokerConfig) -> Mapping[str, tuple[str, int]]:
    """Return the addresses that the broker will register, before it has bound any; raises ClusterError."""
    return find_addresses(config, {listener.name: (listener.host, listener.port) for listener in config.listeners})


def find_addresses(config: BrokerConfig, bound: Mapping[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
    """Return the addresses at which other brokers reach the listeners, which are *bound* to these addresses.

    Raises ClusterError if a listener has no host, or one that stands for all interfaces.
    """
    addresses = {}
    for listener in config.listeners:
        host, port = config.advertised_listeners.get(listener.name, bound[listener.name])
        host = host or bound[listener.name][0]
        if host in WILDCARD_HOSTS:
            raise ClusterError(
                f"other brokers cannot reach {listener.name}://{host}:{port}: set advertised.listeners to a host name"
            )
        addresses[listener.name] = (host, port)
    return addresses


async def assign_broker_id(host: Host, config: BrokerConfig) -> BrokerConfig:
    """Return *config* with an id, see `choose_broker_id`."""
    find_configured_addresses(config)
    settings = read_zookeeper_settings(config)._replace(create_chroot=True)
    return await choose_broker_id(config, host.files, lambda: host.open_zookeeper(settings), host.reactor)


def read_zookeeper_settings(config: BrokerConfig) -> ZooKeeperSettings:
    """Read the properties zookeeper.*."""
    timeout_ms = config.int("zookeeper.session.timeout.ms")
    connection_timeout = config.value("zookeeper.connection.timeout.ms")
    tls = None
    if config.bool("zookeeper.ssl.client.enable"):
        tls = ZooKeeperTlsSettings(
            config.optional_string("zookeeper.ssl.truststore.location"),
            config.optional_string("zookeeper.ssl.keystore.location"),
            config.optional_string("zookeeper.ssl.keystore.location"),
            config.optional_string("zookeeper.ssl.keystore.password"),
            config.string("zookeeper.ssl.endpoint.identification.algorithm").upper() == "HTTPS",
        )
    return ZooKeeperSettings(
        config.string("zookeeper.connect"),
        timeout_ms,
        timeout_ms if connection_timeout is None else config.int("zookeeper.connection.timeout.ms"),
        config.bool("zookeeper.set.acl"),
        tls=tls,
    )
