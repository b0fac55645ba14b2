"""Kafka's own DumpLogSegments reads what our storage layer writes, and finds nothing to complain about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from compat_tests.java_tools import run_java
from kafkacompat.storage.files import OsFiles
from kafkacompat.storage.log import Log, RollNeededError
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.record_batch import build_batch

DUMP = "org.apache.kafka.tools.DumpLogSegments"
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
        records = [(timestamp + each, b"key-%d" % each, value, [("h", b"x")]) for each in range(RECORDS_A_BATCH)]
        sequence = index // 3 * RECORDS_A_BATCH
        batch = build_batch(
            records, codec=Codec(index % 5), producer_id=producer, producer_epoch=2, base_sequence=sequence
        )
        append(log, batch, leader_epoch=index // 100)
    return log


def append(log: Log, batch: bytes, leader_epoch: int) -> None:
    try:
        log.append(batch, leader_epoch=leader_epoch, now_ms=NOW_MS, from_client=True)
    except RollNeededError:
        log.seal(log.roll(log.prepare_segment(log.log_end_offset)))
        log.append(batch, leader_epoch=leader_epoch, now_ms=NOW_MS, from_client=True)


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
        assert log.truncated_bytes == 1000
    log.close()
    return path


def dump(folder: Path, patterns: Sequence[str], *options: str) -> tuple[str, str]:
    files = sorted(str(path) for pattern in patterns for path in folder.glob(pattern))
    assert files
    done = run_java(DUMP, ["--files", ",".join(files), *options])
    return done.stdout, done.stderr


def complaints(errors: str) -> list[str]:
    """What it printed to standard error, but for a segment that does not begin at 0: it says so of Kafka's own."""
    lines = [line for line in errors.splitlines() if line.strip()]
    return [
        line
        for line in lines
        if not line.startswith("Non-consecutive offsets in") and not line.strip().startswith("-1 is followed by")
    ]


def test_every_record_of_every_batch_is_read(folder: Path) -> None:
    output, errors = dump(folder, ["*.log"], "--deep-iteration")
    assert complaints(errors) == []
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
    output, errors = dump(folder, ["*.index", "*.timeindex"], "--index-sanity-check")
    segments = len(list(folder.glob("*.log")))
    assert segments > 2
    assert complaints(errors) == []
    assert output.count("passed sanity check.") == 2 * segments


def test_the_indexes_agree_with_the_log(folder: Path) -> None:
    output, errors = dump(folder, ["*.index", "*.timeindex"], "--verify-index-only")
    assert complaints(errors) == []
    assert "is empty" not in output


def test_the_index_entries_are_ours(folder: Path) -> None:
    output, errors = dump(folder, ["*.index", "*.timeindex"])
    assert complaints(errors) == []
    offset_entries = sum(path.stat().st_size // 8 for path in folder.glob("*.index"))
    time_entries = sum(path.stat().st_size // 12 for path in folder.glob("*.timeindex"))
    assert len(re.findall(r"^offset: \d+ position: \d+$", output, re.MULTILINE)) == offset_entries > 50
    assert len(re.findall(r"^timestamp: \d+ offset: \d+$", output, re.MULTILINE)) == time_entries > 20


def test_the_snapshots_tell_of_the_producers(folder: Path) -> None:
    newest = max(folder.glob("*.snapshot"))
    output, errors = dump(folder, [newest.name])
    assert complaints(errors) == []
    found = re.findall(
        r"^producerId: (\d+) producerEpoch: (\d+) .* lastSequence: (\d+) lastOffset: (\d+)", output, re.MULTILINE
    )
    last_sequence = BATCHES // 3 * RECORDS_A_BATCH - 1
    expected = [
        (producer, 2, last_sequence, (BATCHES - 3 + index) * RECORDS_A_BATCH + RECORDS_A_BATCH - 1)
        for index, producer in enumerate(PRODUCERS)
    ]
    assert sorted(tuple(map(int, each)) for each in found) == expected
