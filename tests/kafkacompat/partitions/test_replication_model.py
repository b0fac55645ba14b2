"""Three brokers replicate a partition while leaders change: nothing that was acknowledged is lost.

A random run appends, fetches, lets time pass, answers proposals of in-sync sets, and elects leaders that the brokers learn of one by
one. Disks work in between. A run is repeated by its seed.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from kafkacompat.metadata.image import TopicImage
from kafkacompat.partitions.cluster_view import ClusterView, CommittedInSync
from kafkacompat.partitions.fetch_sessions import WantedPartition
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.partition_state import PartitionState
from kafkacompat.partitions.replica_progress import FetchingReplica
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch, split_batches
from tests.kafkacompat.metadata.deferreds import has_fired
from tests.kafkacompat.partitions.node import Node, topic

REPLICAS = (1, 2, 3)
LAG_MS = 2_000
CONFIG = LogConfig(segment_bytes=700, min_insync_replicas=2)


def replicated() -> TopicImage:
    image = topic()
    return image._replace(partitions=tuple(partition._replace(replicas=REPLICAS) for partition in image.partitions))


class Decision(NamedTuple):
    """The partition as the controller has it."""

    leader: int
    leader_epoch: int
    in_sync: frozenset[int]
    partition_epoch: int


class Controller:
    """Commits proposals that fit, and elects leaders from the in-sync set."""

    def __init__(self) -> None:
        self.state = Decision(1, 10, frozenset(REPLICAS), 1)
        self.waiting: list[tuple[frozenset[int], int, int, Deferred[CommittedInSync]]] = []

    def propose(
        self, partition: PartitionState, new_set: frozenset[int], leader_epoch: int, partition_epoch: int
    ) -> Deferred[CommittedInSync]:
        answer: Deferred[CommittedInSync] = Deferred()
        self.waiting.append((new_set, leader_epoch, partition_epoch, answer))
        return answer

    def answer(self, random: Random) -> None:
        """Decide about the first proposal; its answer may be lost."""
        new_set, leader_epoch, partition_epoch, answer = self.waiting.pop(0)
        outcome: CommittedInSync | Exception
        if leader_epoch != self.state.leader_epoch:
            outcome = KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        elif partition_epoch != self.state.partition_epoch:
            outcome = KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
        elif random.random() < 0.1:
            outcome = KafkaError(ErrorCode.INELIGIBLE_REPLICA)
        else:
            self.state = self.state._replace(in_sync=new_set, partition_epoch=partition_epoch + 1)
            outcome = CommittedInSync(new_set, leader_epoch, partition_epoch + 1)
        if random.random() < 0.1:
            outcome = ConnectionError("the answer is lost")
        if isinstance(outcome, Exception):
            answer.errback(outcome)
        else:
            answer.callback(outcome)

    def elect(self, random: Random) -> None:
        """Elect another leader; sometimes the old one counts as failed and leaves the in-sync set."""
        state = self.state
        others = sorted(state.in_sync - {state.leader}) or [state.leader]
        leader = random.choice(others)
        in_sync = state.in_sync - {state.leader} if random.random() < 0.5 and len(others) > 1 else state.in_sync
        self.state = Decision(leader, state.leader_epoch + 1, in_sync | {leader}, state.partition_epoch + 1)


class Broker:
    """One replica; ``known`` is the last decision that has reached it."""

    def __init__(self, number: int, controller: Controller, syncs_always: bool) -> None:
        self.number = number
        self.node = Node(config=CONFIG, syncs_always=syncs_always)
        self.node.open(replicated())
        self.partition: Partition = self.node.replicas.find("t", 0)
        self.view = ClusterView(number, LAG_MS, dict.fromkeys(REPLICAS, -1).get, controller)
        self.known: Decision | None = None
        self.appended: Deferred[Any] = succeed(None)
        self.problems: list[str] = []

    def learn(self, decision: Decision) -> None:
        """Take the role that the controller has decided on."""
        while self.partition.is_truncating:
            self.node.sync()
        if decision.leader == self.number:
            self.partition.become_leader(
                self.view,
                decision.leader_epoch,
                REPLICAS,
                decision.in_sync,
                decision.partition_epoch,
                self.node.now_ms,
            )
        else:
            self.partition.become_follower(decision.leader, decision.leader_epoch, decision.partition_epoch)
        self.known = decision

    def fetch_from(self, leader: Broker) -> None:
        """Fetch once as a follower."""
        following = self.partition.follower
        if not has_fired(self.appended) or self.partition.is_truncating:
            return
        assert self.known is not None
        wanted = WantedPartition(
            "t",
            0,
            following.log_end_offset,
            600,
            self.known.leader_epoch,
            following.latest_epoch,
            log_start_offset=0,
        )
        try:
            read = leader.partition.read_as_replica(
                FetchingReplica(self.number, -1),
                wanted,
                600,
                at_least_one_batch=True,
                fetched_ms=leader.node.now_ms,
            )
        except KafkaError as problem:
            assert problem.code in (
                ErrorCode.FENCED_LEADER_EPOCH,
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ), problem
            return
        if read.diverging_epoch is not None:
            self.truncate(*read.diverging_epoch)
            return
        records = b""
        if isinstance(read.region, FileRegion):
            records = read.region.pread(0, read.region.size_bytes)
            read.region.release()
        appended = following.append_fetched(records, read.high_watermark, 0, self.node.now_ms)
        if isinstance(appended, Deferred):
            self.appended = appended.addErrback(self.note_refusal)

    def note_refusal(self, failure: Failure) -> None:
        """Note why fetched batches were not appended: the only reason is a new role."""
        problem = failure.value
        if not isinstance(problem, KafkaError) or problem.code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self.problems.append(f"fetched batches were refused with {problem!r}")

    def truncate(self, leader_epoch: int, leader_end: int) -> None:
        """Drop what the leader does not have (KIP-101, KIP-279)."""
        following = self.partition.follower
        epoch, end_offset = following.end_offset_for_epoch(leader_epoch)
        offset = min(end_offset, leader_end) if epoch == leader_epoch else min(end_offset, following.log_end_offset)
        following.truncate(offset if epoch >= 0 else min(leader_end, following.log_end_offset))


class Run:
    """A random run; ``acknowledged`` holds the batches by their offsets."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.controller = Controller()
        syncs_always = seed % 3 == 0
        self.brokers = {number: Broker(number, self.controller, syncs_always) for number in REPLICAS}
        self.acknowledged: dict[int, bytes] = {}
        self.seen: dict[int, bytes] = {}
        self.problems: list[str] = []
        self.count = 0
        for broker in self.brokers.values():
            broker.learn(self.controller.state)

    def step(self) -> None:
        action = self.random.choices(
            (self.append, self.fetch, self.work, self.pass_time, self.answer, self.elect, self.learn),
            (6, 12, 6, 2, 2, 0.3, 2),
        )[0]
        action()
        self.look()

    def append(self) -> None:
        """Append at a broker that believes to lead, as a producer with acks=all."""
        broker = self.random.choice(list(self.brokers.values()))
        self.count += 1
        records = build_batch([(broker.node.now_ms, b"k", b"%d-%d" % (broker.number, self.count), [])])
        try:
            appended = broker.partition.append_to_all(records, broker.node.now_ms)
        except KafkaError as problem:
            assert problem.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS), problem
            return
        waiting = appended if isinstance(appended, Deferred) else None
        if waiting is None:
            assert isinstance(appended, AppendResult)
            self.acknowledge(appended, records)
        else:
            waiting.addCallbacks(self.acknowledge, self.not_acknowledged, callbackArgs=(records,))

    def acknowledge(self, result: AppendResult, records: bytes) -> None:
        if result.base_offset in self.acknowledged:
            self.problems.append(f"offset {result.base_offset} was acknowledged twice")
        self.acknowledged[result.base_offset] = records[HEADER_BYTES:]

    def not_acknowledged(self, failure: Failure) -> None:
        problem = failure.value
        expected = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        if not isinstance(problem, KafkaError) or problem.code not in expected:
            self.problems.append(f"an append failed with {problem!r}")

    def fetch(self) -> None:
        broker = self.random.choice(list(self.brokers.values()))
        if not broker.partition.is_leader:
            broker.fetch_from(self.brokers[broker.partition.state.leader_id])

    def work(self) -> None:
        self.random.choice(list(self.brokers.values())).node.sync()

    def pass_time(self) -> None:
        for broker in self.brokers.values():
            broker.node.clock.advance(LAG_MS / 1000 * self.random.choice((0.1, 0.6)))
            broker.partition.check_in_sync(broker.node.now_ms)

    def answer(self) -> None:
        if self.controller.waiting:
            self.controller.answer(self.random)

    def elect(self) -> None:
        self.controller.elect(self.random)

    def learn(self) -> None:
        self.random.choice(list(self.brokers.values())).learn(self.controller.state)

    def look(self) -> None:
        """What consumers have seen anywhere stays as it is, at every broker."""
        for broker in self.brokers.values():
            if broker.partition.is_truncating:
                continue
            end = broker.partition.high_watermark
            assert end.offset <= broker.partition.log.log_end_offset
            for offset, contents in list_batches(broker.partition):
                assert self.seen.setdefault(offset, contents) == contents

    def settle(self) -> None:
        """Let everybody learn everything, and everything be replicated."""
        for _ in range(60):
            while self.controller.waiting:
                self.controller.answer(Random(1))
            for broker in self.brokers.values():
                broker.learn(self.controller.state)
                broker.node.sync()
            for broker in self.brokers.values():
                if not broker.partition.is_leader:
                    broker.fetch_from(self.brokers[broker.partition.state.leader_id])
                broker.node.sync()
            self.look()


HEADER_BYTES = 21
"""Base offset, length, leader epoch, magic and CRC; the leader changes the first ones."""


def list_batches(partition: Partition) -> list[tuple[int, bytes]]:
    """Return (base offset, contents) of each batch that consumers may see."""
    batches, offset, end = [], 0, partition.high_watermark
    while (region := partition.log.read(offset, 1 << 20, end)) is not None:
        data = region.pread(0, region.size_bytes)
        region.release()
        for batch in split_batches(data):
            offset = int.from_bytes(batch[:8], "big")
            batches.append((offset, bytes(batch[HEADER_BYTES:])))
            offset += 1
    return batches


@pytest.mark.parametrize("seed", [*range(30), 59])
def test_what_is_acknowledged_survives_changes_of_the_leader(seed: int) -> None:
    run = Run(seed)
    for _ in range(600):
        run.step()
    run.settle()
    logs = [list_batches(broker.partition) for broker in run.brokers.values()]
    assert logs[0] == logs[1] == logs[2]
    kept = dict(logs[0])
    assert {offset: kept.get(offset) for offset in run.acknowledged} == run.acknowledged
    ends = {broker.partition.log.log_end_offset for broker in run.brokers.values()}
    assert ends == {len(kept)}
    assert run.problems + [problem for broker in run.brokers.values() for problem in broker.problems] == []


def test_a_run_acknowledges_and_elects() -> None:
    run = Run(4)
    for _ in range(400):
        run.step()
    assert len(run.acknowledged) > 5
    assert run.controller.state.leader_epoch > 12
