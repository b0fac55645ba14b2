"""The audit of parts of topics: records that may lie outside of them are not called gaps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from compat_tests.brokers import Broker
from compat_tests.confluent import admin_of, create_topic
from compat_tests.spark.auditing import judge_topic, source_of
from compat_tests.spark.faults import numbers_of_findings, produce_records, send_records
from spark_integration.audit.pipeline import audit
from spark_integration.audit.settings import AuditFields, AuditSettings

pytestmark = pytest.mark.spark

FROM_ZERO = AuditFields("$.producer", "$.sequence", first_sequence=0)


def send_alternating(broker: Broker, topic: str, dropped: int) -> None:
    """Send 40 records, even ones to one partition and odd ones to the other, except for one of them."""
    create_topic(broker, topic, 2)
    left = [number for number in range(40) if number != dropped]
    send_records(broker, topic, {part: [("p", number) for number in left if number % 2 == part] for part in (0, 1)})


def test_sequences_below_deleted_records_count_as_cut(broker: Broker, spark: Any, name: str) -> None:
    """The first ten even records are deleted: nothing is known of sequences below the first one that is left."""
    send_alternating(broker, name, dropped=31)
    for future in admin_of(broker).delete_records([TopicPartition(name, 0, 10)]).values():
        future.result(30)
    summary = judge_topic(spark, broker, name, FROM_ZERO)
    assert numbers_of_findings(summary.details["cut-sequence"]) == {("p", number) for number in range(0, 20, 2)}
    assert numbers_of_findings(summary.details["gap"]) == {("p", 31)}
    assert summary.found == {"gap": 1, "cut-sequence": 10}
    by_partition = AuditSettings(AuditFields("$.producer", "$.sequence"), sequence_scope="partition")
    assert "cut-sequence" not in audit(spark, source_of(broker, name), settings=by_partition).found


def test_sequences_above_the_read_range_count_as_cut(broker: Broker, spark: Any, name: str) -> None:
    """Only the first ten of one partition are read: sequences above them may be in the rest of it."""
    send_alternating(broker, name, dropped=11)
    ends = json.dumps({name: {"0": 10, "1": -1}})
    summary = audit(spark, source_of(broker, name, endingOffsets=ends), settings=AuditSettings(FROM_ZERO))
    assert numbers_of_findings(summary.details["cut-sequence"]) == {("p", number) for number in range(20, 39, 2)}
    assert numbers_of_findings(summary.details["gap"]) == {("p", 11)}


def test_an_open_transaction(broker: Broker, spark: Any, name: str) -> None:
    """An open transaction hides later records of another producer in that partition."""
    create_topic(broker, name, 2)
    send_records(broker, name, {0: [("p", 0), ("p", 2)], 1: [("p", 3)]})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    produce_records(producer, name, 0, [("q", 0)], {})
    assert producer.flush(30) == 0
    send_records(broker, name, {0: [("p", 4), ("p", 6)], 1: [("p", 5), ("p", 7)]})
    summary = judge_topic(spark, broker, name)
    producer.abort_transaction(30)
    assert numbers_of_findings(summary.details["cut-sequence"]) == {("p", 4), ("p", 6)}
    assert numbers_of_findings(summary.details["gap"]) == {("p", 1)}
    after = judge_topic(spark, broker, name)
    assert after.found == {"gap": 1, "marker": 1, "aborted": 1, "aborted-sequence": 1}
