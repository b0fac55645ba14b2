"""Users of instances: by SASL, by certificates, and by the name that a TLS client dials (SNI)."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.client.errors import ConnectionLostError, RequestNotSentError
from kafkacompat.config.resources import ResourceType
from kafkacompat.security.sasl.client import ClientLogin
from kafkacompat.server.tls_network import TlsNetwork
from kafkacompat.wire.apis.create_delegation_token import CreateDelegationTokenRequest
from kafkacompat.wire.apis.metadata import MetadataRequest
from tests.fakes.certificates import shared_member
from tests.kafkacompat.server.tls_world import make_properties, open_listener
from tests.kafkacompat.tenancy.world import BANK_PORT, SHOP_PORT, InstanceClient, InstanceWorld
from tests.kafkacompat.test_broker_over_memory_network import HOST, PORT

ENDED = (ConnectionLostError, RequestNotSentError)
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{PLAIN_MODULE} required user_admin="a" user_shop.alice="s" user_bank.alice="b" user_oldie="o";'
SASL_PORT, TLS_PORT = 9093, 9094
ANY_SUBJECT = {"subjects_without_prefix": "true"}


def log_in(user: str, password: str, mechanism: str = "PLAIN", *, by_token: bool = False) -> ClientLogin:
    return ClientLogin(mechanism, user, password, by_token)


def start_with_sasl(folder: Path) -> InstanceWorld:
    return InstanceWorld(
        folder,
        **{
            "listeners": f"PLAINTEXT://{HOST}:{PORT},SASL_PLAINTEXT://{HOST}:{SASL_PORT}",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "sasl.jaas.config": JAAS,
            "delegation.token.secret.key": "key",
        },
    )


def find_cluster(world: InstanceWorld, port: int, login: ClientLogin | None, network: Any = None) -> str:
    """Return the cluster id that a login sees at a port; "" if it is refused."""
    client = world.open_client(port, login=login, network=network)
    try:
        return str(client.ask(MetadataRequest(topics=[])).cluster_id)
    except ENDED:
        return ""
    finally:
        client.close()
        world.clock.advance(0.1)


def list_users(world: InstanceWorld) -> list[str]:
    return sorted(str(connection.principal) for connection in world.broker.server.connections)


def test_a_login_is_one_of_the_instances_users(tmp_path: Path) -> None:
    world = start_with_sasl(tmp_path)
    world.set_instance("shop", listeners=f"SASL_PLAINTEXT://:{SHOP_PORT}")
    world.set_instance("bank", listeners=f"SASL_PLAINTEXT://:{BANK_PORT},PLAINTEXT://:{BANK_PORT + 100}")
    assert find_cluster(world, SHOP_PORT, log_in("alice", "s")) == "shop-cluster"
    assert find_cluster(world, BANK_PORT, log_in("alice", "b")) == "bank-cluster"
    for login in (log_in("alice", "b"), log_in("bank.alice", "b"), log_in("shop.alice", "s"), log_in("admin", "a")):
        assert find_cluster(world, SHOP_PORT, login) == "", login
    world.add_scram_user("shop.carol", "carol-secret")
    carol = log_in("carol", "carol-secret", "SCRAM-SHA-512")
    assert find_cluster(world, SHOP_PORT, carol) == "shop-cluster"
    assert find_cluster(world, BANK_PORT, carol) == ""
    clients = [world.open_client(SHOP_PORT, login=carol), world.open_client(BANK_PORT + 100)]
    for client in clients:
        client.list_brokers()
    assert list_users(world) == ["User:bank.ANONYMOUS", "User:shop.carol"]
    for client in clients:
        client.close()
    world.stop()


def test_the_brokers_own_listeners_admit_users_of_instances_only_by_a_route(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = start_with_sasl(tmp_path)
    assert find_cluster(world, SASL_PORT, log_in("shop.alice", "s")) == world.broker.cluster_id
    early = world.open_client(SASL_PORT, login=log_in("shop.alice", "s"))
    early.list_brokers()
    world.set_instance("shop", user_names="old:oldie", sasl_users="oldie")
    # The operator's connection of a user that has become the instance's is closed.
    assert not world.broker.server.connections
    assert "its user belongs to the instance shop now" in caplog.text
    early.close()
    world.set_instance("bank", sasl_users="*")
    assert find_cluster(world, SASL_PORT, log_in("admin", "a")) == world.broker.cluster_id
    assert find_cluster(world, SASL_PORT, log_in("oldie", "o")) == "shop-cluster"
    assert find_cluster(world, SASL_PORT, log_in("bank.alice", "b")) == "bank-cluster"
    assert find_cluster(world, SASL_PORT, log_in("shop.alice", "s")) == ""
    assert "belongs to an instance that is reached otherwise" in caplog.text
    client = world.open_client(SASL_PORT, login=log_in("oldie", "o"))
    assert client.list_brokers() == [(1, HOST, SASL_PORT)]
    # The route goes away, and the connection with it; the whitelist counts for these connections too.
    world.set_instance("bank", sasl_users="*", whitelist="10.9.0.0/16")
    assert find_cluster(world, SASL_PORT, log_in("bank.alice", "b")) == ""
    assert "its address is not in the whitelist of the instance bank" in caplog.text
    client.close()
    world.stop()


def test_a_user_who_goes_to_another_instance_leaves_the_first_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = start_with_sasl(tmp_path)
    world.set_instance("shop", user_names="old:oldie", sasl_users="oldie", listeners=f"SASL_PLAINTEXT://:{SHOP_PORT}")
    clients = [
        world.open_client(SASL_PORT, login=log_in("oldie", "o")),
        world.open_client(SHOP_PORT, login=log_in("old", "o")),
        world.open_client(SHOP_PORT, login=log_in("alice", "s")),
    ]
    for client in clients:
        client.list_brokers()
    world.set_instance("shop", user_names="old:oldie", listeners=f"SASL_PLAINTEXT://:{SHOP_PORT}")
    assert list_users(world) == ["User:oldie", "User:shop.alice"]
    assert "nothing leads it to the instance shop now" in caplog.text
    world.set_instance("shop", listeners=f"SASL_PLAINTEXT://:{SHOP_PORT}")
    world.set_instance("bank", user_names="old:oldie")
    assert list_users(world) == ["User:shop.alice"]
    assert "its user oldie belongs to the instance shop no more" in caplog.text
    for client in clients:
        client.close()
    world.stop()


def test_a_connection_does_not_go_on_in_another_instance_of_the_same_name(tmp_path: Path) -> None:
    """A broker may see the deletion and the new creation in one image."""
    world = start_with_sasl(tmp_path)
    world.set_instance("shop", listeners=f"SASL_PLAINTEXT://:{SHOP_PORT}")
    client = world.open_client(SHOP_PORT, login=log_in("alice", "s"))
    client.list_brokers()
    image = world.broker.metadata.image
    key = (ResourceType.INSTANCE, "shop")
    configs = {**image.configs, key: {**image.configs[key], "cluster.id": "another"}}
    world.broker.instances.update(replace(image, configs=configs))
    world.clock.advance(0)
    assert not world.broker.server.connections
    client.close()
    world.stop()


def test_a_users_session_is_renewed_under_the_same_name(tmp_path: Path) -> None:
    world = start_with_sasl(tmp_path)
    world.run(world.broker.stop())
    world = InstanceWorld(
        tmp_path,
        **{
            "listeners": f"PLAINTEXT://{HOST}:{PORT},SASL_PLAINTEXT://{HOST}:{SASL_PORT}",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.jaas.config": JAAS,
            "connections.max.reauth.ms": "2000",
        },
    )
    world.set_instance("shop", listeners=f"SASL_PLAINTEXT://:{SHOP_PORT}", sasl_users="shop.alice")
    clients = [
        world.open_client(SHOP_PORT, login=log_in("alice", "s")),
        world.open_client(SASL_PORT, login=log_in("shop.alice", "s")),
    ]
    for _ in range(6):
        for client in clients:
            assert client.ask(MetadataRequest(topics=[])).cluster_id == "shop-cluster"
        world.clock.advance(1.8)
    assert list_users(world) == ["User:shop.alice"] * 2
    tenants = world.broker.server.tenants
    assert tenants is not None and tenants.count("shop") == 2
    for client in clients:
        client.close()
    world.stop()


def test_a_delegation_token_logs_in_where_its_owner_does(tmp_path: Path) -> None:
    world = start_with_sasl(tmp_path)
    world.add_scram_user("shop.carol", "c")
    owner = world.open_client(SASL_PORT, login=log_in("shop.carol", "c", "SCRAM-SHA-512"))
    made = owner.ask(CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1))
    assert made.error_code == 0
    owner.close()
    world.set_instance("shop", listeners=f"SASL_PLAINTEXT://:{SHOP_PORT}")
    world.set_instance("bank", listeners=f"SASL_PLAINTEXT://:{BANK_PORT}")
    token = log_in(made.token_id, base64.b64encode(made.hmac).decode(), "SCRAM-SHA-512", by_token=True)
    assert find_cluster(world, SHOP_PORT, token) == "shop-cluster"
    assert find_cluster(world, BANK_PORT, token) == "" == find_cluster(world, SASL_PORT, token)
    world.stop()


class TlsInstances:
    """A broker with a TLS listener of its own, and clients with TLS that dial any name."""

    def __init__(self, folder: Path, protocol: str = "SSL") -> None:
        secured = make_properties(shared_member(HOST))
        secured["listeners"] = f"PLAINTEXT://{HOST}:{PORT},{protocol}://{HOST}:{TLS_PORT}"
        secured["ssl.client.auth"] = "requested"
        secured["ssl.principal.mapping.rules"] = "RULE:^CN=(.*)$/$1/"
        secured["sasl.enabled.mechanisms"] = "PLAIN"
        secured["sasl.jaas.config"] = JAAS
        del secured["security.inter.broker.protocol"]
        self.world = InstanceWorld(folder, **secured)

    def connect(self, host: str, user: str = "client") -> Any:
        """Return a network on which every connection dials *host*, and shows the certificate of *user*."""
        world = self.world
        world.network._hosts[host] = world.network.at(HOST)
        properties = {
            **make_properties(shared_member(user)),
            "ssl.endpoint.identification.algorithm": "",
        }
        inner = TlsNetwork(world.network.at("10.0.0.7"), open_listener(properties), world.clock)

        class Dialling:
            def connect(self, _: str, port: int, protocol: Any, timeout_s: float) -> Any:
                return inner.connect(host, port, protocol, timeout_s)

        return Dialling()

    def find_cluster(self, port: int, host: str, user: str, login: ClientLogin | None = None) -> str:
        return find_cluster(self.world, port, login, self.connect(host, user))


def test_a_name_in_the_handshake_leads_to_an_instance(tmp_path: Path) -> None:
    tls = TlsInstances(tmp_path)
    world = tls.world
    shop = {"sni_hosts": "*.shop.example", "sni_advertised": "b{id}.shop.example:9094"}
    bank = {"sni_hosts": "bank.example", "sni_advertised": "bank.example:9094"}
    assert world.set_instance("shop", **shop, **ANY_SUBJECT) is None
    assert world.set_instance("bank", **bank, **ANY_SUBJECT) is None
    refusal = world.set_instance("third", sni_hosts="Bank.example", sni_advertised="bank.example:9094")
    assert refusal == "sni.hosts=bank.example leads to the instance bank already: take another name"
    assert tls.find_cluster(TLS_PORT, "any.shop.example", "carol") == "shop-cluster"
    assert tls.find_cluster(TLS_PORT, "bank.example", "carol") == "bank-cluster"
    assert tls.find_cluster(TLS_PORT, "a.b.shop.example", "carol") == world.broker.cluster_id
    client = InstanceClient(world, TLS_PORT, tls.connect("B1.shop.example", "carol"), None)
    assert client.list_brokers() == [(1, "b1.shop.example", 9094)]
    assert list_users(world) == ["User:shop.carol"]
    # A user of one instance does not enter another, whatever name it dials.
    assert tls.find_cluster(TLS_PORT, "bank.example", "shop.carol") == ""
    assert tls.find_cluster(TLS_PORT, HOST, "shop.carol") == ""
    client.close()
    world.stop()


def test_the_name_of_a_deleting_or_damaged_instance_leads_nowhere(tmp_path: Path) -> None:
    """Its clients come back by themselves, and would see the operator's cluster."""
    tls = TlsInstances(tmp_path)
    world = tls.world
    route = {"sni_hosts": "*.shop.example", "sni_advertised": "b{id}.shop.example:9094", **ANY_SUBJECT}
    world.set_instance("shop", **route)
    assert tls.find_cluster(TLS_PORT, "any.shop.example", "carol") == "shop-cluster"
    world.set_instance("shop", **route, state="deleting")
    assert tls.find_cluster(TLS_PORT, "any.shop.example", "carol") == ""
    # A later release may know properties that this one does not.
    image = world.broker.metadata.image
    given = {"cluster.id": "c", "secret": "s", "sni.hosts": "*.bank.example", "unknown": "1"}
    configs = {**image.configs, (ResourceType.INSTANCE, "bank"): given}
    world.broker.instances.update(replace(image, configs=configs))
    assert tls.find_cluster(TLS_PORT, "any.bank.example", "carol") == ""
    assert tls.find_cluster(TLS_PORT, HOST, "bank.carol") == ""
    assert tls.find_cluster(TLS_PORT, HOST, "carol") == world.broker.cluster_id
    world.stop()


def test_listeners_of_instances_with_tls(tmp_path: Path) -> None:
    tls = TlsInstances(tmp_path)
    world = tls.world
    listeners = f"SSL://:{SHOP_PORT},SASL_SSL://:{SHOP_PORT + 10}"
    assert world.set_instance("shop", listeners=listeners, **ANY_SUBJECT) is None
    bound = world.broker.listeners.instances
    assert bound is not None and not bound.unbound
    assert tls.find_cluster(SHOP_PORT, HOST, "carol") == "shop-cluster"
    assert tls.find_cluster(SHOP_PORT, HOST, "bank.carol") == "shop-cluster"
    world.set_instance("bank")
    assert tls.find_cluster(SHOP_PORT, HOST, "bank.carol") == ""
    assert tls.find_cluster(SHOP_PORT + 10, HOST, "carol", log_in("alice", "s")) == "shop-cluster"
    assert tls.find_cluster(SHOP_PORT + 10, HOST, "carol", log_in("alice", "b")) == ""
    world.stop()


def test_a_subject_without_the_prefix_is_refused(tmp_path: Path) -> None:
    """Two tenants may share a CA: its carol would be a user of both."""
    tls = TlsInstances(tmp_path)
    tls.world.set_instance("shop", listeners=f"SSL://:{SHOP_PORT}")
    assert tls.find_cluster(SHOP_PORT, HOST, "carol") == ""
    assert tls.find_cluster(SHOP_PORT, HOST, "shop.carol") == "shop-cluster"
    tls.world.set_instance("shop", listeners=f"SSL://:{SHOP_PORT}", user_names="carol")
    assert tls.find_cluster(SHOP_PORT, HOST, "carol") == "shop-cluster"
    tls.world.stop()


def test_a_name_in_the_handshake_and_a_login(tmp_path: Path) -> None:
    tls = TlsInstances(tmp_path, "SASL_SSL")
    world = tls.world
    world.set_instance("shop", sni_hosts="shop.example", sni_advertised="shop.example:9094", sasl_users="*")
    assert tls.find_cluster(TLS_PORT, "shop.example", "carol", log_in("alice", "s")) == "shop-cluster"
    assert tls.find_cluster(TLS_PORT, "shop.example", "carol", log_in("admin", "a")) == ""
    assert tls.find_cluster(TLS_PORT, HOST, "carol", log_in("shop.alice", "s")) == "shop-cluster"
    assert tls.find_cluster(TLS_PORT, HOST, "carol", log_in("admin", "a")) == world.broker.cluster_id
    world.stop()


def test_a_super_user_of_the_brokers_cannot_become_an_instances(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path, **{"super.users": "User:adm-in;User:shop.root"})
    for properties in ({"name.prefix": "adm-"}, {"user.names": "a:adm-in"}):
        refusal = world.set_instance("bank", **properties)
        assert refusal is not None and refusal.startswith("User:adm-in is in super.users of the brokers and cannot"), (
            refusal
        )
    assert "User:shop.root is in super.users" in str(world.set_instance("shop"))
    assert world.set_instance("bank") is None
    world.stop()
