"""Brokers that connect to each other over TLS."""

from __future__ import annotations

import pytest

from kafkacompat.config import ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperationType
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.certificates import Authority, Member, shared_authority
from tests.kafkacompat.three_brokers.support import CHROOT, NODES, PORT, Cluster

TLS_PORT = 9093
LISTENER = "listener.name.brokers.ssl"


def secure(node: int, member: Member) -> dict[str, str]:
    """Properties of a broker that clients reach in plain, and brokers by TLS with certificates on both sides."""
    host = f"broker-{node}"
    return {
        "listeners": f"PLAINTEXT://{host}:{PORT},BROKERS://{host}:{TLS_PORT}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SSL",
        "inter.broker.listener.name": "BROKERS",
        f"{LISTENER}.client.auth": "required",
        f"{LISTENER}.keystore.type": "PEM",
        f"{LISTENER}.keystore.key": member.key_pem(),
        f"{LISTENER}.keystore.certificate.chain": member.certificates_pem,
        f"{LISTENER}.truststore.type": "PEM",
        f"{LISTENER}.truststore.certificates": shared_authority().pem,
    }


def start_cluster() -> Cluster:
    cluster = Cluster([])
    for node in NODES:
        cluster.start(node, **secure(node, issue_for_brokers(f"broker-{node}")))
    return cluster


def users_of(cluster: Cluster, node: int) -> set[str]:
    """The users of the connections that other brokers have to this one."""
    connections = cluster.brokers[node].server.connections
    return {str(other.principal) for other in connections if other.peer.listener_name == "BROKERS"}


def issue_for_brokers(name: str) -> Member:
    return shared_authority().issue(name, ["127.0.0.1", "localhost", "broker-1", "broker-2", "broker-3"])


def test_records_are_replicated_over_tls() -> None:
    cluster = start_cluster()
    cluster.create("t")
    leader = cluster.leader("t")
    assert cluster.produce(leader, "t", b"x" * 100_000).error_code == 0
    cluster.wait_for_in_sync("t", list(NODES))
    cluster.advance(2)
    assert len({tuple(cluster.read_log(node, "t")) for node in NODES}) == 1
    for node in NODES:
        assert users_of(cluster, node) <= {f"User:CN=broker-{other}" for other in NODES}
    assert users_of(cluster, leader) >= {f"User:CN=broker-{other}" for other in NODES if other != leader}


def test_the_registration_names_the_protocol_of_each_listener() -> None:
    cluster = start_cluster()
    value = cluster.zookeeper.contents()[f"{CHROOT}{Znode.BROKER.path(node_id=1)}"]
    assert b'"BROKERS":"SSL"' in value and b"BROKERS://broker-1:9093" in value


def test_a_broker_that_the_others_would_not_accept_does_not_start() -> None:
    cluster = Cluster([])
    stranger = secure(3, Authority("other").issue("broker-3", ["broker-3"]))
    with pytest.raises(ConfigError, match="brokers with these stores cannot connect to each other"):
        cluster.start(3, **stranger)


def alter(cluster: Cluster, node: int, **changes: str) -> int:
    configs = [
        AlterableConfig(
            name=f"{LISTENER}.{name.replace('_', '.')}", config_operation=ConfigOperationType.SET, value=value
        )
        for name, value in changes.items()
    ]
    resource = AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name=str(node), configs=configs)
    answer = cluster.ask(node, IncrementalAlterConfigsRequest(resources=[resource]))
    return int(answer.responses[0].error_code)


def test_a_certificate_is_renewed_while_the_brokers_run() -> None:
    cluster = start_cluster()
    cluster.create("t")
    renewed = issue_for_brokers("broker-1")
    change = {"keystore_key": renewed.key_pem(), "keystore_certificate_chain": renewed.certificates_pem}
    before = set(cluster.brokers[1].server.connections)
    assert alter(cluster, 1, **change) == 0
    cluster.advance(2)
    tls = cluster.brokers[1].tls.open(cluster.brokers[1].effective.config, cluster.brokers[1].config.listeners[1])
    assert tls is not None
    assert tls.credentials.key_store.certificate == renewed.certificate
    assert before <= cluster.brokers[1].server.connections
    assert cluster.produce(cluster.leader("t"), "t", b"x").error_code == 0


@pytest.mark.parametrize("name", ["somebody", "broker-1"])
def test_a_certificate_that_does_not_fit_is_refused(name: str) -> None:
    cluster = start_cluster()
    stranger = issue_for_brokers(name)
    chain = stranger.certificates_pem if name == "somebody" else "nonsense"
    assert (
        alter(cluster, 1, keystore_key=stranger.key_pem(), keystore_certificate_chain=chain)
        == ErrorCode.INVALID_REQUEST
    )
