"""``python -m compat_tests.failover``: kill the leader under load in a cluster of three, and count the lost records.

`kafkacompat cluster start` runs the brokers; confluent-kafka writes with acks=all and reads everything back.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.ports import free_port
from compat_tests.waiting import until
from kafkacompat.cli.cluster.folder import ClusterFolder, ProcessRecord
from spark_integration.runtime.maven import BUILD, MissingProgramError, find_program

ROOT = Path(__file__).resolve().parent.parent
FOLDER = BUILD / "cluster-demo"
TOPIC = "demo"
PARTITIONS = 6
REPLICAS = 3
VALUE_BYTES = 100
WAIT_SECONDS = 60
# The broker that stops last cannot hand over its partitions, and would try three times in 15 s.
QUICK_STOP = ("--override", "controlled.shutdown.retry.backoff.ms=200")
QUIET = {"log_level": 0}


class DemoError(Exception):
    """The cluster did not do what the demo needs; the message is for users."""


@dataclass
class Acknowledged:
    """The acknowledged numbers of each partition, in the order of their acknowledgements, and the times of these."""

    numbers: dict[int, list[int]] = field(default_factory=lambda: {partition: [] for partition in range(PARTITIONS)})
    times: dict[int, list[float]] = field(default_factory=lambda: {partition: [] for partition in range(PARTITIONS)})
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return sum(len(numbers) for numbers in self.numbers.values())

    def longest_gap(self, partitions: Sequence[int]) -> float:
        """Return the longest time in seconds between two acknowledgements of one of these partitions."""
        pairs = (
            pair
            for partition in partitions
            for pair in zip(self.times[partition], self.times[partition][1:], strict=False)
        )
        return max((later - earlier for earlier, later in pairs), default=0.0)


@dataclass(frozen=True)
class Outcome:
    """The fate of the records; ``gap_seconds`` is the time in which the killed broker's partitions took none."""

    acknowledged: int
    errors: Mapping[str, int]
    lost: int
    duplicates: int
    out_of_order: int
    gap_seconds: float
    killed: str
    partitions: Sequence[int]


class DemoCluster:
    """Three brokers and ZooKeeper in a folder, by the command line alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first_port = free_ports_in_a_row(REPLICAS)
        self.bootstrap = ",".join(f"127.0.0.1:{self.first_port + number}" for number in range(REPLICAS))

    def start(self) -> None:
        """Return once all brokers are ready. Raises DemoError with the command's output."""
        self.run("start", "--brokers", str(REPLICAS), "--port", str(self.first_port), "--detach", *QUICK_STOP)

    def stop(self) -> None:
        """Stop everything. Raises DemoError with the command's output."""
        self.run("stop")

    def run(self, command: str, *options: str) -> None:
        """Run a command of `kafkacompat cluster` to its end."""
        words = [sys.executable, "-m", "kafkacompat", "cluster", command, "--data", str(self.folder), *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
        # Not through pipes: brokers that go on in the background would keep them open.
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self.folder.with_suffix(f".{command}").open("w+") as output:
            done = subprocess.run(words, env=environment, stdout=output, stderr=output, check=False)
            if done.returncode:
                output.seek(0)
                raise DemoError(f"kafkacompat cluster {command} ended with code {done.returncode}: {output.read()}")

    def process(self, node: int) -> ProcessRecord:
        """Return the supervisor's entry of a broker."""
        state = ClusterFolder(self.folder).read_state()
        assert state is not None
        return next(record for record in state.processes if record.name == f"broker-{node}")

    def kill(self, node: int) -> None:
        """End a broker with SIGKILL; the supervisor starts it again."""
        identity = self.process(node).identity
        assert identity is not None and identity.is_alive(), f"broker-{node} does not run"
        os.kill(identity.pid, signal.SIGKILL)


@contextmanager
def running_cluster(folder: Path) -> Iterator[DemoCluster]:
    """Start a cluster over an empty folder, and stop it after the block."""
    cluster = DemoCluster(folder)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def free_ports_in_a_row(count: int) -> int:
    """Return the first of *count* free ports in a row."""
    while True:
        first = free_port()
        if [free_port() for _ in range(count - 1)] == list(range(first + 1, first + count)):
            return first


def create_topic(bootstrap: str) -> None:
    """Create the topic with three replicas, and wait until all of them are in sync."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, REPLICAS)])[TOPIC].result(30)
    await_in_sync(bootstrap)


def await_in_sync(bootstrap: str) -> None:
    """Wait until every replica of every partition is in sync."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})

    def is_in_sync() -> bool:
        try:
            partitions = admin.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions.values()
        except KafkaException:
            return False
        return len(partitions) == PARTITIONS and all(len(partition.isrs) == REPLICAS for partition in partitions)

    until(is_in_sync, timeout_seconds=WAIT_SECONDS)


def find_leaders(bootstrap: str) -> dict[int, int]:
    """Return each partition's leader."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    partitions = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
    return {number: partition.leader for number, partition in partitions.items()}


def produce_through_kill(cluster: DemoCluster, seconds: float, rate: float) -> tuple[Acknowledged, int, list[int]]:
    """Produce by the clock, and kill the leader of partition 0 after a third of the time.

    Returns the acknowledged records, the killed node, and the partitions that it led.
    """
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "enable.idempotence": True, **QUIET})
    known = Acknowledged()
    led = find_leaders(cluster.bootstrap)
    victim = led[0]
    begun = time.monotonic()
    sent, is_killed = 0, False
    while (passed := time.monotonic() - begun) < seconds:
        if not is_killed and passed > seconds / 3:
            cluster.kill(victim)
            is_killed = True
        while sent < passed * rate:
            send_record(producer, known, sent)
            sent += 1
        producer.poll(0.005)
    left = producer.flush(WAIT_SECONDS)
    if left:
        known.errors["not answered within a minute"] += left
    return known, victim, [partition for partition, leader in led.items() if leader == victim]


def send_record(producer: Producer, known: Acknowledged, sent: int) -> None:
    """Hand one record to the producer; its value begins with its number among those of its partition."""
    number, partition = divmod(sent, PARTITIONS)

    def note(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            known.errors[error.name()] += 1
        else:
            known.numbers[partition].append(number)
            known.times[partition].append(time.monotonic())

    value = str(number).encode().ljust(VALUE_BYTES)
    while True:
        try:
            producer.produce(TOPIC, value, partition=partition, on_delivery=note)
            return
        except BufferError:
            producer.poll(0.1)


def read_all(bootstrap: str) -> dict[int, list[int]]:
    """Read the topic from its beginning to its end; return the numbers in each partition in their order."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "failover", "enable.auto.commit": False, **QUIET}
    consumer = Consumer(settings)
    try:
        ends = {
            partition: consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=30)[1]
            for partition in range(PARTITIONS)
        }
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in ends])
        numbers: dict[int, list[int]] = {partition: [] for partition in ends}
        deadline = time.monotonic() + WAIT_SECONDS
        while sum(ends.values()) > sum(len(received) for received in numbers.values()):
            if time.monotonic() > deadline:
                raise DemoError(f"only {sum(map(len, numbers.values()))} of {sum(ends.values())} records could be read")
            for message in consumer.consume(10_000, timeout=1):
                if message.error() is None:
                    numbers[message.partition()].append(int(message.value()))
        return numbers
    finally:
        consumer.close()


def judge_records(
    known: Acknowledged, read: Mapping[int, Sequence[int]], killed: str, partitions: Sequence[int]
) -> Outcome:
    """Compare the acknowledged records with the read ones."""
    lost = sum(len(set(numbers) - set(read[partition])) for partition, numbers in known.numbers.items())
    duplicates = sum(len(numbers) - len(set(numbers)) for numbers in read.values())
    return Outcome(
        acknowledged=known.count,
        errors=known.errors,
        lost=lost,
        duplicates=duplicates,
        out_of_order=sum(count_backward(numbers) for numbers in read.values()),
        gap_seconds=known.longest_gap(partitions),
        killed=killed,
        partitions=partitions,
    )


def count_backward(numbers: Sequence[int]) -> int:
    """Return how many numbers are smaller than the one before."""
    return sum(later < earlier for earlier, later in itertools.pairwise(numbers))


def kill_leader(cluster: DemoCluster, seconds: float, rate: float) -> Outcome:
    """Produce, kill, produce on, wait until all replicas are in sync again, and read everything."""
    create_topic(cluster.bootstrap)
    known, victim, partitions = produce_through_kill(cluster, seconds, rate)
    await_in_sync(cluster.bootstrap)
    return judge_records(known, read_all(cluster.bootstrap), f"broker-{victim}", partitions)


def describe_outcome(outcome: Outcome) -> Iterator[str]:
    """Yield the lines of the result."""
    names = ", ".join(map(str, outcome.partitions))
    yield f"killed under load       {outcome.killed}, leader of partitions {names}"
    yield f"records acknowledged    {outcome.acknowledged:,}"
    yield f"records lost            {outcome.lost:,}"
    yield f"duplicates              {outcome.duplicates:,}"
    yield f"out of order            {outcome.out_of_order:,}"
    yield f"time without a leader   {outcome.gap_seconds:.2f} s, the longest gap between acknowledgements of these partitions"
    for name, count in outcome.errors.items():
        yield f"refused, not counted    {count:,} records: {name}"


def main() -> int:
    """Run the demo; exit code 1 if anything was lost."""
    begun = time.monotonic()
    try:
        find_program("java")
        shutil.rmtree(FOLDER, ignore_errors=True)
        with running_cluster(FOLDER) as cluster:
            print(f"Three brokers serve on {cluster.bootstrap}; their logs are in {FOLDER}", flush=True)
            outcome = kill_leader(cluster, seconds=9, rate=5000)
    except (MissingProgramError, DemoError) as problem:
        print(problem, file=sys.stderr)
        return 1
    print("\n".join(describe_outcome(outcome)))
    print(f"Stopped everything after {time.monotonic() - begun:.0f} s")
    return int(outcome.lost > 0)


if __name__ == "__main__":
    sys.exit(main())
