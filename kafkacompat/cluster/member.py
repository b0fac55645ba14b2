"""A broker as a member of a cluster: registered in ZooKeeper, perhaps the controller, and obeying the controller there is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import Deferred, DeferredLock, succeed

from kafkacompat.client.settings import BrokerAddress
from kafkacompat.cluster.acls import ClusterAcls
from kafkacompat.cluster.active_controller import ActiveController
from kafkacompat.cluster.administration import ClusterAdministration
from kafkacompat.cluster.broadcasts import Broadcasts
from kafkacompat.cluster.change_log import ClusterChangeLog
from kafkacompat.cluster.configs import ClusterConfigs
from kafkacompat.cluster.controller_answers import ControllerAnswers
from kafkacompat.cluster.controller_link import ControllerLink, InterBrokerRequests
from kafkacompat.cluster.election import CONTROLLER_EPOCH, ControllerElection, ControllerEpoch
from kafkacompat.cluster.election_counts import ElectionCounts
from kafkacompat.cluster.errors import ClusterError
from kafkacompat.cluster.fence import ControllerFence
from kafkacompat.cluster.metadata_update import apply_update
from kafkacompat.cluster.orders import SendingController
from kafkacompat.cluster.registration import BrokerRegistration
from kafkacompat.cluster.start_waits import StartWaits
from kafkacompat.cluster.tokens import ClusterTokens
from kafkacompat.config.broker_groups import read_broker_groups
from kafkacompat.metadata.codec import StoredTopics, decode_image, decode_topics
from kafkacompat.metadata.image import MetadataImage, TopicImage
from kafkacompat.metadata.ledger import MetadataLedger
from kafkacompat.metadata.store import ConflictError, StoreChange, StoreError
from kafkacompat.metadata.store_changes import StoreForm
from kafkacompat.metadata.znodes.administration import encode_log_dir_event
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.topics import encode_topic
from kafkacompat.metadata.zookeeper_store import ZooKeeperStore
from kafkacompat.timers import Clock, PeriodicCall
from kafkacompat.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest
from kafkacompat.wire.apis.alter_partition import AlterPartitionRequest
from kafkacompat.wire.apis.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from kafkacompat.wire.apis.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kafkacompat.wire.apis.report_storage import ReportStorageRequest
from kafkacompat.wire.apis.report_traffic import ReportTrafficRequest
from kafkacompat.wire.apis.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkacompat.wire.apis.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID
from kafkacompat.zookeeper.client import ConnectionLossError, SessionState, ZooKeeper, ZooKeeperError

if TYPE_CHECKING:
    from collections.abc import Collection

    from kafkacompat.client.connections import BrokerConnections
    from kafkacompat.cluster.assigned_replicas import AssignedReplicas
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.effective import EffectiveConfig
    from kafkacompat.metadata.image import BrokerImage, ImageHolder
    from kafkacompat.wire.schema import Request

log = logging.getLogger(__name__)

ORDER_TIMEOUT_S = 30.0
FORWARDING = "forwarded requests"
"""The connections that Envelopes take: a forwarded request may wait for other brokers."""

NEWEST_ALTER_PARTITION = 3

REPEAT_S = 0.5
"""Pause before what ZooKeeper did not confirm is tried again."""

MOST_JOINS = 10
"""Times that a broker tries to join the cluster while it loses its connections to ZooKeeper."""

TAKEN_ID_S = 5.0
"""Pause before a broker whose id another one took meanwhile registers again."""

Result = TypeVar("Result")


class ClusterMember:
    """One broker's part in the cluster.

    Call `join`, set ``replicas``, then `announce` when the broker accepts requests, and `leave` at its end. ``administration``
    has the requests of handlers to the controller, ``answers`` the answers of the controller, if it is this broker. ``store`` is the
    cluster's metadata, for the parts that no controller writes.
    """

    replicas: AssignedReplicas

    def __init__(
        self,
        config: BrokerConfig,
        zookeeper: ZooKeeper,
        connections: BrokerConnections,
        metadata: ImageHolder,
        effective: EffectiveConfig,
        listener: str,
        clock: Clock,
        rng: Random,
    ) -> None:
        self._config = config
        self._clock = clock
        self._rng = rng
        self._zookeeper = zookeeper
        self._metadata = metadata
        self._effective = effective
        self._listener = listener
        node_id = config.node_id
        session_timeout_s = config.int("zookeeper.session.timeout.ms") / 1000
        self.registration = BrokerRegistration(zookeeper, node_id, clock, session_timeout_s)
        self.election = ControllerElection(zookeeper, node_id, clock, self._become_controller, self._resign_controller)
        self.fence = ControllerFence(lambda: self.registration.epoch)
        self.store = ZooKeeperStore(zookeeper, clock)
        self.configs = ClusterConfigs(zookeeper, self.store, self._on_configs)
        has_tokens = bool(config.optional_string("delegation.token.secret.key"))
        self._tokens = ClusterTokens(zookeeper, self.store, has_tokens, self._publish_configs)
        self._has_acls = bool(config.string("authorizer.class.name"))
        self.acls = ClusterAcls(zookeeper, self.store, self._on_acls)
        self.brokers = InterBrokerRequests(connections, metadata, listener)
        self.link = ControllerLink(node_id, lambda: self.election.controller_id, self.brokers, self._answer_locally)
        self.forwarding = ControllerLink(
            node_id, lambda: self.election.controller_id, self.brokers, self._answer_locally, FORWARDING
        )
        self.administration = ClusterAdministration(
            node_id,
            lambda: self.registration.epoch,
            lambda: self._active,
            self.link,
            metadata,
            lambda: self._effective.config.int("num.partitions"),
        )
        self.answers = ControllerAnswers(self.require_active)
        self.election_counts = ElectionCounts()
        self._change_log = ClusterChangeLog(clock)
        self._connections = connections
        self._active: ActiveController | None = None
        self._broker: BrokerImage | None = None
        self._leaving = False
        self._returning = DeferredLock()
        self._balance = PeriodicCall(clock, self._balance_leaders)
        self._capacity_balance = PeriodicCall(clock, self._balance_capacity)
        self._waits = StartWaits(clock)
        self.on_topics_reconfigured: Callable[[], None] = lambda: None
        self.on_topic_deleted: Callable[[TopicImage], None] = lambda topic: None
        self.on_brokers_lost: Callable[[AbstractSet[int]], object] = lambda lost: None

    @property
    def is_connected(self) -> bool:
        """Whether the session with ZooKeeper is connected."""
        return self._zookeeper.state is SessionState.CONNECTED

    def find_controlled_image(self) -> MetadataImage | None:
        """Return the metadata that this broker has as the controller; None if it is not the controller."""
        return None if self._active is None else self._active.image

    # Membership

    async def join(
        self, own_cluster_id: str | None, new_cluster_id: str, addresses: Mapping[str, tuple[str, int]]
    ) -> StoredTopics:
        """Join the cluster and read its configurations; returns its topics, and publishes its id.

        Raises ClusterError, StoreError and ZooKeeperError; the tree is then as it was. See `BrokerRegistration` for the
        arguments.
        """
        await self._zookeeper.start()
        self._zookeeper.add_listener(self._on_session)
        topics = await self._repeat(lambda: self._check_tree(own_cluster_id, addresses))
        cluster_id = await self._repeat(lambda: self.registration.join(new_cluster_id))
        self._metadata.publish(replace(self._metadata.image, cluster_id=cluster_id))
        await self.configs.load()
        await self._tokens.load()
        if self._has_acls:
            await self.acls.load()
        return topics

    async def _check_tree(self, own_cluster_id: str | None, addresses: Mapping[str, tuple[str, int]]) -> StoredTopics:
        await self.registration.find_cluster_id(own_cluster_id, addresses)
        return decode_topics(await self.store.load())

    async def _repeat(self, step: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Repeat a step whose connection to ZooKeeper is lost."""
        for _ in range(MOST_JOINS - 1):
            try:
                return await step()
            except ConnectionLossError as problem:
                log.info("Joining the cluster is repeated: %s", problem)
                await self._pause(REPEAT_S)
        return await step()

    async def announce(self, broker: BrokerImage) -> None:
        """Register the broker, which accepts requests now, and take part in the election of the controller."""
        await self._returning.run(lambda: Deferred.fromCoroutine(self._announce(broker)))

    async def _announce(self, broker: BrokerImage) -> None:
        while True:
            try:
                await self.registration.register(broker)
            except ZooKeeperError as problem:
                if self._zookeeper.state is SessionState.CLOSED:
                    raise
                log.info("The registration is repeated: %s", problem)
                await self._pause(REPEAT_S)
            else:
                break
        self._broker = broker
        self._waits.note_registered()
        await self.election.take_part()

    def _wait_until_registered(self) -> Deferred[None]:
        """Fire when this broker is registered. Before, an order may be for an earlier start of the same broker."""
        return succeed(None) if self.registration.epoch >= 0 else self._waits.wait_until_registered()

    def wait_until_informed(self) -> Deferred[None]:
        """Fire when the controller has sent this broker metadata, and after INFORMATION_TIMEOUT_S at the latest."""
        return succeed(None) if self._metadata.image.brokers else self._waits.wait_until_informed()

    def find_broker_epoch(self, node_id: int) -> int | None:
        """Return the epoch of a live broker, -1 where it is not known; None for a broker that is not alive."""
        broker = self._metadata.image.brokers.get(node_id)
        return None if broker is None else broker.epoch

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.LOST:
            self.election.lose_session()
        elif state is SessionState.CONNECTED:
            self._returning.run(lambda: Deferred.fromCoroutine(self._return())).addErrback(
                lambda failure: log.error("Cannot register the broker again", exc_info=failure.value)
            )

    async def _return(self) -> None:
        """Register again after a lost session, and watch again what a lost connection has forgotten.

        After the next loss of the connection, the next connection comes here again.
        """
        while self._broker is not None and not self._leaving and self._zookeeper.state is SessionState.CONNECTED:
            try:
                await self.registration.register(self._broker)
                await self.configs.load()
                await self._tokens.load()
                if self._has_acls:
                    await self.acls.load()
            except ClusterError as problem:
                log.error("This broker cannot be registered again: %s", problem)
                await self._pause(TAKEN_ID_S)
            except (ZooKeeperError, StoreError) as problem:
                log.info("The registration is repeated: %s", problem)
                await self._pause(REPEAT_S)
            else:
                await self.election.take_part()
                if self._active is not None:
                    self._active.look_again()
                return

    def report_failed_directory(self) -> None:
        """Let the controller learn that a log directory of this broker has failed."""
        Deferred.fromCoroutine(self._report_failed_directory()).addErrback(
            lambda failure: log.error("Cannot report the failed log directory", exc_info=failure.value)
        )

    async def _report_failed_directory(self) -> None:
        path = f"{Znode.LOG_DIR_EVENTS.path()}/log_dir_event_"
        while not self._leaving:
            try:
                await self._zookeeper.create(path, encode_log_dir_event(self._config.node_id), sequence=True)
                return
            except ZooKeeperError as problem:
                log.info("The report of the failed log directory is repeated: %s", problem)
                await self._pause(REPEAT_S)

    async def list_assigned(self, topics: Collection[str]) -> set[tuple[str, bytes, int]]:
        """Return name, topic id and index of the partitions of these topics that are this broker's by ZooKeeper.

        Raises StoreError.
        """
        image = decode_image(await self.store.read([Znode.TOPIC.path(topic=topic) for topic in topics]))
        return {
            (topic.name, topic.topic_id, partition.partition)
            for topic in image.topics.values()
            for partition in topic.partitions
            if self._config.node_id in partition.replicas
        }

    async def restore_topic_ids(self, ids: Mapping[str, bytes]) -> None:
        """Write the ids of topics into ZooKeeper whose values have lost theirs; *ids* are those of this broker's replicas.

        Raises StoreError. An id that another broker writes meanwhile counts.
        """
        entries = await self.store.read([Znode.TOPIC.path(topic=topic) for topic in ids])
        for key, entry in entries.items():
            (topic,) = decode_image({key: entry}).topics.values()
            if topic.topic_id == ZERO_UUID:
                value = encode_topic(topic._replace(topic_id=ids[topic.name]), entry.value)
                with suppress(ConflictError):
                    await self.store.compare_and_set([StoreChange(key, entry.version, value)])
                    log.warning("Topic %s had lost its id in ZooKeeper, and has it again", topic.name)

    async def hand_over(self) -> None:
        """Let other brokers lead, before this one stops to serve its clients."""
        self._leaving = True
        if self._broker is not None and self._zookeeper.state is SessionState.CONNECTED:
            await self._shut_down_in_order()

    async def resign(self) -> None:
        """Be the controller no more, and obey none: the logs are about to be closed."""
        await self.election.stop()
        await self.replicas.close()

    async def leave(self) -> None:
        """Resign, and end the session: the registration goes with it."""
        self._leaving = True
        self._waits.note_informed()
        await self.election.stop()
        await self._zookeeper.close()
        self._connections.close()

    async def _shut_down_in_order(self) -> None:
        """Ask the controller for other leaders (ControlledShutdown), as often as the properties say."""
        if not self._config.bool("controlled.shutdown.enable"):
            return
        for _ in range(self._config.int("controlled.shutdown.max.retries")):
            request = ControlledShutdownRequest(broker_id=self._config.node_id, broker_epoch=self.registration.epoch)
            try:
                response: ControlledShutdownResponse = await self.link.send(request, ORDER_TIMEOUT_S)
            except Exception as problem:
                log.warning("The controller does not answer ControlledShutdown: %s", problem)
            else:
                if not response.error_code and not response.remaining_partitions:
                    return
            if self._is_last():
                break
            await self._pause(self._config.int("controlled.shutdown.retry.backoff.ms") / 1000)
        log.warning("Stopping although this broker still leads partitions: no other replica of them is in sync")

    def _is_last(self) -> bool:
        """Return whether no other broker is alive that could lead."""
        return not self._metadata.image.brokers.keys() - {self._config.node_id}

    def _pause(self, seconds: float) -> Deferred[None]:
        ended: Deferred[None] = Deferred()
        self._clock.callLater(seconds, ended.callback, None)
        return ended

    # The controller

    async def _become_controller(self, epoch: ControllerEpoch) -> None:
        node_id = self._config.node_id
        # The fence is that of this epoch, also after its end: what still waits then must not be written.
        fence = (CONTROLLER_EPOCH, epoch.version)
        store = ZooKeeperStore(self._zookeeper, self._clock, lambda: fence, with_acls=self._has_acls)
        ledger = MetadataLedger(
            store, lambda image: self._complete(image, ledger), StoreForm(epoch.epoch, has_tree=True)
        )
        broadcasts = Broadcasts(
            SendingController(node_id, epoch.epoch), self._listener, self._connect_to, self._clock, self._rng
        )
        self._active = ActiveController(
            self._zookeeper,
            ledger,
            broadcasts,
            self._config,
            self._effective,
            self._clock,
            self._rng,
            on_doubt=self.election.take_part,
            find_topic_id=self._find_topic_id,
            counts=self.election_counts,
        )
        self._active.start().addErrback(self._report_failed_start, self._active)
        if self._config.bool("auto.leader.rebalance.enable"):
            interval_s = self._config.int("leader.imbalance.check.interval.seconds")
            self._balance.start(interval_s, now=False)
        balance_interval_ms = self._config.int("kafkacompat.broker.group.balance.interval.ms")
        if balance_interval_ms > 0:
            self._capacity_balance.start(balance_interval_ms / 1000, now=False)

    def _find_topic_id(self, topic: TopicImage) -> bytes:
        """Return the id by which this broker knows a topic, zeros for none."""
        known = self._metadata.image.topics.get(topic.name)
        return self.replicas.find_topic_id(topic) if known is None else known.topic_id

    def _complete(self, image: MetadataImage, ledger: MetadataLedger) -> MetadataImage:
        """Add to a stored image what the store does not hold."""
        return replace(image, brokers=ledger.image.brokers, controller_id=self._config.node_id)

    def _report_failed_start(self, failure: Any, active: ActiveController) -> None:
        if self._active is active:
            log.error("The controller cannot begin its work, and lets another be elected", exc_info=failure.value)
            self.election.pass_on()

    def _resign_controller(self) -> None:
        if self._balance.running:
            self._balance.stop()
        if self._capacity_balance.running:
            self._capacity_balance.stop()
        if self._active is not None:
            self._active.resign()
            self._active = None

    def _balance_leaders(self) -> None:
        if self._active is not None:
            self._active.balance_leaders()

    def _balance_capacity(self) -> Deferred[None] | None:
        """Even out the disks of groups of brokers; the next time is after the end of that."""
        config, active = self._effective.config, self._active
        groups = read_broker_groups(config)
        if active is None or not groups:
            return None
        # A cluster without groups does not pay for it.
        from kafkacompat.cluster.capacity_balance import CapacityBalance

        above = config.int("kafkacompat.broker.group.balance.percentage") / 100
        balance = CapacityBalance(active, self.brokers, self._clock, above)
        return Deferred.fromCoroutine(balance.even_out(groups))

    def _connect_to(self, broker: BrokerImage) -> Callable[[Request], Deferred[Any]]:
        """Return the function that sends a broker the controller's requests."""
        if broker.node_id == self._config.node_id:
            return self._answer_locally
        address = BrokerAddress(broker.node_id, *broker.endpoints[self._listener])
        return lambda request: self._connections.request(
            address, "controller's orders", request, timeout_s=ORDER_TIMEOUT_S
        )

    def _answer_locally(self, request: Request) -> Deferred[Any]:
        """Answer a request of this broker to itself."""
        answer: Any = _LOCAL_ANSWERS[type(request)](self, request)
        return answer if isinstance(answer, Deferred) else succeed(answer)

    # What the controller orders

    def apply_leader_and_isr(self, request: LeaderAndIsrRequest) -> Deferred[LeaderAndIsrResponse]:
        """Lead or follow partitions (LeaderAndIsr), once this broker is registered."""
        return self._wait_until_registered().addCallback(lambda _: self._apply_leader_and_isr(request))

    def _apply_leader_and_isr(self, request: LeaderAndIsrRequest) -> Deferred[LeaderAndIsrResponse]:
        code = self.fence.check_request(request.controller_epoch, request.broker_epoch)
        if code:
            return succeed(LeaderAndIsrResponse(error_code=code))
        return self.replicas.apply(request)

    def stop_replicas(self, request: StopReplicaRequest) -> Deferred[StopReplicaResponse]:
        """Stop or delete replicas (StopReplica), once this broker is registered."""
        return self._wait_until_registered().addCallback(lambda _: self._stop_replicas(request))

    def _stop_replicas(self, request: StopReplicaRequest) -> Deferred[StopReplicaResponse]:
        code = self.fence.check_request(request.controller_epoch, request.broker_epoch)
        if code:
            return succeed(StopReplicaResponse(error_code=code))
        return self.replicas.stop(request)

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Take over the brokers and partitions that the controller names (UpdateMetadata)."""
        code = self.fence.check_request(request.controller_epoch, request.broker_epoch)
        if not code:
            old, new = self._metadata.image, apply_update(self._metadata.image, request)
            self._metadata.publish(self._merge_configs(new))
            self._change_log.note_update(old, new, {topic.topic_name for topic in request.topic_states})
            self._waits.note_informed()
            for topic_id in old.topics_by_id.keys() - new.topics_by_id.keys():
                self.on_topic_deleted(old.topics_by_id[topic_id])
            if lost := old.brokers.keys() - new.brokers.keys():
                self.on_brokers_lost(lost)
        return UpdateMetadataResponse(error_code=code)

    def _on_configs(self) -> None:
        self._effective.update(self.configs.image.configs)
        self._publish_configs()
        self._effective.on_changed()
        self.on_topics_reconfigured()

    def _publish_configs(self) -> None:
        self._metadata.publish(self._merge_configs(self._metadata.image))

    def _merge_configs(self, image: MetadataImage) -> MetadataImage:
        return replace(self.configs.merge_into(image), tokens=self._tokens.tokens)

    def _on_acls(self) -> None:
        self._metadata.publish(replace(self._metadata.image, acls=self.acls.table))

    def require_active(self) -> ActiveController:
        """Return the controller, if it is this broker; raises KafkaError NOT_CONTROLLER."""
        if self._active is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "another broker is the controller")
        return self._active


_LOCAL_ANSWERS: dict[type[Request], Callable[[ClusterMember, Any], Any]] = {
    LeaderAndIsrRequest: ClusterMember.apply_leader_and_isr,
    StopReplicaRequest: ClusterMember.stop_replicas,
    UpdateMetadataRequest: ClusterMember.update_metadata,
    AlterPartitionRequest: lambda member, request: Deferred.fromCoroutine(
        member.answers.alter_partition(request, NEWEST_ALTER_PARTITION)
    ),
    ControlledShutdownRequest: lambda member, request: Deferred.fromCoroutine(member.answers.shut_down_broker(request)),
    AllocateProducerIdsRequest: lambda member, request: Deferred.fromCoroutine(
        member.answers.allocate_producer_ids(request)
    ),
    ReportStorageRequest: lambda member, request: Deferred.fromCoroutine(member.answers.report_storage(request)),
    ReportTrafficRequest: lambda member, request: Deferred.fromCoroutine(member.answers.report_traffic(request)),
}
"""What this broker answers itself instead of sending itself a request."""
