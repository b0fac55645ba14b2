"""When a broker has which coordinators."""

from __future__ import annotations

from pathlib import Path

from kafkacompat.broker import Broker
from kafkacompat.transactions.administration import TransactionFilters
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.test_broker import World


def list_made(broker: Broker) -> set[str]:
    return vars(broker.coordinators).keys() & {"groups", "transactions", "stored_offsets"}


def test_a_new_broker_has_none_but_the_features_that_they_will_be_at(tmp_path: Path) -> None:
    world = World(tmp_path)
    broker = world.start()
    world.make_topic(broker, "t")
    assert list_made(broker) == set()
    assert broker.coordinators.features == {"group.version": 1, "transaction.version": 2}
    world.stop(broker)


def test_a_restart_has_at_once_the_one_whose_topic_is_there(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = world.start(offsets_topic_replication_factor="1")
    world.run(first.coordinators.groups.ensure_offsets_topic())
    world.stop(first)
    second = world.start(offsets_topic_replication_factor="1")
    assert list_made(second) == {"groups"}
    assert second.coordinators.groups.list() == []
    world.stop(second)


def test_after_a_topic_that_is_deleted_its_offsets_go(tmp_path: Path) -> None:
    world = World(tmp_path)
    broker = world.start()
    world.make_topic(broker, "t")
    world.run(broker.controller.delete_topics([broker.metadata.image.topics["t"].topic_id]))
    assert list_made(broker) == {"groups", "stored_offsets"}
    world.stop(broker)


def test_coordinators_created_by_a_stopping_broker_are_stopped(tmp_path: Path) -> None:
    world = World(tmp_path)
    broker = world.start()
    world.stop(broker)
    assert broker.coordinators.groups.list() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.run(broker.coordinators.transactions.list(TransactionFilters())) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.timers() == 0
