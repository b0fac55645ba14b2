"""Copiers beside three brokers."""

from __future__ import annotations

import pytest

from kafkacompat.history.events import HistoryPartition
from tests.simulation.clients.copier import Copier
from tests.simulation.clients.settings import CopierSettings, MemberSettings, TransactionalSettings
from tests.simulation.clients.support import Clients
from tests.simulation.clients.test_member import PROPERTIES
from tests.simulation.clients.transactional_producer import TransactionalProducer

TARGETS = [HistoryPartition("copies", 0)]


def start_copiers(clients: Clients, protocol: str, version: int) -> list[Copier]:
    clients.cluster.create("copies")
    member = MemberSettings(
        isolation="read_committed",
        group="copiers",
        protocol=protocol,
        session_timeout_s=2,
        rebalance_timeout_s=2,
        heartbeat_interval_s=0.3,
    )
    copiers = []
    for number in range(2):
        producer = TransactionalSettings(
            transactional_id=f"copier-{number}", transaction_timeout_s=4, transaction_version=version
        )
        settings = CopierSettings(member=member, producer=producer)
        copiers.append(clients.start(Copier, f"copier-{number}.0", settings, ["t"], TARGETS))
    return copiers


@pytest.mark.parametrize(("protocol", "version"), [("classic", 0), ("consumer", 2)])
def test_each_committed_record_is_copied_once(protocol: str, version: int) -> None:
    clients = Clients(**PROPERTIES)
    writer = clients.start(TransactionalProducer, "writer.0", TransactionalSettings(zombie_share=0), clients.places)
    copiers = start_copiers(clients, protocol, version)
    clients.cluster.wait(lambda: sum(copier.outcomes["committed"] for copier in copiers) > 3)
    clients.run(writer.stop(), *(copier.stop() for copier in copiers))
    clients.judge(groups=["copiers"], places=TARGETS)
    assert not any(copier.outcomes["fatal"] for copier in copiers)


@pytest.mark.parametrize(("protocol", "version"), [("classic", 2), ("consumer", 0)])
def test_copies_survive_a_killed_broker(protocol: str, version: int) -> None:
    clients = Clients(**PROPERTIES)
    writer = clients.start(TransactionalProducer, "writer.0", TransactionalSettings(zombie_share=0), clients.places)
    copiers = start_copiers(clients, protocol, version)
    clients.cluster.wait(lambda: any(copier.outcomes["committed"] for copier in copiers))
    clients.cluster.kill(clients.cluster.leader("copies", 0))
    before = sum(copier.outcomes["committed"] for copier in copiers)
    clients.cluster.wait(lambda: sum(copier.outcomes["committed"] for copier in copiers) > before + 2)
    clients.run(writer.stop(), *(copier.stop() for copier in copiers))
    clients.judge(groups=["copiers"], places=TARGETS)
