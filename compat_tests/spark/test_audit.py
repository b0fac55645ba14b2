"""The audit of topics: it names exactly the records that were dropped, doubled, overtaken and delayed, and each hole."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.conftest import MakeBroker
from compat_tests.spark.faults import faulty, produce, send, told
from compat_tests.waiting import pause, until
from spark_integration.audit import audit
from spark_integration.audit.conditions import conditions
from spark_integration.audit.fields import Fields
from spark_integration.audit.findings import AuditSummary
from spark_integration.audit.work import Judging
from spark_integration.errors import PipelineError

BY_VALUE = Fields("$.producer", "$.sequence")
ALL = 1_000


def source_of(broker: Broker, topic: str, **options: str) -> dict[str, str]:
    source = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    return {**source, "kafka.isolation.level": "read_committed", **options}


def judged(spark: Any, broker: Broker, topic: str, fields: Fields = BY_VALUE, **options: Any) -> AuditSummary:
    return audit(spark, source_of(broker, topic), judging=Judging(fields, limit=ALL), **options)


def offsets_of(summary: AuditSummary, kind: str) -> set[tuple[int, int]]:
    """Return the (partition, offset) that findings of a kind name."""
    rows = summary.details.get(kind, [])
    return {(row["partition"], offset) for row in rows for offset in range(row["first"], row["last"] + 1)}


def test_faults_are_named(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 2)
    faults = faulty(seed=1)
    send(broker, name, faults.sent)
    summary = judged(spark, broker, name)
    assert told(summary.details["gap"]) == faults.dropped
    assert told(summary.details["duplicate"]) == faults.doubled
    assert told(summary.details["inversion"]) == faults.overtaken
    assert summary.found == {"gap": 12, "duplicate": 12, "inversion": 12}
    assert [row["records"] for row in summary.topics] == [len(faults.all_sent())]


@pytest.mark.spark
@pytest.mark.parametrize(
    "fields", [Fields("header:producer", "header:sequence"), Fields("key", "$.sequence", first_sequence=-1)], ids=str
)
def test_faults_by_headers_and_keys(broker: Broker, spark: Any, name: str, fields: Fields) -> None:
    """Every producer began with 0: where it is said that they begin with -1, that one is missing."""
    create_topic(broker, name, 2)
    faults = faulty(seed=2)
    send(broker, name, faults.sent)
    summary = judged(spark, broker, name, fields)
    before = {(f"producer-{number}", -1) for number in range(4)} if fields.first_sequence == -1 else set()
    assert told(summary.details["gap"]) == faults.dropped | before
    assert told(summary.details["duplicate"]) == faults.doubled
    assert told(summary.details["inversion"]) == faults.overtaken


@pytest.mark.spark
def test_a_producer_that_counts_by_partition(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 2)
    send(
        broker,
        name,
        {partition: [("p", number) for number in range(5) if number != 2 + partition] for partition in (0, 1)},
    )
    by_partition = Judging(BY_VALUE, sequence_scope="partition")
    summary = audit(spark, source_of(broker, name), judging=by_partition)
    assert {(row["partition"], row["first"], row["last"]) for row in summary.details["gap"]} == {(0, 2, 2), (1, 3, 3)}
    assert summary.found == {"gap": 2}


@pytest.mark.spark
def test_records_that_do_not_tell(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 1)
    send(broker, name, {0: [("p", 0), ("p", 1)]})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in ("no JSON", '{"producer": "p"}', '{"producer": "p", "sequence": "x"}', None):
        producer.produce(name, value, partition=0)
    assert producer.flush(30) == 0
    summary = judged(spark, broker, name)
    assert offsets_of(summary, "unattributed") == {(0, offset) for offset in range(2, 6)}
    assert summary.found == {"unattributed": 4}


@pytest.mark.spark
def test_delays_are_told(broker: Broker, spark: Any, name: str) -> None:
    """Of a thousand known delays the percentiles are those of the nearest rank."""
    create_topic(broker, name, 1)
    delays = [Random(3).randrange(10_000) for _ in range(1_000)]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, delay in enumerate(delays):
        value = json.dumps({"sequence": number, "time": (RECENT_MS - delay) / 1000})
        producer.produce(name, value, partition=0, timestamp=RECENT_MS)
    assert producer.flush(30) == 0
    fields = Fields(None, "$.sequence", "$.time", "s")
    wanted = conditions("latency:event-producer:p50>1ms, latency:max>1h, gap")
    summary = judged(spark, broker, name, fields, fail_on=wanted)
    (row,) = summary.latency
    ranked = sorted(delays)
    assert {name: row[name] for name in ("stage", "records", "p50", "p99", "p99.9", "max", "negative")} == {
        "stage": "event-producer",
        "records": 1_000,
        "p50": ranked[499],
        "p99": ranked[989],
        "p99.9": ranked[998],
        "max": ranked[-1],
        "negative": 0,
    }
    assert [clause.split(":")[2][:6] for clause in summary.failed_on] == ["p50>1m"]
    assert summary.exit_code == 1


@pytest.mark.spark
def test_the_brokers_own_time(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 1, message_timestamp_type="LogAppendTime")
    sent = [("p", number) for number in range(20)]
    send(broker, name, {0: sent}, dict.fromkeys(sent, RECENT_MS - 10))
    summary = judged(spark, broker, name, Fields("$.producer", "$.sequence", "$.time"))
    (row,) = summary.latency
    assert row["stage"] == "event-broker"
    assert 3_600_000 < row["p50"] < 7_300_000


@pytest.mark.spark
def test_transactions(broker: Broker, spark: Any, name: str) -> None:
    """A sequence that was aborted and sent again is there once; one that was not is told, and is no gap."""
    create_topic(broker, name, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    steps: list[tuple[list[int], bool]] = [([0, 1, 2], True), ([3, 4], False), ([3], True), ([6], True)]
    for numbers, is_kept in steps:
        producer.begin_transaction()
        produce(producer, name, 0, [("p", number) for number in numbers], {})
        assert producer.flush(30) == 0
        (producer.commit_transaction if is_kept else producer.abort_transaction)(30)
    send(broker, name, {0: [("p", 7)]})
    summary = judged(spark, broker, name)
    # Offsets: 0-2 and the marker 3, 4-5 aborted and the marker 6, 7 and 8, 9 and 10, then 11.
    assert offsets_of(summary, "marker") == {(0, offset) for offset in (3, 6, 8, 10)}
    assert offsets_of(summary, "aborted") == {(0, 4), (0, 5)}
    assert told(summary.details["aborted-sequence"]) == {("p", 4)}
    assert told(summary.details["gap"]) == {("p", 5)}
    assert summary.found == {"gap": 1, "marker": 4, "aborted": 2, "aborted-sequence": 1}
    assert [(row["records"], row["offsets"]) for row in summary.topics] == [(6, 12)]


@pytest.mark.spark
def test_holes_that_are_not_looked_into(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    for number in range(3):
        producer.begin_transaction()
        produce(producer, name, 0, [("p", number)], {})
        producer.commit_transaction(30)
    summary = audit(spark, source_of(broker, name), judging=Judging(BY_VALUE, examine=2))
    assert offsets_of(summary, "marker") == {(0, 1), (0, 3)}
    assert summary.found == {"unexamined": 1, "marker": 2}


@pytest.mark.spark
def test_a_compacted_topic(make_broker: MakeBroker, spark: Any, name: str) -> None:
    """What compaction has taken is no gap, but a sequence for which there was never an offset is one."""
    broker = make_broker({"log.cleaner.backoff.ms": "100"})
    config = {"cleanup_policy": "compact", "internal_segment_bytes": "2000", "min_cleanable_dirty_ratio": "0.01"}
    create_topic(broker, name, 1, **config)
    dropped = {("p", 498), ("p", 499)}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 7})
    for number in range(500):
        if ("p", number) not in dropped:
            value = json.dumps({"producer": "p", "sequence": number})
            producer.produce(name, value, key=b"%d" % (number % 5 if number else -1), partition=0)
    produce(producer, name, 0, [("p", 500)], {})
    assert producer.flush(30) == 0
    until(partial(is_settled, broker.data_folder / f"{name}-0"), timeout_seconds=60)
    left = spark.read.format("kafka").options(**source_of(broker, name)).load()
    there = {row.offset for row in left.select("offset").collect()}
    assert 5 < len(there) < 200, "nothing was compacted, or all"
    summary = judged(spark, broker, name)
    assert offsets_of(summary, "compacted") == {(0, offset) for offset in range(499) if offset not in there}
    assert told(summary.details["gap"]) == dropped
    assert told(summary.details["compacted-sequence"]) == {
        ("p", offset) for offset in range(499) if offset not in there
    }
    assert summary.found.keys() == {"gap", "compacted", "compacted-sequence"}
    assert len(summary.notes) == 1


def is_settled(folder: Path) -> bool:
    """Whether the cleaner has been over all but the last segment."""
    before = size_of(folder)
    pause(1)
    return before < 15_000 and size_of(folder) == before


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.log"))


@pytest.mark.spark
def test_batches_that_a_log_has_lost(make_broker: MakeBroker, spark: Any, name: str) -> None:
    """Taken out of the file of a broker that is down; a marker beside them is still told to be one."""
    broker = make_broker()
    create_topic(broker, name, 1)
    for number in range(6):
        send(broker, name, {0: [("p", 2 * number), ("p", 2 * number + 1)]})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    produce(producer, name, 0, [("p", 12)], {})
    producer.commit_transaction(30)
    send(broker, name, {0: [("p", 13)]})
    assert broker.stop() == 0
    lost = without_batches(broker.data_folder / f"{name}-0", {2, 3, 5})
    broker.start()
    summary = judged(spark, broker, name)
    assert offsets_of(summary, "unexplained") == {(0, offset) for offset in lost}
    assert offsets_of(summary, "marker") == {(0, 13)}
    assert told(summary.details["gap"]) == {("p", offset) for offset in lost}
    assert summary.found == {"gap": len(lost), "unexplained": len(lost), "marker": 1}


def without_batches(folder: Path, numbers: set[int]) -> list[int]:
    """Take the batches of these numbers out of the one segment; return the offsets that they had."""
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


@pytest.mark.spark
def test_a_range_and_several_topics(broker: Broker, spark: Any, name: str) -> None:
    topics = [f"{name}-{number}" for number in range(3)]
    for topic in topics[:2]:
        create_topic(broker, topic, 1)
        send(broker, topic, {0: [("p", number) for number in range(10) if number != 4]})
    create_topic(broker, topics[2], 1)
    starts = json.dumps({topic: {"0": start} for topic, start in zip(topics, (-2, 5, 0), strict=True)})
    source = source_of(broker, ",".join(topics), startingOffsets=starts)
    summary = audit(spark, source, judging=Judging(BY_VALUE))
    assert [(row["topic"], row["offsets"], row["records"], row["found"]) for row in summary.topics] == [
        (topics[0], 9, 9, {"gap": 1}),
        (topics[1], 4, 4, {}),
        (topics[2], 0, 0, {}),
    ]


@pytest.mark.spark
def test_what_cannot_be_audited(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, 1)
    send(broker, name, {0: [("p", 0)]})
    source = source_of(broker, name)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"source": source_of(broker, "nowhere")}, "there is no topic nowhere"),
        ({"source": {**source, "endingOffsets": json.dumps({name: {"0": 7}})}}, "it holds 0 to 1"),
        ({"judging": Judging(Fields("$.producer", "$.number"))}, "none of 1 records has a sequence"),
        ({"report": tmp_path / "no" / "report.html"}, "there is no folder"),
        ({"counts": str(tmp_path)}, "is there already"),
        ({"path": str(tmp_path)}, "there is no archive"),
        ({"source": None}, "there is nothing to audit"),
    ]
    for options, sentence in wrong:
        with pytest.raises(PipelineError, match=re.escape(sentence)):
            audit(spark, **{"source": source, **options})


@pytest.mark.spark
def test_the_command(broker: Broker, name: str, tmp_path: Path) -> None:
    """A table for people, or JSON; the report and the counts beside it; and 1 for what was asked about."""
    create_topic(broker, name, 1)
    send(broker, name, {0: [("p", number) for number in range(10) if number != 4]})
    report, counts = tmp_path / "report.html", tmp_path / "counts"
    fields = ["--producer-field", "$.producer", "--sequence-field", "$.sequence"]
    options = [*fields, "--fail-on", "gap,latency:p99>1ms", "--report", str(report), "--counts", str(counts)]
    ended = run("--bootstrap-server", broker.bootstrap, "--subscribe", name, *options)
    assert ended.returncode == 1, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0] == "PROBLEMS in 9 records in 1 topic: 1 gap (sequences that no record has)"
    assert lines[1] == "fails on 1 gap (sequences that no record has)"
    text = report.read_text()
    assert lines[0] in text
    assert text.count("<svg") == 1
    assert "http" not in text.replace("http://www.w3.org", "").replace("https://matplotlib.org", "")
    assert list(counts.glob("*.parquet"))
    ended = run("--bootstrap-server", broker.bootstrap, "--subscribe", name, *fields, "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["found"] == {"gap": 1}


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kafkacompat", "spark", "audit", "--master", "local[2]", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)
