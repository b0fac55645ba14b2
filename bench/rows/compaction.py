"""Compaction: the speed at which a half-replaced log is compacted, and the latency of producers meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from random import Random
from threading import Thread

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from bench.load import PRODUCE_VERSION, RECORD_BYTES, Load, check
from bench.paced import Latencies, Pace, find_percentile, run_pace
from bench.row import Goal, Options, Row, Samples
from bench.topics import a_topic, admin_of
from compat_tests.brokers import Broker
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.waiting import until
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.record_batch import NewRecord, build_batch

LOG_BYTES = 300_000_000
BATCH_BYTES = 256_000
SEGMENT_BYTES = 16 << 20
RATE = 1000.0
SECONDS = 5
CHECKPOINT = "cleaner-offset-checkpoint"
LETTERS = b"abcdefghijklmnop"


def measure(record_bytes: int, codec: Codec, broker: Broker, options: Options) -> Samples:
    """Fill a log, then compact it while another topic is written to."""
    count = options.count(LOG_BYTES // record_bytes)
    with a_topic(broker, 1, segment_bytes=str(SEGMENT_BYTES)) as topic:
        fill_log(broker, topic, record_bytes, codec, count)
        idle = run_paced_load(broker, SECONDS * options.scale)
        folder = broker.data_folder / f"{topic}-0"
        segments = sorted(folder.glob("*.log"))
        active = int(segments[-1].stem)
        stored_bytes = sum(path.stat().st_size for path in segments[:-1])
        seconds: list[float] = []
        compacting = Thread(target=lambda: seconds.append(await_compaction(broker, topic, active)))
        compacting.start()
        beside: list[Latencies] = []
        while not beside or compacting.is_alive():
            beside.append(run_paced_load(broker, 1))
        compacting.join()
    return {
        "MB/s": active * record_bytes / seconds[0] / 1e6,
        "stored MB/s": stored_bytes / seconds[0] / 1e6,
        "records/s": active / seconds[0],
        **_compare_latencies(idle, beside),
    }


def fill_log(broker: Broker, topic: str, record_bytes: int, codec: Codec, count: int) -> None:
    """Append *count* records; the second half has the keys of the first."""
    with RawClient(broker.port) as client:
        for batch in generate_batches(record_bytes, codec, count):
            client.send(produce_request(topic, {0: batch}, acks=1), PRODUCE_VERSION)
            check(client.receive(ProduceResponse, PRODUCE_VERSION))


def generate_batches(record_bytes: int, codec: Codec, count: int) -> Iterator[bytes]:
    """Yield the batches of such a log; codecs compress its values to half their size."""
    rng, now_ms, batch_records = Random(7), int(time.time() * 1000), max(1, BATCH_BYTES // record_bytes)
    values = [bytes(rng.choices(LETTERS, k=record_bytes - 20)) for _ in range(1000)]
    for first in range(0, count, batch_records):
        records: list[NewRecord] = [
            (now_ms, b"key-%08d" % (number % (count // 2)), values[number * 7 % 1000], [])
            for number in range(first, min(first + batch_records, count))
        ]
        yield build_batch(records, codec=codec)


def await_compaction(broker: Broker, topic: str, active: int) -> float:
    """Switch compaction on; return the seconds until it reaches the active segment."""
    changes = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in changes.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin, begin = admin_of(broker), time.monotonic()
    admin.incremental_alter_configs([resource])[resource].result(30)
    checkpoint = broker.data_folder / CHECKPOINT
    wanted = f"{topic} 0 {active}"
    until(
        lambda: checkpoint.exists() and wanted in checkpoint.read_text().splitlines(),
        timeout_seconds=600,
        every_seconds=0.01,
    )
    return time.monotonic() - begin


def run_paced_load(broker: Broker, seconds: float) -> Latencies:
    """Produce and tail-fetch 1,000 records a second for a while."""
    with a_topic(broker, 1) as topic:
        load = Load.of(RECORD_BYTES, RECORD_BYTES)
        return run_pace(Pace(broker.port, topic, 1, load, RATE, max(1, int(RATE * seconds))))


def _compare_latencies(idle: Latencies, beside: list[Latencies]) -> Samples:
    quiet = find_percentile(idle.acknowledged, 0.99)
    busy = find_percentile(sorted(value for latencies in beside for value in latencies.acknowledged), 0.99)
    return {"produce p99 us, idle": quiet, "produce p99 us, beside": busy, "produce p99, beside/idle": busy / quiet}


def make_row(record_bytes: int, codec: Codec) -> Row:
    name = {Codec.NONE: "uncompressed", Codec.ZSTD: "zstd"}[codec]
    goals = [Goal("produce p99, beside/idle", 2.0, at_least=False, is_ratio=False)]
    if record_bytes >= 1000:
        goals.append(Goal("MB/s", 40.0, at_least=True, is_ratio=False))
    return Row(
        f"compaction-{record_bytes}-{name}",
        f"Compaction, records of {record_bytes:,} bytes, {name}",
        f"{LOG_BYTES // 1_000_000} MB of records in batches of {BATCH_BYTES // 1000} KB; the second half has the keys of the first. "
        "The time counts from switching compaction on until it reaches the active segment. MB are of decompressed records; "
        "*stored MB* are of the files. Meanwhile 1,000 records a second are written to another topic (*beside*).",
        partial(measure, record_bytes, codec),
        goals,
        properties={"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "1000"},
    )


ROWS = [make_row(size, codec) for size in (1024, 100) for codec in (Codec.NONE, Codec.ZSTD)]
