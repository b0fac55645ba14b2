"""Instances' own listeners, their whitelists and limits, at a whole broker in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.client.errors import ConnectionLostError, RequestNotSentError
from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.metadata import MetadataRequest
from tests.kafkacompat.tenancy.world import BANK_PORT, SHOP_PORT, InstanceWorld
from tests.kafkacompat.test_broker_over_memory_network import HOST, PORT

ENDED = (ConnectionLostError, RequestNotSentError)


def test_an_instance_has_its_listeners_while_it_exists(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path)
    ports = world.network.at(HOST).ports
    assert set(ports) == {PORT}
    assert world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT}") is None
    assert world.set_instance("bank", listeners=f"PLAINTEXT://:{BANK_PORT},PLAINTEXT://{HOST}:19003") is None
    assert set(ports) == {PORT, SHOP_PORT, BANK_PORT, 19003}
    shop, bank = world.open_client(SHOP_PORT), world.open_client(BANK_PORT)
    assert shop.ask(MetadataRequest(topics=[])).cluster_id == "shop-cluster"
    assert bank.ask(MetadataRequest(topics=[])).cluster_id == "bank-cluster"
    # A port moves from one instance to the other, and the connections of the old one end.
    bank_listeners = f"PLAINTEXT://:{SHOP_PORT},PLAINTEXT://{HOST}:19003"
    refusal = world.set_instance("bank", listeners=bank_listeners)
    assert refusal == f"the address :{SHOP_PORT} leads to the instance shop already: take another port"
    assert world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT + 10}") is None
    assert world.set_instance("bank", listeners=bank_listeners) is None
    assert set(ports) == {PORT, SHOP_PORT, SHOP_PORT + 10, 19003}
    assert shop.ask(MetadataRequest(topics=[])).cluster_id == "bank-cluster"
    world.remove_instance("bank")
    world.remove_instance("shop")
    assert set(ports) == {PORT} and not world.broker.server.connections
    # The operator's listener and listeners of the properties file are untouched.
    assert world.broker.addresses == [f"PLAINTEXT://{HOST}:{PORT}"]
    for client in (shop, bank):
        client.close()
    world.stop()


def test_the_listeners_are_bound_again_at_the_next_start(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path)
    world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT}")
    world.stop()
    assert not world.network.at(HOST).ports
    again = InstanceWorld(tmp_path)
    assert set(again.network.at(HOST).ports) == {PORT, SHOP_PORT}
    again.stop()


def test_clients_receive_addresses_that_lead_back_to_their_instance(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path)
    world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT}")
    client = world.open_client(SHOP_PORT)
    assert client.list_brokers() == [(1, HOST, SHOP_PORT)]
    coordinator = client.ask(FindCoordinatorRequest(key="g", coordinator_keys=["g"])).coordinators[0]
    assert (coordinator.host, coordinator.port) == (HOST, SHOP_PORT)
    # The properties of live connections change.
    world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT}", advertised_hosts="1:kafka.shop.example")
    assert client.list_brokers() == [(1, "kafka.shop.example", SHOP_PORT)]
    assert len(world.broker.server.connections) == 1
    client.close()
    world.stop()


def test_an_address_in_use_is_named_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = InstanceWorld(tmp_path)
    squatter = world.network.at(HOST).listen(SHOP_PORT, object(), 1, "")  # type: ignore[arg-type]
    assert world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT}") is None
    reason = f"listener INSTANCE-shop-0: cannot listen on 0.0.0.0:{SHOP_PORT}: another process listens there; "
    assert caplog.text.count(reason) == 1
    listeners = world.broker.listeners
    assert list(listeners.list_unbound()) == ["INSTANCE-shop-0"]
    world.set_instance("bank")
    assert caplog.text.count(reason) == 1
    squatter.stopListening()
    world.set_instance("bank", description="a change")
    assert not listeners.list_unbound() and SHOP_PORT in world.network.at(HOST).ports
    world.stop()


def test_a_whitelist_applies_to_new_and_live_connections(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = InstanceWorld(tmp_path)
    listeners = f"PLAINTEXT://:{SHOP_PORT}"
    world.set_instance("shop", listeners=listeners, whitelist="10.0.0.0/24,2001:db8::/32")
    inside, outside = world.open_client(SHOP_PORT, "10.0.0.7"), world.open_client(SHOP_PORT, "10.0.1.7")
    mapped = world.open_client(SHOP_PORT, "::ffff:10.0.0.8")
    assert inside.list_brokers() and mapped.list_brokers()
    with pytest.raises(ENDED):
        outside.list_brokers()
    assert "turning away 10.0.1.7: its address is not in the whitelist of the instance shop" in caplog.text
    world.set_instance("shop", listeners=listeners, whitelist="10.0.1.0/24,10.0.0.8")
    assert outside.list_brokers() and mapped.list_brokers()
    with pytest.raises(ENDED):
        inside.list_brokers()
    assert caplog.text.count("closing 10.0.0.7:") == 1
    world.set_instance("shop", listeners=listeners, whitelist="none")
    assert not world.broker.server.connections
    refusal = world.set_instance("shop", listeners=listeners, whitelist="10.0.0.0/8,10.0.0.1/24")
    assert refusal == (
        "whitelist is not valid at '10.0.0.1/24': its address has bits beyond its prefix; write 10.0.0.0/24"
    )
    for client in (inside, outside, mapped):
        client.close()
    world.stop()


def test_a_deleting_instance_serves_nobody(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path)
    world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT}")
    client = world.open_client(SHOP_PORT)
    client.list_brokers()
    world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT}", state="deleting")
    assert not world.broker.server.connections and set(world.network.at(HOST).ports) == {PORT}
    with pytest.raises(ENDED):
        client.list_brokers()
    client.close()
    world.stop()


def test_the_limit_of_connections(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = InstanceWorld(tmp_path)
    world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT}", limit_connections="2")
    clients = [world.open_client(SHOP_PORT, f"10.0.0.{number}") for number in range(3)]
    assert clients[0].list_brokers() and clients[1].list_brokers()
    with pytest.raises(ENDED):
        clients[2].list_brokers()
    words = "turning away 10.0.0.2: there are limit.connections=2 of the instance shop already"
    assert words in caplog.text
    assert world.broker.server.traffic["INSTANCES"].turned_away == {"limit.connections": 1}
    clients[0].close()
    world.clock.advance(0)
    assert clients[2].list_brokers()
    tenants = world.broker.server.tenants
    assert tenants is not None and tenants.count("shop") == 2
    for client in clients:
        client.close()
    world.clock.advance(0)
    assert tenants.count("shop") == 0
    world.stop()


def test_a_listener_that_serves_only_instances(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = InstanceWorld(tmp_path, **{"kafkacompat.instances.required.listeners": "PLAINTEXT"})
    client = world.open_client(PORT)
    with pytest.raises(ENDED):
        client.list_brokers()
    assert "it belongs to no instance, and the listener PLAINTEXT serves only clients of instances" in caplog.text
    client.close()
    world.stop()


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"listeners": f"PLAINTEXT://:{PORT}"}, "a listener of the broker has that port"),
        ({"listeners": "PLAINTEXT://:1,SSL://a:1"}, "it names the port twice"),
        ({"listeners": "HTTP://:1"}, "listeners is not valid at 'HTTP://:1'"),
        ({"sni.hosts": "*.shop.example"}, "sni.hosts needs sni.advertised"),
        ({"sni.hosts": "shop.example", "sni.advertised": "b{id}.shop.example:1"}, "add *.shop.example there"),
        ({"sni.hosts": "*.*", "sni.advertised": "a.b:1"}, "sni.hosts is not valid at '*.*'"),
        ({"sni.hosts": "broker-1", "sni.advertised": "broker-1:1"}, "sni.hosts covers broker-1, which is a name of"),
        ({"sasl.users": "bob"}, "sasl.users is not valid at 'bob': it takes users that begin with shop."),
        ({"advertised.hosts": "one:a"}, "advertised.hosts is not valid at 'one:a': it takes id:host"),
        ({"whitelist": "none,10.0.0.0/8"}, "whitelist is not valid at 'none'"),
    ],
)
def test_properties_that_lead_nowhere_are_refused(tmp_path: Path, properties: dict[str, str], words: str) -> None:
    world = InstanceWorld(tmp_path)
    refusal = world.set_instance("shop", **properties)
    assert refusal is not None and words in refusal and "\n" not in refusal
    world.stop()


def test_required_listeners_must_exist_and_leave_brokers_theirs() -> None:
    given = {"node.id": "1", "listeners": "PLAINTEXT://:9092,SSL://:9093", "log.dirs": "/data"}
    required = "kafkacompat.instances.required.listeners"
    assert BrokerConfig({**given, required: "ssl"}).required_listeners == {"SSL"}
    with pytest.raises(
        ConfigError, match="is not valid at 'TLS': it takes listeners other than the one between brokers"
    ):
        BrokerConfig({**given, required: "TLS"})
    with pytest.raises(ConfigError, match="is not valid at 'PLAINTEXT'"):
        BrokerConfig({**given, required: "PLAINTEXT", "zookeeper.connect": "z:2181"})
