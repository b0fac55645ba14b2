"""The broker: builds every service from one configuration, and starts and stops them in order.

The start locks the log directories, reads the metadata, opens the logs, leads the partitions, loads the groups and accepts
clients. The stop goes backwards: the broker accepts no clients, answers its requests, flushes, checkpoints and unlocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, gatherResults

from kafkacompat.bound_listeners import BoundListeners
from kafkacompat.broker_disks import BrokerDisks
from kafkacompat.broker_instances import BrokerInstances, check_no_instances_file
from kafkacompat.cluster.errors import ClusterError
from kafkacompat.config import ConfigError
from kafkacompat.conversion import CONVERSION_TIMEOUT_S, Conversions
from kafkacompat.coordinators import Coordinators
from kafkacompat.handlers import CLUSTER_HANDLERS, HANDLERS, TELEMETRY_HANDLERS, Handler, load_consumer_apis
from kafkacompat.handlers.context import Services
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.token_expiry import TokenExpiry
from kafkacompat.partitions.directories import Directories
from kafkacompat.partitions.fetch_sessions import FetchSessions
from kafkacompat.partitions.replica_manager import ReplicaManager
from kafkacompat.partitions.takeover import belonged_to_kafka
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.quotas.connection_rates import ConnectionRates
from kafkacompat.quotas.rates import QuotaWindows
from kafkacompat.server.connection_limits import ConnectionLimits, find_connection_rate
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.server.listener import KafkaServer, ListenError
from kafkacompat.server.tls import BrokerTls
from kafkacompat.standalone import Standalone
from kafkacompat.storage.directory.log_directory import LogDirectoryError
from kafkacompat.timers import steady_ms
from kafkacompat.upkeep.cleaning import MOST_CLEANERS, LogCleaner
from kafkacompat.upkeep.housekeeping import Housekeeping
from kafkacompat.upkeep.moving import PartitionMoves
from kafkacompat.upkeep.scrubbing import LogScrubber
from kafkacompat.zookeeper.client import ZooKeeperError

if TYPE_CHECKING:
    from kafkacompat.access_control import AccessControl
    from kafkacompat.cluster_node import ClusterNode
    from kafkacompat.config import BrokerConfig
    from kafkacompat.faults import Faults
    from kafkacompat.faults.pause import Pause
    from kafkacompat.host import Host
    from kafkacompat.metadata.administration import Administration
    from kafkacompat.metadata.store import MetadataStore
    from kafkacompat.metrics.turns import ReactorTurns
    from kafkacompat.monitoring.monitor import Monitor
    from kafkacompat.monitoring.observed import Observed
    from kafkacompat.storage.segment.shared_files import FileRegion

log = logging.getLogger(__name__)

START_ERRORS = (ConfigError, LogDirectoryError, StoreError, ListenError, ClusterError, ZooKeeperError)
"""Errors of a start that its user can correct."""


class Broker:
    """One node.

    After `start` the attributes name the services, and ``addresses`` the bound listeners. `stop` returns when all data is on
    the disk. ``turns`` are those of the reactor, if they are measured. ``faults`` are rules for tests of clients.
    """

    def __init__(
        self, host: Host, config: BrokerConfig, turns: ReactorTurns | None = None, faults: Faults | None = None
    ) -> None:
        self.config = config
        self.monitor: Monitor | None = None
        """The HTTP listener with metrics; None unless it is configured."""
        self._turns = turns
        self.faults = faults
        self._pause: Pause | None = None
        self.cluster_id = ""
        self.controller: Administration
        self._host = host
        self._reactor = host.reactor
        self._disks = BrokerDisks(host)
        self._disk = self._disks.find
        self._side: Standalone | ClusterNode | None = None
        self._node: ClusterNode | None = None
        self._running = False
        self._access: AccessControl | None = None

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
        except Exception:
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
            check_no_instances_file(self.config)
            await self._start_in_cluster()
        else:
            await self._start_alone()
        self.housekeeping.start()
        self.scrubbing.start()
        self.log_cleaner.start()
        self.token_expiry.start()
        self._running = self.listeners.binds_new = True
        self.tenancy.start(self.directories)
        self.listeners.bind_new()
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
        await self._disks.open_directories(self.config, self.cluster_id, None)
        self._build(side.store)
        self.controller = self.coordinators.controller = side.build_controller(
            self.metadata, self.coordinators.events, self.effective
        )
        self._build_server()
        await side.start(self.cluster_id, self.directories)
        await self.tenancy.load_file(lambda: self._disk("instances file"))
        await self._listen()

    async def _start_in_cluster(self) -> None:
        """Join the cluster, open the logs, listen, and register: from then on the controller sends orders."""
        from kafkacompat.cluster_node import ClusterNode

        self._side = self._node = side = ClusterNode(
            self._host, self.config, self.metadata, self.effective, self.tls.network_between_brokers
        )
        self.cluster_id = await side.find_cluster_id()
        await self._disks.open_directories(self.config, self.cluster_id, self._host.boot_id)
        self._build(side.store)
        self.controller = self.coordinators.controller = side.controller
        side.serve_replicas(self.replica_manager, self.coordinators.roles)
        self._build_server()
        await side.start(self.directories)
        await self._listen()
        try:
            await side.announce(self.listeners.bound)
        except Exception:
            await self._stop_listening()
            raise

    def _build(self, store: MetadataStore) -> None:
        config, clock = self.config, self._reactor
        self.directories = Directories(self._disks.directories, lambda: self.effective.config.cordoned_log_dirs)
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
        self.tenancy = BrokerInstances(
            self._host,
            config,
            self.metadata,
            self.controller,
            self._node,
            self.replica_manager,
            self.coordinators,
            self.quotas,
            self._access,
        )
        self.instances = self.tenancy.registry
        self.effective.find_instance = self.instances.find_instance
        self._services = self._build_services()
        self._build_listeners()
        self.tenancy.serve(self.server, self.listeners)
        if self.monitor is not None:
            self.monitor.observe(self._list_services())
            self._serve_http(self.monitor, self.build_dispatcher())

    def _serve_http(self, monitor: Monitor, dispatcher: Dispatcher) -> None:
        """Serve the administration and the web page over HTTP, if the configuration enables them."""

        def run(thread: str) -> Callable[..., Deferred[Any]]:
            return lambda function, *arguments: self._disk(thread).run(function, *arguments)

        describe_usage = self.tenancy.describe_usage
        monitor.administer(dispatcher, self.instances, run("passwords"), describe_usage)
        if self.config.bool("kafkacompat.ui.enable"):
            # Most brokers do not pay for the page.
            from kafkacompat.web.start import serve_web_page

            clock, replicas = self._reactor, self.replica_manager
            serve_web_page(
                monitor, self.config, clock, dispatcher, self.instances, replicas, run("web page"), describe_usage
            )

    def _build_services(self) -> Services:
        config = self.config
        return Services(
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
            whitelists=self.tenancy.whitelists,
        )

    def build_dispatcher(self) -> Dispatcher:
        """Return a dispatcher for requests of this process to its own broker."""
        return Dispatcher(self._handlers(), self._services)

    def _build_listeners(self) -> None:
        config = self.config
        self.server = KafkaServer(
            self._reactor,
            self.build_dispatcher(),
            network=self._host.network,
            max_frame_bytes=config.int("socket.request.max.bytes"),
            max_queued_bytes=config.int("queued.max.request.bytes"),
            max_idle_ms=config.int("connections.max.idle.ms"),
            read_ahead=self._read_ahead,
            turn_away=ConnectionLimits(lambda: self.effective.config).find_objection,
            admit=lambda listener, address: self.connection_rates.admit(listener, address, steady_ms(self._reactor)),
            quotas=self.quotas,
            metrics=None if self.monitor is None else self.monitor.requests,
            instances=self.instances,
            find_required=lambda: self.effective.config.required_listeners,
        )
        if self.faults is not None:
            # A broker without faults does not pay for them.
            from kafkacompat.faults.injection import inject_faults

            self._pause = inject_faults(self.faults, self.server, self._services, self._handlers())
        self.listeners = BoundListeners(
            self.server,
            self.tls,
            self._handlers(),
            self._services,
            self._host.rng,
            None if self._node is None else self._node.listener,
        )

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
            disks=self._disks.by_name,
            node=self._node,
            quotas=self.quotas,
            find_instance_usage=lambda: self.tenancy.usage,
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
        await self.tenancy.stop()
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
        await self.tenancy.stop()
        self.housekeeping.stop()
        self.scrubbing.stop()
        self.token_expiry.stop()
        self.listeners.stop_authentication()
        self.tls.stop()
        self.coordinators.stop()
        if self._pause is not None:
            self._pause.end()
        self.server.finish()
        self.replica_manager.wake_fetches()
        await self.server.wait_for_clients()
        self.conversions.close()
        await self.log_cleaner.stop()
        if self._node is not None:
            await self._node.stop_fetching()
        try:
            await self._disks.close_directories(self.replica_manager)
        finally:
            await self._release()

    async def abandon(self) -> None:
        """End without notice, as if the process were killed: clients receive nothing any more, and the next start recovers."""
        self._running = self.listeners.binds_new = False
        self.server.abort()
        await gatherResults(self.server.stop_listening(), consumeErrors=True)
        self.conversions.close()
        for workers in self._workers.values():
            workers.close()
        await self._disks.abandon_directories(self.replica_manager)
        await self._release()

    async def _release(self) -> None:
        """Close the store and the disks, and unlock the log directories."""
        if self._access is not None and self._access.audit is not None:
            await self._access.audit.flush()
        if self._side is not None:
            await self._side.close()
        await self._disks.release()
        if self.monitor is not None:
            await self.monitor.close()
