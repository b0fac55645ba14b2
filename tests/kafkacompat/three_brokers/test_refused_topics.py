"""Topics that three brokers cannot hold are refused in a sentence, whichever broker receives the request."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.three_brokers.support import NODES, Cluster


@pytest.mark.parametrize("node", NODES)
def test_more_replicas_than_brokers_are_refused(node: int) -> None:
    cluster = Cluster()
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=4)
    answer = cluster.ask(node, CreateTopicsRequest(topics=[wanted], timeout_ms=5_000)).topics[0]
    assert answer.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert answer.error_message is not None
    assert "4" in answer.error_message and "3" in answer.error_message
    assert "/kafka/brokers/topics/t" not in cluster.zookeeper.contents()
