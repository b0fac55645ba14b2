"""`kafkacompat cluster` with real processes: a ZooKeeper and three brokers are started, described, killed and stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic

from compat_tests.batches import build
from compat_tests.brokers import ROOT, Broker, answers_api_versions
from compat_tests.failover import PARTITIONS, QUICK_STOP, TOPIC, Acknowledged, judge_records, read_all, send_record
from compat_tests.java_tools import run_java
from compat_tests.ports import free_port
from compat_tests.processes import is_alive
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.sasl_nodes import PASSWORDS, PLAIN_MODULE
from compat_tests.test_oauth import OLD_KEY, make_key_set, make_token
from compat_tests.waiting import until
from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.produce import ProduceResponse
from tests.fakes import certificates

LONGEST_S = 120
LOAD_RATE = 500
BROKERS = ("broker-1", "broker-2", "broker-3")
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TOPIC_CONFIG = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def _only_ours(broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("this is our command line")


def refuses_zookeeper() -> bool:
    try:
        BrokerConfig.load(None, {"zookeeper.connect": "127.0.0.1:2181"})
    except ConfigError:
        return True
    return False


needs_zookeeper = pytest.mark.skipif(refuses_zookeeper(), reason="serve refuses zookeeper.connect so far")


def free_ports(count: int) -> int:
    """Return the first of *count* free ports in a row."""
    while True:
        first = free_port()
        if [free_port() for _ in range(count - 1)] == list(range(first + 1, first + count)):
            return first


def make_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kafkacompat", "cluster", *arguments]


def make_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself, in *folder*."""
    return subprocess.run(
        make_command(*arguments),
        cwd=folder,
        env=make_environment(),
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a cluster in the foreground, in the test's folder; everything has ended after the test."""
    started: list[subprocess.Popen[str]] = []

    def start_cluster(*arguments: str) -> subprocess.Popen[str]:
        with (tmp_path / "stderr").open("w") as errors:
            supervisor = subprocess.Popen(
                make_command("start", *arguments),
                cwd=tmp_path,
                env=make_environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        started.append(supervisor)
        return supervisor

    yield start_cluster
    for supervisor in started:
        supervisor.terminate()
        supervisor.wait(timeout=LONGEST_S)
        assert supervisor.stdout is not None
        supervisor.stdout.close()
    run(tmp_path, "stop")


def read_state(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((folder / "kafkacompat-cluster" / "cluster.json").read_text())
    return state


def pids_by_name(folder: Path) -> dict[str, int]:
    return {record["name"]: record["pid"] for record in read_state(folder)["processes"]}


def read_ready_line(supervisor: subprocess.Popen[str], errors: Path) -> list[str]:
    """Return the addresses of the ready line."""
    assert supervisor.stdout is not None
    line = supervisor.stdout.readline()
    assert line.startswith("kafkacompat cluster ready "), f"{line!r}\n{errors.read_text()}"
    return line.split()[3].split(",")


def write_secured_properties(folder: Path, port: int) -> tuple[Path, list[str]]:
    """Write the properties of brokers whose clients log in over TLS, and which send each other tokens from a file.

    Returns the file, and the option with the properties of a client. BROKERS begins at *port*.
    """
    member = certificates.shared_member("broker")
    (folder / "broker.pem").write_text(member.pem())
    (folder / "ca.pem").write_text(certificates.shared_authority().pem)
    (folder / "keys.json").write_bytes(make_key_set(old=OLD_KEY))
    (folder / "broker.token").write_text(make_token(sub="broker", exp=int(time.time()) + 600))
    properties = folder / "server.properties"
    properties.write_text(
        f"""listeners=CLIENTS://127.0.0.1:9092,BROKERS://127.0.0.1:{port}
listener.security.protocol.map=CLIENTS:SASL_SSL,BROKERS:SASL_PLAINTEXT
inter.broker.listener.name=BROKERS
listener.name.clients.sasl.enabled.mechanisms=PLAIN
listener.name.clients.plain.sasl.jaas.config={PLAIN_MODULE} required user_alice="{PASSWORDS["alice"]}";
listener.name.clients.ssl.keystore.type=PEM
listener.name.clients.ssl.keystore.location={folder}/broker.pem
listener.name.brokers.sasl.enabled.mechanisms=OAUTHBEARER
sasl.mechanism.inter.broker.protocol=OAUTHBEARER
sasl.oauthbearer.jwks.endpoint.url=file://{folder}/keys.json
sasl.oauthbearer.expected.audience=kafka
sasl.oauthbearer.token.endpoint.url=file://{folder}/broker.token
offsets.topic.replication.factor=3
"""
    )
    client = folder / "client.properties"
    client.write_text(
        f"""security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
sasl.mechanism=PLAIN
sasl.jaas.config={PLAIN_MODULE} required username="alice" password="{PASSWORDS["alice"]}";
"""
    )
    return properties, ["--command-config", str(client)]


@pytest.mark.usefixtures("_only_ours")
@needs_zookeeper
def test_three_secured_brokers_start_are_described_restarted_and_stopped(start: Start, tmp_path: Path) -> None:
    port = free_ports(3)
    properties, config = write_secured_properties(tmp_path, free_ports(3))
    supervisor = start("--port", str(port), "--brokers", "3", str(properties))
    addresses = read_ready_line(supervisor, tmp_path / "stderr")
    assert addresses == [f"127.0.0.1:{port + number}" for number in range(3)]
    pids = pids_by_name(tmp_path)
    assert list(pids) == ["zookeeper", *BROKERS]
    assert all(is_alive(pid) for pid in pids.values())

    done = run(tmp_path, "status", "--json", *config)
    assert done.returncode == 0, done.stderr
    described = json.loads(done.stdout)
    assert [process["stage"] for process in described["processes"]] == ["ready"] * 4
    assert [(node["port"], node["problem"]) for node in described["brokers"]] == [(port + n, "") for n in range(3)]
    refused = run(tmp_path, "status")
    assert refused.returncode == 2 and "it closes the connection" in refused.stderr
    spread = run(tmp_path, "grow", *config)
    assert (spread.returncode, "nothing moves" in spread.stdout) == (0, True), spread.stderr

    os.kill(pids["broker-2"], signal.SIGKILL)
    until(lambda: pids_by_name(tmp_path)["broker-2"] not in (None, pids["broker-2"]))
    assert "broker-2 ended with signal 9" in (tmp_path / "stderr").read_text()
    until(lambda: read_state(tmp_path)["processes"][2]["stage"] == "ready")
    assert read_state(tmp_path)["processes"][2]["restarts"] == 1

    pids = pids_by_name(tmp_path)
    assert run(tmp_path, "stop").returncode == 0
    assert supervisor.wait(timeout=LONGEST_S) == 0
    assert not any(is_alive(pid) for pid in pids.values())
    assert read_state(tmp_path)["stage"] == "ended"
    for name in BROKERS:
        folder = tmp_path / "kafkacompat-cluster" / name
        assert (folder / "data" / ".kafka_cleanshutdown").exists()
        log = (folder / "broker.log").read_text()
        assert "authentication has failed" not in log and "not accepted" not in log
        assert "eyJ" not in log and PASSWORDS["alice"] not in log


@pytest.mark.usefixtures("_only_ours")
@needs_zookeeper
def test_a_detached_cluster_outlives_its_command_and_its_supervisor(start: Start, tmp_path: Path) -> None:
    port = free_ports(2)
    done = run(tmp_path, "start", "--brokers", "2", "--port", str(port), "--detach")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kafkacompat cluster ready ")
    second = run(tmp_path, "start", "--brokers", "2", "--port", str(port))
    assert (second.returncode, second.stdout) == (1, "")
    assert "a cluster runs in kafkacompat-cluster already" in second.stderr

    supervisor = read_state(tmp_path)["supervisor_pid"]
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not is_alive(supervisor))
    assert answers_api_versions(port) and answers_api_versions(port + 1)
    pids = pids_by_name(tmp_path)
    third = run(tmp_path, "start", "--brokers", "2", "--port", str(port))
    assert third.returncode == 1
    assert "zookeeper of an earlier start still runs" in third.stderr
    assert run(tmp_path, "stop").returncode == 0
    # Without a supervisor their ends are noticed by the system's first process, in its own time.
    until(lambda: not any(is_alive(pid) for pid in pids.values()))
    assert run(tmp_path, "stop").returncode == 1


@pytest.mark.usefixtures("_only_ours")
@pytest.mark.skipif(shutil.which("java") is None, reason="needs a JDK")
def test_a_port_that_is_taken_ends_a_detached_start_in_one_sentence(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = run(tmp_path, "start", "--brokers", "1", "--port", str(port), "--detach")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert f"cannot listen on 127.0.0.1:{port}: another process listens there" in done.stderr
    assert not (tmp_path / "kafkacompat-cluster" / "cluster.json").exists()


@pytest.mark.usefixtures("_only_ours")
@needs_zookeeper
@pytest.mark.tools
def test_a_cluster_grows_under_load_at_a_throttle(start: Start, tmp_path: Path) -> None:
    """Five brokers share what three had; nothing acknowledged is lost, and a second call finds nothing to do."""
    port = free_ports(5)
    supervisor = start("--port", str(port), *QUICK_STOP)
    bootstrap = ",".join(read_ready_line(supervisor, tmp_path / "stderr"))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    known = Acknowledged()
    sent = 0
    while sent < 60_000:
        send_record(producer, known, sent)
        sent += 1
    assert producer.flush(60) == 0
    planned = json.loads(run(tmp_path, "grow", "--brokers", "5", "--dry-run", "--json").stdout)
    assert (planned["size_bytes"] > 5_000_000, planned["replicas_moved"]) == (True, 6)
    assert len(read_state(tmp_path)["processes"]) == 4

    with growing(tmp_path, "--brokers", "5", "--throttle", "20000", "--json") as grow:
        until(lambda: replicas_are_added(tmp_path), timeout_seconds=LONGEST_S)
        assert "follower.replication.throttled.replicas" in describe_topic(admin)
        # An interrupted command leaves the copying to the brokers, and the next one follows it, at another throttle.
        grow.send_signal(signal.SIGINT)
        _, errors = grow.communicate(timeout=LONGEST_S)
        assert (grow.returncode, "interrupted: reassignments that began go on" in errors) == (1, True)
    with growing(tmp_path, "--brokers", "5", "--throttle", "1000000", "--json") as grow:
        begun, sent_before = time.monotonic(), sent
        while grow.poll() is None:
            # More than the throttle allows would never be copied.
            while sent - sent_before < LOAD_RATE * (time.monotonic() - begun):
                send_record(producer, known, sent)
                sent += 1
            producer.poll(0.02)
        output, errors = grow.communicate(timeout=LONGEST_S)
    assert grow.returncode == 0, errors
    assert "Removed the throttle" in errors
    done = json.loads(output)
    assert 0 < done["ongoing"] <= done["replicas_moved"] <= 6
    assert done["seconds"] > 1
    assert producer.flush(60) == 0
    assert "throttled" not in describe_topic(admin)
    (tmp_path / "plan.json").write_text(output)
    verified = run_java(
        REASSIGN, ["--bootstrap-server", bootstrap, "--reassignment-json-file", str(tmp_path / "plan.json"), "--verify"]
    )
    assert verified.stdout.count("is completed.") == len(done["partitions"])

    described = json.loads(run(tmp_path, "status", "--json").stdout)
    replicas = [node["replicas"] for node in described["brokers"]]
    assert (len(replicas), max(replicas) - min(replicas)) == (5, 1)
    assert described["under_replicated_partitions"] == 0
    outcome = judge_records(known, read_all(bootstrap), "", [])
    assert (outcome.acknowledged, outcome.lost, outcome.duplicates) == (sent, 0, 0)
    again = run(tmp_path, "grow", "--brokers", "5")
    assert (again.returncode, "nothing moves" in again.stdout) == (0, True)
    fewer = run(tmp_path, "grow", "--brokers", "4")
    assert (fewer.returncode, "less than the 5 brokers that run" in fewer.stderr) == (2, True)


@contextmanager
def growing(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `grow` in *folder* while the block does something else."""
    with subprocess.Popen(
        make_command("grow", *arguments),
        cwd=folder,
        env=make_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as grow:
        yield grow


def replicas_are_added(folder: Path) -> bool:
    described = json.loads(run(folder, "status", "--json").stdout)
    return any(partition["adding"] for partition in described["partitions"])


def describe_topic(admin: AdminClient) -> str:
    """Return the names of the configs that the topic has itself."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC)
    entries = admin.describe_configs([resource])[resource].result(30).values()
    return " ".join(entry.name for entry in entries if entry.source == TOPIC_CONFIG)


@pytest.mark.usefixtures("_only_ours")
def test_bad_properties_end_with_2_in_one_sentence_and_make_nothing(tmp_path: Path) -> None:
    for detach in ([], ["--detach"]):
        done = run(tmp_path, "start", "--override", "num.partitions=0", *detach)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert "num.partitions=0 is not valid" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_status_describes_any_broker(broker: Broker, name: str, tmp_path: Path) -> None:
    with RawClient(broker.port) as client:
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        client.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), CreateTopicsResponse, 5)
        request = produce_request(name, {1: build([b"value" * 100])})
        until(lambda: not client.call(request, ProduceResponse, 7).responses[0].partition_responses[0].error_code)
    done = run(tmp_path, "status", "--bootstrap-server", broker.bootstrap, "--json")
    assert done.returncode == 0, done.stderr
    described = json.loads(done.stdout)
    (node,) = described["brokers"]
    assert (described["controller"], node["node_id"], node["port"], node["problem"]) == (1, 1, broker.port, "")
    assert node["is_controller"] and node["size_bytes"] > 500
    partitions = [partition for partition in described["partitions"] if partition["topic"] == name]
    assert [(partition["leader"], partition["isr"], partition["lags"]) for partition in partitions] == [
        (1, [1], {})
    ] * 2
    assert described["offline_partitions"] == described["under_replicated_partitions"] == 0
    shown = run(tmp_path, "status", "--bootstrap-server", broker.bootstrap)
    assert shown.returncode == 0
    assert f"127.0.0.1:{broker.port}" in shown.stdout and "live, controller" in shown.stdout
