"""SASL with real clients: logins, sessions, tokens, and attacks."""

from __future__ import annotations

import base64
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import ROOT
from compat_tests.java_tools import run_java
from compat_tests.ports import free_port
from compat_tests.predecessors import image_of_a_kill
from compat_tests.raw_client import ClosedError, RawClient
from compat_tests.sasl_nodes import (
    PASSWORDS,
    PLAIN_MODULE,
    REAUTHENTICATED,
    REAUTHENTICATION_MS,
    SCRAM_MODULE,
    TOKEN_KEY,
    SaslKafkacompat,
    SaslNode,
    add_sasl_listener,
    authenticate,
    handshake,
    log_in_by_token,
    log_in_plain,
    log_in_scram,
    make_bearer_message,
    make_unsecured_token,
    run_node,
)
from compat_tests.secured_clients import COUNT, FixedToken, run_aiokafka, run_franz_go
from compat_tests.waiting import pause, until
from kafkacompat.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kafkacompat.wire.apis.end_txn import EndTxnRequest, EndTxnResponse
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.errors import ErrorCode

WRONG = b"\0alice\0wrong"
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
SECRETS = (*PASSWORDS.values(), TOKEN_KEY)


def mark_for_tools(*mechanisms: str) -> list[Any]:
    """Return parameters for mechanisms that only `make tools` tries with this client; other clients try them in every run."""
    return [pytest.param(mechanism, marks=pytest.mark.tools) for mechanism in mechanisms]


@pytest.fixture(scope="module")
def node(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    """The node under test."""
    yield from run_node(broker_kind, tmp_path_factory.mktemp("sasl") / "node")


@pytest.fixture
def client(node: SaslNode) -> Iterator[RawClient]:
    with RawClient(node.port) as connection:
        yield connection


# Sessions


def test_versions_are_told_before_and_after(client: RawClient) -> None:
    before = client.call(
        ApiVersionsRequest(client_software_name="x", client_software_version="1"), ApiVersionsResponse, 3
    )
    assert not before.error_code and not log_in_plain(client).error_code
    after = client.call(
        ApiVersionsRequest(client_software_name="x", client_software_version="1"), ApiVersionsResponse, 3
    )
    assert after.api_keys == before.api_keys


def test_a_wrong_password_is_answered_late(client: RawClient) -> None:
    handshake(client, "PLAIN")
    begun = time.monotonic()
    answer = authenticate(client, WRONG)
    assert time.monotonic() - begun >= 0.1
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert client.is_closed()


def test_a_session_is_renewed_or_ends(node: SaslNode) -> None:
    login = (REAUTHENTICATED, "carol", PASSWORDS["carol"])
    with RawClient(node.port) as client:
        answer = log_in_scram(client, *login)
        assert answer.session_lifetime_ms == REAUTHENTICATION_MS
        for _ in range(2):
            pause(1.2)
            assert log_in_scram(client, *login).session_lifetime_ms == REAUTHENTICATION_MS
            assert not client.call(MetadataRequest(topics=[]), MetadataResponse, 4).topics
        client.send(SaslHandshakeRequest(mechanism=REAUTHENTICATED), 1)
        assert client.receive(SaslHandshakeResponse, 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
        pause(REAUTHENTICATION_MS / 1000 + 0.2)
        client.send(MetadataRequest(topics=[]), 4)
        assert client.is_closed()


def test_a_token_that_expires_under_a_transaction(node: SaslNode, name: str) -> None:
    """The connection ends at the next request, and the transaction by its timeout."""
    with RawClient(node.plain.port) as plain:
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1)]
        created = plain.call(CreateTopicsRequest(topics=topics, timeout_ms=30_000), CreateTopicsResponse, 5)
        assert created.topics[0].error_code == 0
        start = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=4000)
        # The coordinator is there before the token's life begins.
        find = FindCoordinatorRequest(key=name, key_type=1)
        until(lambda: plain.call(find, FindCoordinatorResponse, 2).error_code == 0)
        until(lambda: plain.call(start, InitProducerIdResponse, 4).error_code == 0)
        with RawClient(node.port) as alice:
            log_in_plain(alice)
            request = CreateDelegationTokenRequest(max_lifetime_ms=5000)
            token = alice.call(request, CreateDelegationTokenResponse, 3)
        password = base64.b64encode(bytes(token.hmac)).decode()
        until(lambda: log_in_by_token(node, token.token_id, password))
        with RawClient(node.port) as bearer:
            log_in_scram(bearer, "SCRAM-SHA-256", token.token_id, password, by_token=True)
            producer = bearer.call(start, InitProducerIdResponse, 4)
            ids = (producer.producer_id, producer.producer_epoch)
            add = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=ids[0],
                v3_and_below_producer_epoch=ids[1],
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0])],
            )
            assert bearer.call(add, AddPartitionsToTxnResponse, 3)
            pause(max(0, token.expiry_timestamp_ms / 1000 - time.time()) + 0.2)
            end = EndTxnRequest(transactional_id=name, producer_id=ids[0], producer_epoch=ids[1], committed=True)
            with pytest.raises((ClosedError, ConnectionError)):
                bearer.call(end, EndTxnResponse, 3)
        assert not log_in_by_token(node, token.token_id, password) or node.plain.kind == "kafka"
        until(lambda: find_transaction_state(plain, name) == "CompleteAbort")


def test_a_token_of_kafka_is_valid_after_a_takeover(node: SaslNode, tmp_path: Path) -> None:
    """The new broker knows the token by the records of Kafka's controller, and its secret by the same key."""
    if node.plain.kind != "kafka":
        pytest.skip("a directory of Kafka is taken over")
    with RawClient(node.port) as alice:
        log_in_plain(alice)
        request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
        token = alice.call(request, CreateDelegationTokenResponse, 3)
    password = base64.b64encode(bytes(token.hmac)).decode()
    until(lambda: log_in_by_token(node, token.token_id, password))
    successor = SaslKafkacompat(tmp_path / "node")
    port = add_sasl_listener(successor)
    successor.prepare()
    image_of_a_kill(node.plain, successor.data_folder)
    with successor, RawClient(port) as bearer:
        assert not log_in_scram(bearer, "SCRAM-SHA-512", token.token_id, password, by_token=True).error_code


def find_transaction_state(client: RawClient, transactional_id: str) -> str:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    return str(client.call(request, DescribeTransactionsResponse, 0).transaction_states[0].transaction_state)


def test_the_first_user_of_a_node_that_requires_scram(broker_kind: str, tmp_path: Path) -> None:
    if broker_kind == "kafka":
        pytest.skip("kafka-storage does this for Kafka")
    node = SaslKafkacompat(tmp_path / "node")
    port = free_port()
    node.properties.update(
        {
            "listeners": f"SASL://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{node.port}",
            "listener.security.protocol.map": "SASL:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        }
    )
    user = "SCRAM-SHA-512=[name=admin]"
    command = [sys.executable, "-m", "kafkacompat", "metadata", "add-scram", user, "--data", str(node.data_folder)]
    node.prepare()
    done = subprocess.run(command, input="admin-pa55word\n", capture_output=True, text=True, cwd=ROOT, check=True)
    assert "admin" in done.stdout and "pa55word" not in done.stdout + done.stderr
    with node, RawClient(port) as client:
        assert not log_in_scram(client, "SCRAM-SHA-512", "admin", "admin-pa55word").error_code
        refused = subprocess.run(command, input="x\n", capture_output=True, text=True, cwd=ROOT, check=False)
        assert refused.returncode == 1 and "is in use by a broker: stop it first" in refused.stderr


# Attacks


def test_wrong_passwords_at_speed_leave_others_served(node: SaslNode) -> None:
    """Each attempt costs its client the delay, and its duration does not reveal whether a user exists."""
    times: dict[str, list[float]] = {"alice": [], "mallory": []}
    with RawClient(node.port) as other:
        log_in_plain(other)
        clients = [RawClient(node.port) for _ in range(40)]
        for number, client in enumerate(clients):
            handshake(client, "PLAIN")
            client.send(SaslAuthenticateRequest(auth_bytes=WRONG if number % 2 else b"\0mallory\0wrong"), 2)
        begun = time.monotonic()
        other.call(MetadataRequest(topics=[]), MetadataResponse, 4)
        assert time.monotonic() - begun < 5
        for number, client in enumerate(clients):
            answer = client.receive(SaslAuthenticateResponse, 2)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            times["alice" if number % 2 else "mallory"].append(time.monotonic() - begun)
            client.socket.close()
        other.call(MetadataRequest(topics=[]), MetadataResponse, 4)
    assert min(map(min, times.values())) > 0.05


def test_large_claims_before_authentication(node: SaslNode) -> None:
    """CVE-2022-34917: many clients claim large frames; the node's memory does not grow."""
    before = node.plain.resident_bytes()
    clients = [RawClient(node.port) for _ in range(100)]
    for client in clients:
        client.socket.sendall((524_288).to_bytes(4, "big") + b"x" * 1000)
    with RawClient(node.port) as client:
        client.socket.sendall((524_289).to_bytes(4, "big"))
        assert client.is_closed()
    with RawClient(node.port) as client:
        assert not log_in_plain(client).error_code
    if node.plain.kind == "kafkacompat":
        assert node.plain.resident_bytes() - before < 20_000_000
    for client in clients:
        client.socket.close()


def test_bearer_tokens(node: SaslNode) -> None:
    with RawClient(node.port) as client:
        handshake(client, "OAUTHBEARER")
        answer = authenticate(client, make_bearer_message(make_unsecured_token("erin", 30)))
        assert not answer.error_code and 20_000 < answer.session_lifetime_ms <= 30_000
        assert not client.call(MetadataRequest(topics=[]), MetadataResponse, 4).topics


# Clients


def write_client_config(path: Path, mechanism: str, user: str, password: str, *, by_token: bool = False) -> Path:
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    token = " tokenauth=true" if by_token else ""
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={module} required username="{user}" password="{password}"{token};\n'
    )
    return path


def run_tool(node: SaslNode, config: Path, main_class: str, *arguments: str, check: bool = True) -> str:
    command = ["--bootstrap-server", node.bootstrap, "--command-config", str(config), *arguments]
    done = run_java(main_class, command, check=check)
    return done.stdout + (done.stderr if not check else "")


@pytest.mark.parametrize("mechanism", [*mark_for_tools("PLAIN", "SCRAM-SHA-256"), "SCRAM-SHA-512"])
def test_java_tools(node: SaslNode, tmp_path: Path, name: str, mechanism: str) -> None:
    user = "alice" if mechanism == "PLAIN" else "carol"
    config = write_client_config(tmp_path / "client", mechanism, user, PASSWORDS[user])
    run_tool(node, config, TOPICS, "--create", "--topic", name)
    assert name in run_tool(node, config, TOPICS, "--list").splitlines()


def test_a_java_tool_with_a_wrong_password(node: SaslNode, tmp_path: Path) -> None:
    config = write_client_config(tmp_path / "client", "SCRAM-SHA-256", "carol", "wrong")
    shown = run_tool(node, config, TOPICS, "--list", check=False)
    assert "SaslAuthenticationException" in shown
    assert "due to invalid credentials with SASL mechanism SCRAM-SHA-256" in shown


# In every run the page of test_security_page_sasl.py uses these tools.
@pytest.mark.tools
def test_the_java_tools_for_users_and_tokens(node: SaslNode, tmp_path: Path) -> None:
    alice = write_client_config(tmp_path / "alice", "PLAIN", "alice", PASSWORDS["alice"])
    change = "SCRAM-SHA-256=[iterations=8192,password=dave-pa55word]"
    entity = ("--entity-type", "users", "--entity-name", "dave")
    run_tool(node, alice, CONFIGS, "--alter", "--add-config", change, *entity)
    dave = write_client_config(tmp_path / "dave", "SCRAM-SHA-256", "dave", "dave-pa55word")
    created = run_tool(
        node, dave, TOKENS, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"
    )
    token_id, secret = created.splitlines()[-1].split()[:2]
    # Without an owner the tool finds none, on Kafka too.
    describe = ("--describe", "--owner-principal", "User:dave")
    assert token_id in run_tool(node, dave, TOKENS, *describe)
    bearer = write_client_config(tmp_path / "bearer", "SCRAM-SHA-256", token_id, secret, by_token=True)
    run_tool(node, bearer, TOPICS, "--list")
    assert "completed" in run_tool(node, dave, TOKENS, "--renew", "--renew-time-period", "-1", "--hmac", secret).lower()
    assert (
        "completed" in run_tool(node, dave, TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", secret).lower()
    )
    assert token_id not in run_tool(node, dave, TOKENS, *describe)


@pytest.mark.parametrize("mechanism", [*mark_for_tools("PLAIN", "SCRAM-SHA-512"), "SCRAM-SHA-256"])
def test_confluent_kafka(node: SaslNode, name: str, mechanism: str) -> None:
    """A producer and a consumer; the sessions of SCRAM-SHA-512 are renewed meanwhile."""
    from confluent_kafka import Consumer, Producer

    user = "alice" if mechanism == "PLAIN" else "carol"
    settings: dict[str, Any] = {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": PASSWORDS[user],
    }
    producer = Producer(settings)
    rounds = 6 if mechanism == REAUTHENTICATED else 1
    for number in range(rounds):
        producer.produce(name, value=str(number))
        assert producer.flush(30) == 0
        if rounds > 1:
            pause(0.9)
    consumer = Consumer({**settings, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([name])
    values = [until(lambda: consumer.poll(1)).value() for _ in range(rounds)]
    assert values == [str(number).encode() for number in range(rounds)]
    consumer.close()


def test_confluent_kafka_with_bearer_tokens(node: SaslNode, name: str) -> None:
    from confluent_kafka import Producer

    def get_token(_: str) -> tuple[str, float]:
        return make_unsecured_token("erin"), time.time() + 60

    producer = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": get_token,
        }
    )
    producer.produce(name, value="x")
    assert producer.flush(30) == 0


def test_confluent_kafka_with_a_wrong_password(node: SaslNode) -> None:
    from confluent_kafka import Producer

    errors: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "carol",
            "sasl.password": "wrong",
            "error_cb": errors.append,
            "log_level": 0,
        }
    )
    until(lambda: producer.poll(0.1) or any("SASL" in str(error) for error in errors))


@pytest.mark.parametrize("mechanism", [*mark_for_tools("SCRAM-SHA-256", "SCRAM-SHA-512"), "PLAIN"])
def test_kafka_python(node: SaslNode, name: str, mechanism: str) -> None:
    from kafka import KafkaProducer

    user = "alice" if mechanism == "PLAIN" else "carol"
    producer = KafkaProducer(
        bootstrap_servers=node.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=PASSWORDS[user],
    )
    assert producer.send(name, b"x").get(30).offset == 0
    producer.close()


def log_in_as(mechanism: str) -> tuple[str, str]:
    """Return a user of a mechanism and its password; of OAUTHBEARER, its token."""
    if mechanism == "OAUTHBEARER":
        return "erin", make_unsecured_token("erin")
    user = "alice" if mechanism == "PLAIN" else "carol"
    return user, PASSWORDS[user]


@pytest.mark.parametrize("mechanism", [*mark_for_tools("PLAIN", "SCRAM-SHA-512"), "SCRAM-SHA-256", "OAUTHBEARER"])
def test_aiokafka(node: SaslNode, name: str, mechanism: str) -> None:
    user, password = log_in_as(mechanism)
    settings: dict[str, Any] = {
        "bootstrap_servers": node.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = FixedToken(password)
    else:
        settings.update(sasl_plain_username=user, sasl_plain_password=password)
    assert run_aiokafka(name, settings) == [b"%d" % number for number in range(COUNT)]


@pytest.mark.tools
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_franz_go(node: SaslNode, name: str, mechanism: str) -> None:
    user, password = log_in_as(mechanism)
    variables = {"BOOTSTRAP": node.bootstrap, "MECHANISM": mechanism, "USERNAME": user, "PASSWORD": password}
    assert run_franz_go(name, variables) == [b"%d" % number for number in range(COUNT)]


# What a run has written


def test_no_secret_is_written(node: SaslNode) -> None:
    """The last test of this module: nothing but the properties file names a password or a key."""
    if node.plain.kind == "kafka":
        pytest.skip("Kafka is not under test here")
    secrets = [*SECRETS, "dave-pa55word"]
    for path in node.plain.folder.rglob("*"):
        if path.is_file() and path.name != "server.properties":
            data = path.read_bytes()
            for secret in secrets:
                assert secret.encode() not in data, path
    log = node.plain.stderr()
    assert "Traceback" not in log and "its authentication has failed" in log
