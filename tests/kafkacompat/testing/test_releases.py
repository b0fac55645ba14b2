"""Listeners of test brokers that look like other releases of Kafka."""

from __future__ import annotations

import pytest

import kafkacompat.testing
from kafkacompat.config import BrokerConfig
from kafkacompat.testing import BrokerError, releases
from kafkacompat.testing.releases import add_release_listeners, find_release_name

LOGIN_MODULE = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'


@pytest.mark.parametrize(
    ("text", "name"),
    [("2.8", "2.8"), ("2.8.2", "2.8"), ("0.11", "0.11.0"), ("0.11.0.3", "0.11.0"), ("0.10", "0.10.2"), ("4", "4.3")],
)
def test_a_release_may_be_named_by_a_patch_or_by_the_first_part(text: str, name: str) -> None:
    assert find_release_name(text) == name


@pytest.mark.parametrize("text", ["5.0", "2.80", "", "v2.8"])
def test_an_unknown_release_is_rejected(text: str) -> None:
    with pytest.raises(BrokerError, match=r"release '.*' of Kafka is not known: name one of 0\.8\.2, .*, 4\.3"):
        find_release_name(text)


def test_the_listener_of_a_release_is_like_the_first_listener() -> None:
    given = {
        "node.id": "1",
        "inter.broker.listener.name": "SECURE",
        "listeners": "SECURE://127.0.0.1:19093,OTHER://127.0.0.1:0",
        "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT,OTHER:PLAINTEXT",
        "listener.name.secure.plain.sasl.jaas.config": LOGIN_MODULE,
        "sasl.enabled.mechanisms": "PLAIN",
    }
    added = add_release_listeners(given, ["2.8", "2.8.1"])
    first, _, listener = BrokerConfig(added).listeners
    assert first.emulate is None
    assert (listener.protocol, listener.host, listener.port, listener.emulate) == (
        "SASL_PLAINTEXT", "127.0.0.1", 0, "2.8",
    )  # fmt: skip
    assert added["listener.name.release_2_8.plain.sasl.jaas.config"] == LOGIN_MODULE
    assert add_release_listeners(added, ["2.8"]) == added


def test_properties_that_are_not_valid_are_one_sentence() -> None:
    with pytest.raises(BrokerError, match=r"the broker cannot start: .*listeners=nonsense is not valid"):
        kafkacompat.testing.broker(releases=["2.8"], listeners="nonsense")
    with pytest.raises(BrokerError, match=r"releases='2.8' is one name: give a list of names, \['2.8'\]"):
        kafkacompat.testing.broker(releases="2.8")


def test_a_refused_listener_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "add_release_listeners", lambda *_: {"log.dirs": "/elsewhere"})
    with (
        kafkacompat.testing.broker() as kafka,
        pytest.raises(BrokerError, match=r"the listener cannot be added: INVALID_\w+ \(.*log\.dirs"),
    ):
        kafka.release("2.8")


def test_a_running_broker_adds_the_listener_of_a_release() -> None:
    with kafkacompat.testing.broker() as kafka:
        servers = kafka.release("2.8")
        assert servers == kafka.release("2.8.0") != kafka.bootstrap_servers
        kafka.call(kafka._node.stop)
        kafka.call(kafka._node.start)
        assert kafka.release("2.8") == servers


def test_a_cluster_has_the_releases_that_it_was_started_with() -> None:
    with kafkacompat.testing.cluster(2, releases=["2.8"]) as kafka:
        assert len(set(kafka.release("2.8").split(","))) == 2
        with pytest.raises(BrokerError, match=r"start the cluster with releases=\['3.9'\]"):
            kafka.release("3.9")
