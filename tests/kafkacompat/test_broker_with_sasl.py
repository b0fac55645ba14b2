"""A whole broker whose listener has SASL, and another broker that authenticates itself there, on one clock and without sockets."""

from __future__ import annotations

import hashlib
from pathlib import Path
from random import Random
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.bound_listeners import BoundListeners
from kafkacompat.broker import Broker
from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.errors import RequestNotSentError
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.metadata.scram_changes import ScramUpsertion
from kafkacompat.security.sasl.client import ClientLogin
from kafkacompat.security.scram import ScramMechanism
from kafkacompat.server.listener import ListenError
from kafkacompat.wire.apis.create_delegation_token import CreateDelegationTokenRequest
from kafkacompat.wire.apis.describe_cluster import DescribeClusterRequest
from kafkacompat.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkacompat.wire.apis.metadata import MetadataRequest
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.memory_host import MemoryHost
from tests.fakes.memory_network import MemoryNetwork
from tests.kafkacompat.test_broker_over_memory_network import HOST, PORT, World

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = f'{PLAIN_MODULE} required user_alice="alice-secret" user_broker="broker-secret";'
ALICE = ClientLogin("PLAIN", "alice", "alice-secret")
SCRAM = ClientLogin("SCRAM-SHA-512", "carol", "carol-secret")
JAAS = "listener.name.sasl.plain.sasl.jaas.config"


class SaslWorld(World):
    """A broker with SASL, and connections to it by a *login*."""

    def __init__(self, folder: Path, **properties: str) -> None:
        super().__init__(folder)
        self.network = MemoryNetwork(self.clock)
        given = {
            "node.id": "1",
            "listeners": f"SASL://{HOST}:{PORT}",
            "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
            "log.dirs": str(folder),
            "kafkacompat.scrub.interval.ms": "-1",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            JAAS: USERS,
            "delegation.token.secret.key": "key",
            **properties,
        }
        self.files = MemoryFiles()
        self.broker = Broker(MemoryHost(self.clock, self.network.at(HOST), files=self.files), BrokerConfig(given))
        self.log_in(ALICE)

    def log_in(self, login: ClientLogin | None) -> None:
        """Use another login for new connections."""
        settings = ConnectionSettings("broker-2", login=login)
        self.connections = BrokerConnections(settings, self.network.at("broker-2"), self.clock, Random(2))
        self.address = BrokerAddress(1, HOST, PORT)

    def fails_with(self, login: ClientLogin | None, words: str) -> None:
        self.log_in(login)
        with pytest.raises(RequestNotSentError, match=words):
            self.ask(MetadataRequest())
        self.connections.close()

    def works_with(self, login: ClientLogin) -> None:
        self.log_in(login)
        assert self.ask(DescribeClusterRequest()).error_code == 0
        self.connections.close()

    def add_scram_user(self, login: ClientLogin) -> None:
        salted = hashlib.pbkdf2_hmac("sha512", login.password.encode(), b"salt", 4096)
        change = ScramUpsertion(login.username, 2, 4096, b"salt", salted)
        self.run(self.broker.controller.alter_scram_credentials([change]))


def test_logins(tmp_path: Path) -> None:
    world = SaslWorld(tmp_path)
    world.run(world.broker.start())
    world.works_with(ALICE)
    world.fails_with(ClientLogin("PLAIN", "alice", "wrong"), "Invalid username or password")
    world.fails_with(SCRAM, "invalid credentials with SASL mechanism SCRAM-SHA-512")
    world.add_scram_user(SCRAM)
    world.works_with(SCRAM)
    world.fails_with(ClientLogin("SCRAM-SHA-512", "carol", "wrong"), "invalid credentials")
    world.fails_with(
        ClientLogin("SCRAM-SHA-256", "carol", "carol-secret"), "it offers SCRAM-SHA-512, PLAIN|it offers PLAIN"
    )
    world.run(world.broker.stop())
    assert world.clock.getDelayedCalls() == []


def test_a_user_of_plain_changes_while_the_broker_runs(tmp_path: Path) -> None:
    world = SaslWorld(tmp_path)
    world.run(world.broker.start())
    dave = ClientLogin("PLAIN", "dave", "dave-secret")
    world.fails_with(dave, "Invalid username or password")

    def set_users(text: str) -> Any:
        operation = ConfigOperation(JAAS, ConfigOperationType.SET, text)
        change = ResourceChange(ResourceType.BROKER, "1", [operation])
        (outcome,) = world.run(world.broker.controller.alter_configs([change]))
        return outcome

    assert set_users(f'{PLAIN_MODULE} required user_dave="dave-secret";') is None
    world.works_with(dave)
    world.fails_with(ALICE, "Invalid username or password")
    refused = set_users(f'{PLAIN_MODULE} required user_dave="other-secret"')
    assert refused is not None and "semicolon" in str(refused) and "secret" not in str(refused)
    refused = set_users('com.sun.security.auth.module.JndiLoginModule required user.provider.url="ldap://x";')
    assert refused is not None and "is not served" in str(refused)
    world.works_with(dave)
    world.run(world.broker.stop())


def test_no_secret_is_described(tmp_path: Path) -> None:
    world = SaslWorld(tmp_path)
    world.run(world.broker.start())
    operation = ConfigOperation(JAAS, ConfigOperationType.SET, USERS)
    world.run(world.broker.controller.alter_configs([ResourceChange(ResourceType.BROKER, "1", [operation])]))
    resource = DescribeConfigsResource(resource_type=ResourceType.BROKER, resource_name="1", configuration_keys=None)
    described = world.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True)).results[0]
    configs = {config.name: config for config in described.configs}
    for name in (JAAS, "sasl.jaas.config", "delegation.token.secret.key"):
        assert configs[name].value is None and configs[name].is_sensitive
        assert all(synonym.value is None for synonym in configs[name].synonyms)
    assert "alice-secret" not in repr(described.configs)
    world.connections.close()
    world.run(world.broker.stop())


def test_a_connection_between_brokers_renews_its_session(tmp_path: Path) -> None:
    world = SaslWorld(tmp_path, **{"connections.max.reauth.ms": "2000"})
    world.run(world.broker.start())
    for _ in range(10):
        assert world.ask(DescribeClusterRequest()).error_code == 0
        world.clock.advance(1.8)
    assert len(world.broker.server.connections) == 1
    world.connections.close()
    world.run(world.broker.stop())


def test_a_token_from_request_to_login(tmp_path: Path) -> None:
    world = SaslWorld(tmp_path)
    world.run(world.broker.start())
    token = world.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1))
    assert token.error_code == 0
    authentication: Any = world.broker.listeners._authentication
    login = authentication._find_token(ScramMechanism.SHA_512, token.token_id)
    assert login.owner.name == "alice" and login.expires_at_ms == token.expiry_timestamp_ms
    world.clock.advance(86_400_001 / 1000)
    assert authentication._find_token(ScramMechanism.SHA_512, token.token_id) is None
    world.connections.close()
    world.run(world.broker.stop())


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI is not served, so set some of PLAIN"),
        ({"sasl.enabled.mechanisms": "PLAIN,GSSAPI"}, "GSSAPI is not served"),
        ({"sasl.enabled.mechanisms": ""}, "nothing is not served"),
        ({"listener.name.sasl.sasl.enabled.mechanisms": "SCRAM-SHA-1"}, "SCRAM-SHA-1 is not served"),
    ],
)
def test_mechanisms_that_are_not_served(tmp_path: Path, properties: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SaslWorld(tmp_path, **properties)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({JAAS: f"{PLAIN_MODULE} required;"}, "names no users of PLAIN"),
        ({JAAS: f'{PLAIN_MODULE} required user_a="secret"'}, "semicolon"),
        ({JAAS: 'x.Y required user_a="secret";'}, "is not served"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "has no keys to check tokens with"),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "ftp://x/keys",
            },
            "takes a URL of file, http, https",
        ),
        (
            {"listener.name.sasl.plain.sasl.server.callback.handler.class": "com.example.Handler"},
            "no class is loaded by its name",
        ),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class": "com.example.Handler",
            },
            "no class is loaded by its name",
        ),
    ],
)
def test_starts_that_are_refused(tmp_path: Path, properties: dict[str, str], words: str) -> None:
    world = SaslWorld(tmp_path, **properties)
    with pytest.raises(ListenError, match=words) as refused:
        world.run(world.broker.start())
    assert "secret" not in str(refused.value)
    assert world.files.locked == set()


def test_keys_are_fetched_for_signed_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = SaslWorld(
        tmp_path,
        **{
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": "https://issuer/keys",
        },
    )
    fetched: list[str] = []

    def fetch(url: str) -> Deferred[bytes]:
        fetched.append(url)
        return Deferred()

    monkeypatch.setattr(BoundListeners, "_make_fetch", lambda _: fetch)
    world.run(world.broker.start())
    assert fetched == ["https://issuer/keys"]
    world.run(world.broker.stop())
    assert world.clock.getDelayedCalls() == []
