"""Karapace, a schema registry that keeps its schemas in a topic: Avro records of two versions, there and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.frameworks.programme import FOLDER, Programme, python_of
from kafkacompat.history.ports import free_port

pytestmark = pytest.mark.frameworks

CLIENT = "confluent-kafka[avro,schemaregistry]==2.12.2"
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
    for one in started:
        one.kill()


def ask(url: str, body: object = None) -> Any:
    """Ask the registry; with a body by POST. Raises HTTPError."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": MEDIA_TYPE}), timeout=30) as answer:
        return json.loads(answer.read())


def is_master(url: str) -> bool:
    """Whether it answers, and writes schemas itself."""
    try:
        return bool(ask(f"{url}/master_available")["master_available"])
    except OSError:
        return False


def test_avro_there_and_back(broker: Broker, name: str, start: StartRegistry) -> None:
    create_topic(broker, name)
    registry, url = start()
    environment = {"BOOTSTRAP": broker.bootstrap, "REGISTRY": url, "TOPIC": name, "COUNT": str(COUNT)}
    command = [str(python_of(sys.executable, [CLIENT])), str(FOLDER / "python" / "avro_round_trip.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    old = [{"number": number, "word": "none"} for number in range(COUNT)]
    new = [{"number": number, "word": f"word {number}"} for number in range(COUNT, 2 * COUNT)]
    assert told["events"] == old + new
    versions = [ask(f"{url}/subjects/{name}-value/versions/{number}") for number in (1, 2)]
    headers = [f"00{version['id']:08x}" for version in versions]
    assert told["headers"] == [headers[0]] * COUNT + [headers[1]] * COUNT

    # Killed and started again, it knows them from its topic.
    registry.kill()
    _, url = start()
    assert [ask(f"{url}/subjects/{name}-value/versions/{number}") for number in (1, 2)] == versions
    fields = [{"name": "number", "type": "string"}]
    other = {"schema": json.dumps({"type": "record", "name": "Event", "fields": fields})}
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(f"{url}/subjects/{name}-value/versions", other)
    assert refused.value.code == HTTPStatus.CONFLICT
