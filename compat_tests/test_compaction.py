"""The same logs compacted by Apache Kafka and by us read the same, and each reads the other's compacted log."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import Broker, KafkaBroker, KafkacompatBroker
from compat_tests.dumps import kafkas_dump, list_complaints
from compat_tests.predecessors import open_left_directory
from compat_tests.processes import cpu_seconds, is_alive, list_children, suspend_process
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.same_answers.records import fetch_of
from compat_tests.waiting import pause, until
from kafkacompat.storage.compaction import CleanedSegment, CleaningResult, compact
from kafkacompat.storage.directory.checkpoints import CLEANER_OFFSETS
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.apis.fetch import FetchResponse
from kafkacompat.wire.apis.produce import ProduceRequest, ProduceResponse
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import (
    HEADER_SIZE,
    NewRecord,
    Record,
    build_batch,
    read_header,
    read_records,
    split_batches,
)

TOPIC = "compacted"
SEGMENT_BYTES = 20_000
KEYS = 60
BATCHES = 800

EAGER = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "100"}
TOPIC_CONFIG = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": str(SEGMENT_BYTES),
    "min.cleanable.dirty.ratio": "0.01",
    "index.interval.bytes": "500",
}


def make_batch(number: int, rng: Random) -> bytes:
    """A batch of up to ten records, a tenth of them tombstones."""
    records: list[NewRecord] = []
    for _ in range(rng.randint(1, 10)):
        value = None if rng.random() < 0.1 else rng.randbytes(rng.randint(0, 100))
        records.append((RECENT_MS + number * 3 - rng.randint(0, 50), b"key-%d" % rng.randrange(KEYS), value, []))
    return build_batch(records, codec=rng.choice(list(Codec)))


def create_topic(broker: Broker, config: dict[str, str] = TOPIC_CONFIG) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (made,) = admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)]).values()
    made.result(30)


def fill_topic(broker: Broker) -> None:
    rng = Random(5)
    with RawClient(broker.port) as client:
        for number in range(BATCHES):
            request = produce_request(TOPIC, {0: make_batch(number, rng)})
            until(partial(is_produced, client, request))


def is_produced(client: RawClient, request: ProduceRequest) -> bool:
    answer = client.call(request, ProduceResponse, 9).responses[0].partition_responses[0]
    return ErrorCode(answer.error_code) == ErrorCode.NONE


def segment_bases(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.log"))


def wait_until_compacted(broker: Broker) -> int:
    """Wait until everything below the active segment is compacted; returns where that begins."""

    def compacted() -> int:
        checkpoint = broker.data_folder / CLEANER_OFFSETS
        active = segment_bases(broker.data_folder / f"{TOPIC}-0")[-1]
        lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
        return active if f"{TOPIC} 0 {active}" in lines else 0

    return until(compacted, timeout_seconds=60)


def fetch_all(broker: Broker, end_offset: int) -> list[Record]:
    """Every record before an offset, as a consumer gets it."""
    records: list[Record] = []
    offset = 0
    with RawClient(broker.port) as client:
        while offset < end_offset:
            answer = client.call(fetch_of(TOPIC, offset), FetchResponse, 11).responses[0].partitions[0]
            assert answer.error_code == 0
            data = answer.records or b""
            assert isinstance(data, bytes | bytearray | memoryview)
            for batch in split_batches(data):
                header = read_header(batch)
                records += [record for record in read_records(batch) if offset <= record.offset < end_offset]
                offset = header.last_offset + 1
    return records


def by_offset(records: Iterable[Record]) -> dict[int, Record]:
    return {record.offset: record for record in records}


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker, int]]:
    """Ours and Kafka, with the same log compacted, and where its active segment begins."""
    folder = tmp_path_factory.mktemp("compacted")
    ours, kafkas = KafkacompatBroker(folder / "ours", EAGER), KafkaBroker(folder / "kafka", EAGER)
    with ours, kafkas:
        ends = []
        for broker in (ours, kafkas):
            create_topic(broker)
            fill_topic(broker)
            ends.append(wait_until_compacted(broker))
        assert ends[0] == ends[1] > 3000
        yield ours, kafkas, ends[0]


def test_both_read_the_same(compacted: tuple[Broker, Broker, int]) -> None:
    ours, kafkas, end_offset = compacted
    records = fetch_all(ours, end_offset)
    assert records == fetch_all(kafkas, end_offset)
    assert len({record.key for record in records}) == len(records) <= KEYS
    assert any(record.value is None for record in records)


def test_dump_log_segments_has_no_complaint(compacted: tuple[Broker, Broker, int]) -> None:
    ours, _, _ = compacted
    check_dump(ours.data_folder / f"{TOPIC}-0")


def check_dump(folder: Path) -> None:
    logs, indexes = sorted(folder.glob("*.log")), sorted(folder.glob("*index"))
    for files, option in (
        (logs, "--deep-iteration"),
        (indexes, "--index-sanity-check"),
        (indexes, "--verify-index-only"),
    ):
        output, errors = kafkas_dump([path for path in files if path.suffix != ".txnindex"], option)
        # It is said of every log with holes, also of Kafka's own.
        assert [line for line in list_complaints(errors) if " is followed by " not in line] == []
        assert "isvalid: false" not in output and "invalid bytes" not in output


def test_our_processes_are_gone_with_the_broker_and_a_restart_reads_the_same(tmp_path: Path) -> None:
    with KafkacompatBroker(tmp_path / "node", EAGER) as broker:
        create_topic(broker)
        fill_topic(broker)
        end_offset = wait_until_compacted(broker)
        records = fetch_all(broker, end_offset)
        broker.kill()
        broker.start()
        assert fetch_all(broker, end_offset) == records
        assert broker.stop() == 0
        assert broker.stderr().count("ERROR") == 0


def test_a_broker_killed_or_stopped_while_it_compacts_loses_nothing(tmp_path: Path) -> None:
    """The cleaner is slowed down so that the kill interrupts it; its progress at the kill differs from run to run."""
    with KafkacompatBroker(tmp_path / "node", {**EAGER, "log.cleaner.enable": "false"}) as broker:
        create_topic(broker)
        fill_topic(broker)
        end_offset = segment_bases(broker.data_folder / f"{TOPIC}-0")[-1]
        before = by_offset(fetch_all(broker, end_offset))
        of_keys = {record.key: record for record in before.values()}
        lasts = by_offset(sorted(of_keys.values()))
        broker.stop()
        broker.properties |= {"log.cleaner.enable": "true", "log.cleaner.io.max.bytes.per.second": "2000000"}
        for round_ in range(6):
            broker.start()
            pause(0.1 + 0.11 * round_)
            records = by_offset(fetch_all(broker, end_offset))
            assert lasts.items() <= records.items() <= before.items()
            assert (broker.kill() == -9) if round_ % 2 else (broker.stop() == 0)
            leftovers = [path.suffix for path in (broker.data_folder / f"{TOPIC}-0").iterdir()]
            assert round_ % 2 or not {".cleaned", ".swap"} & set(leftovers)
        broker.start()
        assert wait_until_compacted(broker) == end_offset
        assert by_offset(fetch_all(broker, end_offset)) == lasts
        assert broker.stderr().count("ERROR") == 0


@cache
def batch_of_a_million() -> bytes:
    return build_batch([(RECENT_MS, b"%d" % number, b"", []) for number in range(10**6)], codec=Codec.ZSTD)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_compacting_process_ends_with_the_broker_in_a_large_batch(tmp_path: Path, is_killed: bool) -> None:
    """A million records take it seconds of CPU time, in which nothing else is asked of it; it is held up among them."""
    large = batch_of_a_million()
    properties = {**EAGER, "message.max.bytes": str(2 * len(large))}
    with KafkacompatBroker(tmp_path / "node", properties) as broker:
        create_topic(broker, {**TOPIC_CONFIG, "internal.segment.bytes": str(len(large) + 100)})
        with RawClient(broker.port) as client:
            until(partial(is_produced, client, produce_request(TOPIC, {0: large})))
            others = set(list_children(broker.pid))
            until(partial(is_produced, client, produce_request(TOPIC, {0: make_batch(1, Random(1))})))
        (worker,) = until(lambda: set(list_children(broker.pid)) - others)
        until(lambda: cpu_seconds(worker) > 1)
        suspend_process(worker)
        used_seconds = cpu_seconds(worker)
        assert (broker.kill() == -signal.SIGKILL) if is_killed else (broker.stop() == 0)
        if is_killed:
            os.kill(worker, signal.SIGCONT)
        # It looks for its broker once a second; the whole takes it several.
        assert cpu_seconds_to_the_end(worker) < used_seconds + 1.5
        assert broker.stderr().count("ERROR") == 0


def cpu_seconds_to_the_end(pid: int) -> float:
    """Wait until a process has ended; return its processor time, which does not depend on other load as elapsed time does."""
    seconds = [0.0]

    def has_ended() -> bool:
        with suppress(FileNotFoundError, ProcessLookupError):
            seconds.append(cpu_seconds(pid))
        return not is_alive(pid)

    until(has_ended, timeout_seconds=120)
    return max(seconds)


def is_small(log_file: Path) -> bool:
    """Whether next to nothing is left in a segment; it has no name in the instant in which another takes its place."""
    try:
        return log_file.stat().st_size < 1 << 17
    except FileNotFoundError:
        return False


def test_groups_are_loaded_from_a_compacted_offsets_topic(tmp_path: Path) -> None:
    offsets_topic = {"offsets.topic.num.partitions": "1", "offsets.topic.segment.bytes": "1048576"}
    eager = {**EAGER, **offsets_topic, "log.cleaner.min.cleanable.ratio": "0.01"}
    with KafkacompatBroker(tmp_path / "node", eager) as broker:
        create_topic(broker)
        groups = [group_consumer(broker, f"group {number}") for number in range(7)]
        for number in range(600):
            where = TopicPartition(TOPIC, 0, number, "m" * 4000)
            groups[number % 7].commit(offsets=[where], asynchronous=False)
        folder = broker.data_folder / "__consumer_offsets-0"
        until(lambda: len(segment_bases(folder)) > 1 and is_small(folder / f"{0:020}.log"))
        broker.kill()
        broker.start()
        for number in range(593, 600):
            assert read_committed_offset(broker, f"group {number % 7}") == number


def group_consumer(broker: Broker, group: str) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False})


def read_committed_offset(broker: Broker, group: str) -> int:
    (committed,) = group_consumer(broker, group).committed([TopicPartition(TOPIC, 0)], timeout=30)
    return int(committed.offset)


# A log with transactions, which Kafka writes


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> KafkaBroker:
    """A Kafka that has stopped, with a log of committed and aborted transactions, never compacted."""
    broker = KafkaBroker(tmp_path_factory.mktemp("written") / "node", {**EAGER, "log.cleaner.enable": "false"})
    with broker:
        create_topic(broker)
        rng = Random(9)
        settings = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0}
        transactional = [Producer({**settings, "transactional.id": f"t{number}"}) for number in range(3)]
        for producer in transactional:
            producer.init_transactions(30)
        plain = Producer({**settings, "enable.idempotence": True, "compression.type": "zstd"})
        for number in range(150):
            for producer in rng.sample(transactional, 2):
                producer.begin_transaction()
                write_transaction(producer, rng, number)
                write_transaction(plain, rng, number)
                _ = producer.commit_transaction() if rng.random() < 0.6 else producer.abort_transaction()
        for _ in range(200):
            plain.produce(TOPIC, key=b"last", value=rng.randbytes(100))
        assert plain.flush(30) == 0
    return broker


def write_transaction(producer: Producer, rng: Random, number: int) -> None:
    for _ in range(rng.randint(1, 6)):
        value = None if rng.random() < 0.1 else b"%d " % number + rng.randbytes(rng.randint(0, 60))
        producer.produce(TOPIC, key=b"key-%d" % rng.randrange(KEYS), value=value)
    producer.flush(30)


def read_stored(folder: Path, end_offset: int) -> list[tuple[bool, Record]]:
    """Return (whether it is a marker, record) of all records below an offset."""
    records = []
    for base in segment_bases(folder):
        for batch in split_batches((folder / f"{base:020}.log").read_bytes()):
            header = read_header(batch)
            records += [(header.is_control, record) for record in read_records(batch) if record.offset < end_offset]
    return records


def compact_copy(data_folder: Path) -> None:
    """Compact the topic in a data folder with our code, as the broker does."""
    directory = open_left_directory(data_folder)
    (stored,) = [partition for partition in directory.list_partitions() if partition.topic == TOPIC]
    config = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=SEGMENT_BYTES, index_interval_bytes=500)
    log = directory.open_log(TOPIC, 0, stored.topic_id, config, RECENT_MS)
    while compact_once(OsFiles(), log):
        directory.save_cleaner_offset(log)
    directory.close([log])


def compact_once(files: OsFiles, log: Log) -> bool:
    now_ms = RECENT_MS + 3_600_000
    cleanable = log.compaction.find_cleanable(stable_offset=log.log_end_offset, now_ms=now_ms)
    if cleanable is None:
        return False
    job = log.compaction.make_cleaning_job(cleanable, now_ms=now_ms, map_bytes=1 << 20, load_factor=0.9)
    assert job is not None
    for step in compact(files, job):
        if isinstance(step, CleanedSegment):
            segment = log.compaction.prepare_swap(step)
            replaced = log.compaction.swap_segments(step, segment)
            log.compaction.complete_swap(segment, replaced)
            log.compaction.remove_replaced(replaced)
        elif isinstance(step, CleaningResult):
            log.cleaner_offset = step.end_offset
    return True


def consume_all(broker: Broker, isolation: str) -> list[tuple[int, bytes | None, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    messages = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        problem = message.error()
        if problem is not None:
            if problem.name() != "_PARTITION_EOF":
                raise KafkaException(problem)
            break
        offset = message.offset()
        assert offset is not None
        messages.append((offset, message.key(), message.value()))
    consumer.close()
    return messages


@pytest.mark.compare
def test_transactions_are_compacted_as_kafka_does(written: KafkaBroker, tmp_path: Path) -> None:
    """Our broker compacts a copy of the log, Kafka the log itself; then Kafka serves our result."""
    before = read_stored(written.data_folder / f"{TOPIC}-0", 1 << 60)
    copy = tmp_path / "data"
    shutil.copytree(written.data_folder, copy)
    compact_copy(copy)
    properties = written.folder / "server.properties"
    off = "log.cleaner.enable=false"
    properties.write_text(properties.read_text().replace(off, "log.cleaner.enable=true"))
    with written:
        end_offset = wait_until_compacted(written)
        committed = consume_all(written, "read_committed")
        everything = consume_all(written, "read_uncommitted")
    ours = read_stored(copy / f"{TOPIC}-0", end_offset)
    assert ours == read_stored(written.data_folder / f"{TOPIC}-0", end_offset)
    assert 2 * len(ours) < len(before)
    assert any(is_control for is_control, _ in ours)
    check_dump(copy / f"{TOPIC}-0")
    shutil.rmtree(written.data_folder)
    shutil.copytree(copy, written.data_folder)
    properties.write_text(properties.read_text().replace("log.cleaner.enable=true", off))
    with written:
        assert consume_all(written, "read_committed") == committed
        assert consume_all(written, "read_uncommitted") == everything
    (written.data_folder / ".kafka_cleanshutdown").unlink()
    with written:
        assert consume_all(written, "read_committed") == committed


def test_librdkafka_passes_by_segments_of_which_nothing_is_left(tmp_path: Path) -> None:
    """More than ten answers without a message would be an error for it."""
    with KafkacompatBroker(tmp_path / "ours", EAGER) as broker:
        # Everything is compacted at once: a later compaction would join the segments that an earlier compaction has emptied.
        create_topic(broker, {**TOPIC_CONFIG, "internal.segment.bytes": "2000", "cleanup.policy": "delete"})
        producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 7})
        for number in range(2000):
            producer.produce(TOPIC, key=b"key %d" % (number % 10), value=b"value %d" % number, partition=0)
        assert producer.flush(30) == 0
        entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
        topic = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.incremental_alter_configs([topic])[topic].result(30)
        wait_until_compacted(broker)
        sizes = [path.stat().st_size for path in (broker.data_folder / f"{TOPIC}-0").glob("*.log")]
        assert sizes.count(HEADER_SIZE) > 20
        messages = consume_all(broker, "read_uncommitted")
    offsets = {offset: (key, value) for offset, key, value in messages}
    assert len(offsets) == len(messages) < 200
    assert {number: (b"key %d" % (number % 10), b"value %d" % number) for number in offsets} == offsets
    assert offsets.keys() >= set(range(1990, 2000))
