"""TxnOffsetCommit in every version: the codes of both coordinators; and OffsetFetch of stable offsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.handlers.context import Pending
from kafkacompat.storage.producers.verification import NOT_VERIFIED, Guard
from kafkacompat.transactions.transaction import ProducerIdentity
from kafkacompat.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafkacompat.wire.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import read_header
from tests.fakes.vouching import Asked, FakeVouching
from tests.handlers.node import context_of, handle_request
from tests.handlers.transaction_node import TransactionNode
from tests.kafkacompat.groups.support import GROUP, is_waiting, take_response
from tests.kafkacompat.transactions.support import ID, NONE, P0

VERSIONS = range(6)
ADDING = 5
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


@dataclass
class Offsets:
    """The offsets topic's partitions as a handler sees them: ``open`` are producers with an open transaction there."""

    open: set[int] = field(default_factory=set)
    asked: list[tuple[int, int, int, bool]] = field(default_factory=list)
    refuse_with: ErrorCode | None = None
    missing: ErrorCode | None = None

    def find(self, topic: str, partition: int) -> Offsets:
        assert topic == OFFSETS_TOPIC
        if self.missing is not None:
            raise KafkaError(self.missing)
        return self

    def guard(self, producer_id: int, epoch: int, sequence: int, *, begins_at_zero: bool) -> Guard | None:
        self.asked.append((producer_id, epoch, sequence, begins_at_zero))
        if self.refuse_with is not None:
            raise KafkaError(self.refuse_with)
        return None if producer_id in self.open else Guard(epoch, sequence, begins_at_zero)


class Verifying:
    """The broker's configuration: whether coordinators are asked."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def bool(self, name: str) -> bool:
        assert name == "transaction.partition.verification.enable"
        return self._node.is_verifying


class Node(TransactionNode):
    """See `TransactionNode`; ``guards`` are those of the batches in the offsets topic."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets = Offsets()
        self.is_verifying = True
        self.guards: list[Guard | None] = []
        services: Any = self._services
        services.replica_manager = self.offsets
        services.effective = type("EffectiveConfig", (), {"config": Verifying(self)})
        self.world.coordinator.markers._end_transaction = self.groups.coordinator.end_transaction
        self.where = (OFFSETS_TOPIC, self.groups.coordinator.partition_for(GROUP))
        append = self.groups.log.append

        def noted(partition: int, batch: bytes, guard: Guard | None = None) -> Deferred[None]:
            self.guards.append(guard)
            return append(partition, batch)

        self.groups.log.append = noted  # type: ignore[method-assign]

    def begin(self, version: int) -> ProducerIdentity:
        """A producer whose transaction takes commits of this version."""
        producer = self.world.init()
        if version < ADDING:
            assert self.world.add(producer, self.where) is NONE
        return producer

    def commit(self, producer: ProducerIdentity, version: int, **fields: Any) -> dict[int, int]:
        return list_codes(self.ask(make_request(producer, **fields), TxnOffsetCommitResponse, version))

    def pending(self, producer: ProducerIdentity, version: int) -> Pending[Any]:
        """Return the handler's result, which may be a Pending."""
        response = handle_request(make_request(producer), context_of(version), self._services)
        assert isinstance(response, Pending)
        return response


def make_request(
    producer: ProducerIdentity,
    *,
    name: str = ID,
    group: str = GROUP,
    topic: str = "t",
    partitions: tuple[int, ...] = (0,),
    **fields: Any,
) -> TxnOffsetCommitRequest:
    wanted = [
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=40 + index) for index in partitions
    ]
    return TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=wanted)],
        **fields,
    )


def list_codes(response: TxnOffsetCommitResponse) -> dict[int, int]:
    return {
        partition.partition_index: partition.error_code for topic in response.topics for partition in topic.partitions
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_counts_once_its_transaction_is_committed(version: int) -> None:
    node = Node()
    producer = node.begin(version)
    assert node.commit(producer, version, partitions=(0, 1)) == {0: 0, 1: 0}
    assert [node.groups.committed(partition=index) for index in (0, 1)] == [-1, -1]
    assert node.world.end(producer, version=2 if version >= ADDING else 0).error_code is NONE
    assert [node.groups.committed(partition=index) for index in (0, 1)] == [40, 41]


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_that_do_not_exist_are_refused_alone(version: int) -> None:
    node = Node()
    producer = node.begin(version)
    assert node.commit(producer, version, partitions=(0, 2, -1)) == {0: 0, 2: UNKNOWN, -1: UNKNOWN}
    assert node.commit(producer, version, topic="absent") == {0: UNKNOWN}
    assert node.ask(make_request(producer, partitions=()), TxnOffsetCommitResponse, version).topics == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_offsets_partition_has_to_be_part_of_the_transaction_or_comes_to_be(version: int) -> None:
    node = Node()
    producer = node.world.init()
    node.world.add(producer, P0)
    expected = {4: ErrorCode.TRANSACTION_ABORTABLE, ADDING: NONE}.get(version, ErrorCode.INVALID_TXN_STATE)
    assert node.commit(producer, version) == {0: expected}
    topics = {topic.topic for topic in node.world.coordinator.describe(ID).topics}
    assert topics == ({"t", OFFSETS_TOPIC} if version >= ADDING else {"t"})


@pytest.mark.parametrize("version", VERSIONS)
def test_another_producer_of_the_transactional_id_is_refused(version: int) -> None:
    node = Node()
    producer = node.begin(version)
    older = producer._replace(producer_epoch=-1)
    assert node.commit(older, version) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}, "never PRODUCER_FENCED"
    mapping = {0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert node.commit(producer._replace(producer_id=7), version) == mapping
    assert node.commit(producer._replace(producer_id=-1), version) == mapping
    assert node.commit(producer, version, name="unknown") == mapping
    assert node.commit(producer, version, name="") == {0: ErrorCode.INVALID_REQUEST}
    assert node.commit(producer, version, group="") == {0: ErrorCode.INVALID_GROUP_ID}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_epoch_that_the_partition_knows_to_be_old_is_refused_at_once(version: int) -> None:
    node = Node()
    producer = node.begin(version)
    node.offsets.refuse_with = ErrorCode.INVALID_PRODUCER_EPOCH
    assert node.commit(producer, version) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert node.guards == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_transaction_that_is_open_there_is_not_asked_about_again(version: int) -> None:
    node = Node()
    producer = node.world.init()
    node.offsets.open.add(producer.producer_id)
    assert node.commit(producer, version) == {0: 0}
    (guard,) = node.guards
    assert guard not in (None, NOT_VERIFIED), "a marker may be in line before it"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_carries_a_guard(version: int) -> None:
    node = Node()
    producer = node.begin(version)
    node.commit(producer, version)
    assert node.offsets.asked == [(*producer, -1, version >= ADDING)]
    (guard,) = node.guards
    assert guard is not None
    assert guard.begins_at_zero is (version >= ADDING)


@pytest.mark.parametrize("version", VERSIONS)
def test_with_verification_off_only_added_partitions_are_verified(version: int) -> None:
    node = Node()
    node.is_verifying = False
    node.offsets.open.clear()
    assert node.commit(ProducerIdentity(77, 0), version) == {
        0: ErrorCode.INVALID_PRODUCER_ID_MAPPING if version >= ADDING else NONE
    }
    assert node.guards == ([] if version >= ADDING else [NOT_VERIFIED])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_an_absent_offsets_partition_is_reported_with_a_coordinators_code(
    version: int, code: ErrorCode, expected: ErrorCode
) -> None:
    node = Node()
    producer = node.begin(version)
    node.offsets.missing = code
    assert node.commit(producer, version) == {0: expected}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_a_coordinator_on_another_broker_that_does_not_answer_is_asked_again(
    version: int, code: ErrorCode, expected: ErrorCode
) -> None:
    node = Node()
    producer = node.begin(version)
    verifier = FakeVouching(code=code)
    node._services.coordinators.verifier = verifier
    if expected is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < 2:
        expected = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert node.commit(producer, version) == {0: expected}
    assert verifier.asked == [Asked(ID, *producer, [node.where], version >= ADDING)]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_oldest_producers_do_not_know_of_coordinators_that_load(version: int) -> None:
    node = Node()
    producer = node.begin(version)
    partition = node.where[1]
    node.groups.coordinator.on_resignation(partition)
    node.groups.log.batches[partition] = [_make_batch()]
    node.groups.coordinator.on_election(partition)
    expected = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if version >= 2 else ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert node.commit(producer, version) == {0: expected}
    node.groups.turn(5)
    assert node.commit(producer, version) == {0: 0}


def _make_batch() -> bytes:
    other = Node()
    other.groups.commit()
    (batch,) = other.groups.log.batches[other.where[1]]
    return batch


@pytest.mark.parametrize("version", [3, 4, ADDING])
def test_members_are_looked_at_where_the_version_names_them(version: int) -> None:
    node = Node()
    (member_id,) = node.groups.stable()
    producer = node.begin(version)
    member: dict[str, Any] = {"member_id": member_id, "generation_id": 1}
    assert node.commit(producer, version, **member) == {0: 0}
    assert node.commit(producer, version, **(member | {"generation_id": 2})) == {0: ErrorCode.ILLEGAL_GENERATION}
    assert node.commit(producer, version, **(member | {"member_id": "x"})) == {0: ErrorCode.UNKNOWN_MEMBER_ID}
    assert node.commit(producer, version) == {0: 0}, "who names nobody"


def test_a_commit_that_waits_for_the_coordinator_is_not_overtaken() -> None:
    node = Node()
    producer = node.world.init()
    node.world.log.hold = True
    waiting = node.pending(producer, ADDING)
    assert waiting.in_order
    assert is_waiting(waiting.response)
    assert node.guards == []
    node.world.log.hold = False
    node.world.log.held.pop().succeed()
    assert list_codes(take_response(waiting.response)) == {0: 0}
    node.groups.log.hold = True
    node.offsets.open.add(producer.producer_id)
    assert not node.pending(producer, ADDING).in_order, "its place in the log is settled"


def test_the_record_says_whose_it_is() -> None:
    node = Node()
    producer = node.begin(ADDING)
    node.commit(producer, ADDING)
    batch: Buffer = node.groups.log.batches[node.where[1]][0]
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch) == producer


# OffsetFetch


def fetch_offsets(
    node: Node, version: int, *, require_stable: bool, everything: bool = False
) -> dict[int, tuple[int, int]]:
    """By partition: error code and offset."""
    wanted = OffsetFetchRequest(group_id=GROUP, require_stable=require_stable)
    wanted.topics = None if everything else [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
    if version >= 8:
        wanted_topic = OffsetFetchRequestTopics(name="t", topic_id=node.holder.image.topics["t"].topic_id)
        wanted_topic.partition_indexes = [0, 1]
        wanted = OffsetFetchRequest(require_stable=require_stable)
        wanted.groups = [OffsetFetchRequestGroup(group_id=GROUP, topics=None if everything else [wanted_topic])]
    answer = node.ask(wanted, OffsetFetchResponse, version)
    topics = answer.groups[0].topics if version >= 8 else answer.topics
    return {
        partition.partition_index: (partition.error_code, partition.committed_offset)
        for topic in topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(7, 11))
def test_unstable_offsets_are_marked_if_stable_ones_are_required(version: int) -> None:
    node = Node()
    topic_id = node.holder.image.topics["t"].topic_id
    offsets = [OffsetToCommit("t", topic_id, index, index + 1, 0, "") for index in range(2)]
    node.groups.coordinator.commit(GROUP, SenderIdentity("", None, -1), offsets)
    producer = node.begin(ADDING)
    node.commit(producer, ADDING, partitions=(1,))
    assert fetch_offsets(node, version, require_stable=False) == {0: (0, 1), 1: (0, 2)}
    assert fetch_offsets(node, version, require_stable=True) == {0: (0, 1), 1: (UNSTABLE, -1)}
    assert fetch_offsets(node, version, require_stable=True, everything=True) == {0: (0, 1), 1: (UNSTABLE, -1)}
    node.world.end(producer, version=2)
    assert fetch_offsets(node, version, require_stable=True) == {0: (0, 1), 1: (0, 41)}


@pytest.mark.parametrize("version", range(7, 11))
def test_a_partition_without_an_offset_may_be_unstable_too(version: int) -> None:
    node = Node()
    node.commit(node.begin(ADDING), ADDING)
    assert fetch_offsets(node, version, require_stable=True) == {0: (UNSTABLE, -1), 1: (0, -1)}
    assert fetch_offsets(node, version, require_stable=True, everything=True) == {}
