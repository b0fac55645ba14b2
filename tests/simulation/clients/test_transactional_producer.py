"""Transactional producers of both transaction versions beside three brokers."""

from __future__ import annotations

import pytest

from kafkacompat.history.events import READ_COMMITTED
from tests.simulation.clients.consumer import Consumer
from tests.simulation.clients.settings import ConsumerSettings, TransactionalSettings
from tests.simulation.clients.support import Clients
from tests.simulation.clients.transactional_producer import TransactionalProducer

COMMITTED = ConsumerSettings(isolation=READ_COMMITTED)
VERSIONS = (0, 2)


def make_settings(version: int) -> TransactionalSettings:
    return TransactionalSettings(
        transaction_version=version,
        transaction_timeout_s=4,
        max_transaction_records=6,
        zombie_share=0.2,
        pause_s=(0.005, 0.03),
        abort_share=0.3,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_healthy_brokers_end_transactions_as_wanted(version: int) -> None:
    clients = Clients()
    producer = clients.start(TransactionalProducer, "writer.0", make_settings(version), clients.places)
    consumer = clients.start(Consumer, "consumer.0", COMMITTED, clients.places)
    outcomes = producer.outcomes
    clients.cluster.wait(lambda: min(outcomes[kind] for kind in ("committed", "aborted", "fenced")) > 0)
    clients.run(producer.stop())
    clients.run(consumer.finish())
    clients.judge()
    assert not outcomes["fatal"] and not outcomes["failed"], outcomes


@pytest.mark.parametrize("version", VERSIONS)
def test_transactions_survive_a_killed_broker(version: int) -> None:
    clients = Clients()
    producer = clients.start(TransactionalProducer, "writer.0", make_settings(version), clients.places)
    consumer = clients.start(Consumer, "consumer.0", COMMITTED, clients.places)
    clients.cluster.advance(0.5)
    clients.cluster.kill(clients.cluster.leader("t", 0))
    before = producer.outcomes["committed"]
    clients.cluster.wait(lambda: producer.outcomes["committed"] > before + 3)
    clients.run(producer.stop())
    clients.run(consumer.finish())
    clients.judge()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_coordinator_ends_what_a_dead_or_slow_producer_left_open(version: int) -> None:
    clients = Clients(transaction_abort_timed_out_transaction_cleanup_interval_ms="500")
    settings = TransactionalSettings(
        transaction_version=version, transaction_timeout_s=1, stall_share=1, zombie_share=0
    )
    slow = clients.start(TransactionalProducer, "slow.0", settings, clients.places)
    dead = clients.start(
        TransactionalProducer, "dead.0", TransactionalSettings(transactional_id="dead"), clients.places
    )
    clients.cluster.advance(1)
    dead.kill()
    clients.cluster.advance(2)
    clients.run(slow.stop())
    back = clients.start(
        TransactionalProducer, "dead.1", TransactionalSettings(transactional_id="dead"), clients.places
    )
    clients.cluster.advance(1)
    clients.run(back.stop())
    clients.judge()
    assert slow.outcomes["fatal"] and not slow.outcomes["committed"], slow.outcomes
    assert back.outcomes["committed"], back.outcomes
