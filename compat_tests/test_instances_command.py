"""`kafkacompat instances` and /v1 of a real broker: topics of the cluster become an instance's, and real clients go on in it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.brokers import ROOT, KafkacompatBroker
from compat_tests.ports import free_port
from compat_tests.waiting import until

TOKEN = "0123456789abcdef0123456789"
TRANSACTIONAL_ID = "orders-writer"
FAST = {"socket.connection.setup.timeout.ms": "2000", "reconnect.backoff.max.ms": "200"}


class AdministeredBroker(KafkacompatBroker):
    """A broker with /v1, and an address for an instance."""

    def __init__(self, folder: Path) -> None:
        self.http_port, self.shop = free_port(), f"127.0.0.1:{free_port()}"
        token_file = folder / "tokens"
        folder.mkdir(parents=True, exist_ok=True)
        token_file.write_text(f"alice:{TOKEN}\n")
        properties = {
            "kafkacompat.http.listener": f"127.0.0.1:{self.http_port}",
            "kafkacompat.http.token.file": str(token_file),
        }
        super().__init__(folder / "node", properties)

    def command_line(self, name: str, *arguments: str) -> Any:
        """Run `kafkacompat instances` as a process; return the JSON that it writes, or None."""
        command = [sys.executable, "-m", "kafkacompat", "instances", name, "--bootstrap-server", self.bootstrap]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=ROOT, env=self.environment())
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "--json" in arguments else None

    def http(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.http_port}{path}"
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, data, headers, method=method), timeout=20
            ) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as problem:
            return problem.code, json.load(problem)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[AdministeredBroker]:
    with AdministeredBroker(tmp_path) as started:
        yield started


def produce(bootstrap: str, *values: str) -> None:
    """Write records in one transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": TRANSACTIONAL_ID, **FAST})
    producer.init_transactions(10)
    producer.begin_transaction()
    for value in values:
        producer.produce("orders", value)
    producer.commit_transaction(10)


def consume(bootstrap: str, count: int) -> list[str]:
    """Read this many records as a member of the group, and commit."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            **FAST,
        }
    )
    consumer.subscribe(["orders"])
    messages: list[Any] = []

    def has_enough() -> bool:
        messages.extend(consumer.consume(count - len(messages), 0.2))
        return len(messages) >= count

    until(has_enough, timeout_seconds=10)
    assert all(message.error() is None for message in messages)
    consumer.commit(offsets=[TopicPartition("orders", 0, messages[-1].offset() + 1)], asynchronous=False)
    consumer.close()
    return [message.value().decode() for message in messages]


def list_topics(bootstrap: str, timeout_s: float = 5) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap, **FAST}).list_topics(timeout=timeout_s).topics)


def test_an_instance_from_adoption_to_deletion(broker: AdministeredBroker) -> None:
    produce(broker.bootstrap, "1", "2", "3")
    assert consume(broker.bootstrap, 2) == ["1", "2"]
    created = broker.command_line(
        "create", "--instance", "shop", "--add-config", f"listeners=PLAINTEXT://{broker.shop}", "--json"
    )
    adopted = ("--topics", "ord.*", "--groups", "billing", "--transactional-ids", TRANSACTIONAL_ID)
    broker.command_line("adopt", "--instance", "shop", *adopted)

    # The instance's clients go on where those of the cluster were; these see everything as before.
    cluster = AdminClient({"bootstrap.servers": broker.shop, **FAST}).list_topics(timeout=5)
    assert (cluster.cluster_id, set(cluster.topics)) == (created["cluster.id"], {"orders"})
    assert consume(broker.shop, 1) == ["3"]
    produce(broker.shop, "4")
    assert consume(broker.shop, 1) == ["4"]
    produce(broker.bootstrap, "5")
    assert consume(broker.bootstrap, 1) == ["5"]
    assert "orders" in list_topics(broker.bootstrap)

    status, usage = broker.http("GET", "/v1/instances/shop/usage")
    assert (status, usage["usage"]["topics"]) == (200, 1)
    (row,) = broker.command_line("usage", "--instance", "shop", "--json")
    assert row["usage"]["groups"] == 1 and row["usage"]["storage.bytes"] > 0

    # A deleted instance serves nobody, comes back, and goes with its data.
    assert broker.http("DELETE", "/v1/instances/shop")[0] == 202
    with pytest.raises(KafkaException) as refused:
        list_topics(broker.shop, 0.5)
    assert refused.value.args[0].code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
    assert broker.http("POST", "/v1/instances/shop/restore", {})[0] == 200
    assert list_topics(broker.shop) == {"orders"}
    broker.command_line("delete", "--instance", "shop", "--grace", "0", "--force")
    assert broker.http("GET", "/v1/instances/shop")[0] == 404
    assert "orders" not in list_topics(broker.bootstrap)
