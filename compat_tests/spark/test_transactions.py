"""Transactions: which of their records are read, and offsets without a record, for which Spark must not wait."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from confluent_kafka import Message, Producer

from compat_tests.spark.scene import Record, Scene, collect_records

pytestmark = pytest.mark.spark

# A task that waits for a record at an offset without one ends with an error after this time.
COMMITTED = {"kafka.isolation.level": "read_committed", "kafkaConsumer.pollTimeoutMs": "30000"}
UNCOMMITTED = {"kafka.isolation.level": "read_uncommitted"}


class Transactions:
    """A transactional producer, and the records that it wrote, by their outcome."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        settings = {"bootstrap.servers": scene.broker.bootstrap, "transactional.id": scene.topic, "linger.ms": 0}
        self.producer = Producer(settings)
        self.producer.init_transactions(30)
        self.acknowledged: set[Record] = set()

    def write(self, count: int, partitions: Sequence[int] = (0, 1)) -> set[Record]:
        """Write *count* records a partition in the open transaction, and wait for their offsets."""
        written: set[Record] = set()

        def delivered(error: object, message: Message) -> None:
            assert error is None, error
            written.add((message.partition(), message.offset(), message.value().decode()))

        for number in range(count):
            for partition in partitions:
                text = f"{partition}/{len(self.acknowledged)}/{number}"
                self.producer.produce(self.scene.topic, value=text, partition=partition, on_delivery=delivered)
        assert self.producer.flush(30) == 0
        self.acknowledged |= written
        return written

    def committed(self, count: int, partitions: Sequence[int] = (0, 1)) -> set[Record]:
        self.producer.begin_transaction()
        written = self.write(count, partitions)
        self.producer.commit_transaction(30)
        return written

    def aborted(self, count: int, partitions: Sequence[int] = (0, 1)) -> set[Record]:
        self.producer.begin_transaction()
        written = self.write(count, partitions)
        self.producer.abort_transaction(30)
        return written


@pytest.fixture
def transactions(scene: Scene) -> Transactions:
    scene.create(2)
    return Transactions(scene)


def both_levels(scene: Scene, label: str = "", **options: str) -> tuple[set[Record], set[Record]]:
    """Return the committed records and all records that a batch finds."""
    return (
        scene.note(f"committed {label}", collect_records(scene.batch(**COMMITTED, **options))),
        scene.note(f"all {label}", collect_records(scene.batch(**UNCOMMITTED, **options))),
    )


def test_the_committed_alone_or_all(scene: Scene, transactions: Transactions) -> None:
    """Markers take offsets at which readers see no record."""
    kept = transactions.committed(5) | transactions.committed(1, (1,))
    dropped = transactions.aborted(5)
    kept |= transactions.committed(5)
    assert both_levels(scene) == (kept, kept | dropped)
    assert {offset for _, offset, _ in kept | dropped} & {5} == set()
    assert both_levels(scene, "in tasks", minPartitions="9") == (kept, kept | dropped)


@pytest.mark.parametrize("last", ["committed", "aborted"])
def test_a_range_that_ends_with_markers(scene: Scene, transactions: Transactions, last: str) -> None:
    """The end of a partition is after the marker, so the last offset of the range has no record."""
    kept = transactions.committed(5)
    dropped: set[Record] = set()
    for _ in range(3):
        (kept if last == "committed" else dropped).update(getattr(transactions, last)(2))
    assert both_levels(scene) == (kept, kept | dropped)


def test_a_partition_of_nothing_but_aborted_transactions(scene: Scene, transactions: Transactions) -> None:
    dropped = transactions.aborted(30, (0,)) | transactions.aborted(30, (0,))
    assert both_levels(scene, minPartitions="6") == (set(), dropped)


def test_ranges_that_begin_and_end_at_markers(scene: Scene, transactions: Transactions) -> None:
    """Partition 0 holds 0-4, a marker, 6-10 (aborted), a marker, 12-16, a marker."""
    kept = transactions.committed(5, (0,))
    dropped = transactions.aborted(5, (0,))
    kept |= transactions.committed(5, (0,))
    for start, end in ((5, 6), (5, 12), (6, 11), (4, 6), (11, 13), (16, 18), (17, 18)):
        ranges = {
            "startingOffsets": json.dumps({scene.topic: {"0": start, "1": 0}}),
            "endingOffsets": json.dumps({scene.topic: {"0": end, "1": 0}}),
        }
        by_level = both_levels(scene, f"{start} to {end}", **ranges)
        inside = {record for record in kept | dropped if start <= record[1] < end}
        assert by_level == (inside & kept, inside), (start, end)


def test_an_open_transaction_ends_the_stable_offsets(scene: Scene, transactions: Transactions) -> None:
    kept = transactions.committed(3)
    transactions.producer.begin_transaction()
    opened = transactions.write(4)
    behind = scene.fill({0: ["behind"], 1: ["behind"]})
    assert both_levels(scene) == (kept, kept | opened | behind)
    transactions.producer.commit_transaction(30)
    assert scene.note("then", collect_records(scene.batch(**COMMITTED))) == kept | opened | behind


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_a_stream_over_transactions(scene: Scene, transactions: Transactions, level: str) -> None:
    """Each micro-batch ends at stable offsets; an aborted one is empty, and is passed."""
    query = scene.run(scene.stream(**{**COMMITTED, "kafka.isolation.level": level}))
    wanted = transactions.committed(5)
    query.wait_for(wanted)
    dropped = transactions.aborted(5)
    wanted |= transactions.committed(1, (1,)) | (dropped if level == "read_uncommitted" else set())
    query.wait_for(wanted)
    transactions.producer.begin_transaction()
    opened = transactions.write(3)
    query.query.processAllAvailable()
    if level == "read_committed":
        assert not query.records() & opened
    transactions.producer.commit_transaction(30)
    wanted |= opened
    query.wait_for(wanted)
    assert scene.note("rows", query.records()) == wanted
    ends = query.ranges()[-1]["to"][scene.topic]
    assert scene.note("end", ends) == {"0": 16, "1": 18}


def test_a_stream_passes_aborted_records(scene: Scene, transactions: Transactions) -> None:
    """Resumed before nothing but markers, the stream neither waits nor reads anything twice."""
    kept = transactions.committed(5)
    assert scene.run_to_the_end(scene.stream(**COMMITTED)).records() == kept
    transactions.aborted(5)
    second = scene.run_to_the_end(scene.stream(**COMMITTED))
    assert scene.note("nothing", second.records()) == set()
    assert scene.note("end", second.progress()[-1]["sources"][0]["endOffset"]) == {scene.topic: {"0": 12, "1": 12}}
    more = transactions.committed(1)
    assert scene.note("more", scene.run_to_the_end(scene.stream(**COMMITTED)).records()) == more


def test_a_limit_counts_offsets_not_records(scene: Scene, transactions: Transactions) -> None:
    """So a micro-batch may consist of markers and aborted records."""
    kept: set[Record] = set()
    for number in range(4):
        kept |= transactions.committed(2, (0,)) if number % 2 == 0 else set()
        transactions.aborted(4, (0,))
    query = scene.run_to_the_end(scene.stream(maxOffsetsPerTrigger="3", **COMMITTED))
    assert scene.note("batches", {number: set(batch) for number, batch in query.batches.items()})
    assert query.records() == kept
    assert set() in map(set, query.batches.values())
    assert scene.note("ranges", query.ranges())[-1]["to"] == {scene.topic: {"0": 26, "1": 0}}
