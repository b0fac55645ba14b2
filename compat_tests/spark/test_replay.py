"""`kafkacompat spark replay`: an archive back into topics, record by record."""

from __future__ import annotations

import math
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.conftest import MakeBroker
from compat_tests.spark.copies import (
    Record,
    Run,
    assert_copied,
    count_offsets,
    kill_count,
    kill_some_times,
    make_numbered_records,
    make_various_records,
    produce_records,
    read_contents,
    record_contents,
)
from compat_tests.waiting import until
from spark_integration.archive.pipeline import archive
from spark_integration.errors import PipelineError
from spark_integration.queries.settings import StreamOptions
from spark_integration.replay import pace
from spark_integration.replay.pace import paced_slices
from spark_integration.replay.pipeline import ReplaySummary, replay
from spark_integration.replay.settings import ReplaySelection
from spark_integration.topics.names import TargetNames
from spark_integration.topics.offsets import TopicPartition

SEED = 20261122


def archive_topics(spark: Any, broker: Broker, topics: str, folder: Path, **more: str) -> str:
    source = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topics,
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
        **more,
    }
    path = str(folder / "archive")
    archive(spark, source, path, StreamOptions(str(folder / "checkpoint")))
    return path


def make_target(broker: Broker) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap}


def test_a_replay_writes_the_archived_records(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, 2)
    produce_records(broker, name, make_various_records(random.Random(SEED), 200), 2)
    path = archive_topics(spark, broker, name, tmp_path)
    summary = replay(spark, path, make_target(broker), names=TargetNames("again."))
    assert summary == ReplaySummary(1, 2, 200, 200, 200, 1)
    assert_copied(broker, name, broker, f"again.{name}", cluster=False)


A, B = "replayed-a", "replayed-b"


@pytest.fixture(scope="module")
def two_topics(broker: Broker, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An archive of topic A, of three partitions and 300 records, and of topic B, of one partition and 50 records."""
    create_topic(broker, A, 3)
    create_topic(broker, B, 1)
    records = make_numbered_records(300)
    for number in range(0, 300, 30):
        produce_records(broker, A, records[number : number + 30], 3)
    produce_records(broker, B, make_numbered_records(50), 1)
    return archive_topics(spark, broker, f"{A},{B}", tmp_path_factory.mktemp("replay"), maxOffsetsPerTrigger="120")


@pytest.fixture
def damaged(two_topics: str, tmp_path: Path) -> Path:
    """The same archive, for tests that damage it."""
    return Path(shutil.copytree(two_topics, tmp_path / "damaged"))


@pytest.mark.spark
class TestSelection:
    def test_ranges_of_offsets(self, broker: Broker, spark: Any, name: str, two_topics: str) -> None:
        first = {TopicPartition(A, 0): 10, TopicPartition(A, 1): -2}
        last = {TopicPartition(A, 0): 13, TopicPartition(A, 1): -1}
        selection = ReplaySelection((A,), first, last)
        replay(spark, two_topics, make_target(broker), selection=selection, names=TargetNames(f"{name}."))
        original = record_contents(read_contents(broker, A))
        assert record_contents(read_contents(broker, f"{name}.{A}")) == {**original, 0: original[0][10:13]}

    def test_a_range_of_time(self, broker: Broker, spark: Any, name: str, two_topics: str) -> None:
        original = read_contents(broker, A)
        times = sorted(record.timestamp for records in original.values() for record in records)
        first, last = times[60], times[200]
        selection = ReplaySelection(starting_timestamp_ms=first, ending_timestamp_ms=last)
        replay(spark, two_topics, make_target(broker), selection=selection, names=TargetNames("", {A: name}))
        wanted = {
            part: [record.content for record in records if first <= record.timestamp < last]
            for part, records in original.items()
        }
        assert 0 < sum(map(len, wanted.values())) < 300
        assert record_contents(read_contents(broker, name)) == wanted

    def test_by_key(self, broker: Broker, spark: Any, name: str, two_topics: str) -> None:
        create_topic(broker, f"{name}.{A}", 2)
        replay(spark, two_topics, make_target(broker), names=TargetNames(f"{name}."), partitioner="key")
        original, copied = read_contents(broker, A), read_contents(broker, f"{name}.{A}")
        assert Counter(record.content for records in copied.values() for record in records) == Counter(
            record.content for records in original.values() for record in records
        )
        places = {record.content[0]: partition for partition, records in copied.items() for record in records}
        assert all(
            places[record.content[0]] == partition for partition, records in copied.items() for record in records
        )
        assert set(places.values()) == {0, 1}

    def test_a_dry_run_writes_nothing(self, broker: Broker, spark: Any, name: str, two_topics: str) -> None:
        summary = replay(spark, two_topics, make_target(broker), names=TargetNames(f"{name}."), dry_run=True)
        assert summary == ReplaySummary(2, 4, 350, 350, 0, 0)
        assert count_offsets(broker, f"{name}.{A}") == 0

    @pytest.mark.parametrize(
        ("selection", "names", "message"),
        [
            (ReplaySelection(("missing",)), TargetNames(), "has no topic missing: name one that it has"),
            (ReplaySelection(None, {TopicPartition("gone", 0): 1}), TargetNames(), "has no topic gone"),
            (ReplaySelection(starting_timestamp_ms=4_000_000_000_000), TargetNames(), "has no record in that range"),
            (ReplaySelection(), TargetNames("", {"other": "b"}), "has no topic other, which --map names"),
            (ReplaySelection(), TargetNames("a b"), "which is no topic's name"),
        ],
    )
    def test_replay_refuses_bad_selections(
        self, broker: Broker, spark: Any, two_topics: str, selection: ReplaySelection, names: TargetNames, message: str
    ) -> None:
        with pytest.raises(PipelineError, match=message):
            replay(spark, two_topics, make_target(broker), selection=selection, names=names)

    def test_too_few_partitions(self, broker: Broker, spark: Any, name: str, two_topics: str) -> None:
        create_topic(broker, f"{name}.{A}", 2)
        with pytest.raises(PipelineError, match="has 2 partitions, and the archive has partition 2: add partitions"):
            replay(spark, two_topics, make_target(broker), names=TargetNames(f"{name}."))


def origin_time(record: Record) -> int:
    return int(record.origin["timestamp"])


@pytest.mark.spark
class TestRate:
    def test_rate_limits_records_a_second(
        self, broker: Broker, spark: Any, name: str, two_topics: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And all of them in the order of their times, even if a slice lies in several blocks."""
        begun = []

        def noted(*arguments: Any) -> Iterator[tuple[int, int]]:
            for piece in paced_slices(*arguments):
                begun.append(time.time() * 1000)
                yield piece

        monkeypatch.setattr(pace, "BLOCK_RECORDS", 70)
        monkeypatch.setattr(pace, "paced_slices", noted)
        replay(
            spark,
            two_topics,
            make_target(broker),
            selection=ReplaySelection((A,)),
            names=TargetNames(f"{name}."),
            rate=60,
        )
        assert_copied(broker, A, broker, f"{name}.{A}", cluster=False)
        copied = [record for records in read_contents(broker, f"{name}.{A}").values() for record in records]
        copied.sort(key=lambda record: record.timestamp)
        slices = [copied[first : first + 60] for first in range(0, 300, 60)]
        assert len(begun) == len(slices)
        for begin, end, written in zip(begun, [*begun[1:], math.inf], slices, strict=True):
            assert end - begin > 990
            assert all(begin - 1 <= record.timestamp <= end + 1 for record in written)
        for before, after in pairwise(slices):
            assert max(map(origin_time, before)) <= min(map(origin_time, after))

    def test_a_signal_ends_it_and_says_that_it_is_not_done(
        self, broker: Broker, name: str, two_topics: str, tmp_path: Path
    ) -> None:
        arguments = ["--path", two_topics, "--topics", A, "--bootstrap-server", broker.bootstrap]
        run = Run(tmp_path / "run", "replay", *arguments, "--prefix", f"{name}.", "--rate", "7")
        until(lambda: count_offsets(broker, f"{name}.{A}") >= 7, timeout_seconds=120)
        assert run.end() == 2
        replayed = count_offsets(broker, f"{name}.{A}")
        assert 0 < replayed < 300
        assert run.stderr.splitlines()[-1] == f"Error: ended after {replayed} of 300 records: run it again to continue"


@pytest.mark.spark
class TestGoingOn:
    def test_once_more_writes_nothing_and_again_writes_all(
        self, broker: Broker, spark: Any, name: str, two_topics: str
    ) -> None:
        selection = ReplaySelection(None, {}, {TopicPartition(A, 1): 40})
        assert (
            replay(
                spark, two_topics, make_target(broker), selection=selection, names=TargetNames(f"{name}.")
            ).records_written
            == 290
        )
        assert replay(spark, two_topics, make_target(broker), names=TargetNames(f"{name}.")).records_written == 60
        assert_copied(broker, A, broker, f"{name}.{A}", cluster=False)
        assert replay(spark, two_topics, make_target(broker), names=TargetNames(f"{name}.")).records_written == 0
        assert (
            replay(spark, two_topics, make_target(broker), names=TargetNames(f"{name}."), again=True).records_written
            == 350
        )
        assert count_offsets(broker, f"{name}.{A}") == 600

    def test_a_damaged_archive_leaves_nothing(self, broker: Broker, spark: Any, name: str, damaged: Path) -> None:
        file = min(damaged.rglob("*.parquet"))
        file.write_bytes(file.read_bytes()[:-200])
        with pytest.raises(PipelineError, match=f"{file.name} is damaged"):
            replay(spark, str(damaged), make_target(broker), names=TargetNames(f"{name}."))
        file.unlink()
        with pytest.raises(PipelineError, match=f"{file.name} is missing"):
            replay(spark, str(damaged), make_target(broker), names=TargetNames(f"{name}."))
        assert count_offsets(broker, f"{name}.{A}") == count_offsets(broker, f"{name}.{B}") == 0

    def test_a_damaged_page_leaves_nothing(self, broker: Broker, name: str, damaged: Path, tmp_path: Path) -> None:
        """Damage that only reading reveals is found before the first record is written."""
        file = max(damaged.rglob("*.parquet"), key=lambda path: path.stat().st_size)
        whole = bytearray(file.read_bytes())
        whole[300:310] = bytes(10)
        file.write_bytes(whole)
        for checksum in file.parent.glob(f".{file.name}.crc"):
            checksum.unlink()
        arguments = ["--path", str(damaged), "--bootstrap-server", broker.bootstrap, "--prefix", f"{name}."]
        failed = Run(tmp_path / "run", "replay", *arguments)
        assert failed.wait() == 2
        assert "Error: " in failed.stderr.splitlines()[-1]
        assert count_offsets(broker, f"{name}.{A}") == count_offsets(broker, f"{name}.{B}") == 0

    def test_no_archive_at_all(self, broker: Broker, tmp_path: Path) -> None:
        path = tmp_path / "none"
        failed = Run(tmp_path / "run", "replay", "--path", str(path), "--bootstrap-server", broker.bootstrap)
        assert failed.wait() == 2
        assert failed.stderr.splitlines()[-1].startswith(f"Error: there is no archive in {path}")

    @pytest.mark.parametrize("rate", [None, 20_000])
    def test_killed_at_any_moment_it_goes_on(
        self, broker: Broker, make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path, rate: int | None
    ) -> None:
        target, count = make_broker(), 40_000 * kill_count()
        create_topic(broker, name, 3)
        produce_records(broker, name, make_numbered_records(count), 3)
        path = archive_topics(spark, broker, name, tmp_path)
        arguments = ["replay", "--path", path, "--bootstrap-server", target.bootstrap]
        if rate:
            arguments += ["--rate", str(rate)]
        kill_some_times(tmp_path, arguments, lambda: count_offsets(target, name), count)
        last = Run(tmp_path / "last", *arguments)
        assert last.wait() == 0, last.stderr
        assert_copied(broker, name, target, name, cluster=False)
