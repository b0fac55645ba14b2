"""`kafkacompat spark translate`: a consumer group moves to the mirror of its topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from compat_tests.brokers import Broker
from compat_tests.confluent import consumer_of, create_topic, read
from compat_tests.conftest import MakeBroker
from compat_tests.spark.copies import (
    client_options,
    make_numbered_records,
    produce_records,
    read_contents,
    record_contents,
    run_mirror,
)
from spark_integration.errors import PipelineError
from spark_integration.mirror.translation import translate


def _read_values(broker: Broker, topic: str, partition: int) -> list[bytes | None]:
    return [value for _, value, _ in record_contents(read_contents(broker, topic))[partition]]


@pytest.mark.spark
def test_a_group_goes_on_in_the_mirror(
    broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
) -> None:
    target, count = make_broker(), 900
    create_topic(broker, name, 3)
    # All records have other offsets in the target than in the source.
    create_topic(target, name, 3)
    produce_records(target, name, make_numbered_records(40), 3)
    produce_records(broker, name, make_numbered_records(count), 3)
    read_so_far = {0: 130, 1: 0, 2: 299}
    committed = [TopicPartition(name, partition, offset) for partition, offset in read_so_far.items()]
    consumer_of(broker, name).commit(offsets=committed, asynchronous=False)
    run_mirror(spark, broker, target, tmp_path / "c", subscribe=name, maxOffsetsPerTrigger="250")
    summary = translate(spark, client_options(broker), client_options(target), name, offset_map="map-c")
    assert summary.committed
    assert summary.not_mirrored == 0
    wanted = {
        (partition, record)
        for partition, offset in read_so_far.items()
        for record in _read_values(broker, name, partition)[offset:]
    }
    consumer = consumer_of(target, name)
    consumer.subscribe([name])
    rest = [(message.partition(), message.value()) for message in read(consumer, len(wanted))]
    consumer.close()
    assert set(rest) == wanted


@pytest.mark.spark
def test_offsets_count_records_mirrored_back(
    broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
) -> None:
    """Mirrors run in both directions, so records of the target's own producers may be unread as well."""
    other = make_broker()
    create_topic(broker, name, 1)

    def mirror(source: Broker, target: Broker, folder: str) -> None:
        run_mirror(spark, source, target, tmp_path / folder / "c", subscribe=name)

    def send(to: Broker, *values: str) -> None:
        produce_records(to, name, [(None, value.encode(), ()) for value in values], 1)

    send(broker, *(f"a{number}" for number in range(10)))
    mirror(broker, other, "there")
    send(other, *(f"b{number}" for number in range(10, 16)))
    mirror(other, broker, "back")
    send(other, *(f"b{number}" for number in range(16, 19)))
    send(broker, *(f"a{number}" for number in range(16, 20)))
    mirror(broker, other, "there")
    everything = {*_read_values(broker, name, 0), *_read_values(other, name, 0)}
    # Within the first mirrors' records; within those of the way back; at the end, with some that never came back.
    for committed, wanted in ((5, 5), (12, 12), (20, 16)):
        group = f"{name}-{committed}"
        consumer_of(broker, group).commit(offsets=[TopicPartition(name, 0, committed)], asynchronous=False)
        summary = translate(spark, client_options(broker), client_options(other), group, offset_map="map-c")
        assert json.loads(summary.offsets) == {name: {"0": wanted}}
        unread = everything - {*_read_values(broker, name, 0)[:committed]}
        assert unread <= {*_read_values(other, name, 0)[wanted:]}


@pytest.mark.spark
def test_a_group_without_commits_is_refused(broker: Broker, spark: Any, name: str) -> None:
    with pytest.raises(PipelineError, match=f"group {name} has committed nothing"):
        translate(spark, client_options(broker), client_options(broker), name)
