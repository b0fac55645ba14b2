"""Faults for the clients of an instance, which know its topics by other names and ids than the brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkacompat.faults import Faults
from kafkacompat.faults.injection import inject_faults
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.fetch import FetchRequest
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.faults.world import make_fetch, make_produce
from tests.kafkacompat.tenancy.world import SHOP_PORT, InstanceWorld


def test_rules_know_the_names_of_the_instance(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path)
    faults = Faults()
    inject_faults(faults, world.broker.server, world.broker._services, world.broker._handlers())
    assert world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT}") is None
    client = world.open_client(SHOP_PORT)
    wanted = CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
    topic_id = client.ask(CreateTopicsRequest(topics=[wanted])).topics[0].topic_id
    assert "orders" not in world.broker.metadata.image.topics

    faults.add(api="Produce", topic="orders", partition=1, error="KAFKA_STORAGE_ERROR")
    request = make_produce("", 0, 1)
    request.topic_data[0].topic_id = topic_id
    (answered,) = client.ask(request).responses
    assert answered.topic_id == topic_id
    codes = {data.index: data.error_code for data in answered.partition_responses}
    assert codes == {0: 0, 1: ErrorCode.KAFKA_STORAGE_ERROR}

    def fetch(request: FetchRequest) -> Any:
        for topic in request.topics:
            topic.topic_id = topic_id
        return client.ask(request)

    first = fetch(make_fetch("", 0, 1, max_wait_ms=0, session_epoch=0))
    faults.add(api="Fetch", topic="orders", partition=1, error="OFFSET_OUT_OF_RANGE", times=1)
    second = fetch(make_fetch("", session_id=first.session_id, session_epoch=1))
    (failed,) = second.responses
    assert failed.topic_id == topic_id
    assert (1, ErrorCode.OFFSET_OUT_OF_RANGE) in {(data.partition_index, data.error_code) for data in failed.partitions}
    client.close()
    world.stop()
