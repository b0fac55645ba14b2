"""/metrics of a real broker beside what its clients did, with clients that push their own metrics."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from compat_tests.brokers import KafkacompatBroker
from compat_tests.java_tools import java_command
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from compat_tests.test_dynamic_configs import change_all_by
from compat_tests.waiting import until
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

TOPICS = "kafka_server_brokertopicmetrics_"
CLIENT_METRICS = 16
PARTITIONS = 3
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
HOSTILE_CONNECTIONS = 300

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class MonitoredBroker(KafkacompatBroker):
    """A broker with /metrics on ``http_port``."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.http_port = free_port()
        self.properties |= {
            "kafkacompat.http.listener": f"127.0.0.1:{self.http_port}",
            "kafkacompat.log.format": "json",
        }

    def get(self, path: str, accept: str = "text/plain") -> tuple[int, str]:
        """Return the status and the body of a page."""
        url = f"http://127.0.0.1:{self.http_port}{path}"
        request = urllib.request.Request(url, headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as problem:
            return problem.code, problem.read().decode()

    def scrape(self) -> Samples:
        status, text = self.get("/metrics")
        assert status == 200, text
        families = parse_text(text)
        return {(item.name, frozenset(item.labels.items())): item.value for of in families for item in of.samples}

    def create_topic(self, name: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        with RawClient(self.port) as client:
            answer = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse, 5)
        assert answer.topics[0].error_code == 0

    def subscribe_to_clients(self) -> None:
        """Want every metric of every client, ten times a second."""
        with RawClient(self.port) as client:
            assert change_all_by(client, (CLIENT_METRICS, "all"), {"metrics": "*", "interval.ms": "100"}) == 0


def value_of(samples: Samples, name: str, **labels: Any) -> float:
    return samples[name, frozenset((label, str(value)) for label, value in labels.items())]


def sum_of(samples: Samples, name: str, **labels: Any) -> float:
    wanted = {(label, str(value)) for label, value in labels.items()}
    return sum(value for (own, present), value in samples.items() if own == name and wanted <= present)


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonitoredBroker]:
    with MonitoredBroker(tmp_path_factory.mktemp("monitored") / "node") as running:
        yield running


def produce(broker: MonitoredBroker, topic: str, records: int, **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **settings})
    for number in range(records):
        producer.produce(topic, value=b"x" * 100, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(30) == 0


def consume(broker: MonitoredBroker, topic: str, group: str, records: int) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    left = records
    while left:
        messages = consumer.consume(left, timeout=30)
        assert messages, f"{left} records are missing"
        assert not any(message.error() for message in messages)
        left -= len(messages)
    return consumer


def test_figures_are_those_of_the_clients(monitored: MonitoredBroker, name: str) -> None:
    monitored.create_topic(name)
    before = monitored.scrape()
    produce(monitored, name, 3000)
    consumer = consume(monitored, name, name, 3000)
    consumer.commit(asynchronous=False)
    samples = monitored.scrape()
    assert value_of(samples, f"{TOPICS}messagesin_total", topic=name) == 3000
    received = value_of(samples, f"{TOPICS}bytesin_total", topic=name)
    assert received > 3000 * 100
    assert value_of(samples, f"{TOPICS}bytesout_total", topic=name) >= received
    assert sum_of(samples, "kafka_log_log_logendoffset", topic=name) == 3000
    assert sum_of(samples, "kafka_log_log_size", topic=name) == received
    assert value_of(samples, "kafka_consumergroup_lag_sum", consumergroup=name, topic=name) == 0
    assert value_of(samples, "kafka_consumergroup_current_offset_sum", consumergroup=name, topic=name) == 3000
    assert value_of(samples, "kafka_consumergroup_members", consumergroup=name) == 1
    requests = "kafka_network_requestmetrics_requests_total"
    assert sum_of(samples, requests, request="Produce") > sum_of(before, requests, request="Produce")
    times = "kafka_network_requestmetrics_totaltimems"
    assert 0 < value_of(samples, times, request="Produce", quantile="0.99") < 30_000
    count = value_of(samples, f"{times}_count", request="Produce")
    assert count == sum_of(samples, requests, request="Produce")
    measured = sum_of(samples, "kafkacompat_request_duration_seconds_count", request="Produce")
    assert measured == pytest.approx(count, rel=0.1, abs=20)
    software = "kafka_server_socket_server_metrics_connections_software"
    assert sum_of(samples, software, clientSoftwareName="confluent-kafka-python") >= 1
    assert value_of(samples, "process_open_fds") > 10
    assert value_of(samples, "process_resident_memory_bytes") > 10e6
    assert sum_of(samples, "kafkacompat_reactor_turn_seconds_count") > 10
    assert 0 <= value_of(samples, "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent") <= 1
    consumer.close()
    left = monitored.scrape()
    assert value_of(left, "kafka_consumergroup_members", consumergroup=name) == 0


def test_both_formats_are_parsed_and_health_is_good(monitored: MonitoredBroker) -> None:
    assert monitored.get("/healthz") == (200, "ok\n")
    assert monitored.get("/readyz") == (200, "ready\n")
    assert monitored.get("/secret")[0] == 404
    status, text = monitored.get("/metrics", OPENMETRICS)
    names = {sample.name for family in parse_openmetrics(text) for sample in family.samples}  # type: ignore[no-untyped-call]
    assert status == 200 and f"{TOPICS}messagesin_total" in names


def test_a_scrape_under_load_delays_nobody(monitored: MonitoredBroker, name: str) -> None:
    monitored.create_topic(name)
    for _ in range(5):
        produce(monitored, name, 2000)
        monitored.scrape()
    assert value_of(monitored.scrape(), f"{TOPICS}messagesin_total", topic=name) == 10_000
    assert sum_of(monitored.scrape(), "kafkacompat_reactor_longest_turn_seconds") < 5


def test_hostile_http_clients_hold_up_neither_scrapes_nor_kafka_clients(monitored: MonitoredBroker, name: str) -> None:
    monitored.create_topic(name)
    files = value_of(monitored.scrape(), "process_open_fds")
    with ExitStack() as held:
        for number in range(HOSTILE_CONNECTIONS):
            client = held.enter_context(socket.create_connection(("127.0.0.1", monitored.http_port), timeout=10))
            client.sendall(
                (b"GET /metrics HTTP/1.1\r\n", b"\r\n\r\n", b"\x16\3\1\0\1", b"POST / HTTP/1.1\r\n")[number % 4]
            )
        produce(monitored, name, 100)
        samples = monitored.scrape()
        assert value_of(samples, f"{TOPICS}messagesin_total", topic=name) == 100
        assert value_of(samples, "process_open_fds") < files + 50
    assert "Traceback" not in monitored.stderr()


def test_librdkafka_pushes_its_metrics(monitored: MonitoredBroker, name: str) -> None:
    monitored.create_topic(name)
    monitored.subscribe_to_clients()
    producer = Producer({"bootstrap.servers": monitored.bootstrap, "client.id": name})
    producer.produce(name, value=b"x", partition=0)
    producer.flush(30)

    def is_pushed() -> bool:
        producer.poll(0.05)
        return any(
            ("client_id", name) in labels
            for (own, labels) in monitored.scrape()
            if own.startswith("kafkacompat_client_")
        )

    until(is_pushed, timeout_seconds=60)
    samples = monitored.scrape()
    pushed = {own: dict(labels) for (own, labels) in samples if ("client_id", name) in labels}
    assert any("producer" in own for own in pushed), pushed
    assert {labels["client_software_name"] for labels in pushed.values()} == {"confluent-kafka-python"}
    assert value_of(samples, "kafka_server_client_metrics_plugin_error_total") == 0


def test_a_java_producer_pushes_its_metrics(monitored: MonitoredBroker, name: str) -> None:
    monitored.create_topic(name)
    monitored.subscribe_to_clients()
    load = ["--topic", name, "--num-records", "1000000", "--record-size", "100", "--throughput", "100"]
    settings = [f"bootstrap.servers={monitored.bootstrap}", f"client.id={name}"]
    command = java_command("org.apache.kafka.tools.ProducerPerformance", [*load, "--producer-props", *settings])
    producer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sent = "kafkacompat_client_producer_record_send_total"
    try:
        first = until(lambda: sum_of(monitored.scrape(), sent, client_id=name), timeout_seconds=120)
        until(lambda: sum_of(monitored.scrape(), sent, client_id=name) > first, timeout_seconds=60)
    finally:
        producer.kill()
        producer.wait()
    samples = monitored.scrape()
    pushed = [dict(labels) for (_, labels) in samples if ("client_id", name) in labels]
    assert {labels["client_software_name"] for labels in pushed} == {"apache-kafka-java"}
    assert sum_of(samples, sent, client_id=name) <= value_of(samples, f"{TOPICS}messagesin_total", topic=name)
    assert value_of(samples, "kafka_server_client_metrics_plugin_error_total") == 0


def test_without_the_listener_clients_are_not_asked(broker: Any, monitored: MonitoredBroker) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    served = []
    for node in (broker, monitored):
        with RawClient(node.port) as client:
            served.append({api.api_key for api in client.call(request, ApiVersionsResponse, 3).api_keys})
    assert {71, 72} & served[0] == set()
    assert {71, 72} <= served[1]


def test_every_line_of_the_log_is_json(monitored: MonitoredBroker) -> None:
    lines = [json.loads(line) for line in monitored.stderr().splitlines()]
    assert any("Serving /metrics" in line["message"] for line in lines)
    assert {line["level"] for line in lines} <= {"INFO", "WARN"}


def test_a_port_that_is_taken_ends_the_start_with_a_sentence(monitored: MonitoredBroker, tmp_path: Any) -> None:
    second = KafkacompatBroker(tmp_path / "node", {"kafkacompat.http.listener": f"127.0.0.1:{monitored.http_port}"})
    second.prepare()
    done = subprocess.run(
        second.command(), capture_output=True, text=True, timeout=60, env=second.environment(), check=False
    )
    assert done.returncode == 1
    expected = (
        f"kafkacompat: kafkacompat.http.listener: cannot listen on 127.0.0.1:{monitored.http_port}: another process"
    )
    assert [line for line in done.stderr.splitlines() if line.startswith(expected)]
    assert "Traceback" not in done.stderr


def test_a_broker_that_has_stopped_serves_no_page(tmp_path: Any) -> None:
    with MonitoredBroker(tmp_path / "node") as broker:
        assert broker.get("/readyz") == (200, "ready\n")
        held = socket.create_connection(("127.0.0.1", broker.http_port), timeout=10)
        assert broker.stop(timeout_seconds=10) == 0
        held.close()
        with pytest.raises(urllib.error.URLError):
            broker.get("/readyz")
