"""TLS, users, access rules and instances by argument, as clients meet them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

import kafkacompat.testing
from kafkacompat.config.resources import ResourceType
from kafkacompat.testing import Acl, BrokerError, RunningBroker
from kafkacompat.testing.certificates import Authority
from kafkacompat.testing.provision import find_free_ports

USERS = {"alice": 'a "secret"', "bob": "b"}


@pytest.fixture(scope="module")
def secured() -> Iterator[RunningBroker]:
    acls = [Acl("alice", "ALL", topic="a*"), Acl("bob", "READ", topic="apples")]
    with kafkacompat.testing.broker(tls=True, users=USERS, acls=acls) as running:
        yield running


def produce(config: dict[str, Any], topic: str) -> Any:
    """Produce a record; returns the error's name, or None."""
    errors: list[Any] = []
    producer = Producer({**config, "message.timeout.ms": 10_000, "log_level": 0})
    producer.produce(topic, b"v", on_delivery=lambda error, _: errors.append(error))
    producer.flush(10)
    return None if errors[0] is None else errors[0].name()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_log_in_over_tls_and_rules_decide(secured: RunningBroker, mechanism: str) -> None:
    assert produce(secured.client_config("alice", mechanism=mechanism), "apples") is None
    assert produce(secured.client_config("bob", mechanism=mechanism), "apples") == "TOPIC_AUTHORIZATION_FAILED"
    secured.assert_produced("apples", "v")


def test_a_wrong_password_is_refused(secured: RunningBroker) -> None:
    admin = AdminClient({**secured.client_config(), "sasl.password": "wrong", "log_level": 0})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)


def test_certificates_of_clients() -> None:
    with kafkacompat.testing.broker(
        tls=True, ssl_client_auth="required", acls=[Acl("CN=carol", "ALL", topic="t")]
    ) as kafka:
        assert produce(kafka.client_config(certificate=kafka.issue_certificate("carol")), "t") is None


def test_configs_of_other_clients(secured: RunningBroker) -> None:
    java = secured.client_config("alice", client="java", mechanism="PLAIN")
    assert java["sasl.jaas.config"].endswith('PlainLoginModule required username="alice" password="a \\"secret\\"";')
    assert java["ssl.truststore.location"] == secured.ca_file
    assert secured.client_config(client="kafka-python")["sasl_plain_username"] == "alice"
    assert "ssl_context" in secured.client_config(client="aiokafka")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"user": "carol"}, "there is no user carol: the users are alice, bob"),
        ({"client": "go"}, "client='go': give one of librdkafka"),
        ({"mechanism": "GSSAPI"}, "mechanism='GSSAPI': give one of PLAIN"),
    ]
    for arguments, words in wrong:
        with pytest.raises(BrokerError, match=words):
            secured.client_config(**arguments)


def test_configs_are_those_of_the_listener_that_a_test_gives() -> None:
    with kafkacompat.testing.broker(tls=True, listeners="PLAINTEXT://127.0.0.1:0") as kafka:
        assert kafka.client_config() == {
            "bootstrap.servers": kafka.bootstrap_servers,
            "security.protocol": "PLAINTEXT",
        }
        assert produce(kafka.client_config(), "t") is None
    both = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    with kafkacompat.testing.broker(users=USERS, listeners=both) as kafka:
        assert "sasl.username" not in kafka.client_config()
        assert produce(kafka.client_config(), "t") is None
        with pytest.raises(BrokerError, match="user='alice': users cannot log in on the listener PLAINTEXT"):
            kafka.client_config("alice")
    both = "INNER://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"
    protocols = "INNER:SSL,PLAINTEXT:PLAINTEXT"
    with kafkacompat.testing.broker(tls=True, listeners=both, listener_security_protocol_map=protocols) as kafka:
        assert kafka.client_config()["security.protocol"] == "SSL"
        assert produce(kafka.client_config(), "t") is None


def test_wrong_rules_are_sentences() -> None:
    with pytest.raises(BrokerError, match="a rule has 5, of type int: give a text"):
        Acl("alice", 5, topic="t")  # type: ignore[arg-type]
    with pytest.raises(BrokerError, match="a rule of alice has 0 operations and 1 resources"):
        Acl("alice", topic="t")
    with pytest.raises(BrokerError, match="a rule of alice has 1 operations and 2 resources"):
        Acl("alice", "READ", topic="t", group="g")
    with pytest.raises(BrokerError, match="SEE is no operation of Kafka"):
        Acl("alice", "SEE", topic="t")


def test_instances_have_addresses_and_names_of_their_own() -> None:
    with kafkacompat.testing.broker(instances={"shop": {"limit_topics": 5}, "bank": {}}) as kafka:
        for name, address in kafka.instances.items():
            assert produce({"bootstrap.servers": address}, "orders") is None, name
        topics = kafka.call(lambda: sorted(kafka.broker.metadata.image.topics))
        assert len(topics) == 2
        assert "orders" not in topics
    (port,) = find_free_ports(1)
    listeners = f"PLAINTEXT://127.0.0.1:{port}"
    with kafkacompat.testing.broker(instances={"shop": {"listeners": listeners}}) as kafka:
        assert kafka.instances == {"shop": f"127.0.0.1:{port}"}
        assert produce({"bootstrap.servers": kafka.instances["shop"]}, "orders") is None
    with pytest.raises(BrokerError, match="instance shop cannot be created"):
        kafkacompat.testing.broker(instances={"shop": {"limit_topic": 5}})


def test_a_folder_keeps_its_instances(tmp_path: Path) -> None:
    limits = {"limit_topics": 5, "limit_partitions": 50}
    with kafkacompat.testing.broker(tmp_path, instances={"shop": limits, "bank": {}}) as kafka:
        assert produce({"bootstrap.servers": kafka.instances["shop"]}, "orders") is None
    with kafkacompat.testing.broker(tmp_path, instances={"shop": {"limit_topics": 6}, "mine": {}}) as kafka:
        assert produce({"bootstrap.servers": kafka.instances["shop"]}, "orders") is None
        assert produce({"bootstrap.servers": kafka.instances["mine"]}, "orders") is None
        assert [len(kafka.records(f"{name}.orders")) for name in ("shop", "mine")] == [2, 1]
        configs = kafka.call(lambda: kafka.broker.metadata.image.configs)
        limits_by_name = {
            name: (given.get("limit.topics"), given.get("limit.partitions"))
            for (kind, name), given in configs.items()
            if kind == ResourceType.INSTANCE
        }
        assert limits_by_name == {"shop": ("6", None), "bank": (None, None), "mine": (None, None)}


def test_each_instance_has_the_users_of_the_broker() -> None:
    rules = [Acl("shop.alice", "ALL", topic="shop.orders")]
    with kafkacompat.testing.broker(tls=True, users=USERS, acls=rules, instances=["shop"]) as kafka:
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            for user, error in (("alice", None), ("bob", "TOPIC_AUTHORIZATION_FAILED")):
                config = kafka.client_config(user, mechanism=mechanism)
                assert produce({**config, "bootstrap.servers": kafka.instances["shop"]}, "orders") == error
        kafka.assert_produced("shop.orders", "v")


def test_a_secured_cluster() -> None:
    with kafkacompat.testing.cluster(2, tls=True, users=USERS, acls=[Acl("alice", "ALL", topic="*")]) as kafka:
        kafka.create_topic("t", replicas=2)
        assert produce(kafka.client_config("alice"), "t") is None
        kafka.kill_broker(1)
        kafka.assert_produced("t", "v")


def test_super_users_of_a_test_stay_beside_those_of_the_brokers() -> None:
    with kafkacompat.testing.cluster(2, users=USERS, acls=[], super_users=["User:alice"]) as kafka:
        kafka.create_topic("t", replicas=2)
        assert produce(kafka.client_config("alice"), "t") is None
        assert produce(kafka.client_config("bob"), "t") == "TOPIC_AUTHORIZATION_FAILED"
        kafka.assert_produced("t", "v")


def test_rules_of_all_operations_are_known_when_the_brokers_are_ready() -> None:
    acls = [Acl("alice", "READ", "describe", topic="t"), Acl("bob", "ALL", cluster=True, deny=True)]
    with kafkacompat.testing.cluster(2, acls=acls) as kafka:
        for broker in kafka.brokers.values():
            table = broker.metadata.image.acls
            assert {(pattern.name, len(rules)) for pattern, rules in table.items()} == {("t", 2), ("kafka-cluster", 1)}


def test_forked_children_write_certificates_beside_those_of_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority()
    issued = authority._issued
    mine = authority.issue("parent")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    authority._issued = issued
    assert authority.issue("child").key_file != mine.key_file
