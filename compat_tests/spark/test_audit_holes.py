"""The audit of offsets without a record: the log's contents there, and the finding if these are unknown."""

from __future__ import annotations

import json
import struct
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.conftest import MakeBroker
from compat_tests.spark.auditing import BY_VALUE, judge_topic, offsets_of, source_of
from compat_tests.spark.copies import count_offsets
from compat_tests.spark.faults import numbers_of_findings, produce_records, send_records
from compat_tests.waiting import pause, until
from spark_integration.audit.pipeline import audit
from spark_integration.audit.settings import AuditSettings

pytestmark = pytest.mark.spark


def test_transactions(broker: Broker, spark: Any, name: str) -> None:
    """A sequence that was aborted and sent again counts once; one that was only aborted is reported, and is no gap."""
    create_topic(broker, name, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    steps: list[tuple[list[int], bool]] = [([0, 1, 2], True), ([3, 4], False), ([3], True), ([6], True)]
    for numbers, is_kept in steps:
        producer.begin_transaction()
        produce_records(producer, name, 0, [("p", number) for number in numbers], {})
        assert producer.flush(30) == 0
        (producer.commit_transaction if is_kept else producer.abort_transaction)(30)
    until(lambda: count_offsets(broker, name) == 11)  # Kafka writes the marker a moment after its response
    send_records(broker, name, {0: [("p", 7)]})
    summary = judge_topic(spark, broker, name)
    # Offsets: 0-2 and the marker 3, 4-5 aborted and the marker 6, 7 and 8, 9 and 10, then 11.
    assert offsets_of(summary, "marker") == {(0, offset) for offset in (3, 6, 8, 10)}
    assert offsets_of(summary, "aborted") == {(0, 4), (0, 5)}
    assert numbers_of_findings(summary.details["aborted-sequence"]) == {("p", 4)}
    assert numbers_of_findings(summary.details["gap"]) == {("p", 5)}
    assert summary.found == {"gap": 1, "marker": 4, "aborted": 2, "aborted-sequence": 1}
    assert [(row["records"], row["offsets"]) for row in summary.topics] == [(6, 12)]


def test_holes_that_are_not_looked_into(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    for number in range(3):
        producer.begin_transaction()
        produce_records(producer, name, 0, [("p", number)], {})
        producer.commit_transaction(30)
    summary = audit(spark, source_of(broker, name), settings=AuditSettings(BY_VALUE, examine=2))
    assert offsets_of(summary, "marker") == {(0, 1), (0, 3)}
    assert summary.found == {"unexamined": 1, "marker": 2}
    assert summary.verdict.startswith("UNSURE")


def test_a_compacted_topic(make_broker: MakeBroker, spark: Any, name: str) -> None:
    """Compacted records are no gap, but a sequence that never had an offset is one."""
    broker = make_broker({"log.cleaner.backoff.ms": "100"})
    config = {"cleanup_policy": "compact", "internal_segment_bytes": "2000", "min_cleanable_dirty_ratio": "0.01"}
    create_topic(broker, name, 1, **config)
    dropped = {("p", 498), ("p", 499)}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 7})
    for number in range(500):
        if ("p", number) not in dropped:
            value = json.dumps({"producer": "p", "sequence": number})
            producer.produce(name, value, key=b"%d" % (number % 5 if number else -1), partition=0)
    produce_records(producer, name, 0, [("p", 500)], {})
    assert producer.flush(30) == 0
    until(partial(is_settled, broker.data_folder / f"{name}-0"), timeout_seconds=60)
    left = spark.read.format("kafka").options(**source_of(broker, name)).load()
    kept_offsets = {row.offset for row in left.select("offset").collect()}
    assert 5 < len(kept_offsets) < 200, "nothing was compacted, or all"
    summary = judge_topic(spark, broker, name)
    assert offsets_of(summary, "compacted") == {(0, offset) for offset in range(499) if offset not in kept_offsets}
    assert numbers_of_findings(summary.details["gap"]) == dropped
    assert numbers_of_findings(summary.details["compacted-sequence"]) == {
        ("p", offset) for offset in range(499) if offset not in kept_offsets
    }
    assert summary.found.keys() == {"gap", "compacted", "compacted-sequence"}
    assert len(summary.notes) == 1


def is_settled(folder: Path) -> bool:
    """Return whether the cleaner has cleaned all but the last segment."""
    before = size_of(folder)
    pause(1)
    return before < 15_000 and size_of(folder) == before


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.log"))


def test_batches_that_a_log_has_lost(make_broker: MakeBroker, spark: Any, name: str) -> None:
    """Batches are cut out of a stopped broker's file; a marker beside them is still reported as one."""
    broker = make_broker()
    create_topic(broker, name, 1)
    for number in range(6):
        send_records(broker, name, {0: [("p", 2 * number), ("p", 2 * number + 1)]})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    produce_records(producer, name, 0, [("p", 12)], {})
    producer.commit_transaction(30)
    until(lambda: count_offsets(broker, name) == 14)
    send_records(broker, name, {0: [("p", 13)]})
    broker.stop()
    lost = without_batches(broker.data_folder / f"{name}-0", {2, 3, 5})
    broker.start()
    summary = judge_topic(spark, broker, name)
    assert offsets_of(summary, "unexplained") == {(0, offset) for offset in lost}
    assert offsets_of(summary, "marker") == {(0, 13)}
    assert numbers_of_findings(summary.details["gap"]) == {("p", offset) for offset in lost}
    assert summary.found == {"gap": len(lost), "unexplained": len(lost), "marker": 1}


def without_batches(folder: Path, numbers: set[int]) -> list[int]:
    """Cut the batches of these numbers out of the only segment; return their offsets."""
    file = folder / "00000000000000000000.log"
    data, position, kept = file.read_bytes(), 0, b""
    lost: list[int] = []
    for number in range(data.count(b"\x00" * 8) + len(data)):
        if position >= len(data):
            break
        first, length = struct.unpack_from(">qi", data, position)
        (delta,) = struct.unpack_from(">i", data, position + 23)
        batch = data[position : position + 12 + length]
        if number in numbers:
            lost += range(first, first + delta + 1)
        else:
            kept += batch
        position += len(batch)
    file.write_bytes(kept)
    for index in folder.glob("*index"):
        index.unlink()
    assert lost, "no batch was taken"
    return lost
