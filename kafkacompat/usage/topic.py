"""The topic of hourly records, which the operator reads and no instance sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import NewRecord, build_batch

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.config import BrokerConfig
    from kafkacompat.coordination.internal_topic import InternalTopic
    from kafkacompat.coordination.replicated_log import ReplicatedLog
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.transactions.broker_queue import SendRequest
    from kafkacompat.usage.hours import UsageRecord

USAGE_TOPIC = "__instance_usage"
RETENTION_MS = 400 * 86_400_000
"""A year's bills can be made again."""
RECORDS_IN_A_BATCH = 500
TIMEOUT_S = 30.0
PURPOSE = "usage"


def new_usage_topic(config: BrokerConfig) -> NewTopic:
    """Return the topic to create: one partition, replicated as the offsets topic is."""
    return NewTopic(
        USAGE_TOPIC,
        1,
        config.int("offsets.topic.replication.factor"),
        configs={"cleanup.policy": "compact,delete", "retention.ms": str(RETENTION_MS)},
        fewer_replicas_allowed="offsets.topic.replication.factor" not in config.given,
    )


class UsageTopic(Protocol):
    """Where hourly records are written."""

    def write(self, records: Sequence[UsageRecord], now_ms: int) -> Deferred[None]:
        """Write at most `RECORDS_IN_A_BATCH` records; fires when the in-sync replicas have them. Fails with KafkaError or another error."""


class ReplicatedUsageTopic:
    """The topic in this broker's own partition, or at the broker that leads it.

    ``send`` sends a request to another broker; None on a single node.
    """

    def __init__(
        self,
        node_id: int,
        topic: InternalTopic,
        log: ReplicatedLog,
        metadata: ImageHolder,
        send: SendRequest | None,
    ) -> None:
        self._node_id = node_id
        self._topic = topic
        self._log = log
        self._metadata = metadata
        self._send = send

    def write(self, records: Sequence[UsageRecord], now_ms: int) -> Deferred[None]:
        """See UsageTopic."""
        new: list[NewRecord] = [(now_ms, record.key.encode(), record.value.encode(), []) for record in records]
        batch = build_batch(new)
        return self._topic.ensure_exists().addCallback(lambda _: self._append(batch))

    def _append(self, batch: bytes) -> Deferred[None]:
        partition = self._metadata.image.partition(USAGE_TOPIC, 0)
        if partition is None or partition.leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{USAGE_TOPIC} has no leader")
        if partition.leader == self._node_id or self._send is None:
            return self._log.append(0, batch)
        topic = self._metadata.image.topics[USAGE_TOPIC]
        data = [PartitionProduceData(index=0, records=batch)]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=int(TIMEOUT_S * 1000),
            topic_data=[TopicProduceData(name=USAGE_TOPIC, topic_id=topic.topic_id, partition_data=data)],
        )
        return self._send(partition.leader, PURPOSE, request, TIMEOUT_S).addCallback(_check_response)


def _check_response(response: ProduceResponse) -> None:
    result = response.responses[0].partition_responses[0]
    if result.error_code:
        raise KafkaError(ErrorCode(result.error_code), result.error_message or "")
