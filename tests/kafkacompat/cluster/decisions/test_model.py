"""Random events on a cluster: what holds after each of them, whatever came before."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkacompat.cluster.decisions.broadcasts import Moment, plan_broadcast
from kafkacompat.cluster.decisions.broker_changes import (
    compare_brokers,
    handle_broker_changes,
    handle_replica_answers,
    shut_down_broker,
    take_over,
)
from kafkacompat.cluster.decisions.in_sync_changes import InSyncChange, InSyncRequest, change_in_sync_sets
from kafkacompat.cluster.decisions.leader_balance import ElectionType, balance_leaders, elect_leaders
from kafkacompat.cluster.decisions.reassignment import complete_reassignments, reassign_partitions
from kafkacompat.cluster.decisions.situation import (
    Decision,
    Presence,
    ReplicaStop,
    Situation,
    TopicPartition,
    is_unclean_allowed,
    list_partitions,
)
from kafkacompat.cluster.decisions.topic_deletion import queue_deletions, record_answers, resume_deletions
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import NO_LEADER, BrokerImage, MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.placement import new_partition
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.cluster.decisions.clusters import NOBODY, allow_unclean, build_draft

NODES = (1, 2, 3, 4)
CLEAN, UNCLEAN = "clean", "unclean"
KEYS = [TopicPartition(topic, index) for topic in (CLEAN, UNCLEAN) for index in range(3)]
ASSIGNMENTS = st.lists(st.sampled_from(NODES), min_size=1, max_size=3, unique=True)
NEVER = PartitionImage(0, NO_LEADER, -1, (), (), -1)


class ClusterMachine(RuleBasedStateMachine):
    """A controller's image and situation; each rule is an event, committed as one change of the store."""

    def __init__(self) -> None:
        super().__init__()
        self.image = build_draft(NODES).build_image()
        self.situation = NOBODY
        self.last_epoch = 1000
        self.stops: set[ReplicaStop] = set()
        for topic in (CLEAN, UNCLEAN):
            self.create_topic(topic)

    # Events

    @rule(topic=st.sampled_from([CLEAN, UNCLEAN]))
    def topic_is_created(self, topic: str) -> None:
        if topic not in self.image.topics:
            self.create_topic(topic)

    def create_topic(self, name: str) -> None:
        online = self.image.brokers.keys() - self.situation.shutting_down
        replicas = [(1, 2, 3), (2, 3), (4,)]
        partitions = [new_partition(index, nodes, online) for index, nodes in enumerate(replicas)]
        self.last_epoch += 1
        draft = MetadataDraft(self.image)
        draft.put_topic(TopicImage(name, b"%016d" % self.last_epoch, tuple(partitions)))
        if name == UNCLEAN:
            allow_unclean(draft, name)
        keys = [TopicPartition(name, index) for index in range(len(partitions))]
        self.commit(draft, Decision(self.situation, tuple(keys)))

    @rule(changes=st.dictionaries(st.sampled_from(NODES), st.sampled_from(["gone", "bounced"]), min_size=1))
    def brokers_change(self, changes: dict[int, str]) -> None:
        """Brokers fail; those that are down start, or the others bounce."""
        registered = dict(self.image.brokers)
        for node, change in changes.items():
            registered.pop(node, None)
            if change == "bounced":
                self.last_epoch += 1
                registered[node] = BrokerImage(node, None, {}, self.last_epoch)
        difference = compare_brokers(self.image.brokers, registered)
        draft = self.draft_with(registered)
        decision = handle_broker_changes(draft, self.situation, difference)
        arrived = (*difference.started, *difference.bounced)
        self.stops = {stop for stop in self.stops if stop.broker_id in registered and stop.broker_id not in arrived}
        self.commit(draft, decision, started=arrived)

    def draft_with(self, registered: dict[int, BrokerImage]) -> MetadataDraft:
        return MetadataDraft(replace(self.image, brokers=registered))

    @rule(node=st.sampled_from(NODES))
    def broker_shuts_down(self, node: int) -> None:
        if node not in self.image.brokers:
            return
        draft = MetadataDraft(self.image)
        decision, remaining = shut_down_broker(draft, self.situation, node, self.image.brokers[node].epoch)
        self.commit(draft, decision)
        for key in remaining:
            others = set(self.partitions[key].in_sync_replicas) - self.situation.shutting_down
            assert not Presence(self.image.brokers, self.situation).list_online(key, others)

    @rule(node=st.sampled_from(NODES), keys=st.sets(st.sampled_from(KEYS), min_size=1))
    def log_directory_fails(self, node: int, keys: set[TopicPartition]) -> None:
        failed = {key for key in keys if key in self.partitions and node in self.partitions[key].replicas}
        if node in self.image.brokers and failed:
            draft = MetadataDraft(self.image)
            offline = failed | self.situation.offline_replicas.get(node, frozenset())
            self.commit(draft, handle_replica_answers(draft, self.situation, node, offline))

    @rule(key=st.sampled_from(KEYS), members=st.sets(st.sampled_from(NODES)), stale=st.integers(0, 1))
    def leader_changes_in_sync_set(self, key: TopicPartition, members: set[int], stale: int) -> None:
        self.request_in_sync_set(key, members, stale)

    def request_in_sync_set(self, key: TopicPartition, members: set[int], stale: int = 0) -> None:
        partition = self.partitions.get(key)
        if partition is None or partition.leader not in self.image.brokers:
            return
        isr = tuple(node for node in partition.replicas if node in members | {partition.leader})
        epochs = tuple(self.image.brokers[node].epoch if node in self.image.brokers else 5 for node in isr)
        change = InSyncChange(*key, partition.leader_epoch, partition.partition_epoch - stale, isr, epochs)
        request = InSyncRequest(partition.leader, self.image.brokers[partition.leader].epoch, 3, [change])
        draft = MetadataDraft(self.image)
        results, changed = change_in_sync_sets(draft, self.situation, request)
        self.commit(draft, Decision(self.situation, changed))
        assert results == ((self.partitions[key],) if not isinstance(results[0], ErrorCode) else results)
        self.complete_reassignments(changed)

    def complete_reassignments(self, keys: tuple[TopicPartition, ...]) -> None:
        draft = MetadataDraft(self.image)
        completed = Decision(self.situation, complete_reassignments(draft, self.situation, keys))
        topics = {key.topic for key in completed.changed}
        self.commit(draft, resume_deletions(draft, self.situation, topics).after(completed))

    @rule(wanted=st.dictionaries(st.sampled_from(KEYS), st.none() | ASSIGNMENTS, min_size=1, max_size=2))
    def partitions_are_reassigned(self, wanted: dict[TopicPartition, list[int] | None]) -> None:
        draft = MetadataDraft(self.image)
        results, changed = reassign_partitions(draft, self.situation, wanted)
        refused = {key for key, problem in results.items() if problem is not None}
        assert results.keys() == wanted.keys() and refused.isdisjoint(changed)
        self.commit(draft, Decision(self.situation, changed))

    @rule(kind=st.sampled_from(ElectionType), keys=st.none() | st.sets(st.sampled_from(KEYS)))
    def leaders_are_elected(self, kind: ElectionType, keys: set[TopicPartition] | None) -> None:
        draft = MetadataDraft(self.image)
        results, changed = elect_leaders(draft, self.situation, kind, keys)
        assert set(changed) == {key for key, problem in results.items() if problem is None}
        self.commit(draft, Decision(self.situation, changed), unclean=kind == ElectionType.UNCLEAN)

    @rule()
    def leaders_are_balanced(self) -> None:
        draft = MetadataDraft(self.image)
        changed = balance_leaders(draft, self.situation, 0)
        self.commit(draft, Decision(self.situation, changed))
        assert all(self.partitions[key].leader == self.partitions[key].replicas[0] for key in changed)

    @rule(topic=st.sampled_from([CLEAN, UNCLEAN]))
    def topic_is_deleted(self, topic: str) -> None:
        draft = MetadataDraft(self.image)
        self.commit(draft, queue_deletions(draft, self.situation, [topic]))

    @precondition(lambda self: self.stops)
    @rule(data=st.data())
    def broker_deletes(self, data: st.DataObject) -> None:
        stop = data.draw(st.sampled_from(sorted(self.stops)))
        code = data.draw(st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]))
        self.answer_deletion(stop, code)

    def answer_deletion(self, stop: ReplicaStop, code: ErrorCode) -> None:
        self.stops.discard(stop)
        draft = MetadataDraft(self.image)
        self.commit(draft, record_answers(draft, self.situation, stop.broker_id, {stop.key: code}))

    @rule(bounced=st.sets(st.sampled_from(NODES)))
    def controller_moves(self, bounced: set[int]) -> None:
        """Another controller takes over: it knows what is stored, and the brokers answer it again."""
        draft = MetadataDraft(self.image)
        self.stops = set()
        decision = take_over(draft, NOBODY, self.situation.deletions, bounced & self.image.brokers.keys())
        self.commit(draft, decision, started=tuple(self.image.brokers))

    @rule()
    def everything_heals(self) -> None:
        """All brokers start anew and all followers catch up: then everything has a leader, and nothing waits."""
        self.brokers_change(dict.fromkeys(NODES, "bounced"))
        for _ in range(2):
            for key in self.partitions:
                self.request_in_sync_set(key, set(NODES))
        while self.stops:
            self.answer_deletion(min(self.stops), ErrorCode.NONE)
        assert not self.situation.deletions
        for partition in self.partitions.values():
            assert not partition.is_reassigned and partition.leader != NO_LEADER
            assert sorted(partition.in_sync_replicas) == sorted(partition.replicas)

    # What a change does

    @property
    def partitions(self) -> dict[TopicPartition, PartitionImage]:
        return dict(list_partitions(self.image))

    def commit(
        self, draft: MetadataDraft, decision: Decision, *, started: tuple[int, ...] = (), unclean: bool = False
    ) -> None:
        old = Moment(self.image, self.situation)
        new = Moment(draft.build_image(), decision.situation)
        before, after = dict(list_partitions(old.image)), dict(list_partitions(new.image))
        removed = before.keys() - after.keys()
        assert {key.topic for key in removed} <= set(decision.finished)
        before.update(dict.fromkeys(after.keys() - before.keys(), NEVER))
        differing = {key for key in after if after[key] != before[key]}
        assert differing <= set(decision.changed)
        for key in after:
            allowed = unclean or is_unclean_allowed(draft, NOBODY, key.topic)
            self.check_change(before[key], after[key], unclean=allowed)
        self.check_broadcast(old, new, decision, started)
        self.image, self.situation = new
        self.stops |= {stop for stop in decision.stops if stop.delete}

    def check_change(self, before: PartitionImage, after: PartitionImage, *, unclean: bool) -> None:
        assert after.leader_epoch >= before.leader_epoch
        state_before, state_after = (
            (image.leader, image.leader_epoch, image.in_sync_replicas, image.is_recovering) for image in (before, after)
        )
        assert after.partition_epoch == before.partition_epoch + (state_before != state_after)
        if after.has_state and (after.leader != before.leader or before.replicas != after.replicas):
            assert after.leader_epoch > before.leader_epoch
        if after.leader not in (before.leader, NO_LEADER) and before.in_sync_replicas and not unclean:
            assert after.leader in before.in_sync_replicas

    def check_broadcast(self, old: Moment, new: Moment, decision: Decision, started: tuple[int, ...]) -> None:
        broadcast = plan_broadcast(old, new, started=started, stops=decision.stops)
        assert [orders.broker for orders in broadcast.orders] == list(new.image.brokers.values())
        before = defaultdict(lambda: NEVER, list_partitions(old.image))
        received = {
            (orders.broker.node_id, TopicPartition(row.topic, row.partition.partition))
            for orders in broadcast.orders
            for row in orders.leader_and_isr
        }
        stopped = {
            (orders.broker.node_id, TopicPartition(row.topic, row.partition))
            for orders in broadcast.orders
            for row in orders.stop_replica
        }
        shown = {TopicPartition(row.topic, row.partition.partition) for row in broadcast.metadata}
        for key, partition in list_partitions(new.image):
            for node in new.image.brokers:
                is_replica = node in partition.replicas and partition.has_state
                if is_replica and (node in started or partition.leader_epoch > before[key].leader_epoch):
                    assert (node, key) in received
                if node in before[key].replicas and node not in partition.replicas:
                    assert (node, key) in stopped and (node, key) not in received
            if partition.partition_epoch > before[key].partition_epoch and not new.situation.is_deleting(key.topic):
                assert key in shown

    # What always holds

    @invariant()
    def leaders_are_alive_and_in_sync(self) -> None:
        presence = Presence(self.image.brokers, self.situation)
        for key, partition in self.partitions.items():
            if partition.leader != NO_LEADER and not self.situation.is_deleting(key.topic):
                assert presence.is_present(key, partition.leader)
                assert partition.leader in partition.in_sync_replicas

    @invariant()
    def partitions_without_a_leader_could_have_none(self) -> None:
        presence = Presence(self.image.brokers, self.situation)
        for key, partition in self.partitions.items():
            if partition.leader == NO_LEADER and not self.situation.is_deleting(key.topic):
                candidates = partition.in_sync_replicas or partition.replicas
                assert not presence.list_online(key, candidates)

    @invariant()
    def in_sync_sets_are_replicas(self) -> None:
        for partition in self.partitions.values():
            in_sync = partition.in_sync_replicas
            assert bool(in_sync) == partition.has_state and len(set(in_sync)) == len(in_sync)
            assert set(in_sync) <= set(partition.replicas)

    @invariant()
    def assignments_are_whole(self) -> None:
        for partition in self.partitions.values():
            replicas = set(partition.replicas)
            assert len(replicas) == len(partition.replicas)
            assert replicas >= {*partition.adding_replicas, *partition.removing_replicas}
            assert partition.origin_replicas and partition.target_replicas

    @invariant()
    def only_recovering_leaders_are_alone(self) -> None:
        for partition in self.partitions.values():
            assert not partition.is_recovering or len(partition.in_sync_replicas) == 1

    @invariant()
    def images_are_consistent(self) -> None:
        image: MetadataImage = self.image
        assert {topic.topic_id: topic for topic in image.topics.values()} == dict(image.topics_by_id)
        assert not self.situation.shutting_down - image.brokers.keys()
        assert isinstance(self.situation, Situation)


TestCluster = ClusterMachine.TestCase
TestCluster.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
