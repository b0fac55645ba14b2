"""The cluster as ZooKeeper has it: followed change by change, which is checked at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafkacompat.metadata.znodes.cluster import decode_controller_epoch
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.topics import LeaderIsrAndControllerEpoch, decode_partition_state, decode_topic
from kafkacompat.zookeeper.client import NoNodeError, WatchKind
from kafkacompat.zookeeper.memory import MemoryZooKeeper
from kafkacompat.zookeeper.memory_tree import TreeEvent

CHROOT = "/kafka"


class ReplicaKey(NamedTuple):
    """A partition of one topic, by the topic's id: one of the same name later is another."""

    topic_id: bytes
    partition: int


class StoredPartition(NamedTuple):
    """A partition as ZooKeeper has it; ``version`` is the partition epoch."""

    topic: str
    key: ReplicaKey
    replicas: tuple[int, ...]
    is_reassigned: bool
    state: LeaderIsrAndControllerEpoch | None = None
    version: int = -1


class ClusterState:
    """Topics and partitions by name. *report* receives a sentence for each change that no controller may make.

    ``on_partition`` is called with a partition before and after its change.
    """

    def __init__(self, zookeeper: MemoryZooKeeper, report: Callable[[str], object]) -> None:
        self.partitions: dict[tuple[str, int], StoredPartition] = {}
        self.controller_epoch = 0
        self.unclean_topics: set[str] = set()
        self.on_partition: Callable[[StoredPartition, StoredPartition], object] = lambda before, after: None
        self._zookeeper = zookeeper
        self._report = report
        zookeeper.on_event = self._note

    def find(self, key: ReplicaKey) -> StoredPartition | None:
        """The partition of a key; None for one that is deleted."""
        return next((partition for partition in self.partitions.values() if partition.key == key), None)

    def is_going(self, key: ReplicaKey) -> bool:
        """Return whether a partition's topic is deleted, or will be."""
        stored = self.find(key)
        return stored is None or self._zookeeper.has(CHROOT + Znode.DELETED_TOPIC.path(topic=stored.topic))

    def controller(self) -> int:
        """The session of the controller; 0 without one."""
        return self._zookeeper.owner(CHROOT + Znode.CONTROLLER.path())

    def _note(self, event: TreeEvent) -> None:
        path = event.path.removeprefix(CHROOT)
        if event.kind is WatchKind.CHILDREN:
            return
        if path == Znode.CONTROLLER_EPOCH.path():
            self._note_controller_epoch(path)
        elif path.startswith("/brokers/topics/"):
            names = path.split("/")[3:]
            if len(names) == 1:
                self._note_topic(names[0], event.kind)
            elif len(names) == 4 and event.kind is not WatchKind.DELETED:
                self._note_state(path, names[0], int(names[2]))

    def _read(self, path: str) -> tuple[bytes, int]:
        value, stat = self._zookeeper.get(CHROOT + path)
        return value, stat.version

    def _note_controller_epoch(self, path: str) -> None:
        epoch = decode_controller_epoch(self._read(path)[0])
        if epoch < self.controller_epoch:
            self._report(f"the controller epoch went from {self.controller_epoch} back to {epoch}")
        self.controller_epoch = epoch

    def _note_topic(self, name: str, kind: WatchKind) -> None:
        if kind is WatchKind.DELETED:
            self.partitions = {place: stored for place, stored in self.partitions.items() if place[0] != name}
            return
        try:
            value, _ = self._read(Znode.TOPIC.path(topic=name))
        except NoNodeError:
            return
        topic = decode_topic(name, value)
        for index, assignment in enumerate(topic.partitions):
            is_reassigned = bool(assignment.adding_replicas or assignment.removing_replicas)
            key = ReplicaKey(topic.topic_id, index)
            before = self.partitions.get((name, index)) or StoredPartition(name, key, (), False)
            after = before._replace(key=key, replicas=assignment.replicas, is_reassigned=is_reassigned)
            self.partitions[name, index] = after

    def _note_state(self, path: str, topic: str, index: int) -> None:
        try:
            value, version = self._read(path)
        except NoNodeError:
            return  # created and deleted in one transaction
        before = self.partitions.get((topic, index))
        if before is None:
            return
        state = decode_partition_state(topic, index, value)
        self.partitions[topic, index] = after = before._replace(state=state, version=version)
        self._check(before, after)
        self.on_partition(before, after)

    def _check(self, before: StoredPartition, after: StoredPartition) -> None:
        old, new = before.state, after.state
        assert new is not None
        name = f"{after.topic}-{after.key.partition}"
        if new.controller_epoch != self.controller_epoch:
            self._report(
                f"the controller of epoch {new.controller_epoch} wrote the state of {name} in the controller epoch"
                f" {self.controller_epoch}"
            )
        if old is None:
            return
        if new.leader_epoch < old.leader_epoch:
            self._report(f"the leader epoch of {name} went from {old.leader_epoch} back to {new.leader_epoch}")
        if new.leader not in (-1, old.leader) and new.leader_epoch == old.leader_epoch:
            self._report(f"{name} has the leaders {old.leader} and {new.leader} in leader epoch {new.leader_epoch}")
        is_clean = new.leader == -1 or new.leader in old.in_sync_replicas
        if not is_clean and after.topic not in self.unclean_topics:
            self._report(
                f"broker {new.leader} was elected for {name}, whose in-sync replicas were {old.in_sync_replicas}"
            )
