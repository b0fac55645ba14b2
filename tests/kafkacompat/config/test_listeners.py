"""Listeners and what clients are told."""

from __future__ import annotations

import pytest

from kafkacompat.config import BrokerConfig, ConfigError, Listener
from kafkacompat.config.listeners import parse_http_address


def load_config(**given: str) -> BrokerConfig:
    properties = {"node.id": "1", **{name.replace("_", "."): value for name, value in given.items()}}
    return BrokerConfig(properties)


def test_kafkas_default_listens_on_every_address() -> None:
    assert load_config().listeners == (Listener("PLAINTEXT", "PLAINTEXT", "", 9092),)
    assert load_config().advertised_listeners == {}


def test_names_are_folded_to_upper_case_and_addresses_may_be_ipv6() -> None:
    config = load_config(
        listeners="inside://[::1]:9092, outside://0.0.0.0:0",
        listener_security_protocol_map="inside:PLAINTEXT,OUTSIDE:PLAINTEXT",
        advertised_listeners="outside://kafka.example.com:19092",
    )
    assert config.listeners == (
        Listener("INSIDE", "PLAINTEXT", "::1", 9092),
        Listener("OUTSIDE", "PLAINTEXT", "0.0.0.0", 0),
    )
    assert config.advertised_listeners == {"OUTSIDE": ("kafka.example.com", 19092)}


def test_controllers_listeners_are_not_bound_whatever_their_protocol() -> None:
    config = load_config(
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        advertised_listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        controller_listener_names="CONTROLLER",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL",
    )
    assert [listener.name for listener in config.listeners] == ["PLAINTEXT"]
    assert config.advertised_listeners == {"PLAINTEXT": ("localhost", 9092)}


def test_a_controllers_listener_needs_no_entry_in_the_default_map() -> None:
    config = load_config(listeners="PLAINTEXT://:9092,CONTROLLER://:9093", controller_listener_names="CONTROLLER")
    assert len(config.listeners) == 1


def test_one_port_may_serve_ipv4_and_ipv6() -> None:
    protocols = "A:PLAINTEXT,B:PLAINTEXT"
    config = load_config(listeners="A://127.0.0.1:9092,B://[::1]:9092", listener_security_protocol_map=protocols)
    assert {listener.port for listener in config.listeners} == {9092}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"listeners": "localhost:9092"}, "listeners=localhost:9092 is not valid: it takes NAME://host:port"),
        ({"listeners": "PLAINTEXT://:70000"}, "with a port of 0 to 65535"),
        ({"listeners": ""}, "listeners= is not valid: it takes a list of one or more"),
        ({"listeners": "X://:9092"}, "listeners=X://:9092 has no protocol: name X in listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://:1,plaintext://:2"}, "names PLAINTEXT twice"),
        (
            {"listeners": "A://:1,B://:1", "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT"},
            "listeners uses port 1 twice",
        ),
        ({"controller_listener_names": "PLAINTEXT"}, "listeners names only controller listeners"),
        ({"listener_security_protocol_map": "A=PLAINTEXT"}, "is not valid at 'A=PLAINTEXT': it takes NAME:PROTOCOL"),
        ({"listener_security_protocol_map": "A:TLS"}, "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"advertised_listeners": "SSL://a:1"}, "is not one of listeners: name one of PLAINTEXT"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "is no address that clients can connect to"),
        ({"inter_broker_listener_name": "INSIDE"}, "inter.broker.listener.name=INSIDE is not valid"),
        (
            {"inter_broker_listener_name": "PLAINTEXT", "security_inter_broker_protocol": "PLAINTEXT"},
            "exclude each other",
        ),
    ],
)
def test_refuses(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config(**given)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


OLD = {"listeners": "OLD://:1,NEW://:2", "listener.security.protocol.map": "OLD:PLAINTEXT,NEW:PLAINTEXT"}


def make_emulating(**emulated: str) -> BrokerConfig:
    given = {f"kafkacompat.listener.name.{name}.emulate": release for name, release in emulated.items()}
    return BrokerConfig({"node.id": "1", **OLD, **given})


def test_a_listener_may_look_like_an_older_broker() -> None:
    config = make_emulating(old="0.9.0 ")
    assert [(listener.name, listener.emulate) for listener in config.listeners] == [("OLD", "0.9.0"), ("NEW", None)]
    assert config.unknown_names == ()
    both = make_emulating(OLD="2.8", new="4.3")
    assert [listener.emulate for listener in both.listeners] == ["2.8", "4.3"]


@pytest.mark.parametrize("name", ["0.9", "3.10", "latest", ""])
def test_a_release_that_is_not_known_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        make_emulating(old=name)
    text = str(refusal.value)
    assert text.startswith(f"kafkacompat.listener.name.old.emulate={name} is not valid: it takes one of 0.8.2, 0.9.0")
    assert text.endswith("4.2, 4.3")


def test_a_listener_that_is_not_there_cannot_look_like_anything() -> None:
    with pytest.raises(ConfigError, match="for no listener: name one of OLD, NEW"):
        make_emulating(older="0.9.0")


def test_the_listener_between_brokers_is_chosen_by_name_or_by_protocol() -> None:
    listeners = {"listeners": "CLIENTS://:9092,BROKERS://:9093,SSL://:9094"}
    protocols = {"listener_security_protocol_map": "CLIENTS:PLAINTEXT,BROKERS:SSL,SSL:SSL"}
    for given, name in (
        ({}, "CLIENTS"),
        ({"inter_broker_listener_name": "brokers"}, "BROKERS"),
        ({"security_inter_broker_protocol": "SSL"}, "BROKERS"),
    ):
        assert load_config(**listeners, **protocols, **given).inter_broker_listener.name == name


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        (":9464", ("", 9464)),
        ("[::1]:0", ("::1", 0)),
        ("metrics.example.org:65535", ("metrics.example.org", 65535)),
    ],
)
def test_the_address_of_the_http_listener(text: str, address: tuple[str, int]) -> None:
    assert parse_http_address(text) == address


@pytest.mark.parametrize(
    "text", ["9464", "127.0.0.1", "a:b", "a:70000", "::1:9464", "http://a:1", "a b:1", "[::1", "a:-1", ""]
)
def test_other_addresses_of_the_http_listener_are_rejected_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^kafkacompat\.http\.listener=.* is not valid: it takes host:port"):
        parse_http_address(text)


def test_a_protocol_between_brokers_that_no_listener_has_is_rejected() -> None:
    given = {"listeners": "PLAINTEXT://localhost:9092", "security_inter_broker_protocol": "SSL"}
    with pytest.raises(ConfigError, match="no listener has this protocol"):
        load_config(**given)
