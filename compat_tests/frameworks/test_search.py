"""A Connect sink into OpenSearch: records become documents over HTTP; the worker is killed once; a query counts again."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.frameworks.connect_worker import NewWorker
from compat_tests.frameworks.interruption import STOPPED, split, write_before
from compat_tests.frameworks.programme import FOLDER, START_SECONDS, start_java
from compat_tests.frameworks.reading import count_committed, read_topic
from compat_tests.ports import free_port

pytestmark = pytest.mark.frameworks

POM = FOLDER / "opensearch" / "pom.xml"
SERVER = FOLDER / "java" / "SearchServer.java"
SINK = FOLDER / "java" / "SearchSinkConnector.java"
PARTITIONS = 3
RECORDS = 6000
RECORDS_PER_WRITE = 50
ANSWER_SECONDS = 60


class Index:
    """One index of OpenSearch and its REST API."""

    def __init__(self, server: str, name: str) -> None:
        self.url = f"{server}/{name}"

    def ask(self, path: str, body: object = None) -> Any:
        """Send a query and return its answer; raises OSError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)

    def count_documents(self) -> int:
        """Return the number of documents that queries see; 0 before the first one."""
        try:
            self.ask("/_refresh")
            count: int = self.ask("/_count")["count"]
        except OSError:
            return 0
        return count

    def find_all(self) -> list[dict[str, Any]]:
        """Return all documents with their ids and versions."""
        query = {"query": {"match_all": {}}, "size": RECORDS + 1, "version": True}
        hits: list[dict[str, Any]] = self.ask("/_search", query)["hits"]["hits"]
        return hits


@pytest.fixture
def index(name: str, tmp_path: Path) -> Iterator[Index]:
    """An index of OpenSearch, which the first document creates."""
    port = free_port()
    arguments = [str(tmp_path / "search"), str(port)]
    server = f"http://127.0.0.1:{port}"
    with start_java("SearchServer", arguments, tmp_path / "search-log", source=SERVER, pom=POM, heap="512m") as running:
        running.until(lambda: is_ready(server), START_SECONDS)
        yield Index(server, name)


def is_ready(server: str) -> bool:
    """Return whether OpenSearch answers and has elected itself."""
    try:
        with urllib.request.urlopen(f"{server}/_cluster/health", timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)["status"] in ("green", "yellow")
    except OSError:
        return False


def test_sink(broker: Broker, name: str, index: Index, new_worker: NewWorker) -> None:
    create_topic(broker, name, PARTITIONS)
    values = [json.dumps({"number": number, "word": f"word{number % 97}"}) for number in range(RECORDS)]
    early, late = values[: RECORDS * 2 // 3], values[RECORDS * 2 // 3 :]
    chunks = split(early, RECORDS_PER_WRITE)

    def write(chunk: Sequence[str]) -> None:
        produce(broker, name, list(chunk))

    first = new_worker(source=SINK)
    first.put(name, {"connector.class": "SearchSinkConnector", "tasks.max": "2", "topics": name, "url": index.url})
    write(next(chunks))
    first.programme.until(lambda: index.count_documents() > 0, START_SECONDS)
    first.programme.until(write_before(lambda: index.count_documents() >= RECORDS // 3, chunks, write))
    first.programme.kill()
    before = index.count_documents()
    for chunk in (*chunks, late):
        write(chunk)
    second = new_worker(source=SINK)
    second.programme.until(lambda: index.count_documents() >= RECORDS, START_SECONDS)
    second.programme.until(lambda: count_committed(broker, f"connect-{name}", name, PARTITIONS) == RECORDS)
    assert second.programme.stop() in STOPPED, second.programme.log

    assert index.count_documents() == RECORDS
    documents = index.find_all()
    assert {document["_id"]: document["_source"] for document in documents} == read_documents(broker, name)
    # Only records whose offsets were not yet committed at the kill are indexed again.
    repeated = sum(document["_version"] - 1 for document in documents)
    print(f"documents indexed again: {repeated}")
    assert repeated < before


def read_documents(broker: Broker, topic: str) -> dict[str, Any]:
    """Return what each record of the topic has to be in the index, by the document's id."""
    records = read_topic(broker, topic, PARTITIONS, RECORDS)
    offsets = dict.fromkeys(range(PARTITIONS), 0)
    documents = {}
    for record in records:
        offset = offsets[record.partition]
        documents[f"{topic}-{record.partition}-{offset}"] = json.loads(record.texts[1])
        offsets[record.partition] += 1
    return documents
