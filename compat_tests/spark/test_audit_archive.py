"""The audit of archives names lost files, and each record that differs from its topic's, by offset and by sequence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests.brokers import Broker
from compat_tests.confluent import admin_of, create_topic
from compat_tests.spark.auditing import ALL, BY_VALUE, offsets_of, source_of
from compat_tests.spark.faults import Numbered, make_faults, numbers_of_findings, produce_records, send_records
from spark_integration.archive.pipeline import archive
from spark_integration.audit import pipeline, ranges
from spark_integration.audit.pipeline import audit
from spark_integration.audit.ranges import Ranges
from spark_integration.audit.settings import AuditSettings
from spark_integration.errors import PipelineError
from spark_integration.queries.settings import StreamOptions
from spark_integration.topics.cluster import Cluster

pytestmark = pytest.mark.spark

JUDGING = AuditSettings(BY_VALUE, limit=ALL)


def archive_topic(spark: Any, broker: Broker, topic: str, folder: Path, **options: str) -> str:
    """Archive a topic in several batches; return the archive's path."""
    source = source_of(broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger="100", **options)
    archive(spark, source, str(folder / "archive"), StreamOptions(str(folder / "checkpoint")))
    return str(folder / "archive")


def files_of(path: str) -> list[Path]:
    return sorted(file for file in Path(path).rglob("*.parquet") if not any(part[0] in "._" for part in file.parts[1:]))


def test_a_whole_archive(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    """An archive has the faults of its topic and no others; later records are pending; each stage has its time."""
    create_topic(broker, name, 2)
    faults = make_faults(seed=4)
    send_records(broker, name, faults.sent)
    path = archive_topic(spark, broker, name, tmp_path)
    send_records(broker, name, {0: [("late", number) for number in range(7)]})
    summary = audit(spark, source_of(broker, name), path=path, settings=JUDGING)
    for kind, wanted in (("gap", faults.dropped), ("duplicate", faults.doubled), ("inversion", faults.overtaken)):
        for place in ("topic", "archive"):
            assert numbers_of_findings(row for row in summary.details[kind] if row["place"] == place) == wanted
    end = len(faults.sent[0])
    assert offsets_of(summary, "pending") == {(0, offset) for offset in range(end, end + 7)}
    assert summary.found == {"gap": 24, "duplicate": 24, "inversion": 24, "pending": 7}
    (row,) = summary.latency
    assert (row["place"], row["stage"], row["records"]) == ("archive", "event-archive", len(faults.all_sent()))
    assert 0 <= row["p50"] <= row["max"] < 600_000
    alone = audit(spark, path=path, settings=JUDGING)
    assert alone.found == {"gap": 12, "duplicate": 12, "inversion": 12}


def test_an_archive_that_grows(
    broker: Broker, spark: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that reach topic and archive after the topic's end was read are not reported as the archive's alone."""
    create_topic(broker, name, 1)
    send_records(broker, name, {0: [("p", number) for number in range(10)]})
    path = archive_topic(spark, broker, name, tmp_path)

    def growing(cluster: Cluster, source: dict[str, str]) -> Ranges:
        resolved = ranges.resolve_ranges(cluster, source)
        send_records(broker, name, {0: [("p", number) for number in range(10, 30)]})
        archive_topic(spark, broker, name, tmp_path)
        return resolved

    monkeypatch.setattr(pipeline, "resolve_ranges", growing)
    summary = audit(spark, source_of(broker, name), path=path, settings=JUDGING)
    assert summary.found == {}
    assert [(row["place"], row["records"]) for row in summary.topics] == [("topic", 10), ("archive", 10)]
    monkeypatch.undo()
    summary = audit(spark, source_of(broker, name), path=path, settings=JUDGING)
    assert [row["records"] for row in summary.topics] == [30, 30]


def test_topics_that_the_archive_does_not_have(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    """A new topic and an empty one are fine; an archive without any of the topics is the wrong one."""
    archive_of, later, empty = (f"{name}-{number}" for number in range(3))
    for topic in (archive_of, later, empty):
        create_topic(broker, topic, 1)
    send_records(broker, archive_of, {0: [("p", 0), ("p", 1)]})
    path = archive_topic(spark, broker, archive_of, tmp_path)
    send_records(broker, later, {0: [("p", 0), ("p", 1), ("p", 2)]})
    summary = audit(spark, source_of(broker, f"{archive_of},{later},{empty}"), path=path)
    assert [(row["place"], row["topic"], row["first"], row["last"]) for row in summary.details["pending"]] == [
        ("archive", later, 0, 2)
    ]
    assert summary.found == {"pending": 3}
    with pytest.raises(PipelineError, match=f"has no topic {later}: it holds {archive_of}"):
        audit(spark, source_of(broker, f"{empty},{later}"), path=path)


def test_an_archive_of_an_empty_topic(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, 1)
    path = archive_topic(spark, broker, name, tmp_path)
    assert audit(spark, source_of(broker, name), path=path).found == {}


def test_a_lost_file(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, 2)
    sent = {partition: [(f"p{partition}", number) for number in range(150)] for partition in (0, 1)}
    send_records(broker, name, sent)
    path = archive_topic(spark, broker, name, tmp_path)
    victim = files_of(path)[1]
    rows = spark.read.parquet(str(victim)).selectExpr("partition", "offset").collect()
    gone = {(row.partition, row.offset) for row in rows}
    assert 0 < len(gone) < 300, "all was lost, or nothing"
    victim.unlink()
    names = {(f"p{partition}", offset) for partition, offset in gone}
    summary = audit(spark, source_of(broker, name), path=path, settings=JUDGING)
    assert offsets_of(summary, "missing") == gone
    assert offsets_of(summary, "lost") == gone
    assert {row["note"] for row in summary.details["lost"]} == {f"{victim.relative_to(path)} is missing"}
    assert summary.found["missing"] == summary.found["lost"] == len(gone)
    assert numbers_of_findings(summary.details.get("gap", [])) == drop_ends(names)
    alone = audit(spark, path=path, settings=JUDGING)
    assert offsets_of(alone, "lost") == gone


def drop_ends(names: set[Numbered]) -> set[Numbered]:
    """Leave out the ends of a producer's sequence, whose absence cannot be seen by sequence."""
    whole = {(f"p{partition}", number) for partition in (0, 1) for number in range(150)}
    left = whole - names
    lowest = {name: min(number for other, number in left if other == name) for name, _ in left}
    highest = {name: max(number for other, number in left if other == name) for name, _ in left}
    return {(name, number) for name, number in names if lowest[name] < number < highest[name]}


def test_another_topic_of_that_name(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    """Records that differ, and records of partitions and offsets that the topic does not have."""
    create_topic(broker, name, 2)
    send_records(broker, name, {0: [("p", number) for number in range(10)], 1: [("q", 0), ("q", 1)]})
    path = archive_topic(spark, broker, name, tmp_path)
    admin_of(broker).delete_topics([name])[name].result(30)
    create_topic(broker, name, 1)
    send_records(broker, name, {0: [("p", number) for number in (0, 1, 2, 7, 8)]})
    summary = audit(spark, source_of(broker, name), path=path)
    # Their timestamps differ as well.
    assert offsets_of(summary, "differing") == {(0, offset) for offset in range(5)}
    assert offsets_of(summary, "extra") == {*((0, offset) for offset in range(5, 10)), (1, 0), (1, 1)}
    assigned = {**source_of(broker, name), "assign": json.dumps({name: [0]})}
    del assigned["subscribe"]
    again = audit(spark, assigned, path=path)
    assert again.found == summary.found


def test_aborted_records_in_an_archive(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    """An archive of uncommitted records holds more than a reader of committed ones sees; markers are no holes."""
    create_topic(broker, name, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    for numbers, is_kept in (([0, 1], True), ([2, 3, 4], False), ([5], True)):
        producer.begin_transaction()
        produce_records(producer, name, 0, [("p", number) for number in numbers], {})
        assert producer.flush(30) == 0
        (producer.commit_transaction if is_kept else producer.abort_transaction)(30)
    send_records(broker, name, {0: [("p", 6)]})
    path = archive_topic(spark, broker, name, tmp_path, **{"kafka.isolation.level": "read_uncommitted"})
    summary = audit(spark, source_of(broker, name), path=path, settings=JUDGING)
    assert offsets_of(summary, "extra") == {(0, 3), (0, 4), (0, 5)}
    assert summary.found == {"extra": 3, "marker": 3, "aborted": 3, "aborted-sequence": 3, "absent": 3}


def test_a_file_that_is_cut_off(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, 1)
    send_records(broker, name, {0: [("p", number) for number in range(20)]})
    path = archive_topic(spark, broker, name, tmp_path)
    for file in files_of(path):
        file.write_bytes(file.read_bytes()[:-7])
    summary = audit(spark, path=path)
    assert offsets_of(summary, "lost") == {(0, offset) for offset in range(20)}
    assert all(row["note"].endswith("is damaged") for row in summary.details["lost"])
    assert json.loads(json.dumps(summary.topics))[0]["records"] == 0
