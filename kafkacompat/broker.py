"""The broker: builds every service from one configuration, and starts and stops them in order.

The start locks the log directories, reads the metadata, opens the logs, leads the partitions, loads the groups and accepts
clients. The stop goes backwards: the broker accepts no clients, answers its requests, flushes, checkpoints and unlocks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, DeferredList, gatherResults
from twisted.internet.task import deferLater

from kafkacompat.bound_listeners import BoundListeners
from kafkacompat.cluster.errors import ClusterError
from kafkacompat.config import ConfigError
from kafkacompat.config.instances import make_listener_name
from kafkacompat.conversion import CONVERSION_TIMEOUT_S, Conversions
from kafkacompat.coordinators import Coordinators
from kafkacompat.handlers import CLUSTER_HANDLERS, HANDLERS, TELEMETRY_HANDLERS, Handler, load_consumer_apis
from kafkacompat.handlers.context import Services
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.token_expiry import TokenExpiry
from kafkacompat.partitions.directories import Directories, Directory
from kafkacompat.partitions.fetch_sessions import FetchSessions
from kafkacompat.partitions.replica_manager import ReplicaManager
from kafkacompat.partitions.takeover import belonged_to_kafka
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.quotas.connection_rates import Admission, ConnectionRates
from kafkacompat.quotas.rates import QuotaWindows
from kafkacompat.server.connection_limits import ConnectionLimits, find_connection_rate
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.server.listener import KafkaServer, ListenError
from kafkacompat.server.tls import BrokerTls
from kafkacompat.standalone import Standalone
from kafkacompat.storage.directory.log_directory import LogDirectory, LogDirectoryError
from kafkacompat.storage.segment.shared_files import SegmentCache
from kafkacompat.tenancy.registry import Instances
from kafkacompat.tenancy.whitelists import TopicWhitelists
from kafkacompat.timers import steady_ms
from kafkacompat.upkeep.cleaning import MOST_CLEANERS, LogCleaner
from kafkacompat.upkeep.housekeeping import Housekeeping
from kafkacompat.upkeep.moving import PartitionMoves
from kafkacompat.upkeep.scrubbing import LogScrubber
from kafkacompat.zookeeper.client import ZooKeeperError

if TYPE_CHECKING:
    from kafkacompat.access_control import AccessControl
    from kafkacompat.cluster.instance_traffic import BrokerTraffic
    from kafkacompat.cluster.storage_reports import StorageReports
    from kafkacompat.cluster_node import ClusterNode
    from kafkacompat.config import BrokerConfig
    from kafkacompat.disk import OwnedDisk
    from kafkacompat.host import Host
    from kafkacompat.instance_removal import InstanceRemoval
    from kafkacompat.instances_file import InstancesFile
    from kafkacompat.metadata.administration import Administration
    from kafkacompat.metadata.store import MetadataStore
    from kafkacompat.metrics.turns import ReactorTurns
    from kafkacompat.monitoring.monitor import Monitor
    from kafkacompat.monitoring.observed import Observed
    from kafkacompat.storage.segment.shared_files import FileRegion
    from kafkacompat.upkeep.instance_storage import InstanceStorage
    from kafkacompat.usage.figures import UsageFigures
    from kafkacompat.usage.recorder import UsageRecorder

log = logging.getLogger(__name__)

START_ERRORS = (ConfigError, LogDirectoryError, StoreError, ListenError, ClusterError, ZooKeeperError)
"""Errors of a start that its user can correct."""

STOP_TIMEOUT_S = 5
"""Time that clients have to read their last responses before the broker closes their connections."""
STOP_CHECK_S = 0.02


class Broker:
    """One node.

    After `start` the attributes name the services, and ``addresses`` the bound listeners. `stop` returns when all data is on
    the disk. ``turns`` are those of the reactor, if they are measured.
    """

    def __init__(self, host: Host, config: BrokerConfig, turns: ReactorTurns | None = None) -> None:
        self.config = config
        self.monitor: Monitor | None = None
        """The HTTP listener with metrics; None unless it is configured."""
        self._turns = turns
        self.cluster_id = ""
        self.controller: Administration
        self._host = host
        self._reactor = host.reactor
        self._disks: dict[str, OwnedDisk] = {}
        self._directories: list[Directory] = []
        self._side: Standalone | ClusterNode | None = None
        self._node: ClusterNode | None = None
        self._running = False
        self._access: AccessControl | None = None
        self._removal: InstanceRemoval | None = None
        self._instances_file: InstancesFile | None = None
        self._traffic: BrokerTraffic | None = None
        self.instance_storage: InstanceStorage | None = None
        """What instances store; None as long as there was none."""
        self.instance_usage: UsageFigures | None = None
        """What instances use of this broker; None as long as there was none."""
        self._usage_recorder: UsageRecorder | None = None
        self._storage_reports: StorageReports | None = None

    @property
    def addresses(self) -> list[str]:
        """The bound listeners as URLs."""
        return self.listeners.addresses

    # Start

    async def start(self) -> None:
        """Start serving.

        Raises ConfigError, LogDirectoryError, StoreError or ListenError, each with one sentence for the user; the broker has released
        everything then.
        """
        try:
            await self._start()
        except BaseException:
            await self._release()
            raise

    async def _start(self) -> None:
        self.metadata = ImageHolder()
        self._start_monitor()
        in_cluster = self.config.optional_string("zookeeper.connect")
        if in_cluster:
            from kafkacompat.cluster_node import assign_broker_id

            self.config = await assign_broker_id(self._host, self.config)
        self.effective = EffectiveConfig(self.config)
        self.tls = BrokerTls(
            self.config, self._host.network, self._reactor, self._host.files, lambda: self._disk("certificates")
        )
        if in_cluster:
            if self.config.optional_string("kafkacompat.instances.file") is not None:
                raise ConfigError(
                    "kafkacompat.instances.file is for a single node: use `kafkacompat instances` in a cluster"
                )
            await self._start_in_cluster()
        else:
            await self._start_alone()
        self.housekeeping.start()
        self.scrubbing.start()
        self.log_cleaner.start()
        self.token_expiry.start()
        self._running = self.listeners.binds_new = True
        self.instances.watchers.append(self._begin_removal)
        self._begin_removal()
        if self._instances_file is not None:
            self._instances_file.start()
        self.listeners.bind_new()
        self._start_usage_records()
        if self.monitor is not None:
            self.monitor.note_running()

    def _start_monitor(self) -> None:
        """Serve /metrics and /readyz from now on, if the configuration says so; raises ListenError."""
        if self.config.http_address is not None:
            # Most brokers do not pay for a web server.
            from kafkacompat.monitoring.monitor import Monitor

            self.monitor = Monitor(self.config, self._reactor, self.metadata, self._host.rng, self._turns)
            self.monitor.listen(*self.config.http_address)

    async def _start_alone(self) -> None:
        """Read the metadata of a single node, lead all partitions, and listen."""
        self._side = side = Standalone(self._host, self.config, self._disk)
        self.cluster_id = await side.find_cluster_id()
        await self._open_directories()
        self._build(side.store)
        self.controller = self.coordinators.controller = side.build_controller(
            self.metadata, self.coordinators.events, self.effective
        )
        self._build_server()
        await side.start(self.cluster_id, self.directories)
        await self._load_instances()
        await self._listen()

    async def _load_instances(self) -> None:
        """Apply the file of instances, if there is one; raises ConfigError."""
        path = self.config.optional_string("kafkacompat.instances.file")
        if path is not None:
            # Most brokers have none, and do not pay for YAML.
            from kafkacompat.instances_file import InstancesFile

            self._instances_file = InstancesFile(
                path, self.controller, self._reactor, lambda: self._disk("instances file"), self._host.rng
            )
            await self._instances_file.load()

    async def _start_in_cluster(self) -> None:
        """Join the cluster, open the logs, listen, and register: from then on the controller sends orders."""
        from kafkacompat.cluster_node import ClusterNode

        self._side = self._node = side = ClusterNode(
            self._host, self.config, self.metadata, self.effective, self.tls.network_between_brokers
        )
        self.cluster_id = await side.find_cluster_id()
        await self._open_directories()
        self._build(side.store)
        self.controller = self.coordinators.controller = side.controller
        side.serve_replicas(self.replica_manager, self.coordinators.roles)
        self._build_server()
        await side.start(self.directories)
        await self._listen()
        try:
            await side.announce(self.listeners.bound)
        except BaseException:
            await self._stop_listening()
            raise

    async def _open_directories(self) -> None:
        cache = SegmentCache.for_open_files(self._host.raise_open_file_limit())
        for path in self.config.log_dirs:
            disk = self._disk(path)
            storage = await disk.run(
                LogDirectory.open,
                self._host.files,
                path,
                node_id=self.config.node_id,
                cluster_id=self.cluster_id,
                new_directory_id=self._host.rng.randbytes(16),
                cache=cache,
                boot_id=None if self._node is None else self._host.boot_id,
            )
            self._directories.append(Directory.configured(storage, disk, self._reactor, self.config))

    def _disk(self, path: str) -> OwnedDisk:
        if path not in self._disks:
            self._disks[path] = self._host.new_disk(path)
        return self._disks[path]

    def _build(self, store: MetadataStore) -> None:
        config, clock = self.config, self._reactor
        self.directories = Directories(self._directories, lambda: self.effective.config.cordoned_log_dirs)
        self.moves = PartitionMoves(
            self.directories,
            clock,
            lambda: self.effective.config.int("replica.alter.log.dirs.io.max.bytes.per.second"),
        )
        self.replica_manager = ReplicaManager(
            self.directories, self.effective.log_config_of, clock, self.moves, awaits_roles=self._node is not None
        )
        self.coordinators = Coordinators(
            clock,
            config,
            self.replica_manager,
            self.metadata,
            self.effective,
            store,
            self._host.rng,
            readable_by_old_kafka=belonged_to_kafka(self._host.files, config),
            cluster=None if self._node is None else self._node.coordinator_cluster(),
        )
        processes = config.int("kafkacompat.conversion.processes")
        workers = self._workers = {
            "conversion": self._host.new_workers(processes, "conversion", timeout_s=CONVERSION_TIMEOUT_S),
            "compaction": self._host.new_workers(MOST_CLEANERS, "compaction"),
            "scrub": self._host.new_workers(1, "scrub"),
        }
        self.conversions = Conversions(workers["conversion"], self._host.files)
        self.housekeeping = Housekeeping(clock, config, self.replica_manager)
        self.log_cleaner = LogCleaner(
            self.housekeeping, self.moves, workers["compaction"], self._host.files, lambda: self.effective.config
        )
        self.scrubbing = LogScrubber(clock, config, self._host.files, self.replica_manager, workers["scrub"])

    def _build_quotas(self) -> None:
        config = self.config
        windows = QuotaWindows(config.int("quota.window.num"), config.int("quota.window.size.seconds") * 1000)
        mutation_windows = QuotaWindows(
            config.int("controller.quota.window.num"), config.int("controller.quota.window.size.seconds") * 1000
        )
        self.quotas = ClientQuotas(windows, mutation_windows, config.int("kafkacompat.metrics.max.items"))
        protected = None if self._node is None else self._node.listener
        self.connection_rates = ConnectionRates(
            windows, lambda listener: find_connection_rate(self.effective.config, listener, protected)
        )
        self.metadata.watch_clients(self.quotas.update)
        self.metadata.watch_clients(self.connection_rates.update)

    def _admit(self, listener_name: str, address: str) -> Admission:
        return self.connection_rates.admit(listener_name, address, steady_ms(self._reactor))

    def _handlers(self) -> Mapping[int, Handler]:
        handlers = HANDLERS if self._node is None else CLUSTER_HANDLERS
        return handlers if self.monitor is None else handlers | TELEMETRY_HANDLERS

    def _build_access_control(self) -> AccessControl | None:
        """Build the authorizer; a broker without one does not pay for it."""
        if not self.config.string("authorizer.class.name"):
            return None
        from kafkacompat.access_control import AccessControl

        return AccessControl(self.config, self.metadata, self._reactor, lambda: self._disk("audit log"))

    def _build_server(self) -> None:
        config = self.config
        self.token_expiry = TokenExpiry(config, self.controller, self._reactor)
        self._access = self._build_access_control()
        self._build_quotas()
        self.instances = Instances()
        # A broker of a cluster knows instances by now, so that the first update may bring some.
        self.instances.watchers.append(self._begin_traffic_control)
        self.instances.watchers.append(self._instances_changed)
        self.metadata.watch(self.instances.update)
        self.quotas.find_prefix = self.instances.find_user_prefix
        self.instances.watchers.append(self.quotas.forget)
        if self._access is not None:
            self._access.follow(self.instances)
        whitelists = TopicWhitelists()
        self.metadata.watch(whitelists.update)
        self.effective.find_instance = self.instances.find_instance
        self.coordinators.find_group_instance = self.instances.find_group_instance
        self._services = Services(
            node_id=config.node_id,
            clock=self._reactor,
            config=config,
            metadata=self.metadata,
            effective=self.effective,
            controller=self.controller,
            replica_manager=self.replica_manager,
            fetch_sessions=FetchSessions(config.int("max.incremental.fetch.session.cache.slots"), self._host.rng),
            coordinators=self.coordinators,
            conversions=self.conversions,
            served={key: handler.versions for key, handler in self._handlers().items()},
            cluster=None if self._node is None else self._node.member,
            features=self.coordinators.features,
            authorizer=None if self._access is None else self._access.authorizer,
            quotas=self.quotas,
            telemetry=None if self.monitor is None else self.monitor.telemetry,
            requests=None if self.monitor is None else self.monitor.requests,
            instances=self.instances,
            whitelists=whitelists,
        )
        self.server = KafkaServer(
            self._reactor,
            Dispatcher(self._handlers(), self._services),
            network=self._host.network,
            max_frame_bytes=config.int("socket.request.max.bytes"),
            max_queued_bytes=config.int("queued.max.request.bytes"),
            max_idle_ms=config.int("connections.max.idle.ms"),
            read_ahead=self._read_ahead,
            turn_away=ConnectionLimits(lambda: self.effective.config).find_objection,
            admit=self._admit,
            quotas=self.quotas,
            metrics=None if self.monitor is None else self.monitor.requests,
            instances=self.instances,
            find_required=lambda: self.effective.config.required_listeners,
        )
        self.listeners = BoundListeners(
            self.server,
            self.tls,
            self._handlers(),
            self._services,
            self._host.rng,
            None if self._node is None else self._node.listener,
        )
        self.instances.watchers.append(self._follow_instances)
        # A broker of a cluster knows the instances by now.
        self._follow_instances()
        if self.monitor is not None:
            self.monitor.observe(self._list_services())
            self._administer_over_http(self.monitor)

    def _administer_over_http(self, monitor: Monitor) -> None:
        """Serve /v1 if the configuration says who may use it."""
        config = self.config
        if config.optional_string("kafkacompat.http.token.file") is None and not config.bool(
            "kafkacompat.http.scram.enable"
        ):
            return
        monitor.administer(
            Dispatcher(self._handlers(), self._services),
            self.instances,
            lambda function, *arguments: self._disk("passwords").run(function, *arguments),
            self._describe_usage,
        )

    def _describe_usage(self, instance_name: str) -> dict[str, Any]:
        """Return what an instance has in the cluster, and what it uses of this broker."""
        from kafkacompat.tenancy.usage import describe_usage

        view, bound = self.instances.by_name.get(instance_name), self.listeners.instances
        listeners = () if view is None else enumerate(view.instance.list("listeners"))
        unbound = {} if bound is None else bound.unbound
        used = None if self.instance_usage is None else self.instance_usage.describe(instance_name)
        return {
            **describe_usage(self.instances, self.metadata.image, instance_name),
            "broker": {
                "node.id": self.config.node_id,
                **{name.replace("_", "."): value for name, value in (used or {}).items()},
                "unbound.listeners": {
                    listener: reason
                    for index, listener in listeners
                    if (reason := unbound.get(make_listener_name(instance_name, index))) is not None
                },
            },
        }

    def _begin_removal(self) -> None:
        """Begin to remove deleted instances; a broker without instances does not pay for it."""
        if self._removal is None and self.instances and self._running:
            from kafkacompat.instance_removal import InstanceRemoval

            self._removal = InstanceRemoval(
                self.config.node_id,
                self._reactor,
                self.metadata,
                self.controller,
                lambda: self.coordinators.groups,
                None if self._node is None else self._node.member.brokers.send,
            )
            self._removal.start()

    def _begin_traffic_control(self) -> None:
        """Begin with the first instance; a broker without instances does not pay for it."""
        if self._traffic is None:
            from kafkacompat.cluster.instance_traffic import BrokerTraffic

            member = None if self._node is None else self._node.member
            self._traffic = BrokerTraffic(self.config, self.instances, self.metadata, member, self._reactor)

    def _follow_instances(self) -> None:
        assert self.server.tenants is not None
        self.server.tenants.update()
        self.listeners.update_instances()

    def _instances_changed(self) -> None:
        if self.instance_storage is None:
            # A broker without instances does not pay for them.
            from kafkacompat.upkeep.instance_storage import InstanceStorage

            self.instance_storage = InstanceStorage(self.instances, self.replica_manager, self._reactor)
            self.instance_storage.start()
            if self._node is not None:
                self._storage_reports = self._node.build_storage_reports(self.instance_storage)
        else:
            self.instance_storage.update()
        if self._storage_reports is not None:
            self._storage_reports.start()
        self._start_usage_records()

    def _start_usage_records(self) -> None:
        """Record what instances use, once the broker runs and there is an instance."""
        if self._running and self.instance_storage is not None and self._usage_recorder is None:
            from kafkacompat.usage.figures import UsageFigures
            from kafkacompat.usage.recorder import UsageRecorder
            from kafkacompat.usage.state_file import DirectoryStateFile

            self.instance_usage = UsageFigures(self.instances, self.instance_storage, self.coordinators.count_groups_of)
            file = DirectoryStateFile(self._host.files, self.directories)
            topic = self.coordinators.open_usage_topic()
            self._usage_recorder = UsageRecorder(self.config.node_id, self.instance_usage, topic, file, self._reactor)
            if self.server.tenants is not None:
                self.instance_usage.count_connections = self.server.tenants.count
            self._usage_recorder.start()

    def _list_services(self) -> Observed:
        from kafkacompat.monitoring.observed import Observed

        return Observed(
            config=self.config,
            clock=self._reactor,
            server=self.server,
            metadata=self.metadata,
            directories=self.directories,
            replicas=self.replica_manager,
            coordinators=self.coordinators,
            cleaner=self.log_cleaner,
            scrubber=self.scrubbing,
            workers=self._workers,
            disks=self._disks,
            node=self._node,
            quotas=self.quotas,
            find_instance_usage=lambda: self.instance_usage,
        )

    def _read_ahead(self, region: FileRegion, offset: int, size_bytes: int) -> Deferred[None]:
        """Load a piece of a region into the page cache, in a thread that does not wait for syncs and recovery."""
        return self._disk("read-ahead").run(region.load, offset, size_bytes)

    async def _listen(self) -> None:
        try:
            self.listeners.bind(self.config.listeners)
        except (ConfigError, ListenError):
            await self._stop_listening()
            raise
        self.server.start()
        self.tls.start()
        self.effective.on_changed = self.listeners.update

    async def _stop_listening(self) -> None:
        """Give up a start that has failed."""
        self.listeners.stop_authentication()
        self.coordinators.stop()
        self.tls.stop()
        await gatherResults(self.server.stop_listening(), consumeErrors=True)
        self.server.finish()

    def load_ahead(self) -> Iterator[None]:
        """Import step by step the modules that the first consumer would wait for otherwise."""
        yield from load_consumer_apis()
        if self.monitor is not None:
            self.monitor.telemetry.load_ahead()
            yield
        _ = self.coordinators.groups

    # Stop

    async def stop(self) -> None:
        """Answer the requests in flight, flush, write checkpoints and release everything."""
        if not self._running:
            return
        self._running = self.listeners.binds_new = False
        if self.monitor is not None:
            self.monitor.note_stopping()
        if self._node is not None:
            await self._node.leave()
        await gatherResults(self.server.stop_listening(), consumeErrors=True)
        if self._storage_reports is not None:
            self._storage_reports.stop()
        if self._traffic is not None:
            self._traffic.stop()
        if self._usage_recorder is not None:
            await self._usage_recorder.stop()
        self.housekeeping.stop()
        self.scrubbing.stop()
        self.token_expiry.stop()
        for following in (self._removal, self._instances_file):
            if following is not None:
                following.stop()
        self.listeners.stop_authentication()
        self.tls.stop()
        self.coordinators.stop()
        self.server.finish()
        self.replica_manager.wake_fetches()
        await self._wait_for_clients()
        self.conversions.close()
        await self.log_cleaner.stop()
        if self._node is not None:
            await self._node.stop_fetching()
        try:
            await self._close_directories()
        finally:
            await self._release()

    async def _close_directories(self) -> None:
        """Close every log directory; a failure of one does not keep the others from writing their checkpoints."""
        await self.replica_manager.prepare_to_close()
        closing: list[Deferred[Any]] = []
        for directory, logs in self.replica_manager.logs_by_directory():
            self._directories.remove(directory)
            high_watermarks = self.replica_manager.high_watermarks(logs)
            closed = directory.disk.run(directory.storage.close, logs, high_watermarks)
            closing.append(
                closed.addErrback(lambda failure: log.error("Cannot close a log directory: %s", failure.value))
            )
        await DeferredList(closing)

    async def _wait_for_clients(self) -> None:
        """Wait until clients have read their responses, at most STOP_TIMEOUT_S."""
        deadline = self._reactor.seconds() + STOP_TIMEOUT_S
        while self.server.connections and self._reactor.seconds() < deadline:
            await deferLater(self._reactor, STOP_CHECK_S)
        for connection in list(self.server.connections):
            connection.cut_off("the broker stops and the client does not read its responses")

    async def _release(self) -> None:
        """Close the store and the disks, and unlock the log directories."""
        if self._access is not None and self._access.audit is not None:
            await self._access.audit.flush()
        if self._side is not None:
            await self._side.close()
        for directory in self._directories:
            await directory.disk.run(directory.storage.release)
        self._directories.clear()
        for disk in self._disks.values():
            disk.close()
        self._disks.clear()
        if self.monitor is not None:
            await self.monitor.close()
