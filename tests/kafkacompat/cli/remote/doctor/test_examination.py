"""What the doctor says of brokers, of other servers, and of networks that fail."""

from __future__ import annotations

import struct
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.cli.command_config import ClientSecurity, read_command_config
from kafkacompat.cli.remote.doctor.examination import examine
from kafkacompat.cli.remote.doctor.stages import DoctorAccess
from kafkacompat.cli.remote.doctor.verdicts import CheckOutcome, Verdict
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.releases import find_release
from kafkacompat.wire.schema import Versions
from tests.fakes.certificates import BEGIN, Authority, shared_authority, shared_member
from tests.kafkacompat.cli.remote.doctor.fake_network import (
    NOW_S,
    FakeBroker,
    FakeNetwork,
    Handler,
    answer_always,
    answer_words,
    make_server_tls,
    wait_for_ever,
)

ADDRESS = "10.0.0.1"
NAMES = {"kafka-1": [ADDRESS], "two": ["10.0.0.2", ADDRESS], "localhost": ["127.0.0.1"], "broker-1": [ADDRESS]}
NO_SECURITY = ClientSecurity()
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def make_network(handler: Handler | OSError) -> FakeNetwork:
    return FakeNetwork(NAMES, {(ADDRESS, 9092): handler})


def examine_host(
    network: FakeNetwork, host: str = "kafka-1", security: ClientSecurity = NO_SECURITY, topic: str | None = "t"
) -> list[Verdict]:
    access = DoctorAccess(network, security, lambda: "nonce", 0.1)
    return list(examine(access, host, 9092, topic))


def find_failure(network: FakeNetwork, **options: Any) -> Verdict:
    """Return the only failure, which is the last verdict."""
    *others, last = examine_host(network, **options)
    assert [verdict for verdict in others if verdict.outcome is CheckOutcome.FAILED] == []
    assert last.outcome is CheckOutcome.FAILED
    assert last.advice
    return last


def make_security(folder: Path, protocol: str, **changes: str) -> ClientSecurity:
    (folder / "ca.pem").write_text(shared_authority().pem)
    properties = {
        "security_protocol": protocol,
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(folder / "ca.pem"),
        **changes,
    }
    path = folder / "client.properties"
    path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in properties.items()))
    return read_command_config(path)


def make_login(folder: Path, mechanism: str = "PLAIN", password: str = "alice-secret") -> ClientSecurity:
    module = PLAIN if mechanism == "PLAIN" else PLAIN.replace("plain.Plain", "scram.Scram")
    jaas = f'{module} required username="alice" password="{password}";'
    return make_security(folder, "SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=jaas)


def test_a_good_broker_passes_every_check() -> None:
    broker = FakeBroker()
    network = make_network(broker)
    verdicts = examine_host(network)
    assert {verdict.outcome for verdict in verdicts} == {CheckOutcome.OK}
    assert [verdict.stage for verdict in verdicts] == [
        "resolve",
        "connect",
        "versions",
        "advertised",
        "topic",
        "produce",
        "consume",
        "clock",
        "delete",
    ]
    texts = {verdict.stage: verdict.text for verdict in verdicts}
    assert texts["resolve"] == "kafka-1 is 10.0.0.1"
    assert texts["versions"] == "the versions of Kafka 3.9"
    assert texts["advertised"] == "broker 1 at kafka-1:9092 answers"
    assert broker.deleted


def test_nothing_is_written_if_only_reading_is_wanted() -> None:
    broker = FakeBroker()
    assert examine_host(make_network(broker), topic=None)[-1].stage == "advertised"
    assert not broker.deleted


def test_a_name_that_does_not_resolve() -> None:
    failure = find_failure(make_network(FakeBroker()), host="kafka-9")
    assert failure.stage == "resolve"
    assert failure.text == "'kafka-9' does not resolve: Name or service not known"


@pytest.mark.parametrize(
    ("problem", "text", "advice"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "10.0.0.1:9092: Connection refused", "check the port"),
        (TimeoutError("timed out"), "10.0.0.1:9092: there is no answer within 0.1 s", "no firewall drops the packets"),
    ],
)
def test_a_connection_that_is_not_accepted(problem: OSError, text: str, advice: str) -> None:
    failure = find_failure(make_network(problem))
    assert (failure.stage, failure.text) == ("connect", text)
    assert advice in failure.advice


def test_an_address_that_clients_try_in_vain_is_a_warning() -> None:
    verdict = examine_host(make_network(FakeBroker()), host="two")[1]
    assert verdict.outcome is CheckOutcome.WARNING
    assert verdict.text == "10.0.0.1:9092 accepts connections, but 10.0.0.2:9092 does not: Connection refused"


OLD_METADATA = struct.pack(">iiii", 12, 1, 0, 0)


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (answer_always(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "the port is an HTTP server"),
        (answer_words({b"GET /": b"HTTP/1.0 200 OK\r\n"}), "the port is an HTTP server"),
        (answer_always(b"SSH-2.0-OpenSSH_9.6\r\n"), "the port is an SSH server"),
        (answer_always(b"\x15\x03\x03\x00\x02\x02\x46"), "the port speaks TLS"),
        (answer_words({b"srvr": b"Zookeeper version: 3.9.5"}), "the port is a ZooKeeper server"),
        (
            answer_words({b"srvr": b"This ZooKeeper instance is not currently serving requests"}),
            "the port is a ZooKeeper server",
        ),
        (
            answer_words({b"srvr": b"srvr is not executed because it is not in the whitelist."}),
            "the port is a ZooKeeper server",
        ),
        (answer_words({b"\0\0\0\x20\0\3\0\0": OLD_METADATA}), "the port is a Kafka broker older than 0.10"),
        (answer_always(b""), "the port accepts connections but closes the connection"),
        (answer_always(b"\xff" * 20), "the port accepts connections but sends bytes that are not Kafka's protocol"),
        (wait_for_ever, "the port accepts connections but does not answer in time"),
    ],
)
def test_other_servers_are_recognised(handler: Handler, text: str) -> None:
    failure = find_failure(make_network(handler))
    assert failure.stage == "versions"
    assert failure.text.startswith(text)


def test_a_listener_of_a_controller() -> None:
    broker = FakeBroker()
    broker.served = {1: Versions(0, 17), 18: Versions(0, 4)}
    assert "KRaft controllers" in find_failure(make_network(broker)).text


def test_tls_where_the_client_has_none(tmp_path: Path) -> None:
    broker = FakeBroker(make_server_tls(tmp_path, shared_member("broker")))
    failure = find_failure(make_network(broker))
    assert (failure.text, failure.advice[:48]) == (
        "the port speaks TLS",
        "set security.protocol to SSL or SASL_SSL in the ",
    )


def test_no_tls_where_the_client_wants_it(tmp_path: Path) -> None:
    failure = find_failure(make_network(FakeBroker()), security=make_security(tmp_path, "SSL"))
    assert (failure.stage, failure.text) == ("TLS", "the port speaks Kafka's protocol without TLS")


def test_tls_with_its_certificate(tmp_path: Path) -> None:
    broker = FakeBroker(make_server_tls(tmp_path, shared_member("broker")))
    broker.advertised = {1: ("broker-1", 9092)}
    verdicts = examine_host(make_network(broker), host="broker-1", security=make_security(tmp_path, "SSL"))
    assert {verdict.outcome for verdict in verdicts} == {CheckOutcome.OK}
    assert verdicts[2].text == (
        "the handshake succeeds, with the certificate 'CN=broker' for localhost, broker-1, 127.0.0.1, issued by 'CN=ca', "
        "valid from 2019-12-31 to 2120-01-01"
    )


def test_a_certificate_that_ends_soon_is_a_warning(tmp_path: Path) -> None:
    end = datetime.fromtimestamp(NOW_S, timezone.utc) + timedelta(days=5, hours=2)
    member = shared_authority().issue("broker", end=end)
    network = make_network(FakeBroker(make_server_tls(tmp_path, member)))
    verdict = examine_host(network, host="broker-1", security=make_security(tmp_path, "SSL"))[2]
    assert (verdict.outcome, verdict.advice) == (CheckOutcome.WARNING, "renew the certificate: it expires in 5 days")


@pytest.mark.parametrize(
    ("case", "words", "advice"),
    [
        ("expired", "the certificate 'CN=broker' is not accepted: it has expired", "renew the certificate"),
        ("foreign", "the certificate 'CN=other' is not accepted: its root authority is not trusted", "ssl.truststore"),
        ("host", "the certificate 'CN=broker' is not for the host 'kafka-1'", "subjectAltName"),
    ],
)
def test_certificates_that_clients_do_not_accept(tmp_path: Path, case: str, words: str, advice: str) -> None:
    members = {
        "expired": shared_authority().issue("broker", ["kafka-1"], end=BEGIN + timedelta(days=1)),
        "foreign": Authority("other").issue("broker", ["kafka-1"]),
        "host": shared_member("broker"),
    }
    network = make_network(FakeBroker(make_server_tls(tmp_path, members[case])))
    verdicts = examine_host(network, security=make_security(tmp_path, "SSL"))
    assert [verdict.stage for verdict in verdicts] == ["resolve", "connect", "certificate", "TLS"]
    assert words in verdicts[-1].text
    assert advice in verdicts[-1].advice
    assert "the broker shows the certificate 'CN=broker' for " in verdicts[2].text


def test_logins(tmp_path: Path) -> None:
    network = make_network(FakeBroker(mechanisms=("PLAIN",)))
    verdicts = examine_host(network, security=make_login(tmp_path))
    assert {verdict.outcome for verdict in verdicts} == {CheckOutcome.OK}
    assert "the broker accepts the client by PLAIN" in [verdict.text for verdict in verdicts]


def test_logins_that_fail(tmp_path: Path) -> None:
    network = make_network(FakeBroker(mechanisms=("PLAIN",)))
    failure = find_failure(network, security=make_login(tmp_path, password="wrong"))
    assert (failure.stage, failure.text) == ("login", "the broker refuses the user or the password by PLAIN (no)")
    failure = find_failure(network, security=make_login(tmp_path, "SCRAM-SHA-256"))
    assert failure.text == "the broker does not accept the mechanism SCRAM-SHA-256; it offers PLAIN"
    failure = find_failure(network)
    assert failure.text == "the listener requires a login; it offers PLAIN"
    assert failure.advice.startswith("set security.protocol=SASL_PLAINTEXT, sasl.mechanism and sasl.jaas.config")
    failure = find_failure(make_network(FakeBroker()), security=make_login(tmp_path))
    assert failure.text == "the listener takes no logins"


@pytest.mark.parametrize(
    ("advertised", "outcome", "words"),
    [
        (
            ("localhost", 9092),
            CheckOutcome.FAILED,
            "broker 1 at localhost:9092: this address means each client's own machine",
        ),
        (("localhost", 9093), CheckOutcome.WARNING, "it answers, but only clients on this machine reach it so"),
        (("kafka-9", 9092), CheckOutcome.FAILED, "broker 1 at kafka-9:9092: 'kafka-9' does not resolve"),
        (("kafka-1", 9999), CheckOutcome.FAILED, "broker 1 at kafka-1:9999: 10.0.0.1:9999: Connection refused"),
        (("10.0.0.5", 9092), CheckOutcome.FAILED, "another cluster answers there, other instead of cluster"),
        (("10.0.0.6", 9092), CheckOutcome.FAILED, "broker 1 at 10.0.0.6:9092: the port is an HTTP server"),
    ],
)
def test_advertised_addresses(advertised: tuple[str, int], outcome: CheckOutcome, words: str) -> None:
    broker, other = FakeBroker(), FakeBroker()
    broker.advertised = {1: advertised}
    other.cluster_id = "other"
    network = make_network(broker)
    network.ports |= {
        ("127.0.0.1", 9093): broker,
        ("10.0.0.5", 9092): other,
        ("10.0.0.6", 9092): answer_always(b"HTTP/1.1 400\r\n"),
    }
    verdict = examine_host(network)[3]
    assert (verdict.stage, verdict.outcome) == ("advertised", outcome)
    assert words in verdict.text


def test_localhost_is_right_for_a_cluster_on_this_machine() -> None:
    broker = FakeBroker()
    broker.advertised = {1: ("localhost", 9092)}
    network = FakeNetwork(NAMES, {("127.0.0.1", 9092): broker})
    assert {verdict.outcome for verdict in examine_host(network, host="localhost")} == {CheckOutcome.OK}


@pytest.mark.parametrize(
    ("step", "code", "outcomes", "words"),
    [
        (
            "create",
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            {"topic": CheckOutcome.WARNING},
            "no topic could be created: TOPIC_AUTHOR",
        ),
        ("create", ErrorCode.INVALID_REPLICATION_FACTOR, {"topic": CheckOutcome.FAILED}, "INVALID_REPLICATION_FACTOR"),
        (
            "produce",
            ErrorCode.NOT_ENOUGH_REPLICAS,
            {"produce": CheckOutcome.FAILED},
            "does not accept a record: NOT_ENOUGH_REPLICAS",
        ),
        ("produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, {"produce": CheckOutcome.FAILED}, "NOT_LEADER_OR_FOLLOWER"),
        ("fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED, {"consume": CheckOutcome.FAILED}, "does not return the record"),
        ("fetch", ErrorCode.KAFKA_STORAGE_ERROR, {"consume": CheckOutcome.FAILED}, "does not return the record"),
        (
            "delete",
            ErrorCode.TOPIC_DELETION_DISABLED,
            {"delete": CheckOutcome.WARNING},
            "t is left: TOPIC_DELETION_DISABLED",
        ),
    ],
)
def test_steps_of_the_record_that_fail(
    step: str, code: ErrorCode, outcomes: dict[str, CheckOutcome], words: str
) -> None:
    broker = FakeBroker()
    broker.errors[step] = code
    bad = [verdict for verdict in examine_host(make_network(broker)) if verdict.outcome is not CheckOutcome.OK]
    assert {verdict.stage: verdict.outcome for verdict in bad} == outcomes
    assert words in bad[0].text
    if step in ("create", "produce", "fetch"):
        assert bad[0].advice.startswith("give the user ") is (code == ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert bool(broker.deleted) is (step != "create")


@pytest.mark.parametrize(
    ("deletion", "outcome", "words"),
    [
        (ErrorCode.NONE, CheckOutcome.OK, "t was deleted"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, CheckOutcome.OK, "t does not exist"),
        (ErrorCode.NOT_CONTROLLER, CheckOutcome.WARNING, "t may be left: NOT_CONTROLLER"),
    ],
)
@pytest.mark.parametrize("is_lost", [True, False])
def test_a_topic_whose_creation_is_uncertain_is_deleted(
    is_lost: bool, deletion: ErrorCode, outcome: CheckOutcome, words: str
) -> None:
    broker = FakeBroker()
    broker.errors = {"create": ErrorCode.REQUEST_TIMED_OUT, "delete": deletion}
    if is_lost:
        broker.on_create = lose_connection
    *_, creation, deleted = examine_host(make_network(broker))
    assert (creation.stage, creation.outcome) == ("topic", CheckOutcome.FAILED)
    assert ("closes the connection" if is_lost else "REQUEST_TIMED_OUT") in creation.text
    assert (deleted.stage, deleted.outcome) == ("delete", outcome)
    assert words in deleted.text
    assert broker.deleted


def lose_connection() -> None:
    raise ConnectionResetError


def test_a_topic_that_may_be_left_on_a_lost_broker_is_named() -> None:
    broker = FakeBroker()
    network = make_network(broker)

    def lose_broker() -> None:
        network.ports[ADDRESS, 9092] = ConnectionRefusedError(111, "Connection refused")
        raise ConnectionResetError

    broker.on_create = lose_broker
    *_, creation, deletion = examine_host(network)
    assert creation.outcome is CheckOutcome.FAILED
    assert deletion.outcome is CheckOutcome.WARNING
    assert deletion.text.startswith("t may be left, because ")
    assert deletion.advice == "delete it: kafkacompat topics delete t"


@pytest.mark.parametrize(
    ("ahead_s", "outcome", "words"),
    [
        (0.5, CheckOutcome.OK, "the broker's clock is 0.49"),
        (90.0, CheckOutcome.WARNING, "s fast by this machine's, give or take 0.00"),
        (-90.0, CheckOutcome.WARNING, "s slow by this machine's, give or take 0.00"),
    ],
)
def test_clocks(ahead_s: float, outcome: CheckOutcome, words: str) -> None:
    broker = FakeBroker()
    network = make_network(broker)
    broker.clock_ahead_s, broker.time_s = ahead_s, lambda: network.time_s
    verdict = next(verdict for verdict in examine_host(network) if verdict.stage == "clock")
    assert verdict.outcome is outcome
    assert words in verdict.text


def test_no_record_is_tried_at_a_broker_without_record_batches() -> None:
    broker = FakeBroker()
    broker.served = dict(find_release("0.10.2").versions)
    verdicts = examine_host(make_network(broker))
    assert verdicts[2].text == "the versions of Kafka 0.10.2"
    assert (verdicts[-1].outcome, verdicts[-1].text) == (
        CheckOutcome.SKIPPED,
        "not tried, because the broker is older than Kafka 0.11",
    )
