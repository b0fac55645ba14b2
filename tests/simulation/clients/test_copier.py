"""Copiers beside three brokers."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.client.settings import BrokerAddress
from kafkacompat.history.events import Fetched, HistoryPartition
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from kafkacompat.wire.apis.txn_offset_commit import TxnOffsetCommitRequest
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Request
from tests.simulation.clients.copier import Copier
from tests.simulation.clients.settings import CopierSettings, MemberSettings, TransactionalSettings
from tests.simulation.clients.support import Clients
from tests.simulation.clients.test_member import PROPERTIES
from tests.simulation.clients.transactional_producer import TransactionalProducer

TARGETS = [HistoryPartition("copies", 0)]


def start_copier(clients: Clients, number: int, protocol: str, version: int) -> Copier:
    member = MemberSettings(
        isolation="read_committed",
        group="copiers",
        protocol=protocol,
        session_timeout_s=2,
        rebalance_timeout_s=2,
        heartbeat_interval_s=0.3,
    )
    producer = TransactionalSettings(
        transactional_id=f"copier-{number}", transaction_timeout_s=4, transaction_version=version
    )
    settings = CopierSettings(member=member, producer=producer)
    copier: Copier = clients.start(Copier, f"copier-{number}.0", settings, ["t"], TARGETS)
    return copier


def start_copiers(clients: Clients, protocol: str, version: int) -> list[Copier]:
    clients.cluster.create("copies")
    return [start_copier(clients, number, protocol, version) for number in range(2)]


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


def count_fetched(clients: Clients, copier: Copier) -> int:
    return sum(isinstance(event, Fetched) and event.client == copier.process.name for event in clients.history)


class _Rejoining:
    """Loses a client's commits, and lets the client join its group again meanwhile, until ``has_ended``."""

    def __init__(self, copier: Copier, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lost = self.rejoined = 0
        self.has_ended = False
        self._try_send = copier.process.try_send
        monkeypatch.setattr(copier.process, "try_send", self._send)

    async def _send(self, broker: BrokerAddress, request: Request, *further: Any) -> Any:
        if isinstance(request, TxnOffsetCommitRequest) and not self.has_ended:
            self.lost += 1
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "lost")
        if isinstance(request, HeartbeatRequest) and self.lost and not self.rejoined:
            self.rejoined += 1
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "join again")
        return await self._try_send(broker, request, *further)


def test_a_copier_that_rejoins_its_generation_reads_on_after_its_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = Clients(**PROPERTIES)
    writer = clients.start(TransactionalProducer, "writer.0", TransactionalSettings(zombie_share=0), clients.places)
    clients.cluster.create("copies")
    leader = start_copier(clients, 0, "classic", 0)
    clients.cluster.wait(lambda: bool(leader.outcomes["committed"]))
    # The leader of the group would begin a rebalance, and the commit would be of an earlier generation then.
    follower = start_copier(clients, 1, "classic", 0)
    clients.cluster.wait(lambda: bool(follower.outcomes["committed"]))
    rejoining = _Rejoining(follower, monkeypatch)
    clients.cluster.wait(lambda: bool(rejoining.lost))
    fetched = count_fetched(clients, follower)
    clients.cluster.wait(lambda: bool(rejoining.rejoined))
    clients.cluster.advance(1)
    assert count_fetched(clients, follower) == fetched
    rejoining.has_ended = True
    clients.cluster.wait(lambda: count_fetched(clients, follower) > fetched)
    clients.run(writer.stop(), leader.stop(), follower.stop())
    clients.judge(groups=["copiers"], places=TARGETS)
