"""Proposed in-sync sets on their way to the controller: AlterPartition (KIP-497, KIP-903).

Proposals of many partitions travel in one request, one request at a time. A request that finds no controller is repeated: until
the answer comes, the leader counts the replicas of both sets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.partitions.cluster_view import CommittedInSync
from kafkacompat.timers import Clock
from kafkacompat.wire.apis.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionResult,
    TopicData,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.cluster.controller_link import ControllerLink
    from kafkacompat.partitions.partition_state import PartitionState

log = logging.getLogger(__name__)

TIMEOUT_S = 30.0
RETRY_S = 0.1

_Key = tuple[bytes, int]


class _Proposal(NamedTuple):
    data: PartitionData
    topic: str
    committed: Deferred[CommittedInSync]


class AlterPartitionUpdates:
    """Implements `InSyncUpdates`."""

    def __init__(self, node_id: int, broker_epoch: Callable[[], int], link: ControllerLink, clock: Clock) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._link = link
        self._clock = clock
        self._waiting: dict[_Key, _Proposal] = {}
        self._is_sending = False

    def propose(
        self, partition: PartitionState, new_set: frozenset[int], leader_epoch: int, partition_epoch: int
    ) -> Deferred[CommittedInSync]:
        """See InSyncUpdates."""
        assert partition.leading is not None
        epochs = partition.leading.list_broker_epochs(new_set)
        data = PartitionData(
            partition_index=partition.log.partition,
            leader_epoch=leader_epoch,
            new_isr=sorted(new_set),
            new_isr_with_epochs=[BrokerState(broker_id=node, broker_epoch=epochs[node]) for node in sorted(epochs)],
            partition_epoch=partition_epoch,
        )
        key = (partition.log.topic_id, partition.log.partition)
        committed: Deferred[CommittedInSync] = Deferred()
        replaced = self._waiting.pop(key, None)
        self._waiting[key] = _Proposal(data, partition.log.topic, committed)
        if replaced is not None:
            replaced.committed.errback(
                KafkaError(ErrorCode.INVALID_UPDATE_VERSION, "another proposal has taken its place")
            )
        self._send()
        return committed

    def _send(self) -> None:
        if self._is_sending or not self._waiting:
            return
        self._is_sending = True
        sent, self._waiting = self._waiting, {}
        topics: dict[bytes, TopicData] = {}
        for (topic_id, _), proposal in sent.items():
            topic = topics.setdefault(topic_id, TopicData(topic_name=proposal.topic, topic_id=topic_id, partitions=[]))
            topic.partitions.append(proposal.data)
        request = AlterPartitionRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )
        sending = self._link.send(request, TIMEOUT_S)
        sending.addCallback(self._on_answer, sent).addErrback(self._on_failure, sent)

    def _on_answer(self, response: AlterPartitionResponse, sent: dict[_Key, _Proposal]) -> None:
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code), "the controller rejects the broker's in-sync sets")
        self._is_sending = False
        results = {
            (topic.topic_id, result.partition_index): result for topic in response.topics for result in topic.partitions
        }
        for key, proposal in sent.items():
            _settle(proposal.committed, results.get(key))
        self._send()

    def _on_failure(self, failure: Failure, sent: dict[_Key, _Proposal]) -> None:
        """Repeat the request later; a newer proposal of the same partition counts instead of its older one."""
        log.info("The controller has not answered proposed in-sync sets, which are repeated: %s", failure.value)
        for key, proposal in sent.items():
            if key in self._waiting:
                proposal.committed.errback(failure)
            else:
                self._waiting[key] = proposal
        self._clock.callLater(RETRY_S, self._send_again)

    def _send_again(self) -> None:
        self._is_sending = False
        self._send()


def _settle(committed: Deferred[CommittedInSync], result: PartitionResult | None) -> None:
    if result is None:
        committed.errback(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller's answer lacks the partition"))
    elif result.error_code:
        committed.errback(KafkaError(ErrorCode(result.error_code), "the controller rejects the in-sync set"))
    else:
        committed.callback(CommittedInSync(result.isr, result.leader_epoch, result.partition_epoch))
