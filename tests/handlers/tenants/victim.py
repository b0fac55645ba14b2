"""An instance and the operator's own things, which an attacker in another instance tries to reach."""

from __future__ import annotations

from typing import Any

from kafkacompat.wire import entities
from kafkacompat.wire.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsRequest
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from kafkacompat.wire.record_batch import build_batch
from tests.handlers.tenants.world import World

VICTIM = "victim"
SECRET = "xq7secret"
"""Is in each name and text of the victim that the attacker cannot guess."""
CLUSTER_ID = f"cluster-{SECRET}"
SESSION_MS = 1_800_000
GROUPS = ("g", "classic", "new")


class Victim:
    """The victim's topics, groups, transactions and members in a world; ``owner`` is None for the operator's own things."""

    def __init__(self, world: World, owner: str | None, *more_topics: str) -> None:
        self._world = world
        self._topics = ("orders", f"plans-{SECRET}", *more_topics)
        self._owner = owner
        self._prefix = "" if owner is None else f"{owner}."
        self._make_topics()
        self.session_id = self._fetch()
        self._commit("g")
        self.classic_member = self._join_classic()
        self.member = self._join("", 0)
        transaction = self._ask(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4)
        self.producer_id: int = transaction.producer_id

    def _ask(self, request: Any, version: int) -> Any:
        return self._world.ask(self._owner, request, version, client_id="client-of-victim")

    def _make_topics(self) -> None:
        kept = CreatableTopicConfig(name="retention.ms", value="123456789")
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=[kept]) for name in self._topics
        ]
        created = self._ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
        assert not any(topic.error_code for topic in created.topics), created
        self.topic_id: bytes = created.topics[0].topic_id
        batch = build_batch([(int(self._world.clock.seconds() * 1000), b"key", SECRET.encode(), [])])
        for topic in topics:
            data = TopicProduceData(name=topic.name, partition_data=[PartitionProduceData(index=0, records=batch)])
            self._ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)

    def _fetch(self) -> int:
        wanted = FetchTopic(topic="orders", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
        fetched = self._ask(FetchRequest(session_epoch=0, max_bytes=1 << 20, topics=[wanted]), 12)
        assert fetched.session_id
        return int(fetched.session_id)

    def _commit(self, group: str) -> None:
        offset = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_metadata=f"metadata-{SECRET}"
        )
        topic = OffsetCommitRequestTopic(name="orders", partitions=[offset])
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[topic])
        answer = self._ask(request, 8)
        assert answer.topics[0].partitions[0].error_code == 0, answer

    def _join_classic(self) -> str:
        metadata = write_subscription(ConsumerProtocolSubscription(topics=["orders"]), 0)
        joining = JoinGroupRequest(
            group_id="classic",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        joining.member_id = self._ask(joining, 5).member_id
        joined = self._ask(joining, 5)
        assignment = write_assignment(
            ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic="orders", partitions=[0])]), 0
        )
        synced = self._ask(
            SyncGroupRequest(
                group_id="classic",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)],
            ),
            3,
        )
        assert synced.error_code == 0, synced
        return str(joined.member_id)

    def _join(self, member_id: str, epoch: int) -> str:
        joined = self._ask(
            ConsumerGroupHeartbeatRequest(
                group_id="new",
                member_id=member_id,
                member_epoch=epoch,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=["orders"],
                topic_partitions=[],
            ),
            0,
        )
        assert joined.error_code == 0, joined
        self._epoch = joined.member_epoch
        return str(joined.member_id)

    def beat(self) -> None:
        """Keep the members alive."""
        beating = ConsumerGroupHeartbeatRequest(group_id="new", member_id=self.member, member_epoch=self._epoch)
        beaten = self._ask(beating, 0)
        assert beaten.error_code == 0, beaten
        self._epoch = beaten.member_epoch
        classic = HeartbeatRequest(group_id="classic", generation_id=1, member_id=self.classic_member)
        assert self._ask(classic, 3).error_code == 0

    def take_snapshot(self) -> dict[str, str]:
        """Everything that the victim has, as the operator sees it."""
        world, groups = self._world, [f"{self._prefix}{group}" for group in GROUPS]
        image = world.services.metadata.image
        mine = [name for name in image.topics if self._is_mine(name)]
        configs = {key: given for key, given in image.configs.items() if self._is_mine(key[1])}
        asked: dict[str, Any] = {
            "offsets": OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group) for group in groups]),
            "classic": DescribeGroupsRequest(groups=groups),
            "consumer": ConsumerGroupDescribeRequest(group_ids=groups),
            "transactions": DescribeTransactionsRequest(transactional_ids=[f"{self._prefix}tx"]),
        }
        versions = {"offsets": 8, "classic": 5, "consumer": 0, "transactions": 0}
        for group in asked["offsets"].groups:
            group.topics = None
        seen = {name: repr(world.ask(None, request, versions[name])) for name, request in asked.items()}
        seen["topics"] = repr({name: image.topics[name] for name in mine})
        seen["configs"] = repr(configs)
        seen["logs"] = repr({name: _read_log(world, name) for name in mine})
        return seen

    def _is_mine(self, name: str) -> bool:
        return name.startswith(self._prefix) if self._owner else name in self._topics

    def list_known(self) -> dict[str, list[Any]]:
        """What an attacker may have learned of the victim: ids by their kind."""
        image = self._world.services.metadata.image
        return {
            entities.TOPIC_ID: [self.topic_id, image.topics[f"{self._prefix}orders"].topic_id],
            "member_id": [self.member, self.classic_member],
            "producer_id": [self.producer_id],
            "session_id": [self.session_id],
        }


def _read_log(world: World, topic: str) -> bytes:
    log = world.services.replica_manager.find(topic, 0).log
    region = log.read(0, 1 << 20)
    assert region is not None
    data = region.pread(0, region.size_bytes)
    region.release()
    return bytes(data)
