"""Brokers that authenticate themselves to each other, and tokens that every broker of the cluster accepts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm
from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.cluster.errors import ClusterError
from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.context import Peer, RequestContext
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.scram_changes import ScramUpsertion, alter_scram_credentials
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.security.principals import Principal
from kafkacompat.security.sasl import http_fetch
from kafkacompat.security.sasl.bearer_login import Post
from kafkacompat.security.sasl.token_requests import TokenEndpoint
from kafkacompat.security.scram import ScramMechanism
from kafkacompat.wire.apis.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from kafkacompat.wire.apis.expire_delegation_token import ExpireDelegationTokenRequest
from kafkacompat.wire.compiler import decode_message
from kafkacompat.wire.connection import EncodedResponse
from tests.kafkacompat.three_brokers import test_tls as tls
from tests.kafkacompat.three_brokers.instances import alter
from tests.kafkacompat.three_brokers.support import CHROOT, NODES, PORT, Cluster

SASL_PORT = 9093
PREFIX = "listener.name.brokers"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
ALICE = Principal("User", "alice")


def secure(node: int, mechanism: str = "PLAIN", login: str = "broker-secret") -> dict[str, str]:
    """Properties of a broker that clients reach in plain, and brokers by SASL."""
    host = f"broker-{node}"
    module, users = (PLAIN, ' user_broker="broker-secret"') if mechanism == "PLAIN" else (SCRAM, "")
    return {
        "listeners": f"PLAINTEXT://{host}:{PORT},BROKERS://{host}:{SASL_PORT}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        f"{PREFIX}.{mechanism.lower()}.sasl.jaas.config": f'{module} required username="broker" password="{login}"{users};',
        "delegation.token.secret.key": "the-key",
    }


def start_cluster() -> Cluster:
    cluster = Cluster([])
    for node in NODES:
        cluster.start(node, **secure(node))
    return cluster


def users_of(cluster: Cluster, node: int) -> set[str]:
    """The users of the connections that other brokers have to this one."""
    connections = cluster.brokers[node].server.connections
    return {str(other.principal) for other in connections if other.peer.listener_name == "BROKERS"}


def test_records_are_replicated_between_authenticated_brokers() -> None:
    cluster = start_cluster()
    cluster.create("t")
    leader = cluster.leader("t")
    assert cluster.produce(leader, "t", b"x").error_code == 0
    cluster.wait_for_in_sync("t", list(NODES))
    cluster.advance(2)
    assert users_of(cluster, leader) == {"User:broker"}
    value = cluster.zookeeper.contents()[f"{CHROOT}{Znode.BROKER.path(node_id=1)}"]
    assert b'"BROKERS":"SASL_PLAINTEXT"' in value and b"SASL" in value


def test_the_user_of_the_brokers_stays_theirs() -> None:
    cluster = start_cluster()
    identity = {"cluster_id": "c", "secret": "s"}
    result = alter(cluster, 1, ResourceType.INSTANCE, "shop", **identity, user_names="broker")
    assert str(result.error_message).startswith("User:broker is the login of the brokers and cannot belong")
    cluster.create("t")
    cluster.wait_for_in_sync("t", list(NODES))


def test_a_broker_with_a_wrong_password_follows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster([])
    for node in (1, 2):
        cluster.start(node, **secure(node))
    cluster.start(3, **secure(3, login="wrong"))
    cluster.create("t", assignment={0: [1, 3]})
    cluster.advance(30)
    assert (cluster.image("t").leader, cluster.image("t").in_sync_replicas) == (1, (1,))
    assert all(users_of(cluster, node) <= {"User:broker"} for node in (1, 2))
    (failed,) = [line for line in caplog.messages if line.startswith("Fetching from node 1 failed")]
    assert "broker-1:9093 (listener BROKERS): the login by PLAIN is not accepted: SASL_AUTHENTICATION_FAILED" in failed
    assert "wrong" not in failed
    refused = [line for line in caplog.messages if "its authentication has failed" in line]
    assert all("on listener BROKERS: SASL_AUTHENTICATION_FAILED" in line for line in refused)
    assert 1 <= len(refused) <= 100


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "GSSAPI is not served: set one of PLAIN, SCRAM-SHA-256"),
        (
            {"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"},
            "listener BROKERS: there are no tokens for a login by OAUTHBEARER",
        ),
        (
            {f"{PREFIX}.plain.sasl.jaas.config": f'{PLAIN} required user_a="x";'},
            "has no username and password for a login by PLAIN",
        ),
    ],
)
def test_logins_that_are_refused_at_the_start(change: dict[str, str], words: str) -> None:
    cluster = Cluster([])
    with pytest.raises(ClusterError, match=words):
        cluster.start(1, **{**secure(1), **change})


def test_brokers_log_in_by_scram_with_a_user_that_was_there_before_them() -> None:
    cluster = Cluster([])
    salted = hashlib.pbkdf2_hmac("sha256", b"broker-secret", b"salt", 4096)
    first = cluster.build(1, **secure(1, "SCRAM-SHA-256"))
    cluster.brokers[1] = first
    cluster.run(first.start())
    change = ScramUpsertion("broker", ScramMechanism.SHA_256, 4096, b"salt", salted)

    def plan(draft: MetadataDraft, _: object) -> Any:
        return alter_scram_credentials(draft, [change])

    cluster.run(first.controller.change_tokens(plan))
    for node in (2, 3):
        cluster.start(node, **secure(node, "SCRAM-SHA-256"))
    cluster.create("t")
    assert cluster.produce(cluster.leader("t"), "t", b"x").error_code == 0
    cluster.wait_for_in_sync("t", list(NODES))


class TokenIssuer:
    """An identity provider whose tokens hold a minute, which the brokers reach by no network."""

    def __init__(self, cluster: Cluster, keys: Path) -> None:
        self._cluster = cluster
        self._key = Ed25519PrivateKey.generate()
        public = json.loads(OKPAlgorithm.to_jwk(self._key.public_key()))
        keys.write_text(json.dumps({"keys": [{**public, "kid": "k"}]}))
        self.issued = 0
        self.is_there = True

    def make_post(self, _: object, endpoint: TokenEndpoint) -> Post:
        assert endpoint.client_secret == "hush"
        return self._post

    def _post(self) -> Deferred[tuple[int, bytes]]:
        if not self.is_there:
            return fail(OSError("refused"))
        self.issued += 1
        now = self._cluster.clock.seconds()
        claims = {"sub": "broker", "iat": now, "exp": now + 60, "aud": "kafka"}
        token = jwt.encode(claims, self._key, algorithm="EdDSA", headers={"kid": "k"})
        return succeed((200, json.dumps({"access_token": token}).encode()))


def secure_by_tokens(node: int, keys: Path) -> dict[str, str]:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    return {
        **secure(node),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        f"{PREFIX}.oauthbearer.sasl.jaas.config": f'{module} required clientId="me" clientSecret="hush";',
        f"{PREFIX}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
        f"{PREFIX}.oauthbearer.sasl.oauthbearer.expected.audience": "kafka",
        f"{PREFIX}.oauthbearer.sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
    }


def test_brokers_log_in_by_tokens_that_they_renew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([])
    keys = tmp_path / "keys.json"
    issuer = TokenIssuer(cluster, keys)
    monkeypatch.setattr(http_fetch, "make_post", issuer.make_post)
    for node in NODES:
        cluster.start(node, **secure_by_tokens(node, keys))
    cluster.create("t")
    leader = cluster.leader("t")
    for _ in range(3):
        # Each token ends the sessions that it has begun.
        cluster.advance(60)
        assert cluster.produce(leader, "t", b"x").error_code == 0
        assert users_of(cluster, leader) == {"User:broker"}
    assert set(cluster.image("t").in_sync_replicas) == set(NODES)
    assert 9 <= issuer.issued <= 18
    # Sessions outlast a provider that is gone for a while, and new tokens let brokers in again.
    issuer.is_there = False
    cluster.advance(70)
    issuer.is_there = True
    cluster.advance(30)
    cluster.wait_for_in_sync("t", list(NODES))
    assert cluster.produce(cluster.leader("t"), "t", b"x").error_code == 0


def test_a_broker_without_a_token_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([])
    keys = tmp_path / "keys.json"
    issuer = TokenIssuer(cluster, keys)
    issuer.is_there = False
    monkeypatch.setattr(http_fetch, "make_post", issuer.make_post)
    words = "listener BROKERS: this broker cannot log in at others: https://issuer/token does not answer: refused"
    with pytest.raises(ClusterError, match=words):
        cluster.start(1, **secure_by_tokens(1, keys))


def test_brokers_authenticate_themselves_over_tls() -> None:
    """SASL_SSL: the user is the one of SASL, also where the client has a certificate."""
    cluster = Cluster([])
    for node in NODES:
        certified = tls.secure(node, tls.issue_for_brokers(f"broker-{node}"))
        protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_SSL"}
        cluster.start(node, **{**certified, **secure(node), **protocols})
    cluster.create("t")
    leader = cluster.leader("t")
    assert cluster.produce(leader, "t", b"x" * 100_000).error_code == 0
    cluster.wait_for_in_sync("t", list(NODES))
    cluster.advance(2)
    assert users_of(cluster, leader) == {"User:broker"}


def ask_as(cluster: Cluster, node: int, user: Principal, request: Any) -> Any:
    """Send a request as a user to the handlers of a broker; it goes on to the controller by an Envelope."""
    broker = cluster.brokers[node]
    peer = Peer("BROKERS", "10.0.0.9", 1, f"broker-{node}", SASL_PORT)
    incoming: Any = type("Incoming", (), {})()
    incoming.api_key, incoming.api_version, incoming.client_id = request.API_KEY, type(request).VERSIONS.last, "c"
    incoming.body, incoming.reading, incoming.size_bytes, incoming.correlation_id = request, None, 100, 7
    dispatcher: Any = broker.server._dispatcher
    answer = dispatcher.dispatch(incoming, RequestContext(incoming.api_version, "c", peer, principal=user))
    return cluster.run(answer.response)


def test_a_token_is_known_to_every_broker() -> None:
    cluster = start_cluster()
    controller = cluster.controller()
    node = next(other for other in NODES if other != controller)
    answer = ask_as(cluster, node, ALICE, CreateDelegationTokenRequest(max_lifetime_ms=-1))
    assert isinstance(answer, EncodedResponse)
    token = decode_message(CreateDelegationTokenResponse, answer.data[5:], 3)
    assert (token.error_code, token.principal_name) == (0, "alice")
    path = f"{CHROOT}{Znode.TOKEN.path(token_id=token.token_id)}"
    assert b"User%3Aalice" in cluster.zookeeper.contents()[path]

    def knows(other: int) -> bool:
        return token.token_id in cluster.brokers[other].metadata.image.tokens

    cluster.wait(lambda: all(map(knows, NODES)))
    # A broker that starts later reads all tokens.
    cluster.kill(node)
    cluster.start(node, **secure(node))
    cluster.wait(lambda: knows(node))
    other = cluster.controller()
    ask_as(cluster, other, ALICE, ExpireDelegationTokenRequest(hmac=bytes(token.hmac), expiry_time_period_ms=-1))
    cluster.wait(lambda: not any(map(knows, NODES)))
    assert path not in cluster.zookeeper.contents()
    # The tokens of a node survive orders and configurations that the controller sends.
    cluster.create("later")
    assert all(broker.metadata.image.tokens == {} for broker in cluster.brokers.values())
