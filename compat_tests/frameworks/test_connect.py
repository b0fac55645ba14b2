"""Kafka Connect, distributed: a file goes through a topic into another file, while workers come and go."""

from __future__ import annotations

import re
import urllib.error
from collections import Counter
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.frameworks.connect_worker import REBALANCE_SECONDS, NewWorker, Worker
from compat_tests.frameworks.reading import Reader
from compat_tests.waiting import until

pytestmark = pytest.mark.frameworks

FILE = "org.apache.kafka.connect.file.FileStream"


def put_files(worker: Worker, connector: str, kind: str, **settings: str) -> None:
    """Create a connector of files, a "Source" or a "Sink", or change its settings."""
    # Lines that did not fit into a batch wait until the file grows again.
    batch = {"batch.size": "100000"} if kind == "Source" else {}
    worker.put(connector, {"connector.class": f"{FILE}{kind}Connector", **batch, **settings})


def append_lines(path: Path, first: int, count: int) -> list[str]:
    """Add numbered lines to a file and return them."""
    lines = [f"line {number}" for number in range(first, first + count)]
    with path.open("a") as file:
        file.writelines(line + "\n" for line in lines)
    return lines


def wait_for_lines(worker: Worker, path: Path, count: int) -> list[str]:
    """Wait until a file has *count* lines and return them."""

    def has_come() -> list[str]:
        lines = path.read_text().splitlines() if path.exists() else []
        return lines if len(lines) >= count else []

    return worker.programme.until(has_come, REBALANCE_SECONDS)


def offset_of(worker: Worker, connector: str) -> Any:
    """Return the offset that a connector stored for its only file or partition; None before."""
    offsets = worker.get(f"/connectors/{connector}/offsets")["offsets"]
    return offsets[0]["offset"] if len(offsets) == 1 else None


def test_a_file_goes_through_a_topic_into_a_file(
    broker: Broker, name: str, new_worker: NewWorker, tmp_path: Path
) -> None:
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    from_file, to_file = f"{name}-from-file", f"{name}-to-file"
    create_topic(broker, name)
    wanted = append_lines(source, 0, 2000)
    first, second = new_worker(), new_worker()
    assert first.get("/")["version"] == "4.3.1"
    plugins = {plugin["class"] for plugin in first.get("/connector-plugins")}
    assert {f"{FILE}SourceConnector", f"{FILE}SinkConnector"} <= plugins
    put_files(first, from_file, "Source", file=str(source), topic=name)
    put_files(first, to_file, "Sink", file=str(sink), topics=name)
    assert wait_for_lines(first, sink, 2000) == wanted
    # Either worker knows both, wherever they run.
    assert sorted(second.get("/connectors")) == [from_file, to_file]
    until(lambda: second.states(from_file) == second.states(to_file) == ["RUNNING", "RUNNING"])

    # One goes as it should and the other takes over: nothing is missing, nothing comes twice.
    first.programme.stop()
    wanted += append_lines(source, 2000, 2000)
    assert wait_for_lines(second, sink, 4000) == wanted
    with closing(Reader(broker, name, 1)) as reader:
        until(lambda: len(reader.read()) >= 4000)
        assert [record.texts[1] for record in reader.records] == wanted

    # One is killed: nothing is missing, and uncommitted records may come again.
    second.programme.kill()
    third = new_worker()
    wanted += append_lines(source, 4000, 2000)
    third.programme.until(lambda: set(sink.read_text().splitlines()) == set(wanted), REBALANCE_SECONDS)

    until(lambda: offset_of(third, from_file) == {"position": source.stat().st_size})
    assert third.get(f"/connectors/{from_file}/topics") == {from_file: {"topics": [name]}}


def test_the_rest_api_administers_connectors(broker: Broker, name: str, new_worker: NewWorker, tmp_path: Path) -> None:
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    from_file, to_file = f"{name}-from-file", f"{name}-to-file"
    create_topic(broker, name)
    worker = new_worker()
    assert worker.get("/")["kafka_cluster_id"]
    assert worker.is_refused("GET", "/connectors/nobody", HTTPStatus.NOT_FOUND)
    incomplete = {"name": "x", "connector.class": f"{FILE}SourceConnector", "tasks.max": "1"}
    validated = worker.ask("PUT", "/connector-plugins/FileStreamSourceConnector/config/validate", incomplete)
    wrong = [config["value"]["name"] for config in validated["configs"] if config["value"]["errors"]]
    assert (validated["error_count"], wrong) == (1, ["topic"])

    lines = append_lines(source, 0, 100)
    put_files(worker, from_file, "Source", file=str(source), topic=name)
    put_files(worker, to_file, "Sink", file=str(sink), topics=name)
    assert wait_for_lines(worker, sink, 100) == lines
    worker.ask("PUT", f"/connectors/{to_file}/pause")
    until(lambda: worker.states(to_file) == ["PAUSED", "PAUSED"])
    lines += append_lines(source, 100, 100)
    with closing(Reader(broker, name, 1)) as reader:
        until(lambda: len(reader.read()) == 200)
    assert len(sink.read_text().splitlines()) == 100
    worker.ask("PUT", f"/connectors/{to_file}/resume")
    assert wait_for_lines(worker, sink, 200) == lines
    worker.ask("POST", f"/connectors/{to_file}/restart?includeTasks=true")
    until(lambda: worker.states(to_file) == ["RUNNING", "RUNNING"])

    # A sink's offsets are those of a consumer group; taken back to 150, it writes the last 50 lines again.
    worker.ask("PUT", f"/connectors/{to_file}/stop")
    until(lambda: worker.states(to_file) == ["STOPPED"])
    until(lambda: offset_of(worker, to_file) == {"kafka_offset": 200})
    partition = {"kafka_topic": name, "kafka_partition": 0}
    offsets = [{"partition": partition, "offset": {"kafka_offset": 150}}]
    altered = until(lambda: try_patch(worker, to_file, {"offsets": offsets}))
    assert re.search("altered successfully", altered["message"])
    worker.ask("PUT", f"/connectors/{to_file}/resume")
    assert Counter(wait_for_lines(worker, sink, 250)) == Counter(lines + lines[150:])

    worker.ask("DELETE", f"/connectors/{to_file}")
    worker.ask("DELETE", f"/connectors/{from_file}")
    until(lambda: worker.get("/connectors") == [])


def try_patch(worker: Worker, connector: str, offsets: object) -> Any:
    """Alter the sink's offsets, or return None while its consumers have not left their group."""
    try:
        return worker.ask("PATCH", f"/connectors/{connector}/offsets", offsets)
    except urllib.error.HTTPError as problem:
        assert problem.code in (HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT), problem.read()
        return None
