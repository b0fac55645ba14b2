"""Kafka's own DumpLogSegments reads our files without complaints; our dump shows the same numbers.

Its output for a whole data directory is kept in build/dump-log-segments.txt.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.brokers import KafkacompatBroker
from compat_tests.dumps import kafkas_batches, kafkas_dump, kafkas_records, list_complaints, our_fields, our_rows
from compat_tests.waiting import until
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.log.log import Log, RollNeededError
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.record_batch import NewRecord, build_batch
from spark_integration.runtime.maven import BUILD

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=60_000, index_interval_bytes=1000)
BATCHES = 300
RECORDS_A_BATCH = 7
PRODUCERS = (11, 12, 13)


def write_log(folder: Path) -> Log:
    """A log of several segments: all codecs, three idempotent producers, times that go up and down."""
    log = Log.create(OsFiles(), str(folder), "t", 0, bytes(range(16)), CONFIG)
    for index in range(BATCHES):
        producer = PRODUCERS[index % 3]
        value = bytes((index * 31 + position * position) % 251 for position in range(200))
        timestamp = NOW_MS + index * 10 + (index % 7) * 100
        records = [(timestamp + number, b"key-%d" % number, value, [("h", b"x")]) for number in range(RECORDS_A_BATCH)]
        sequence = index // 3 * RECORDS_A_BATCH
        batch = build_batch(
            records, codec=Codec(index % 5), producer_id=producer, producer_epoch=2, base_sequence=sequence
        )
        append_batch(log, batch, leader_epoch=index // 100)
    return log


def append_batch(log: Log, batch: bytes, leader_epoch: int) -> None:
    try:
        log.append(batch, leader_epoch=leader_epoch, now_ms=NOW_MS, from_client=True, guard=NOT_VERIFIED)
    except RollNeededError:
        log.maintenance.seal(log.maintenance.roll(log.maintenance.prepare_segment(log.log_end_offset)))
        log.append(batch, leader_epoch=leader_epoch, now_ms=NOW_MS, from_client=True, guard=NOT_VERIFIED)


@pytest.fixture(scope="module", params=["closed", "recovered"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition's folder, left by a clean close or put in order after a torn write."""
    path = tmp_path_factory.mktemp("storage") / "t-0"
    log = write_log(path)
    if request.param == "recovered":
        log.release()
        newest = max(path.glob("*.log"))
        newest.write_bytes(newest.read_bytes() + bytes(1000))
        (path / f"{0:020d}.index").unlink()
        log = Log.open(
            OsFiles(),
            str(path),
            "t",
            0,
            bytes(range(16)),
            CONFIG,
            clean_shutdown=False,
            recovery_point=0,
            log_start_offset=0,
            now_ms=NOW_MS,
        )
        assert log.state.truncated_bytes == 1000
    log.close()
    return path


def dump_with_kafka(folder: Path, patterns: Sequence[str], *options: str) -> tuple[str, str]:
    files = sorted(path for pattern in patterns for path in folder.glob(pattern))
    assert files
    return kafkas_dump(files, *options)


def test_every_record_of_every_batch_is_read(folder: Path) -> None:
    output, errors = dump_with_kafka(folder, ["*.log"], "--deep-iteration")
    assert list_complaints(errors) == []
    assert len(re.findall(r"^\| offset: \d+ ", output, re.MULTILINE)) == BATCHES * RECORDS_A_BATCH
    batches = re.findall(r"^baseOffset: (\d+) lastOffset: (\d+) .*isvalid: (\w+)$", output, re.MULTILINE)
    assert [(int(base), int(last)) for base, last, _ in batches] == [
        (RECORDS_A_BATCH * index, RECORDS_A_BATCH * index + RECORDS_A_BATCH - 1) for index in range(BATCHES)
    ]
    assert {valid for _, _, valid in batches} == {"true"}
    assert {codec: output.count(f"compresscodec: {codec} ") for codec in ("none", "gzip", "snappy", "lz4", "zstd")} == (
        dict.fromkeys(("none", "gzip", "snappy", "lz4", "zstd"), BATCHES // 5)
    )
    assert set(re.findall(r"partitionLeaderEpoch: (\d+)", output)) == {"0", "1", "2"}
    assert "trailing" not in output.lower()


def test_the_indexes_pass_the_sanity_check(folder: Path) -> None:
    output, errors = dump_with_kafka(folder, ["*.index", "*.timeindex"], "--index-sanity-check")
    segments = len(list(folder.glob("*.log")))
    assert segments > 2
    assert list_complaints(errors) == []
    assert output.count("passed sanity check.") == 2 * segments


def test_the_indexes_agree_with_the_log(folder: Path) -> None:
    output, errors = dump_with_kafka(folder, ["*.index", "*.timeindex"], "--verify-index-only")
    assert list_complaints(errors) == []
    assert "is empty" not in output


def test_the_index_entries_are_ours(folder: Path) -> None:
    output, errors = dump_with_kafka(folder, ["*.index", "*.timeindex"])
    assert list_complaints(errors) == []
    offset_entries = sum(path.stat().st_size // 8 for path in folder.glob("*.index"))
    time_entries = sum(path.stat().st_size // 12 for path in folder.glob("*.timeindex"))
    assert len(re.findall(r"^offset: \d+ position: \d+$", output, re.MULTILINE)) == offset_entries > 50
    assert len(re.findall(r"^timestamp: \d+ offset: \d+$", output, re.MULTILINE)) == time_entries > 20


def test_kafka_reads_the_producers_of_our_snapshots(folder: Path) -> None:
    newest = max(folder.glob("*.snapshot"))
    output, errors = dump_with_kafka(folder, [newest.name])
    assert list_complaints(errors) == []
    producers = re.findall(
        r"^producerId: (\d+) producerEpoch: (\d+) .* lastSequence: (\d+) lastOffset: (\d+)", output, re.MULTILINE
    )
    last_sequence = BATCHES // 3 * RECORDS_A_BATCH - 1
    expected = [
        (producer, 2, last_sequence, (BATCHES - 3 + index) * RECORDS_A_BATCH + RECORDS_A_BATCH - 1)
        for index, producer in enumerate(PRODUCERS)
    ]
    assert sorted(tuple(map(int, fields)) for fields in producers) == expected


def test_our_dump_shows_the_same_of_every_batch_and_record(folder: Path) -> None:
    for path in sorted(folder.glob("*.log")):
        output, _ = kafkas_dump([path], "--deep-iteration")
        ours = our_rows(path, "--deep-iteration")
        assert our_fields(ours, "batch") == kafkas_batches(output) != []
        assert our_fields(ours, "record") == kafkas_records(output) != []


def test_transactions_are_read_as_they_were_written(tmp_path: Path) -> None:
    log = write_transactions(tmp_path / "t-0")
    log.close()
    files = sorted((tmp_path / "t-0").glob("*.log"))
    output, errors = kafkas_dump(files, "--deep-iteration")
    ours = [row for path in files for row in our_rows(path, "--deep-iteration")]
    assert list_complaints(errors) == []
    assert our_fields(ours, "batch") == kafkas_batches(output)
    assert our_fields(ours, "record") == kafkas_records(output)
    assert output.count("endTxnMarker: ABORT coordinatorEpoch: 5") == output.count("endTxnMarker: COMMIT") == 20
    indexes = sorted((tmp_path / "t-0").glob("*.txnindex"))
    output, errors = kafkas_dump(indexes)
    assert list_complaints(errors) == [] and len(indexes) > 1
    numbers = r"^version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)"
    transactions = [tuple(map(int, fields)) for fields in re.findall(numbers, output, re.MULTILINE)]
    assert transactions == [(11, begin, begin + 4, begin + 5) for begin in range(0, 100, 5)]


def write_transactions(folder: Path) -> Log:
    """Rounds of a transaction that is aborted around one that is committed, in several segments."""
    log = Log.create(OsFiles(), str(folder), "t", 0, bytes(range(16)), LogConfig(segment_bytes=3000))
    for index in range(20):
        for producer_id in (11, 12, -1):
            given: dict[str, Any] = {"producer_epoch": 2, "base_sequence": index, "transactional": True}
            record: NewRecord = (NOW_MS, b"k", b"v" * 50, [])
            batch = build_batch([record], producer_id=producer_id, **(given if producer_id > 0 else {}))
            append_batch(log, batch, leader_epoch=0)
        for producer_id, is_commit in ((12, True), (11, False)):
            append_marker(log, Marker(producer_id, 2, 5, is_commit, 0))
    return log


def append_marker(log: Log, marker: Marker) -> None:
    try:
        log.append_marker(marker, leader_epoch=0, now_ms=NOW_MS)
    except RollNeededError:
        log.maintenance.seal(log.maintenance.roll(log.maintenance.prepare_segment(log.log_end_offset)))
        log.append_marker(marker, leader_epoch=0, now_ms=NOW_MS)


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker on which groups committed, with many segments of all topics."""
    properties = {
        "log.segment.bytes": "1048576",
        "offsets.topic.segment.bytes": "1048576",
        "offsets.topic.num.partitions": "2",
        "log.index.interval.bytes": "500",
        "log.message.timestamp.type": "LogAppendTime",
        "num.partitions": "2",
    }
    broker = KafkacompatBroker(tmp_path_factory.mktemp("broker") / "node", properties)
    with broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1, "enable.idempotence": True})
        for index in range(6000):
            producer.produce("orders", key=b"%d" % index, value=b"v" * 1000, headers=[("h", b"x")])
            producer.poll(0)
        assert producer.flush(60) == 0
        for group in ("readers", "others \u00e4\u20ac"):
            commit_often(broker.bootstrap, group)
    return broker.data_folder


def commit_often(bootstrap: str, group: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    until(lambda: consumer.poll(0.5))
    for offset in range(600):
        metadata = "m" * (offset * 97 % 4096)
        consumer.commit(offsets=[TopicPartition("orders", 0, offset, metadata)], asynchronous=False)
    consumer.close()


OPTIONS = {
    "*.log": ["--deep-iteration"],
    "*index": ["--index-sanity-check"],
    "*.timeindex": ["--verify-index-only"],
    "*.index": ["--verify-index-only"],
    "*.snapshot": ["--deep-iteration"],
    "__consumer_offsets-*/*.log": ["--offsets-decoder"],
}


def test_a_brokers_whole_directory_gives_no_complaint(data_folder: Path) -> None:
    transcript = []
    for pattern, options in OPTIONS.items():
        files = sorted(data_folder.glob(pattern if "/" in pattern else f"*/{pattern}"))
        assert len(files) >= 4, pattern
        output, errors = kafkas_dump(files, *options)
        transcript += [f"$ DumpLogSegments {' '.join(options)} {pattern}", output, errors]
        assert list_complaints(errors) == []
        assert output.count("Dumping ") == len(files)
        assert "invalid bytes" not in output and "isvalid: false" not in output and "Error at" not in output
    BUILD.mkdir(exist_ok=True)
    (BUILD / "dump-log-segments.txt").write_text("\n".join(transcript))


def test_our_dump_shows_group_records_as_kafkas_does(data_folder: Path) -> None:
    files = sorted(data_folder.glob("__consumer_offsets-*/*.log"))
    output, _ = kafkas_dump(files, "--offsets-decoder")
    ours = [row for path in files for row in our_rows(path, "--offsets-decoder")]
    assert our_fields(ours, "batch") == kafkas_batches(output)
    kafkas = [(record.get("offset"), record.get("key"), record.get("payload")) for record in kafkas_records(output)]
    our_records = [
        (record.get("offset"), record.get("key"), record.get("payload")) for record in our_fields(ours, "record")
    ]
    assert our_records == kafkas
    assert len(our_records) > 600


def test_verify_finds_nothing_either(data_folder: Path, folder: Path) -> None:
    for path in (data_folder, folder):
        done = subprocess.run(
            [sys.executable, "-m", "kafkacompat", "log", "verify", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
