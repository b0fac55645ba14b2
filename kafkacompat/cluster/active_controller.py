"""The controller while this broker is it: events in, decisions, writes to ZooKeeper, and orders to the brokers.

Events are handled one at a time. An event changes a draft of the image (`decisions`), the ledger commits it with a check of the
controller epoch, and `Broadcasts` tells the brokers. What waits for brokers does not hold up the next event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cached_property, partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.cluster.admin_nodes import AdminNodes
from kafkacompat.cluster.bounces import find_bounced
from kafkacompat.cluster.broadcasts import Broadcasts
from kafkacompat.cluster.controller_events import ControllerEvents
from kafkacompat.cluster.deciding import Results, decide_each
from kafkacompat.cluster.decisions.broadcasts import Moment
from kafkacompat.cluster.decisions.broker_changes import (
    ShutdownDecision,
    compare_brokers,
    elect_leaderless,
    end_reassignments,
    handle_broker_changes,
    handle_replica_answers,
    shut_down_broker,
    take_over,
)
from kafkacompat.cluster.decisions.in_sync_changes import InSyncRequest, change_in_sync_sets
from kafkacompat.cluster.decisions.leader_balance import ElectionType, balance_leaders, elect_leaders
from kafkacompat.cluster.decisions.reassignment import reassign_partitions
from kafkacompat.cluster.decisions.situation import Decision, Situation, TopicPartition, changes_unclean_elections
from kafkacompat.cluster.decisions.topic_deletion import record_answers
from kafkacompat.cluster.failed_directories import FailedDirectories
from kafkacompat.cluster.topic_deletions import TopicDeletions
from kafkacompat.metadata.changes import MetadataChanges
from kafkacompat.metadata.image import NO_LEADER, BrokerImage, MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.topic_changes import AdmitPartitions, admit_all
from kafkacompat.metadata.znodes.brokers import decode_broker
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.tenancy.placement import limit_hosts
from kafkacompat.timers import Clock, steady_ms
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.zookeeper.client import NoNodeError, WatchEvent, WatchKind, ZooKeeper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafkacompat.cluster.election_counts import ElectionCounts
    from kafkacompat.cluster.traffic_master import TrafficMasterRole
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.draft import MetadataDraft
    from kafkacompat.metadata.effective import EffectiveConfig
    from kafkacompat.metadata.ledger import MetadataLedger
    from kafkacompat.tenancy.storage_sums import StorageSums

log = logging.getLogger(__name__)

BROKER_IDS = Znode.BROKER_IDS.path()
Decide: TypeAlias = "Callable[[MetadataDraft, Situation], Decision]"


class Announced(NamedTuple):
    """``fired`` fires when the brokers have done what a decision demands of them."""

    fired: Deferred[None]


class ActiveController:
    """The controller's work in one controller epoch. Call `start` once, and `resign` when the epoch is over.

    *find_topic_id* returns the id by which this broker knows a topic, zeros for none. *on_doubt* is called when ZooKeeper did not
    make a change: another broker may be the controller. ``counts`` is of all controller epochs of this broker.
    """

    def __init__(
        self,
        zookeeper: ZooKeeper,
        ledger: MetadataLedger,
        broadcasts: Broadcasts,
        static_config: BrokerConfig,
        effective: EffectiveConfig,
        clock: Clock,
        rng: Random,
        *,
        on_doubt: Callable[[], object],
        find_topic_id: Callable[[TopicImage], bytes],
        counts: ElectionCounts,
    ) -> None:
        self._counts = counts
        self._clock = clock
        self._storage_sums: StorageSums | None = None
        self._zookeeper = zookeeper
        self._ledger = ledger
        self._broadcasts = broadcasts
        self._effective = effective
        self._static_config = static_config
        self._situation = Situation(unclean_by_default=static_config.bool("unclean.leader.election.enable"))
        self._announced = Moment(MetadataImage(), self._situation)
        self._events = ControllerEvents(clock, on_doubt)
        self.changes = MetadataChanges(
            ledger,
            self._apply_change,
            self._events.lock,
            static_config,
            effective,
            rng,
            lambda topic: self._situation.is_queued(topic),
            limit_hosts,
        )
        self._admin_nodes = AdminNodes(
            zookeeper, ledger, rng, self._events.handle, self._decide, lambda: self._situation, find_topic_id
        )
        self._failed_directories = FailedDirectories(zookeeper, self._events, self._query_brokers)
        self._deletions = TopicDeletions(
            zookeeper,
            ledger,
            broadcasts,
            self._events,
            self._decide,
            lambda: self._situation,
            may_delete=static_config.bool("delete.topic.enable"),
        )
        broadcasts.on_replica_answers = self._on_replica_answers
        broadcasts.on_deletion_answers = self._on_deletion_answers

    # Taking over and resigning

    def start(self) -> Deferred[None]:
        """Read everything, settle what happened without a controller, and send every broker its state.

        A controller whose start fails has resigned.
        """
        return self._events.run(self._begin)

    async def _begin(self) -> None:
        try:
            await self._start()
        except BaseException:
            # The events that wait would be decided, and announced, by an image that misses what brokers did meanwhile.
            self.resign()
            raise

    async def _start(self) -> None:
        brokers = await self._read_brokers()
        self._ledger.image = replace(self._ledger.image, brokers=brokers)
        await self._admin_nodes.load()
        deleting = await self._deletions.read()
        # An earlier controller need not have seen the brokers that had registered before it: it may have died before it began.
        known = [topic for name, topic in self._ledger.image.topics.items() if name not in deleting]
        bounced = await find_bounced(self._zookeeper, brokers, known)
        self._announced = Moment(self._ledger.image, self._situation)
        await self._decide(lambda draft, situation: take_over(draft, situation, deleting, bounced), started=brokers)
        # The answers of all brokers to the orders of this start say the same as these events.
        await self._failed_directories.begin()

    @property
    def image(self) -> MetadataImage:
        """The image that ZooKeeper holds; brokers may not have received it yet."""
        return self._ledger.image

    @cached_property
    def traffic(self) -> TrafficMasterRole:
        """The traffic master of this controller epoch, which begins with the first report."""
        # A cluster without instances does not pay for it.
        from kafkacompat.cluster.traffic_master import TrafficMasterRole

        interval_ms = self._static_config.int("kafkacompat.traffic.interval.ms")
        return TrafficMasterRole(lambda: self.image, self._clock, interval_ms)

    def add_up_storage(self, broker_id: int, epoch: int, stored: Mapping[str, int]) -> dict[str, int]:
        """Note what instances store on a broker; return their totals, {} while this controller does not know these yet.

        Raises KafkaError STALE_BROKER_EPOCH for a broker that is not alive or has started again.
        """
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is not alive in epoch {epoch}")
        if self._storage_sums is None:
            # A cluster without instances does not pay for them.
            from kafkacompat.tenancy.storage_sums import StorageSums

            self._storage_sums = StorageSums(steady_ms(self._clock))
        self._storage_sums.note(broker_id, stored)
        return self._storage_sums.find_totals(list(stored), self.image.brokers, steady_ms(self._clock))

    def look_again(self) -> None:
        """Read again what the watches of a lost connection may have missed."""
        self._events.handle(self._change_brokers, "a change of the brokers")
        self._deletions.look_again()
        self._failed_directories.look_again()
        self._admin_nodes.look_again()

    def resign(self) -> None:
        """Do nothing any more: another controller may be at work."""
        self._events.stop()
        self._broadcasts.close()
        self._deletions.stop()

    # Deciding and announcing

    async def _decide(
        self, decide: Decide, *, started: Collection[int] = (), queried: Collection[int] = ()
    ) -> Announced:
        decision = await self._ledger.commit(lambda draft: decide(draft, self._situation))
        led = [key for key in decision.changed if self._has_leader(key)]
        self._situation = decision.situation.without_doubts(led)
        announced = self._announce(decision, started, queried)
        await self._deletions.note_decision(decision)
        return Announced(announced)

    def _has_leader(self, key: TopicPartition) -> bool:
        partition = self._ledger.image.partition(*key)
        return partition is not None and partition.leader != NO_LEADER

    def _announce(
        self, decision: Decision, started: Collection[int] = (), queried: Collection[int] = ()
    ) -> Deferred[None]:
        """Tell the brokers what differs from the last announcement; fires when they have done it."""
        old, new = self._announced, Moment(self._ledger.image, self._situation)
        self._announced = new
        self._counts.note_changes(old.image, new.image, decision.changed)
        self._admin_nodes.notice_change(new.image)
        if not self._events.is_stopped:
            self._broadcasts.set_brokers(new.image.brokers)
        return self._broadcasts.announce(old, new, decision.stops, started, queried)

    async def _apply_change(self, image: MetadataImage) -> Deferred[None]:
        """Announce a change that `MetadataChanges` has committed; partitions may have a leader now for which none was in sync."""
        may_elect = changes_unclean_elections(self._announced.image, image)
        announced = self._announce(Decision(self._situation))
        if may_elect:
            self._events.handle(self._elect_leaderless, "a change of unclean elections")
        return announced

    async def _query_brokers(self, brokers: Collection[int]) -> None:
        """Ask brokers for the states of their replicas."""
        await self._decide(lambda draft, situation: Decision(situation), queried=brokers)

    async def _elect_leaderless(self) -> None:
        await self._decide(lambda draft, situation: Decision(situation, elect_leaderless(draft, situation)))

    # Brokers

    async def _read_brokers(self) -> dict[int, BrokerImage]:
        """Read all registrations."""
        names = await self._zookeeper.children(BROKER_IDS, self._on_brokers)
        brokers: dict[int, BrokerImage] = {}
        for node_id in sorted(int(name) for name in names):
            try:
                value, stat = await self._zookeeper.get(Znode.BROKER.path(node_id=node_id))
            except NoNodeError:
                continue
            brokers[node_id] = decode_broker(node_id, value, stat.czxid)
        return brokers

    def _on_brokers(self, event: WatchEvent) -> None:
        if event.kind is not WatchKind.LOST:
            self._events.handle(self._change_brokers, "a change of the brokers")

    async def _change_brokers(self) -> None:
        old = self._ledger.image.brokers
        new = await self._read_brokers()
        difference = compare_brokers(old, new)
        if any(difference):
            log.info("Brokers started: %s, failed: %s, bounced: %s", *map(list, difference))
        arrived = {*difference.started, *difference.bounced}
        self._ledger.image = replace(self._ledger.image, brokers=new)
        try:
            await self._admin_nodes.complete_topics()
            await self._decide(
                lambda draft, situation: handle_broker_changes(draft, situation, difference), started=arrived
            )
        except BaseException:
            # What was not decided is still to be noticed.
            self._ledger.image = replace(self._ledger.image, brokers=old)
            raise

    def shut_down_broker(self, broker_id: int, broker_epoch: int) -> Deferred[tuple[TopicPartition, ...]]:
        """Move the leaderships of a broker that stops; fires with the partitions that it still leads."""
        return Deferred.fromCoroutine(self._shut_down_broker(broker_id, broker_epoch))

    async def _shut_down_broker(self, broker_id: int, broker_epoch: int) -> tuple[TopicPartition, ...]:
        remaining: list[TopicPartition] = []

        def decide(draft: MetadataDraft, situation: Situation) -> Decision:
            shutdown: ShutdownDecision = shut_down_broker(draft, situation, broker_id, broker_epoch)
            remaining[:] = shutdown.remaining
            return shutdown.decision

        # The broker closes its listeners once it has the answer: until then the new leaders are to lead.
        await (await self._events.run(lambda: self._decide(decide))).fired
        return tuple(remaining)

    # What brokers answer

    def _on_replica_answers(
        self, broker: BrokerImage, failed: Collection[TopicPartition], working: Collection[TopicPartition]
    ) -> None:
        known = self._situation.offline_replicas.get(broker.node_id, frozenset())
        if set(failed) - known or known.intersection(working):
            self._handle_answers(
                broker,
                lambda draft, situation: handle_replica_answers(draft, situation, broker.node_id, failed, working),
                f"the failed replicas of broker {broker.node_id}",
            )

    def _on_deletion_answers(self, broker: BrokerImage, answers: Mapping[TopicPartition, ErrorCode]) -> None:
        self._handle_answers(
            broker,
            lambda draft, situation: record_answers(draft, situation, broker.node_id, answers),
            f"the deletions of broker {broker.node_id}",
        )

    def _handle_answers(self, broker: BrokerImage, decide: Decide, subject: str) -> None:
        """Handle what a broker has answered, unless it has started again until its turn comes: then it is asked again."""

        async def handle() -> None:
            present = self._ledger.image.brokers.get(broker.node_id)
            if present is not None and present.epoch == broker.epoch:
                await self._decide(decide)

        self._events.handle(handle, subject)

    # Requests of brokers and clients

    def delete_topics(
        self, topic_ids: Sequence[bytes], *, admit: AdmitPartitions = admit_all
    ) -> Deferred[list[KafkaError | None]]:
        """Delete topics; fires with None or an error for each, once all replicas that are alive have deleted them.

        A broker that does not answer holds this up for a while only. A topic that is being reassigned is deleted at the end of that.
        """
        return Deferred.fromCoroutine(self._deletions.delete(topic_ids, admit))

    def change_in_sync_sets(self, request: InSyncRequest) -> Deferred[Sequence[PartitionImage | ErrorCode]]:
        """Change in-sync sets as a leader requests (AlterPartition); fires with the state or an error for each change."""
        return self._events.run(lambda: self._change_in_sync_sets(request))

    async def _change_in_sync_sets(self, request: InSyncRequest) -> Sequence[PartitionImage | ErrorCode]:
        results = await self._ledger.commit(lambda draft: change_in_sync_sets(draft, self._situation, request))
        self._announce(Decision(self._situation, results.changed))
        reassigned = [key for key in results.changed if self._is_reassigned(key)]
        if reassigned:
            self._events.handle(lambda: self._complete_reassignments(reassigned), "the end of reassignments")
        return results.results

    def _is_reassigned(self, key: TopicPartition) -> bool:
        return self._ledger.image.topics[key.topic].partitions[key.partition].is_reassigned

    async def _complete_reassignments(self, keys: Iterable[TopicPartition]) -> None:
        keys = list(keys)
        await self._decide(lambda draft, situation: end_reassignments(draft, situation, keys))

    def reassign_partitions(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None], *, factor_may_change: bool = True
    ) -> Deferred[Results]:
        """Start, replace or cancel (None) reassignments; fires with None or an error for each partition."""
        reassign = partial(reassign_partitions, wanted=wanted, factor_may_change=factor_may_change)
        return self._events.run(lambda: decide_each(self._decide, reassign))

    def elect_leaders(self, kind: ElectionType, wanted: Sequence[TopicPartition] | None) -> Deferred[Results]:
        """Elect leaders (ElectLeaders); fires with None or an error for each partition."""
        elect = partial(elect_leaders, kind=kind, wanted=wanted)
        return self._events.run(lambda: decide_each(self._decide, elect))

    def balance_leaders(self) -> None:
        """Move leaderships back to preferred replicas where a broker leads too few of them."""
        percentage = self._effective.config.int("leader.imbalance.per.broker.percentage")

        async def balance() -> None:
            await self._decide(
                lambda draft, situation: Decision(situation, balance_leaders(draft, situation, percentage))
            )

        self._events.handle(balance, "the balance of leaders")

    def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> Deferred[range]:
        """Allocate a block of producer ids to a broker.

        Fails with KafkaError BROKER_ID_NOT_REGISTERED and STALE_BROKER_EPOCH.
        """

        async def allocate() -> range:
            broker = self._ledger.image.brokers.get(broker_id)
            if broker is None:
                raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered")
            if broker.epoch != broker_epoch:
                reason = f"broker {broker_id} has the epoch {broker.epoch}, the request is of epoch {broker_epoch}"
                raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, reason)
            return await self._ledger.allocate_producer_ids(broker_id)

        return self._events.run(allocate)
