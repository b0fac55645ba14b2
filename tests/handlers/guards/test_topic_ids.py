"""Topics that are given by an id: what is asked about is the topic of the partition that the handler then uses."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.handlers import HANDLERS
from kafkacompat.handlers.guards import guard_handlers
from kafkacompat.metadata.image import ImageHolder, MetadataImage
from kafkacompat.security.acls.authorizer import Authorizer
from kafkacompat.security.acls.table import AclTable
from kafkacompat.security.principals import Principal
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import ZERO_UUID
from tests.handlers.data_node import DataNode, make_batch
from tests.handlers.node import context_of
from tests.kafkacompat.partitions.node import topic

FETCH_BY_ID = PRODUCE_BY_ID = 13
KNOWN_ID = b"s" * 16
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class World:
    """A node with an open topic, whose metadata do not have its id, and a client without any right."""

    def __init__(self, topic_id: bytes) -> None:
        self.node = DataNode()
        self.node.node.open(topic("secret", 1, topic_id))
        self.node.append("secret", 0, make_batch(value=b"secret"))
        self.node.services.metadata = ImageHolder()
        self.node.services.metadata.publish(MetadataImage())
        self.authorizer = Authorizer(AclTable, [])
        self.node.services.authorizer = self.authorizer

    def ask(self, request: Any, answer: Any, version: int) -> Any:
        handlers = guard_handlers(HANDLERS, self.authorizer)
        context = context_of(version)._replace(principal=Principal("User", "mallory"))
        response = handlers[request.API_KEY].handle(request, context, self.node.services)
        self.node.node.work()
        return self.node.read(response, answer, version)

    def fetch(self, topic_id: bytes) -> tuple[int, bytes]:
        wanted = FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[wanted])
        (read,) = self.ask(request, FetchResponse, FETCH_BY_ID).responses[0].partitions
        return read.error_code, bytes(read.records or b"")

    def produce(self, topic_id: bytes) -> int:
        data = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=make_batch())])
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data])
        answer = self.ask(request, ProduceResponse, PRODUCE_BY_ID)
        code: int = answer.responses[0].partition_responses[0].error_code
        return code


@pytest.mark.parametrize("topic_id", [ZERO_UUID, KNOWN_ID])
def test_no_id_gives_zero_bytes_of_a_topic_to_a_client_without_rights(topic_id: bytes) -> None:
    world = World(topic_id)
    expected = REFUSED if topic_id == KNOWN_ID else ErrorCode.UNKNOWN_TOPIC_ID
    assert world.fetch(topic_id) == (expected, b"")
    assert world.produce(topic_id) == expected


def test_unknown_ids_say_nothing() -> None:
    world = World(KNOWN_ID)
    assert world.fetch(b"x" * 16) == (ErrorCode.UNKNOWN_TOPIC_ID, b"")
    assert world.produce(b"x" * 16) == ErrorCode.UNKNOWN_TOPIC_ID
