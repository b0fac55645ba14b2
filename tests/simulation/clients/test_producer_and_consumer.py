"""Producers and consumers beside three brokers, healthy ones and one that fails."""

from __future__ import annotations

import pytest

from kafkacompat.history.events import READ_COMMITTED, Acknowledged, Event, Listed, Read
from tests.simulation.clients.consumer import Consumer
from tests.simulation.clients.producer import Producer
from tests.simulation.clients.settings import ConsumerSettings, ProducerSettings
from tests.simulation.clients.support import Clients

PRODUCERS = {
    "idempotent": ProducerSettings(),
    "plain": ProducerSettings(is_idempotent=False),
    "leader-only": ProducerSettings(is_idempotent=False, acks=1),
}


@pytest.mark.parametrize("kind", PRODUCERS)
def test_healthy_brokers_deliver_everything(kind: str) -> None:
    clients = Clients()
    producer = clients.start(Producer, "producer.0", PRODUCERS[kind], clients.places)
    consumer = clients.start(Consumer, "consumer.0", ConsumerSettings(), clients.places)
    committed = clients.start(Consumer, "consumer.1", ConsumerSettings(isolation=READ_COMMITTED), clients.places)
    clients.cluster.advance(2)
    clients.run(producer.stop(), consumer.finish(), committed.finish())
    history = clients.judge()
    assert producer.acknowledged == len(history.values) > 20
    assert not producer.failed and not producer.bumps
    assert not consumer.fetcher.resets and not consumer.fetcher.truncations


@pytest.mark.parametrize("kind", PRODUCERS)
def test_clients_go_on_after_a_leader_was_killed(kind: str) -> None:
    clients = Clients()
    producer = clients.start(Producer, "producer.0", PRODUCERS[kind], clients.places)
    consumer = clients.start(Consumer, "consumer.0", ConsumerSettings(), clients.places)
    clients.cluster.advance(1)
    before = producer.acknowledged
    clients.cluster.kill(clients.cluster.leader("t", 0))
    clients.cluster.advance(3)
    clients.run(producer.stop(), consumer.finish())
    clients.judge()
    assert before and producer.acknowledged > before + 20
    if kind == "idempotent":
        assert not producer.failed and not producer.bumps
    assert not consumer.fetcher.resets and not consumer.fetcher.truncations
    kinds = [type(event) for event in clients.history]
    assert Read in kinds and Listed in kinds and (Acknowledged in kinds) == (kind != "leader-only")


def test_the_same_seed_gives_the_same_history() -> None:
    def run() -> list[Event]:
        clients = Clients()
        producer = clients.start(Producer, "producer.0", ProducerSettings(), clients.places)
        clients.start(Consumer, "consumer.0", ConsumerSettings(), clients.places)
        clients.cluster.advance(1)
        clients.cluster.kill(clients.cluster.leader("t", 0))
        clients.run(producer.stop())
        return clients.history

    first = run()
    assert len(first) > 20
    assert run() == first
