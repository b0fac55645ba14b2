"""Nasty topics in a cluster: found at their leaders, and truncated by an unclean election."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kafkacompat.testing
from kafkacompat.testing.nasty import NastyTopic
from tests.kafkacompat.testing.nasty.support import read_as_consumer


@pytest.fixture(scope="module")
def kafka() -> Iterator[kafkacompat.testing.RunningCluster]:
    with kafkacompat.testing.cluster(3) as running:
        yield running


def read_at_leader(kafka: kafkacompat.testing.RunningCluster, topic: NastyTopic) -> list[object]:
    def read() -> list[object]:
        leaders = [
            broker.replica_manager.find(topic.name, 0)
            for broker in kafka.brokers.values()
            if any(partition.topic == topic.name and partition.is_leader for partition in broker.replica_manager)
        ]
        (leader,) = leaders
        return list(read_as_consumer(leader, committed=True))

    records: list[object] = kafka.call(read)
    return records


def test_topics_are_made_on_any_broker(kafka: kafkacompat.testing.RunningCluster) -> None:
    gaps = kafka.nasty.transaction_gaps("gaps", transactions=3)
    assert read_at_leader(kafka, gaps) == list(gaps.read_committed)
    types = kafka.nasty.mixed_timestamp_types("types")
    assert read_at_leader(kafka, types) == list(types.read_committed)


def test_an_unclean_election_truncates(kafka: kafkacompat.testing.RunningCluster) -> None:
    losing = kafka.nasty.unclean_truncation("lost")
    assert len(kafka.brokers) == 2
    assert read_at_leader(kafka, losing.before) == list(losing.before.read_committed)
    after = losing.truncate()
    assert len(kafka.brokers) == 3
    assert read_at_leader(kafka, after) == list(after.read_committed)
    assert after.read_committed[10].value != losing.before.read_committed[10].value

    def list_ends() -> set[int]:
        replicas = [partition for broker in kafka.brokers.values() for partition in broker.replica_manager]
        return {partition.log.log_end_offset for partition in replicas if partition.topic == "lost"}

    assert kafka.call(list_ends) == {25}
