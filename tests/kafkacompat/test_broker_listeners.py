"""Listeners that come and go while the broker runs."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.wire.errors import KafkaError
from tests.kafkacompat.test_broker import World


def test_listeners_come_and_go_while_the_broker_runs(tmp_path: Path) -> None:
    world = World(tmp_path)
    protocols = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,THIRD:PLAINTEXT"
    broker = world.start(listener_security_protocol_map=protocols)

    def names() -> list[str]:
        return [address.partition("://")[0] for address in broker.addresses]

    def listen(value: str | None) -> KafkaError | None:
        how = ConfigOperationType.DELETE if value is None else ConfigOperationType.SET
        change = ResourceChange(ResourceType.BROKER, "1", [ConfigOperation("listeners", how, value)])
        (result,) = world.run(broker.controller.alter_configs([change]))
        world.reactor.advance(0.01)
        assert result is None or isinstance(result, KafkaError)
        return result

    assert listen("PLAINTEXT://127.0.0.1:0,EXTRA://127.0.0.1:0") is None
    assert names() == ["PLAINTEXT", "EXTRA"] and len(world.reactor.getReaders()) == 2
    taken = broker.addresses[1].rpartition(":")[2]
    refusal = listen("OTHER://127.0.0.1:0")
    assert refusal is not None and refusal.detail is not None and "has no protocol" in refusal.detail
    # What is gone makes room: its port may be another's at once.
    assert listen(f"PLAINTEXT://127.0.0.1:0,THIRD://127.0.0.1:{taken}") is None
    assert broker.addresses[1] == f"THIRD://127.0.0.1:{taken}" and len(world.reactor.getReaders()) == 2
    world.stop(broker)
    broker = world.start(listener_security_protocol_map=protocols)
    assert names() == ["PLAINTEXT", "THIRD"]
    assert listen(None) is None
    assert names() == ["PLAINTEXT"]
    world.stop(broker)
    assert world.reactor.getReaders() == []


def test_a_new_listener_that_cannot_be_bound_leaves_the_others_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    names = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT"
    broker = world.start(listener_security_protocol_map=names, listeners="PLAINTEXT://127.0.0.1:0")
    with socket.create_server(("127.0.0.1", 0)) as other:
        value = f"PLAINTEXT://127.0.0.1:0,EXTRA://127.0.0.1:{other.getsockname()[1]}"
        change = ResourceChange(
            ResourceType.BROKER, "1", [ConfigOperation("listeners", ConfigOperationType.SET, value)]
        )
        assert world.run(broker.controller.alter_configs([change])) == [None]
        assert "listener EXTRA: cannot listen on" in caplog.text
        assert len(broker.addresses) == 1
        world.stop(broker)
        # The next start serves the listeners of the properties file all the same.
        broker = world.start(listener_security_protocol_map=names, listeners="PLAINTEXT://127.0.0.1:0")
        assert [address.partition("://")[0] for address in broker.addresses] == ["PLAINTEXT"]
    world.stop(broker)


def test_a_listener_of_the_properties_file_that_is_not_advertised_may_go(tmp_path: Path) -> None:
    given = {
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT",
        "listeners": "PLAINTEXT://127.0.0.1:0,EXTRA://127.0.0.1:0",
        "advertised_listeners": "PLAINTEXT://127.0.0.1:9092",
    }
    world = World(tmp_path)
    broker = world.start(**given)
    without = ConfigOperation("listeners", ConfigOperationType.SET, "PLAINTEXT://127.0.0.1:0")
    change = ResourceChange(ResourceType.BROKER, "1", [without])
    assert world.run(broker.controller.alter_configs([change])) == [None]
    for _ in range(2):
        world.reactor.advance(0.01)
        assert [address.partition("://")[0] for address in broker.addresses] == ["PLAINTEXT"]
        world.stop(broker)
        broker = world.start(**given)
    world.stop(broker)
