"""Requests to the leader of a partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkacompat.history.events import READ_COMMITTED, HistoryPartition, Isolation, Listed
from kafkacompat.wire.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkacompat.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.schema import Request
from tests.simulation.clients.errors import RETRIABLE, check
from tests.simulation.clients.process import ClientProcess

LATEST, EARLIEST = -1, -2
CONSUMER = -1


async def ask_leader(
    process: ClientProcess, place: HistoryPartition, build: Callable[[int], Request]
) -> tuple[Any, int]:
    """Send the request for a leader epoch to the leader; return its answer for the partition and the time of asking (ns).

    Raises KafkaError for an error after which no client repeats the request.
    """
    backoff = process.make_backoff()
    while True:
        leader = process.cluster.find_leader(place)
        if leader is not None:
            asked_ns = process.now_ns()
            try:
                response = await process.try_send(process.cluster.broker(leader.node_id), build(leader.epoch))
                answer = response.topics[0].partitions[0]
                check(answer.error_code, place)
            except KafkaError as problem:
                if problem.code not in RETRIABLE:
                    raise
            else:
                return answer, asked_ns
        process.cluster.request_update()
        await process.sleep(backoff.next_s())


async def find_offset(
    process: ClientProcess, place: HistoryPartition, timestamp: int, isolation: Isolation
) -> tuple[int, int]:
    """Look up the offset of a timestamp, LATEST or EARLIEST; return it and the time of asking (ns)."""
    answer, asked_ns = await _look_up(process, place, timestamp, isolation)
    return answer.offset, asked_ns


async def _look_up(
    process: ClientProcess, place: HistoryPartition, timestamp: int, isolation: Isolation
) -> tuple[Any, int]:

    def build(epoch: int) -> ListOffsetsRequest:
        partition = ListOffsetsPartition(
            partition_index=place.partition, current_leader_epoch=epoch, timestamp=timestamp
        )
        return ListOffsetsRequest(
            replica_id=CONSUMER,
            isolation_level=int(isolation == READ_COMMITTED),
            topics=[ListOffsetsTopic(name=place.topic, partitions=[partition])],
        )

    return await ask_leader(process, place, build)


async def list_end(
    process: ClientProcess,
    place: HistoryPartition,
    isolation: Isolation,
    is_current: Callable[[HistoryPartition, int], bool] = lambda place, leader_epoch: True,
) -> int:
    """List a partition's end for readers at an isolation level, and record it.

    The end of a leader whose epoch is not current is not recorded: it may not know yet that another one leads.
    """
    answer, asked_ns = await _look_up(process, place, LATEST, isolation)
    if is_current(place, answer.leader_epoch):
        process.record(Listed(process.now_ns(), process.name, isolation, place, answer.offset, asked_ns))
    return int(answer.offset)


async def find_epoch_end(process: ClientProcess, place: HistoryPartition, leader_epoch: int) -> tuple[int, int]:
    """Return the largest epoch that is at most *leader_epoch*, and its end offset; -1 without one."""

    def build(epoch: int) -> OffsetForLeaderEpochRequest:
        partition = OffsetForLeaderPartition(
            partition=place.partition, current_leader_epoch=epoch, leader_epoch=leader_epoch
        )
        return OffsetForLeaderEpochRequest(
            replica_id=CONSUMER, topics=[OffsetForLeaderTopic(topic=place.topic, partitions=[partition])]
        )

    answer, _ = await ask_leader(process, place, build)
    return answer.leader_epoch, answer.end_offset
