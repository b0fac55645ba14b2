"""Karapace, a schema registry that keeps its schemas in a topic: records of two versions, there and back, and into Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyarrow import parquet

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.frameworks.programme import FOLDER, Programme, python_of
from compat_tests.ports import free_port
from compat_tests.spark.copies import Run, count_offsets

pytestmark = pytest.mark.frameworks

CLIENT = "confluent-kafka[avro,schemaregistry]==2.12.2"
SERIALIZERS = "confluent-kafka[avro,json,protobuf,schemaregistry]==2.12.2"
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
COUNT = 500

StartRegistry = Callable[[], tuple[Programme, str]]


@pytest.fixture
def start(broker: Broker, name: str, tmp_path: Path) -> Iterator[StartRegistry]:
    """Start Karapace over the test's topic and wait until it answers; none is left running."""
    if not (python := os.environ.get("KARAPACE_PYTHON")):
        pytest.skip("KARAPACE_PYTHON names no Python with Karapace, which is not on PyPI: see docs/FRAMEWORKS.md")
    started: list[Programme] = []

    def begin() -> tuple[Programme, str]:
        port = free_port()
        settings = {"BOOTSTRAP_URI": broker.bootstrap, "PORT": str(port), "TOPIC_NAME": f"{name}-schemas"}
        settings |= {"GROUP_ID": f"{name}-registry", "REPLICATION_FACTOR": "1", "ADVERTISED_HOSTNAME": "127.0.0.1"}
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment |= {f"KARAPACE_{key}": value for key, value in settings.items()}
        programme = Programme([python, "-m", "karapace"], tmp_path / "log", environment)
        started.append(programme)
        url = f"http://127.0.0.1:{port}"
        programme.until(lambda: is_master(url))
        return programme, url

    yield begin
    for programme in started:
        programme.kill()


def ask_registry(url: str, body: object = None) -> Any:
    """Ask the registry; with a body by POST. Raises HTTPError."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": MEDIA_TYPE}), timeout=30) as answer:
        return json.loads(answer.read())


def is_master(url: str) -> bool:
    """Whether it answers, and writes schemas itself."""
    try:
        return bool(ask_registry(f"{url}/master_available")["master_available"])
    except OSError:
        return False


def test_avro_there_and_back(broker: Broker, name: str, start: StartRegistry) -> None:
    create_topic(broker, name)
    registry, url = start()
    environment = {"BOOTSTRAP": broker.bootstrap, "REGISTRY": url, "TOPIC": name, "COUNT": str(COUNT)}
    command = [str(python_of(sys.executable, [CLIENT])), str(FOLDER / "python" / "avro_round_trip.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    old = [{"number": number, "word": "none"} for number in range(COUNT)]
    new = [{"number": number, "word": f"word {number}"} for number in range(COUNT, 2 * COUNT)]
    assert output["events"] == old + new
    versions = [ask_registry(f"{url}/subjects/{name}-value/versions/{number}") for number in (1, 2)]
    headers = [f"00{version['id']:08x}" for version in versions]
    assert output["headers"] == [headers[0]] * COUNT + [headers[1]] * COUNT

    # Killed and started again, it knows them from its topic.
    registry.kill()
    _, url = start()
    assert [ask_registry(f"{url}/subjects/{name}-value/versions/{number}") for number in (1, 2)] == versions
    fields = [{"name": "number", "type": "string"}]
    other = {"schema": json.dumps({"type": "record", "name": "Event", "fields": fields})}
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask_registry(f"{url}/subjects/{name}-value/versions", other)
    assert refused.value.code == HTTPStatus.CONFLICT


@pytest.mark.parametrize(
    ("value_format", "more", "wanted"),
    [
        ("avro", [], {number: f"word {number}" if number % 2 else "none" for number in range(COUNT)}),
        ("protobuf", ["--message", "shop.Event"], {number: f"word {number}" for number in range(COUNT)}),
        ("json", [], {number: f"word {number}" for number in range(COUNT)}),
    ],
)
def test_spark_validates_by_it(
    broker: Broker,
    name: str,
    start: StartRegistry,
    tmp_path: Path,
    value_format: str,
    more: list[str],
    wanted: dict[int, str],
) -> None:
    """Records serialized by confluent-kafka become columns, and others dead letters."""
    topic = f"{name}-{value_format}"
    for kind in ("avro", "protobuf", "json", "bad"):
        create_topic(broker, f"{name}-{kind}")
    _, url = start()
    environment = {"BOOTSTRAP": broker.bootstrap, "REGISTRY": url, "TOPIC": name, "COUNT": str(COUNT)}
    command = [str(python_of(sys.executable, [SERIALIZERS])), str(FOLDER / "python" / "serialized.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    produce(broker, topic, [b"unframed", b"\0\0\0\x27\x0fno such schema"])
    arguments = ["validate", "--bootstrap-server", broker.bootstrap, "--subscribe", topic, "--schema-registry", url]
    arguments += [
        "--value-format",
        value_format,
        "--dead-letter-topic",
        f"{name}-bad",
        "--path",
        str(tmp_path / "table"),
    ]
    arguments += ["--checkpointLocation", str(tmp_path / "checkpoint"), "--json", *more]
    run = Run(tmp_path / "run", *arguments)
    assert run.wait() == 0, run.stderr
    assert json.loads(run.stdout)["reasons"] == {"no-schema-id": 1, "unknown-schema": 1}
    files = [path for path in (tmp_path / "table").rglob("*.parquet") if not path.name.startswith(("_", "."))]
    rows = [row for file in files for row in parquet.ParquetFile(file).read().to_pylist()]
    assert {row["offset"]: (row["value"]["number"], row["value"]["word"]) for row in rows} == {
        number: (number, word) for number, word in wanted.items()
    }
    assert len(rows) == COUNT
    assert count_offsets(broker, f"{name}-bad") == 2


def produce(broker: Broker, topic: str, values: Sequence[bytes]) -> None:
    """Produce values as they are."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0
