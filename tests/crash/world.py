"""The node of a life: processes that follow one another over one disk, whose reactor and threads take turns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import count
from random import Random
from typing import Any

from twisted.internet.defer import Deferred

from kafkacompat.config import BrokerConfig
from kafkacompat.metadata.image import TopicImage
from kafkacompat.partitions.partition import Partition
from kafkacompat.upkeep.cleaning import LogCleaner
from kafkacompat.upkeep.housekeeping import Housekeeping
from tests.crash.examination import Case, check_promise, state_of
from tests.crash.machine import COMPACTED_TOPIC, set_leader, start_node
from tests.crash.model import PartitionModel, Promises
from tests.fakes.disk import ManualDisk
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.workers import ManualWorkers
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.partitions.node import Node, topic

BROKER = BrokerConfig({"node.id": "1"})


class World(ABC):
    """The node, and models of its partitions. Every other seed syncs before it answers."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.syncs_always = seed % 2 == 1
        self.topics: dict[str, TopicImage] = {}
        self.models: dict[tuple[str, int], PartitionModel] = {}
        self.leader_epoch = 0
        self.appends_meanwhile = 0
        """How many appends there may still be while a thread is in the middle of something."""
        self._ids = count(1)
        self._in_a_thread = False
        self._node: Node | None = None
        self.begin(MemoryFiles())

    @abstractmethod
    def before_operation(self, operation: str) -> None:
        """Something is about to be done to the file system."""

    @abstractmethod
    def append(self) -> None:
        """Append something somewhere."""

    # --- promises ---

    def case(self, *, power_fails: bool) -> Case:
        """A crash in this instant."""
        promises = {
            name: model.promise(power_fails=power_fails, syncs_always=self.syncs_always)
            for name, model in self.models.items()
        }
        return Case(dict(self.topics), promises, self.leader_epoch + 1, self.syncs_always, power_fails)

    @property
    def node(self) -> Node:
        """The process that runs."""
        assert self._node is not None
        return self._node

    def note_progress(self) -> None:
        """Note how far every log has come."""
        for partition in self._node.replicas if self._node is not None else ():
            model = self.models.get((partition.topic, partition.index))
            if model is not None and partition.log.topic_id == model.topic_id:
                model.note(partition.log)

    # --- processes ---

    def begin(self, files: MemoryFiles) -> None:
        """Start a process over the existing files."""
        self.files = files
        self.files.before_change = self._before_change
        self.leader_epoch += 1
        self._node = None
        self._node = start_node(files, self.topics, self.leader_epoch, syncs_always=self.syncs_always)
        housekeeping = Housekeeping(self.node.clock, BROKER, self.node.replicas)
        self.housekeeping = housekeeping
        self.worker = ManualDisk()
        self.cleaner = LogCleaner(housekeeping, self.node.moves, ManualWorkers(self.worker), files, lambda: BROKER)
        self.cleaner.start()

    def _before_change(self, operation: str) -> None:
        self.note_progress()
        self.before_operation(operation)
        # An append itself is never in a thread.
        if self._in_a_thread and operation != "append" and self.appends_meanwhile and self.random.random() < 0.1:
            self.appends_meanwhile -= 1
            self._in_a_thread = False
            self.append()
            self._in_a_thread = True

    def adopt(self, promises: Promises) -> None:
        """Continue with the contents that a start found."""
        for name, promise in promises.items():
            state = state_of(self.node.replicas.find(*name))
            check_promise(name, promise, state)
            self.models[name].adopt(state.start_offset, state.end_offset)

    def end(self) -> None:
        """Stop compacting; nothing of this counts."""
        self.files.before_change = lambda _: None
        self.until(Deferred.fromCoroutine(self.cleaner.stop()))

    def until(self, done: Deferred[Any]) -> None:
        """Run all waiting work until a Deferred has fired."""
        while not done.called:
            self.node.clock.advance(0)
            self.work()
        outcome(done)

    def partition(self) -> Partition:
        """Some partition."""
        return self.node.replicas.find(*self.random.choice(list(self.models)))

    # --- taking turns ---

    def work_a_little(self) -> None:
        """Let one thread do one thing."""
        waiting = [disk for disk in (*self.node.disks, self.worker) if disk.waiting]
        if waiting:
            work = self.random.choice(waiting).waiting.popleft()
            self._in_a_thread = True
            work()
            self._in_a_thread = False

    def work(self) -> None:
        """Let all threads do all that waits."""
        while any(disk.waiting for disk in (*self.node.disks, self.worker)):
            self.work_a_little()

    def turn(self) -> None:
        """Let the reactor have its next turn."""
        self.node.clock.advance(0)

    def create(self, name: str, partitions: int) -> None:
        """Commit the topic, and open it."""
        image = topic(name, partitions, next(self._ids).to_bytes(16, "big"))
        self.topics[name] = image
        for index in range(partitions):
            self.models[name, index] = PartitionModel(image.topic_id, is_compacted=name == COMPACTED_TOPIC)
        self.node.make(set_leader(image, self.leader_epoch))
