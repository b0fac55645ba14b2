"""Moving the leader of a partition, as kafka-reassign-partitions.sh and kafka-leader-election.sh do it, for tests of clients."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from kafkacompat.handlers.context import Peer, RequestContext
from kafkacompat.server.direct_requests import answer_directly
from kafkacompat.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions

if TYPE_CHECKING:
    from kafkacompat.handlers.context import Services
    from kafkacompat.metadata.image import PartitionImage
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.wire.schema import Request

log = logging.getLogger(__name__)

ANY = -1
ATTEMPTS = 50
PAUSE_S = 0.1
CLIENT_ID = "faults"


class LeaderMoves:
    """Moves leaders by requests of the broker to itself, which *dispatcher* forwards to the controller."""

    def __init__(self, dispatcher: Dispatcher, services: Services) -> None:
        self._dispatcher = dispatcher
        self._services = services

    def begin(self, topic: str, partition: int, broker: int) -> None:
        """Begin to move a leader; the outcome is logged. See `FaultTools`."""
        moving = Deferred.fromCoroutine(self._move(topic, partition, broker))
        moving.addErrback(lambda failure: log.error("Fault move_leader failed", exc_info=failure.value))

    async def _move(self, topic: str, partition: int, broker: int) -> None:
        state = self._find_state(topic, partition)
        if state is None:
            log.warning("Fault move_leader: there is no partition %s-%d", topic, partition)
            return
        target = _choose_target(state, broker)
        if target is None:
            where = "any broker" if broker == ANY else f"broker {broker}"
            log.warning("Fault move_leader: %s-%d has no in-sync follower on %s", topic, partition, where)
            return
        replicas = [target, *(replica for replica in state.replicas if replica != target)]
        wanted = ReassignableTopic(
            name=topic, partitions=[ReassignablePartition(partition_index=partition, replicas=replicas)]
        )
        await self._send(AlterPartitionReassignmentsRequest(topics=[wanted]))
        for _ in range(ATTEMPTS):
            elected = TopicPartitions(topic=topic, partitions=[partition])
            await self._send(ElectLeadersRequest(topic_partitions=[elected]))
            state = self._find_state(topic, partition)
            if state is not None and state.leader == target:
                log.info("Fault move_leader: %s-%d is led by broker %d now", topic, partition, target)
                return
            await deferLater(self._services.clock, PAUSE_S)  # type: ignore[arg-type]
        log.warning("Fault move_leader: broker %d did not become the leader of %s-%d", target, topic, partition)

    def _find_state(self, topic: str, partition: int) -> PartitionImage | None:
        return self._services.metadata.image.partition(topic, partition)

    async def _send(self, request: Request) -> None:
        context = RequestContext(request.VERSIONS.last, CLIENT_ID, Peer("", "", 0, "", 0))
        await answer_directly(self._dispatcher, request, context)


def _choose_target(state: PartitionImage, broker: int) -> int | None:
    """Return the replica that becomes the leader: *broker* if it is in sync, or the next one in the order of preference."""
    others = [replica for replica in state.replicas if replica in state.in_sync_replicas and replica != state.leader]
    if broker != ANY:
        return broker if broker in others else None
    return others[0] if others else None
