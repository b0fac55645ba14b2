"""The class with the interface of testcontainers' KafkaContainer."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.testing import BrokerError
from kafkacompat.testing.container_properties import find_property_name
from kafkacompat.testing.containers import KafkaContainer


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_NUM_PARTITIONS", "num.partitions"),
        ("KAFKA_LISTENER_NAME_MY__LISTENER_SASL_ENABLED_MECHANISMS", "listener.name.my_listener.sasl.enabled.mechanisms"),
        ("KAFKA_LISTENER_NAME_A___B_SSL_KEY_PASSWORD", "listener.name.a-b.ssl.key.password"),
        ("KAFKA_BROKER_ID", "node.id"),
        ("KAFKA_LISTENERS", None),
        ("KAFKA_ADVERTISED_LISTENERS", None),
        ("KAFKA_ZOOKEEPER_CONNECT", None),
        ("KAFKA_HEAP_OPTS", None),
        ("KAFKA_LOG4J_ROOT_LOGLEVEL", None),
        ("CLUSTER_ID", None),
    ],
)  # fmt: skip
def test_variables_of_images_are_properties(variable: str, name: str | None) -> None:
    assert find_property_name(variable) == name


def test_a_container_is_configured_started_and_stopped(tmp_path: Path) -> None:
    variables = tmp_path / "kafka.env"
    variables.write_text("# of the image\nKAFKA_NUM_PARTITIONS=3\nexport KAFKA_BROKER_ID='7'\n")
    container = KafkaContainer("confluentinc/cp-kafka:7.6.0", mem_limit="1g").with_kraft().with_name("broker")
    assert container.status == "created"
    with container.with_env_file(variables).with_envs(KAFKA_HEAP_OPTS="-Xmx1g") as running:
        assert (running, running.status) == (container, "running")
        host, _, port = running.get_bootstrap_server().partition(":")
        assert (host, int(port)) == (running.get_container_host_ip(), running.get_exposed_port(9093))
        running.kafka.produce("orders", ["value"])
        topics = running.kafka.call(lambda: running.kafka.broker.metadata.image.topics)
        assert len(topics["orders"].partitions) == 3
        assert running.kafka.broker.config.node_id == 7
    container.stop()
    assert container.status == "exited"


def test_a_container_can_listen_on_a_port_of_the_host() -> None:
    with KafkaContainer() as first:
        port = first.get_exposed_port(9092)
    with KafkaContainer(port=9094).with_bind_ports("9094/tcp", str(port)) as second:
        assert second.get_exposed_port("9094/tcp") == port


def test_mistakes_are_one_sentence() -> None:
    container = KafkaContainer()
    with pytest.raises(BrokerError, match=r"the container does not run: call start\(\) first"):
        container.get_bootstrap_server()
    with pytest.raises(BrokerError, match="port 2181 is not exposed: the broker has one port, 9093"):
        container.get_exposed_port(2181)
    with pytest.raises(BrokerError, match=r"num\.partitionz is no property of a broker"):
        container.with_env("KAFKA_NUM_PARTITIONZ", "3").start()
    with pytest.raises(BrokerError, match="runs in this process, not in a container"):
        container.exec(["kafka-topics", "--list"])
