"""The table of routes."""

from __future__ import annotations

from kafkacompat.config.instances import Instance, InstanceAddress
from kafkacompat.handlers.context import Peer
from kafkacompat.metadata.image import BrokerImage
from kafkacompat.tenancy.addresses import find_tenant_address
from kafkacompat.tenancy.routes import Routes


def make_instance(name: str, **properties: str) -> Instance:
    return Instance(name, {option.replace("_", "."): value for option, value in properties.items()})


def test_listeners_are_numbered() -> None:
    routes = Routes(
        [
            make_instance("shop", listeners="PLAINTEXT://:9001,SSL://[2001:db8::1]:9002"),
            make_instance("bank", listeners="SASL_SSL://10.0.0.1:9003"),
            make_instance("gone", listeners="PLAINTEXT://:9004", state="deleting"),
        ]
    )
    assert {name: listener.address for name, listener in routes.listeners.items()} == {
        "INSTANCE-shop-0": InstanceAddress("PLAINTEXT", "", 9001),
        "INSTANCE-shop-1": InstanceAddress("SSL", "2001:db8::1", 9002),
        "INSTANCE-bank-0": InstanceAddress("SASL_SSL", "10.0.0.1", 9003),
    }
    assert routes.find_by_listener("INSTANCE-bank-0") == "bank"
    assert routes.find_by_listener("PLAINTEXT") is None


def test_a_whole_name_counts_before_a_pattern() -> None:
    routes = Routes([make_instance("shop", sni_hosts="*.example"), make_instance("bank", sni_hosts="Bank.example")])
    assert routes.has_server_names and not Routes().has_server_names
    assert routes.find_by_server_name("bank.example") == "bank"
    assert routes.find_by_server_name("any.example") == "shop"
    for name in ("a.any.example", "example", "", "*.example.", "."):
        assert routes.find_by_server_name(name) is None, name


def test_users_with_a_route() -> None:
    routes = Routes([make_instance("shop", sasl_users="shop.a,old"), make_instance("bank", sasl_users="*")])
    assert routes.leads_by_user("shop", "shop.a") and routes.leads_by_user("shop", "old")
    assert not routes.leads_by_user("shop", "shop.b") and not routes.leads_by_user("other", "shop.a")
    assert routes.leads_by_user("bank", "bank.x")


def test_addresses_of_brokers() -> None:
    peer = Peer("INSTANCE-shop-0", "10.1.1.1", 5555, "10.0.0.5", 9092)
    advertised = BrokerImage(1, None, {"PLAINTEXT": ("broker-1", 9092)})
    hidden = BrokerImage(2, None, {})

    def find(broker: BrokerImage, *, is_here: bool, **properties: str) -> tuple[str, int] | None:
        return find_tenant_address(broker, make_instance("shop", **properties), peer, is_here=is_here)

    anywhere, virtual = {"listeners": "PLAINTEXT://:9092"}, {"listeners": "PLAINTEXT://10.0.0.5:9092"}
    assert find(advertised, is_here=True, **anywhere) == ("broker-1", 9092)
    assert find(advertised, is_here=False, **anywhere) == ("broker-1", 9092)
    assert find(hidden, is_here=True, **anywhere) == ("10.0.0.5", 9092)
    assert find(hidden, is_here=False, **anywhere) is None
    # A listener of one address is not reachable by the other addresses of its broker.
    assert find(advertised, is_here=True, **virtual) == ("10.0.0.5", 9092)
    assert find(hidden, is_here=False, **virtual, advertised_hosts="2:10.0.0.6") == ("10.0.0.6", 9092)
    assert find(advertised, is_here=True, **virtual, advertised_hosts="1:[2001:db8::1]") == ("2001:db8::1", 9092)
