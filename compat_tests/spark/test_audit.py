"""The audit of topics names exactly the records that were dropped, doubled, overtaken and delayed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.spark.auditing import BY_VALUE, judge_topic, offsets_of, source_of
from compat_tests.spark.faults import make_faults, numbers_of_findings, send_records
from spark_integration.audit.conditions import parse_conditions
from spark_integration.audit.pipeline import audit
from spark_integration.audit.settings import AuditFields, AuditSettings
from spark_integration.errors import PipelineError


def test_faults_are_named(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 2)
    faults = make_faults(seed=1)
    send_records(broker, name, faults.sent)
    summary = judge_topic(spark, broker, name)
    assert numbers_of_findings(summary.details["gap"]) == faults.dropped
    assert numbers_of_findings(summary.details["duplicate"]) == faults.doubled
    assert numbers_of_findings(summary.details["inversion"]) == faults.overtaken
    assert summary.found == {"gap": 12, "duplicate": 12, "inversion": 12}
    assert [row["records"] for row in summary.topics] == [len(faults.all_sent())]


@pytest.mark.spark
@pytest.mark.parametrize(
    "fields",
    [AuditFields("header:producer", "header:sequence"), AuditFields("key", "$.sequence", first_sequence=-1)],
    ids=str,
)
def test_faults_by_headers_and_keys(broker: Broker, spark: Any, name: str, fields: AuditFields) -> None:
    """Every producer began with 0, so if producers are said to begin with -1, that number is missing."""
    create_topic(broker, name, 2)
    faults = make_faults(seed=2)
    send_records(broker, name, faults.sent)
    summary = judge_topic(spark, broker, name, fields)
    before = {(f"producer-{number}", -1) for number in range(4)} if fields.first_sequence == -1 else set()
    assert numbers_of_findings(summary.details["gap"]) == faults.dropped | before
    assert numbers_of_findings(summary.details["duplicate"]) == faults.doubled
    assert numbers_of_findings(summary.details["inversion"]) == faults.overtaken


@pytest.mark.spark
def test_audit_reports_the_first_sequence_of_each_producer(broker: Broker, spark: Any, name: str) -> None:
    """p lacks the number before its first, q begins with the first, r with the third, and s has 0 twice."""
    create_topic(broker, name, 1)
    send_records(broker, name, {0: [("p", 0), ("q", 1), ("r", 3), ("s", 0), ("s", 0), ("s", 1)]})
    summary = judge_topic(spark, broker, name, AuditFields("$.producer", "$.sequence", first_sequence=1))
    assert numbers_of_findings(summary.details["gap"]) == {("r", 1), ("r", 2)}
    assert numbers_of_findings(summary.details["duplicate"]) == {("s", 0)}
    assert summary.found == {"gap": 2, "duplicate": 1}


@pytest.mark.spark
def test_a_producer_that_counts_by_partition(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 2)
    send_records(
        broker,
        name,
        {partition: [("p", number) for number in range(5) if number != 2 + partition] for partition in (0, 1)},
    )
    by_partition = AuditSettings(BY_VALUE, sequence_scope="partition")
    summary = audit(spark, source_of(broker, name), settings=by_partition)
    assert {(row["partition"], row["first"], row["last"]) for row in summary.details["gap"]} == {(0, 2, 2), (1, 3, 3)}
    assert summary.found == {"gap": 2}


@pytest.mark.spark
def test_audit_counts_records_without_the_audited_fields(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 1)
    send_records(broker, name, {0: [("p", 0), ("p", 1)]})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in ("no JSON", '{"producer": "p"}', '{"producer": "p", "sequence": "x"}', None):
        producer.produce(name, value, partition=0)
    assert producer.flush(30) == 0
    summary = judge_topic(spark, broker, name)
    assert offsets_of(summary, "unattributed") == {(0, offset) for offset in range(2, 6)}
    assert summary.found == {"unattributed": 4}


@pytest.mark.spark
def test_audit_reports_percentiles_of_known_delays(broker: Broker, spark: Any, name: str) -> None:
    """The percentiles of a thousand known delays are those of the nearest rank."""
    create_topic(broker, name, 1)
    delays = [Random(3).randrange(10_000) for _ in range(1_000)]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, delay in enumerate(delays):
        value = json.dumps({"sequence": number, "time": (RECENT_MS - delay) / 1000})
        producer.produce(name, value, partition=0, timestamp=RECENT_MS)
    assert producer.flush(30) == 0
    fields = AuditFields(None, "$.sequence", "$.time", "s")
    wanted = parse_conditions("latency:event-producer:p50>1ms, latency:max>1h, gap")
    summary = judge_topic(spark, broker, name, fields, fail_on=wanted)
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
def test_strange_numbers_end_nothing(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    """Microseconds for milliseconds, event times that are none, sequences as far apart as possible: nothing fails."""
    create_topic(broker, name, 1, message_timestamp_after_max_ms=str(2**63 - 1))
    far, minute_ms = 2**63 - 1, 60_000
    times = ["NaN", "Infinity", 1e300, -1e300, 9.2e18, -9.2e18, 10**40, "never", None, RECENT_MS - 7]
    stamps = [RECENT_MS + number * minute_ms for number in range(len(times))]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, (time, stamp) in enumerate(zip(times, stamps, strict=True)):
        value = json.dumps({"producer": "p", "sequence": number, "time": time})
        producer.produce(name, value, partition=0, timestamp=stamp)
    for other, sequence in (("q", -far - 1), ("q", far), ("r", -far - 1), ("r", far)):
        value = json.dumps({"producer": other, "sequence": sequence})
        producer.produce(name, value, partition=0, timestamp=RECENT_MS * 1_000)
    assert producer.flush(30) == 0
    report, counts = tmp_path / "report.html", str(tmp_path / "counts")
    fields = AuditFields("$.producer", "$.sequence", "$.time")
    summary = judge_topic(spark, broker, name, fields, report=report, counts=counts)
    (row,) = summary.latency
    assert (row["records"], row["max"]) == (1, stamps[-1] - (RECENT_MS - 7))
    assert list_ends(summary.details["gap"]) == {("q", -far, far - 1), ("r", -far, far - 1)}
    assert summary.found == {"gap": 2 * (far - 1)}
    assert {row["producer"]: row["gap"] for row in summary.producers} == {"p": 0, "q": far - 1, "r": far - 1}
    assert f"<td>{RECENT_MS * 1_000}</td>" in report.read_text()
    counted = {(row.producer, row.start_ms, row.records) for row in spark.read.parquet(counts).collect()}
    late_ms = RECENT_MS * 1_000 // minute_ms * minute_ms
    by_minute = {("p", stamp // minute_ms * minute_ms, 1) for stamp in stamps}
    assert counted == by_minute | {("q", late_ms, 2), ("r", late_ms, 2)}


def list_ends(rows: list[dict[str, Any]]) -> set[tuple[str, int, int]]:
    return {(row["producer"], row["first"], row["last"]) for row in rows}


@pytest.mark.spark
def test_the_brokers_own_time(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 1, message_timestamp_type="LogAppendTime")
    sent = [("p", number) for number in range(20)]
    send_records(broker, name, {0: sent}, dict.fromkeys(sent, RECENT_MS - 10))
    summary = judge_topic(spark, broker, name, AuditFields("$.producer", "$.sequence", "$.time"))
    (row,) = summary.latency
    assert row["stage"] == "event-broker"
    assert 3_600_000 < row["p50"] < 7_300_000


@pytest.mark.spark
def test_a_range_and_several_topics(broker: Broker, spark: Any, name: str) -> None:
    topics = [f"{name}-{number}" for number in range(3)]
    for topic in topics[:2]:
        create_topic(broker, topic, 1)
        send_records(broker, topic, {0: [("p", number) for number in range(10) if number != 4]})
    create_topic(broker, topics[2], 1)
    starts = json.dumps({topic: {"0": start} for topic, start in zip(topics, (-2, 5, 0), strict=True)})
    source = source_of(broker, ",".join(topics), startingOffsets=starts)
    summary = audit(spark, source, settings=AuditSettings(BY_VALUE))
    assert [(row["topic"], row["offsets"], row["records"], row["found"]) for row in summary.topics] == [
        (topics[0], 9, 9, {"gap": 1}),
        (topics[1], 4, 4, {}),
        (topics[2], 0, 0, {}),
    ]


@pytest.mark.spark
def test_audit_refuses_bad_sources_and_options(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, 1)
    send_records(broker, name, {0: [("p", 0)]})
    source = source_of(broker, name)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"source": source_of(broker, "nowhere")}, "there is no topic nowhere"),
        ({"source": {**source, "endingOffsets": json.dumps({name: {"0": 7}})}}, "it holds 0 to 1"),
        ({"settings": AuditSettings(AuditFields("$.producer", "$.number"))}, "none of 1 records has a sequence"),
        ({"settings": AuditSettings(AuditFields(event_time="$.when"))}, "none of 1 records has an event time"),
        ({"report": tmp_path / "no" / "report.html"}, "there is no folder"),
        ({"counts": str(tmp_path)}, "exists already"),
        ({"path": str(tmp_path)}, "there is no archive"),
        ({"source": None}, "there is nothing to audit"),
    ]
    for options, sentence in wrong:
        with pytest.raises(PipelineError, match=re.escape(sentence)):
            audit(spark, **{"source": source, **options})


@pytest.mark.spark
def test_the_command(broker: Broker, name: str, tmp_path: Path) -> None:
    """A table for people, or JSON; report and counts beside it; and exit code 1 for --fail-on."""
    create_topic(broker, name, 1)
    send_records(broker, name, {0: [("p", number) for number in range(10) if number != 4]})
    report, counts = tmp_path / "report.html", tmp_path / "counts"
    fields = ["--producer-field", "$.producer", "--sequence-field", "$.sequence"]
    options = [*fields, "--fail-on", "gap,latency:p99>1ms", "--report", str(report), "--counts", str(counts)]
    ended = run_audit("--bootstrap-server", broker.bootstrap, "--subscribe", name, *options)
    assert ended.returncode == 1, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0] == "PROBLEMS in 9 records in 1 topic: 1 gap (sequences that no record has)"
    assert lines[1] == "fails on 1 gap (sequences that no record has)"
    assert lines[2] == "fails on latency:p99>1ms: nothing was measured"
    text = report.read_text()
    assert lines[0] in text
    assert text.count("<svg") == 1
    assert "http" not in text.replace("http://www.w3.org", "").replace("https://matplotlib.org", "")
    assert list(counts.glob("*.parquet"))
    ended = run_audit("--bootstrap-server", broker.bootstrap, "--subscribe", name, *fields, "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["found"] == {"gap": 1}


def run_audit(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kafkacompat", "spark", "audit", "--master", "local[2]", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)
