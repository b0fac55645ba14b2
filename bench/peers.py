"""Measure what the README's table says of brokers beside this one: start, memory, a group's first record, transactions.

    python -m bench.peers                                              this broker and Apache Kafka 4.3.1
    python -m bench.peers kafka kfake=127.0.0.1:9092=/path/to/kfake    Kafka, and a broker by its name, address and command

Each figure is the median of five starts over an empty folder, with the broker's default properties.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from compat_tests.brokers import Broker, KafkaBroker, KafkacompatBroker
from compat_tests.raw_client import RawClient
from compat_tests.waiting import pause, until
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.fetch import FetchRequest
from kafkacompat.wire.apis.produce import ProduceRequest

STARTS = 5
SETTLING_SECONDS = 2
LONGEST_SECONDS = 60


class PeerBroker(Broker):
    """A broker that somebody else built, started by a command that serves on a fixed port."""

    def __init__(self, folder: Path, port: int, arguments: Sequence[str]) -> None:
        super().__init__(folder)
        self.port = port
        self._arguments = arguments

    def command(self) -> Sequence[str]:
        return self._arguments


def measure_start(broker: Broker) -> dict[str, float]:
    """Start a broker; return its start in ms, its memory when idle, and a new group's first record in ms."""
    seconds = broker.start()
    try:
        pause(SETTLING_SECONDS)
        resident = broker.resident_bytes() / 1e6
        return {"start ms": seconds * 1e3, "idle MB": resident, "first record ms": measure_first_record(broker)}
    finally:
        broker.stop()


def measure_first_record(broker: Broker) -> float:
    """Return the ms from subscribe to the first record of a new group; infinite if none arrives within a minute."""
    create_topic(broker.bootstrap, "first")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("first", b"value")
    if producer.flush(LONGEST_SECONDS):
        raise AssertionError(f"{broker.kind} did not store a record within {LONGEST_SECONDS} s")
    pause(SETTLING_SECONDS)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "new", "auto.offset.reset": "earliest", "log_level": "0"}
    )
    begun = time.monotonic()
    consumer.subscribe(["first"])
    try:
        until(lambda: has_record(consumer), timeout_seconds=LONGEST_SECONDS, every_seconds=0)
        return (time.monotonic() - begun) * 1e3
    except AssertionError:
        return float("inf")
    finally:
        consumer.close()


def has_record(consumer: Consumer) -> bool:
    message = consumer.poll(0.1)
    return message is not None and message.error() is None


def describe_versions(port: int) -> dict[str, str]:
    """Return how many APIs the broker advertises, and which versions of Produce and Fetch."""
    with RawClient(port) as client:
        answer = client.call(ApiVersionsRequest(), ApiVersionsResponse, 0)
    ranges = {api.api_key: f"{api.min_version} to {api.max_version}" for api in answer.api_keys}
    return {
        "APIs": str(len(ranges)),
        "Produce": ranges[ProduceRequest.API_KEY],
        "Fetch": ranges[FetchRequest.API_KEY],
    }


def create_topic(bootstrap: str, name: str) -> None:
    """Create a topic of one partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()


def describe_transactions(bootstrap: str) -> str:
    """Abort a transaction, commit another, and describe the records that a reader of committed records receives."""
    create_topic(bootstrap, "transactions")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "peer", "transaction.timeout.ms": 20_000})
    try:
        producer.init_transactions(20)
        for value, end in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
            producer.begin_transaction()
            producer.produce("transactions", value)
            producer.flush(20)
            end(20)
    except KafkaException as error:
        return f"fail: {error.args[0].str()}"
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "committed",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
        }
    )
    consumer.subscribe(["transactions"])
    values: list[bytes] = []
    try:
        with suppress(AssertionError):
            until(lambda: reach_end(consumer, values), timeout_seconds=LONGEST_SECONDS, every_seconds=0)
    finally:
        consumer.close()
    return "pass" if values == [b"committed"] else f"fail: a reader of committed records receives {values}"


def reach_end(consumer: Consumer, values: list[bytes]) -> bool:
    """Take one message into *values*; True at the end of the partition that has them."""
    message = consumer.poll(0.1)
    if message is None:
        return False
    if message.error() is None:
        values.append(message.value())
        return False
    return bool(values)


def make_broker(peer: str, folder: Path) -> Broker:
    """Return the broker that *peer*, an argument of the command line, stands for."""
    if peer == KafkacompatBroker.kind:
        return KafkacompatBroker(folder)
    if peer == KafkaBroker.kind:
        return KafkaBroker(folder)
    name, address, command = peer.split("=", 2)
    broker = PeerBroker(folder, int(address.rpartition(":")[2]), shlex.split(command))
    broker.kind = name
    return broker


def main(peers: Sequence[str]) -> int:
    """Measure each broker and print one table."""
    console = Console()
    rows: dict[str, dict[str, str]] = {}
    for peer in peers or (KafkacompatBroker.kind, KafkaBroker.kind):
        samples = []
        with tempfile.TemporaryDirectory() as folder, console.status(peer):
            for number in range(STARTS):
                samples.append(measure_start(make_broker(peer, Path(folder, str(number)))))
            with make_broker(peer, Path(folder, "last")) as broker:
                described = {
                    **describe_versions(broker.port),
                    "transactions": describe_transactions(broker.bootstrap),
                }
        medians = {metric: f"{median(sample[metric] for sample in samples):,.0f}" for metric in samples[0]}
        rows[peer.partition("=")[0]] = {**medians, **described}
        console.print(peer.partition("=")[0], rows[peer.partition("=")[0]])
    table = Table("", *rows)
    for metric in next(iter(rows.values())):
        table.add_row(metric, *(row[metric] for row in rows.values()))
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
