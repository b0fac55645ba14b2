"""Our storage layer opens Apache Kafka's files, and would have written the same bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import KafkaBroker
from compat_tests.dumps import kafkas_batches, kafkas_dump, kafkas_records, our_fields, our_rows
from compat_tests.predecessors import image_of_a_kill, open_left_directory
from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.inspection.directory_check import check_target, find_check_target
from kafkacompat.storage.inspection.findings import Finding, UnreadablePath
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.primitives import ZERO_UUID
from kafkacompat.wire.record_batch import read_header, read_records, split_batches

TOPIC = "written-by-kafka"
MESSAGES = 20_000
CONFIG = LogConfig(segment_bytes=1 << 20)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The log directory of a Kafka that took 20,000 messages, as SIGKILL leaves it and as a stop does."""
    folder = tmp_path_factory.mktemp("kafka")
    broker = KafkaBroker(folder / "node", {"log.segment.bytes": str(CONFIG.segment_bytes)})
    broker.start()
    try:
        # Batches below index.interval.bytes, so that not each of them has an entry.
        settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "batch.size": 3000}
        producer = Producer(settings)
        for index in range(MESSAGES):
            # Out of order by up to 50 ms, so that not every batch has the largest timestamp so far.
            timestamp = RECENT_MS + index - index * 7919 % 50
            producer.produce(TOPIC, key=b"%d" % index, value=b"v" * 200, timestamp=timestamp)
            producer.poll(0)
        assert producer.flush(60) == 0
        killed = image_of_a_kill(broker, folder / "killed")
    finally:
        broker.stop()
    return {"killed": killed, "stopped": broker.data_folder}


@pytest.fixture(params=["stopped", "killed"])
def data_folder(request: pytest.FixtureRequest, images: dict[str, Path]) -> Path:
    """One of the two."""
    return images[request.param]


def open_directory(path: Path) -> tuple[LogDirectory, Log]:
    directory = open_left_directory(path)
    (stored,) = [partition for partition in directory.list_partitions() if partition.topic == TOPIC]
    assert stored.topic_id != ZERO_UUID
    return directory, directory.open_log(TOPIC, 0, stored.topic_id, CONFIG, RECENT_MS)


def read_keys(log: Log) -> list[int]:
    keys, offset = [], 0
    while offset < log.log_end_offset:
        region = log.read(offset, 1 << 20)
        assert region is not None
        for batch in split_batches(region.pread(0, region.size_bytes)):
            keys += [int(record.key or b"") for record in read_records(batch)]
            offset = read_header(batch).last_offset + 1
        region.release()
    return keys


def copy_folder(data_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(data_folder, tmp_path / "data"))


def test_every_message_is_there(data_folder: Path, tmp_path: Path) -> None:
    directory, log = open_directory(copy_folder(data_folder, tmp_path))
    assert read_keys(log) == list(range(MESSAGES))
    assert len(log.segments) > 3
    assert log.state.truncated_bytes == 0
    ((_, producer),) = log.producer_state.producers.items()
    assert producer.batches[-1].last_offset == MESSAGES - 1
    record = log.reader.offset_for_timestamp(RECENT_MS + 10_000)
    assert record is not None and record.timestamp >= RECENT_MS + 10_000
    directory.close([log])
    again, log = open_directory(tmp_path / "data")
    assert again.clean_shutdown
    assert read_keys(log) == list(range(MESSAGES))
    again.close([log])


@pytest.mark.parametrize("data_folder", ["stopped"], indirect=True)  # a killed one has not written its last indexes
def test_indexes_rebuilt_by_us_are_kafkas_byte_for_byte(data_folder: Path, tmp_path: Path) -> None:
    folder = copy_folder(data_folder, tmp_path) / f"{TOPIC}-0"
    written = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".index", ".timeindex")}
    assert sum(map(len, written.values())) > 5000
    for name in written:
        (folder / name).unlink()
    directory, log = open_directory(tmp_path / "data")
    directory.close([log])
    assert {name: (folder / name).read_bytes() for name in written} == written


def test_verify_finds_nothing_wrong_with_kafkas_own_directory(data_folder: Path) -> None:
    findings: list[Finding] = []
    files = OsFiles(read_only=True)
    place = find_check_target(files, str(data_folder))
    refused: list[UnreadablePath] = []
    checked = check_target(files, place, findings.append, lambda _: None, refused.append)
    assert not refused
    assert [finding for finding in findings if not finding.note] == []
    assert sum(len(checked_log.segments) for checked_log in checked) > 4


def test_our_dump_shows_kafkas_files_as_kafkas_does(data_folder: Path) -> None:
    logs = [max(data_folder.glob(f"{TOPIC}-0/*.log")), *data_folder.glob("__cluster_metadata-0/*.log")]
    assert len(logs) == 2
    for path in logs:
        output, _ = kafkas_dump([path], "--deep-iteration")
        ours = our_rows(path, "--deep-iteration")
        assert our_fields(ours, "batch") == kafkas_batches(output) != []
        names = ("offset", "timestamp", "keySize", "valueSize", "sequence", "headerKeys")
        our_records = [[record[name] for name in names] for record in our_fields(ours, "record")]
        assert our_records == [[record[name] for name in names] for record in kafkas_records(output)] != []
