"""TLS with real clients: Kafka's tools, librdkafka and kafka-python, with certificates and without; and what attackers send."""

from __future__ import annotations

import resource
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from kafka import KafkaConsumer, KafkaProducer

from compat_tests.brokers import BROKERS, ROOT, answers_api_versions
from compat_tests.certificates import Authority
from compat_tests.clusters import KafkacompatCluster
from compat_tests.confluent import create_topic
from compat_tests.java_tools import compile_java, run_java
from compat_tests.ports import free_port
from compat_tests.secured_clients import COUNT, run_aiokafka, run_franz_go
from compat_tests.tls import PASSWORD, USER, TlsBroker
from compat_tests.waiting import until
from kafkacompat.security.tls.names import format_name
from kafkacompat.testing.certificates import encode_certificate
from tests.fakes import certificates

TOOLS = "org.apache.kafka.tools"
HALF_HANDSHAKES = 10_000
MOST_BYTES_EACH = 20 * 1024
SECRETS = ("key-password", "store-password")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def member(authority: Authority) -> Path:
    return authority.issue("alice")


@pytest.fixture(scope="module")
def secure(broker_kind: str, tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[TlsBroker]:
    broker = BROKERS[broker_kind](tmp_path_factory.mktemp("tls") / "node")
    secured = TlsBroker(broker, authority)
    with broker:
        yield secured


def settings_of(secure: TlsBroker, listener: str, member: Path, client: str) -> dict[str, Any]:
    shown = None if listener == "SSL" else member
    make = {"confluent": secure.librdkafka, "kafka-python": secure.kafka_python}[client]
    return make(shown, listener)


@pytest.mark.parametrize("listener", ["SSL", "MUTUAL", "LOGIN"])
def test_confluent_kafka_produces_and_consumes(secure: TlsBroker, member: Path, listener: str, name: str) -> None:
    create_topic(secure.broker, name)
    settings = settings_of(secure, listener, member, "confluent")
    producer = Producer(settings)
    for number in range(100):
        producer.produce(name, f"{number}".encode() * 1000)
    assert producer.flush(30) == 0
    consumer = Consumer({**settings, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([name])
    values: list[bytes] = []
    while len(values) < 100:
        for message in consumer.consume(100, 30):
            assert message.error() is None
            values.append(message.value())
    consumer.close()
    assert values == [f"{number}".encode() * 1000 for number in range(100)]


def test_a_wrong_password_fails_over_tls_and_a_certificate_does_not_replace_it(
    secure: TlsBroker, member: Path, name: str
) -> None:
    settings = {**settings_of(secure, "LOGIN", member, "confluent"), "sasl.password": "wrong"}
    with pytest.raises(KafkaException):
        AdminClient(settings).list_topics(timeout=3)
    assert AdminClient({**settings, "sasl.password": PASSWORD}).list_topics(timeout=20).brokers


@pytest.mark.parametrize("listener", ["SSL", "MUTUAL", "LOGIN"])
def test_kafka_python_produces_and_consumes(secure: TlsBroker, member: Path, listener: str, name: str) -> None:
    create_topic(secure.broker, name)
    settings = settings_of(secure, listener, member, "kafka-python")
    producer = KafkaProducer(**settings)
    large = b"x" * 500_000
    producer.send(name, large).get(30)
    producer.send(name, b"small").get(30)
    producer.close()
    consumer = KafkaConsumer(name, auto_offset_reset="earliest", group_id=None, consumer_timeout_ms=20_000, **settings)
    assert [next(consumer).value for _ in range(2)] == [large, b"small"]
    consumer.close()


@pytest.mark.parametrize("listener", [pytest.param("MUTUAL", marks=pytest.mark.tools), "LOGIN"])
def test_aiokafka_produces_and_consumes(secure: TlsBroker, member: Path, listener: str, name: str) -> None:
    create_topic(secure.broker, name)
    settings = settings_of(secure, listener, member, "kafka-python")
    assert run_aiokafka(name, settings) == [b"%d" % number for number in range(COUNT)]


@pytest.mark.tools
@pytest.mark.parametrize("listener", ["SSL", "MUTUAL", "LOGIN"])
def test_franz_go_produces_and_consumes(secure: TlsBroker, member: Path, listener: str, name: str) -> None:
    create_topic(secure.broker, name)
    variables = {"BOOTSTRAP": secure.bootstrap(listener), "CA": str(secure.authority.certificate)}
    if listener != "SSL":
        variables["CERTIFICATE"] = str(member)
    if listener == "LOGIN":
        variables.update(MECHANISM="PLAIN", USERNAME=USER, PASSWORD=PASSWORD)
    assert run_franz_go(name, variables) == [b"%d" % number for number in range(COUNT)]


@pytest.mark.parametrize(
    "listener", [*(pytest.param(name, marks=pytest.mark.tools) for name in ("SSL", "LOGIN")), "MUTUAL"]
)
def test_kafkas_tools_connect_by_a_command_config(
    secure: TlsBroker, authority: Authority, member: Path, listener: str, name: str, tmp_path: Path
) -> None:
    config = secure.java(tmp_path, authority.export(member) if listener == "MUTUAL" else None, listener)
    access = ["--bootstrap-server", secure.bootstrap(listener), "--command-config", str(config)]
    run_java(f"{TOOLS}.TopicCommand", [*access, "--create", "--topic", name, "--partitions", "1"])
    run_java(f"{TOOLS}.ConsoleProducer", [*access, "--topic", name], stdin="one\ntwo\n")
    read = [*access, "--topic", name, "--from-beginning", "--max-messages", "2"]
    assert run_java(f"{TOOLS}.consumer.ConsoleConsumer", read).stdout.splitlines() == ["one", "two"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken(secure: TlsBroker, version: ssl.TLSVersion) -> None:
    with connect(secure, secure.context(version=version)) as connection:
        assert connection.version() == version.name.replace("_", ".")
        assert ask_api_versions(connection)


def connect(secure: TlsBroker, context: ssl.SSLContext, listener: str = "SSL") -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", secure.ports[listener]), 30)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def ask_api_versions(connection: socket.socket) -> bool:
    connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))
    return len(connection.recv(100)) > 0


def test_a_client_without_a_certificate_is_refused_by_a_listener_that_requires_one(secure: TlsBroker) -> None:
    refused = AdminClient({**secure.librdkafka(listener="MUTUAL"), "socket.timeout.ms": 3000})
    with pytest.raises(KafkaException):
        refused.list_topics(timeout=3)
    assert AdminClient(secure.librdkafka()).list_topics(timeout=30).brokers


def test_strangers_are_refused_on_both_sides(secure: TlsBroker, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    context = secure.context(other.issue("mallory"))
    # In TLS 1.3 the client learns only with the first answer that its certificate is refused.
    with pytest.raises((ssl.SSLError, ConnectionError)), connect(secure, context, "MUTUAL") as connection:
        assert not ask_api_versions(connection)
        raise ConnectionError("the broker hung up")
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(secure, ssl.create_default_context(cafile=str(other.certificate)))


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x10\0" + b"x" * 5000,
        b"\xff" * 100_000,
    ],
    ids=["plaintext kafka", "http", "garbled hello", "garbage"],
)
def test_garbage_closes_its_connection_with_a_line(secure: TlsBroker, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", secure.ports["SSL"]), 30) as connection:
        host, port = connection.getsockname()
        connection.sendall(data)
        try:
            while connection.recv(1000):
                pass
        except ConnectionError:
            pass
    with connect(secure, secure.context()) as served:
        assert ask_api_versions(served)
    if secure.broker.kind == "kafkacompat":
        until(lambda: f"closing {host}:{port}: " in secure.broker.stderr())
        assert secure.broker.stderr().count(f"closing {host}:{port}: ") == 1
        assert "Traceback" not in secure.broker.stderr()


def test_tls_on_a_plaintext_port_is_told_apart(secure: TlsBroker) -> None:
    plain = socket.create_connection(("127.0.0.1", secure.broker.port), 30)
    with plain, pytest.raises((ssl.SSLError, OSError)):
        secure.context().wrap_socket(plain, server_hostname="127.0.0.1")
    if secure.broker.kind == "kafkacompat":
        until(lambda: "the client sends TLS to a listener without TLS" in secure.broker.stderr())


def test_a_certificate_is_renewed_without_dropping_connections(secure: TlsBroker, authority: Authority) -> None:
    with connect(secure, secure.context()) as before:
        old = before.getpeercert(binary_form=True)
        renewed = authority.issue("broker", "renewed")
        entry = ConfigEntry(
            "listener.name.ssl.ssl.keystore.location", str(renewed), incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": secure.broker.bootstrap})
        admin.incremental_alter_configs([resource])[resource].result(30)
        until(lambda: shown_by(secure) != old)
        assert ask_api_versions(before)


def shown_by(secure: TlsBroker) -> bytes | None:
    with connect(secure, secure.context()) as connection:
        return connection.getpeercert(binary_form=True)


def test_a_certificate_for_another_name_is_refused(secure: TlsBroker, authority: Authority) -> None:
    entry = ConfigEntry(
        "listener.name.ssl.ssl.keystore.location",
        str(authority.issue("somebody")),
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": secure.broker.bootstrap})
    with pytest.raises(KafkaException, match="INVALID_REQUEST"):
        admin.incremental_alter_configs([resource])[resource].result(30)
    with connect(secure, secure.context()) as connection:
        certificate = connection.getpeercert()
    assert certificate is not None
    assert certificate["subject"] == ((("commonName", "broker"),),)


def test_many_half_handshakes_hold_little_memory(secure: TlsBroker) -> None:
    if secure.broker.kind != "kafkacompat":
        pytest.skip("a bound of this broker")
    count = min(HALF_HANDSHAKES, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 500)
    hello = make_client_hello(secure)
    before = secure.broker.resident_bytes()
    with ExitStack() as stack:
        for number in range(count):
            half = stack.enter_context(socket.create_connection(("127.0.0.1", secure.ports["SSL"]), 60))
            # Some say nothing, some half a hello, some a whole one without an end of the handshake.
            half.sendall((b"", hello[:100], hello)[number % 3])
        with connect(secure, secure.context()) as served:
            assert ask_api_versions(served)
        grown = secure.broker.resident_bytes() - before
        assert grown < count * MOST_BYTES_EACH, f"{grown / count:.0f} bytes for each half handshake"
    until(lambda: answers_api_versions(secure.broker.port))


def make_client_hello(secure: TlsBroker) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = secure.context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ssl.keystore.location": "/nowhere.pem"}, "ssl.keystore.location=/nowhere.pem cannot be read"),
        (
            {"ssl.keystore.type": "PKCS12", "ssl.keystore.password": SECRETS[1]},
            "is a PEM file: set ssl.keystore.type=PEM",
        ),
        (
            {"ssl.keystore.location": "{p12}", "ssl.keystore.type": "JKS", "ssl.keystore.password": SECRETS[1]},
            "does not open",
        ),
        ({"ssl.keystore.location": "{mixed}"}, "the key does not belong to the first certificate"),
        (
            {"ssl.keystore.location": "{jks}", "ssl.keystore.type": "JKS", "ssl.keystore.password": SECRETS[1]},
            "keytool -imp",
        ),
        ({"ssl.keystore.location": ""}, "TLS needs a key and its certificate"),
        ({"ssl.cipher.suites": "TLS_NO_SUCH"}, "ssl.cipher.suites names TLS_NO_SUCH"),
        (
            {"ssl.keystore.location": "{encrypted}", "ssl.key.password": SECRETS[0]},
            "ssl.key.password does not open its key",
        ),
    ],
)
def test_bad_settings_end_the_start_with_a_sentence(
    authority: Authority, member: Path, tmp_path: Path, changes: dict[str, str], sentence: str
) -> None:
    shared = certificates.shared_member("x")
    files = {name: tmp_path / name for name in ("mixed", "jks", "encrypted")}
    files["p12"] = authority.export(member)
    files["mixed"].write_text(certificates.shared_member("y").key_pem() + shared.certificates_pem)
    files["jks"].write_bytes(bytes.fromhex("feedfeed00000002"))
    files["encrypted"].write_text(shared.pem("another"))
    properties = {
        "node.id": "1",
        "listeners": "SSL://127.0.0.1:0",
        "log.dirs": str(tmp_path / "data"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(member),
        **{name: value.format(**files) for name, value in changes.items()},
    }
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    command = [sys.executable, "-m", "kafkacompat", "serve", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, cwd=ROOT)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("kafkacompat: ")]
    assert line.startswith("kafkacompat: listener SSL: ")
    assert sentence in line
    assert not any(secret in done.stderr + done.stdout for secret in SECRETS)
    assert not (tmp_path / "data").exists()


NAMES: list[Any] = [
    [
        (NameOID.COUNTRY_NAME, "DE", None),
        (NameOID.ORGANIZATION_NAME, "A, B + C", None),
        (NameOID.COMMON_NAME, "alice", None),
    ],
    [(NameOID.COMMON_NAME, " leading and trailing ", None)],
    [(NameOID.COMMON_NAME, "   ", None)],
    [(NameOID.COMMON_NAME, "  a b  ", None), (NameOID.USER_ID, "#", None)],
    [(NameOID.COMMON_NAME, "\r\n\t a \r\n", None), (NameOID.USER_ID, " #", None)],
    [(NameOID.COMMON_NAME, "#hash#", None), (NameOID.USER_ID, 'quote"back\\slash', None)],
    [(NameOID.COMMON_NAME, "a=b<c>d;e", None), (NameOID.STREET_ADDRESS, "Straße 1", None)],
    [(NameOID.EMAIL_ADDRESS, "a@b", _ASN1Type.IA5String), (NameOID.DOMAIN_COMPONENT, "example", _ASN1Type.IA5String)],
    [(NameOID.SERIAL_NUMBER, "12", None), (NameOID.GIVEN_NAME, "Ünï", None), (NameOID.TITLE, "x" * 60, None)],
    [(NameOID.COMMON_NAME, "日本", _ASN1Type.BMPString), (NameOID.LOCALITY_NAME, "München", None)],
    [(NameOID.COMMON_NAME, "two  spaces", None), (NameOID.STATE_OR_PROVINCE_NAME, "nul\0nul", None)],
]


def test_names_of_certificates_are_those_of_java(tmp_path: Path) -> None:
    authority = certificates.shared_authority()
    subjects = [x509.Name([x509.NameAttribute(oid, value, kind) for oid, value, kind in parts]) for parts in NAMES]
    paths = []
    for number, subject in enumerate(subjects):
        paths.append(tmp_path / f"{number}.pem")
        paths[-1].write_text(encode_certificate(authority.issue(subject).certificate))
    folder = compile_java(ROOT / "compat_tests/java/tls/PrintNames.java")
    printed = run_java("PrintNames", [str(path) for path in paths], extra_class_path=[folder]).stdout
    # The pipe is read as text, in which each line break is a line feed.
    names = [format_name(subject).replace("\r\n", "\n") for subject in subjects]
    assert names == printed.split("\0")[:-1]


class TlsCluster(KafkacompatCluster):
    """Three brokers that show certificates to each other."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        super().__init__(folder)
        for node, broker in self.brokers.items():
            port = free_port()
            broker.properties.update(
                {
                    "listeners": f"PLAINTEXT://{broker.bootstrap},BROKERS://127.0.0.1:{port}",
                    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SSL",
                    "inter.broker.listener.name": "BROKERS",
                    "listener.name.brokers.ssl.client.auth": "required",
                    "listener.name.brokers.ssl.keystore.type": "PEM",
                    "listener.name.brokers.ssl.keystore.location": str(authority.issue(f"broker-{node}")),
                    "listener.name.brokers.ssl.truststore.type": "PEM",
                    "listener.name.brokers.ssl.truststore.location": str(authority.certificate),
                }
            )


def test_brokers_replicate_over_tls_and_take_over(broker_kind: str, tmp_path: Path, authority: Authority) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("this broker's cluster")
    with TlsCluster(tmp_path / "cluster", authority) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", 1, 3)])["t"].result(30)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0, "acks": "all"})
        for killed in (True, False):
            delivered: list[Any] = []
            for number in range(100):
                producer.produce("t", f"{number}", on_delivery=lambda error, _, to=delivered: to.append(error))
            assert producer.flush(60) == 0
            assert delivered == [None] * 100
            if killed:
                leader = admin.list_topics("t", timeout=30).topics["t"].partitions[0].leader
                cluster.kill(leader)
        logs = "".join(node.stderr() for node in cluster.brokers.values())
        assert "Traceback" not in logs
