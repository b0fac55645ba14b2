"""`kafkacompat produce`, `consume` and `doctor` against this broker and two releases of Apache Kafka."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.brokers import ROOT, Broker, KafkaBroker, OldKafkaBroker
from compat_tests.confluent import create_topic
from compat_tests.ports import free_port
from compat_tests.spark.schema_registry import FakeRegistry
from kafkacompat import testing
from kafkacompat.cli import main

COUNT = 3000


class Commands:
    """The commands, sent to one broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.connection = ("--bootstrap-server", broker.bootstrap)

    def run(self, *words: str, stdin: bytes = b"", code: int = 0) -> Result:
        """Run a command, which must end with this exit code."""
        done = CliRunner().invoke(main, [words[0], *self.connection, *words[1:]], input=stdin)
        assert done.exit_code == code, (words, done.output, done.exception)
        return done

    def read(self, *words: str) -> bytes:
        """Return the standard output of a command."""
        return self.run(*words).stdout_bytes

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command in a process of its own."""
        command = [sys.executable, "-m", "kafkacompat", words[0], *self.connection, *words[1:]]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )


@pytest.fixture
def commands(broker: Broker) -> Commands:
    """The commands on the broker under test."""
    return Commands(broker)


@pytest.fixture(params=[KafkaBroker, OldKafkaBroker], ids=lambda kind: str(kind.kind))
def commands_on_kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Commands]:
    """The commands on Apache Kafka."""
    properties = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
    with request.param(tmp_path / "node", properties) as broker:
        yield Commands(broker)


def test_records_there_and_back(commands: Commands, name: str, tmp_path: Path) -> None:
    exchange_records(commands, name, tmp_path)


def test_bad_input(commands: Commands, name: str, tmp_path: Path) -> None:
    give_bad_input(commands, name, tmp_path)


def test_doctor(commands: Commands) -> None:
    examine(commands)


def test_old_brokers() -> None:
    """A producer does without what the broker lacks, and the doctor names a broker that cannot list its versions."""
    with testing.broker(releases=["0.8.2", "0.10.0"]) as kafka:
        server = ("--bootstrap-server", kafka.release("0.10.0"))
        done = CliRunner().invoke(main, ["produce", "t", *server], input="value\n")
        assert (done.exit_code, done.stderr) == (0, "1 record acknowledged\n")
        assert CliRunner().invoke(main, ["consume", "t", *server]).stdout == "value\n"
        done = CliRunner().invoke(main, ["doctor", kafka.release("0.8.2")])
        assert (done.exit_code, "is a Kafka broker older than 0.10" in done.stdout) == (1, True)


@pytest.mark.compare
def test_data_commands_on_kafka(commands_on_kafka: Commands, name: str, tmp_path: Path) -> None:
    exchange_records(commands_on_kafka, name, tmp_path)
    give_bad_input(commands_on_kafka, f"{name}-bad", tmp_path)
    examine(commands_on_kafka)


def exchange_records(commands: Commands, name: str, folder: Path) -> None:
    """Produce and consume in every form."""
    create_topic(commands.broker, name, partitions=2)
    lines = "".join(f"k{number}:v{number}\n" for number in range(COUNT))
    (folder / "lines").write_text(lines)
    done = commands.run("produce", name, str(folder / "lines"), "--key-separator", ":", "--compression-type", "lz4")
    assert done.stderr == f"{COUNT:,} records acknowledged\n"
    values = [f"v{number}".encode() for number in range(COUNT)]
    assert sorted(commands.read("consume", name).splitlines()) == sorted(values)
    assert len(commands.read("consume", name, "-n", "7").splitlines()) == 7
    last = commands.read(
        "consume", name, "--partition", "1", "--offset", "-2", "--print", "partition,key", "--separator", " "
    )
    assert [line.split()[0] for line in last.splitlines()] == [b"Partition:1"] * 2
    assert commands.read("consume", name, "--offset", "latest") == b""
    assert commands.read("consume", name, "--timestamp", "2100-01-01") == b""
    assert len(commands.read("consume", name, "--timestamp", "0").splitlines()) == COUNT
    copy_records(commands, name)
    read_as_a_group(commands, name)
    read_transactions(commands, f"{name}-transactions")
    decode_by_a_registry(commands, f"{name}-avro")


def copy_records(commands: Commands, name: str) -> None:
    """Copy a topic with odd records by JSON, and compare."""
    odd = (
        b'{"key_base64": "/wA=", "value": {"a": [1, null]}, "headers": {"h": "1", "n": null}, "timestamp": 1700000000000}\n'
        b'{"key": "deleted", "value": null, "partition": 1}\n'
    )
    done = commands.run("produce", f"{name}-odd", "--json", "--partition", "0", stdin=odd, code=1)
    assert done.stderr.endswith("1 record acknowledged, 1 refused\n")
    first = json.loads(commands.read("consume", f"{name}-odd", "--json"))
    assert (first["key_base64"], first["value"], first["timestamp"]) == ("/wA=", '{"a":[1,null]}', 1_700_000_000_000)
    assert first["headers"] == [{"name": "h", "value": "1"}, {"name": "n", "value": None}]
    copied = commands.read("consume", name, "--json")
    create_topic(commands.broker, f"{name}-copy", partitions=2)
    commands.run("produce", f"{name}-copy", "--json", stdin=copied)
    fields = ("--print", "partition,offset,timestamp,headers,key,value")
    assert sorted(commands.read("consume", f"{name}-copy", *fields).splitlines()) == sorted(
        commands.read("consume", name, *fields).splitlines()
    )


def read_as_a_group(commands: Commands, name: str) -> None:
    """Read a topic in two runs of one group, which commits exactly what was written."""
    first = commands.read("consume", name, "--group", name, "-n", "1000").splitlines()
    rest = commands.read("consume", name, "--group", name).splitlines()
    assert (len(first), len(set(first + rest))) == (1000, COUNT)
    client = Consumer({"bootstrap.servers": commands.broker.bootstrap, "group.id": name})
    committed = client.committed([TopicPartition(name, number) for number in range(2)], 20)
    client.close()
    assert sum(partition.offset for partition in committed) == COUNT


def read_transactions(commands: Commands, name: str) -> None:
    """An aborted transaction at the end, whose offsets no consumer returns, ends the command all the same."""
    create_topic(commands.broker, name)
    producer = Producer({"bootstrap.servers": commands.broker.bootstrap, "transactional.id": name})
    producer.init_transactions(20)
    for value in ("kept", "dropped"):
        producer.begin_transaction()
        producer.produce(name, value)
        if value == "kept":
            producer.commit_transaction(20)
        else:
            producer.flush(20)
            producer.abort_transaction(20)
    assert commands.read("consume", name, "--isolation-level", "read_committed") == b"kept\n"
    assert commands.read("consume", name) == b"kept\ndropped\n"


def decode_by_a_registry(commands: Commands, name: str) -> None:
    """Decode values by the schema whose id they carry; one has none."""
    create_topic(commands.broker, name)
    schema = (
        '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}]}'
    )
    with FakeRegistry() as registry:
        number = registry.register(f"{name}-value", schema)
        framed = b"\0" + number.to_bytes(4, "big") + b"\x2a\x04ab"
        producer = Producer({"bootstrap.servers": commands.broker.bootstrap})
        producer.produce(name, framed)
        assert producer.flush(20) == 0
        assert commands.read("consume", name, "--schema-registry", registry.url) == b'{"n":21,"s":"ab"}\n'
        producer.produce(name, b"text")
        assert producer.flush(20) == 0
        done = commands.run("consume", name, "--schema-registry", registry.url, "--json", code=1)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert [(row["value"], row.get("value_schema_id")) for row in rows] == [
            ({"n": 21, "s": "ab"}, 1),
            ("text", None),
        ]
        assert done.stderr.startswith("kafkacompat: 1 key or value could not be decoded: the value does not begin with")
    gone = f"http://127.0.0.1:{free_port()}"
    assert f"{gone} does not answer" in commands.run("consume", name, "--schema-registry", gone, code=1).stderr


def give_bad_input(commands: Commands, name: str, folder: Path) -> None:
    """Give what cannot work: each time one sentence, and no traceback."""
    create_topic(commands.broker, name)
    missing = commands.run("consume", f"{name}s", code=1).stderr
    assert missing == f"kafkacompat: there is no topic {name}s (did you mean {name}?): see `kafkacompat topics list`\n"
    assert "has the partitions 0 to 0" in commands.run("consume", name, "--partition", "4", code=2).stderr
    (folder / "large").write_bytes(os.urandom(2 << 20))
    refused = commands.run("produce", name, "--whole", str(folder / "large"), code=1).stderr.splitlines()
    assert refused == [
        "kafkacompat: 1 record was refused: it is larger than the topic allows: raise max.message.bytes of the topic",
        "0 records acknowledged, 1 refused",
    ]
    (folder / "whole").write_bytes(b"\xff\0\n" * 1000)
    commands.run("produce", name, "--whole", str(folder / "whole"))
    assert commands.read("consume", name, "--raw") == b"\xff\0\n" * 1000
    commands.run("produce", name, stdin=b"line\n" * 20_000)
    interrupt_and_close(commands, name)


def interrupt_and_close(commands: Commands, name: str) -> None:
    """Interrupt a producer that waits for lines, and close the pipe of a consumer."""
    following = commands.start("consume", name, "--follow", "--offset", "-1")
    assert following.stdout is not None
    assert following.stdout.readline() == b"line\n"
    producing = commands.start("produce", name)
    assert producing.stdin is not None
    producing.stdin.write(b"last\n")
    producing.stdin.flush()
    assert following.stdout.readline() == b"last\n"
    # The producer has sent its only line, and waits for the next one.
    producing.send_signal(signal.SIGINT)
    assert producing.stderr is not None
    assert (producing.stderr.read(), producing.wait(30)) == (b"Interrupted: 1 record acknowledged\n", 130)
    consuming = commands.start("consume", name)
    assert consuming.stdout is not None
    consuming.stdout.read(1)
    consuming.stdout.close()
    assert consuming.stderr is not None
    assert (consuming.stderr.read(), consuming.wait(30)) == (b"", 0)
    following.send_signal(signal.SIGINT)
    assert following.stderr is not None
    assert (following.stderr.read(), following.wait(30)) == (b"", 0)


def examine(commands: Commands) -> None:
    """Let the doctor examine the broker, and a port at which nobody listens."""
    done = CliRunner().invoke(main, ["doctor", commands.broker.bootstrap, "--json"])
    assert done.exit_code == 0, done.output
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    stages = ["resolve", "connect", "versions", "advertised", "topic", "produce", "consume", "clock", "delete"]
    assert [verdict["stage"] for verdict in verdicts] == stages
    assert {verdict["outcome"] for verdict in verdicts} == {"ok"}
    releases = {
        "kafkacompat": "it serves clients of every release",
        "kafka": "the versions of Kafka 4.3",
        "kafka-3.9": "the versions of Kafka 3.9",
    }
    assert releases[commands.broker.kind] in verdicts[2]["text"]
    topics = CliRunner().invoke(main, ["topics", "list", *commands.connection]).stdout
    assert "kafkacompat-doctor-" not in topics
    done = CliRunner().invoke(main, ["doctor", f"127.0.0.1:{free_port()}"])
    assert (done.exit_code, "Connection refused" in done.stdout) == (1, True)
