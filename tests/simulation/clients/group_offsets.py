"""Committing the offsets of a group, and recording it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafkacompat.history.events import Commit, CommitAcknowledged, HistoryPartition
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkacompat.wire.errors import KafkaError
from tests.simulation.clients.coordinators import Coordinator
from tests.simulation.clients.process import ClientProcess


@dataclass(frozen=True)
class GroupMember:
    """A member of a group in whose name offsets are committed; ``generation`` is the member epoch in the consumer protocol."""

    group: str
    member_id: str
    generation: int


class RecordedCommits:
    """The commits of one client, which are numbered in the history."""

    def __init__(self, process: ClientProcess) -> None:
        self._process = process
        self._next = 0

    def record(
        self, client: str, group: str, offsets: Mapping[HistoryPartition, int], transaction: int | None = None
    ) -> list[int]:
        """Record that offsets are about to be committed; return the numbers of the commits."""
        numbers = list(range(self._next, self._next + len(offsets)))
        self._next += len(offsets)
        for number, (place, offset) in zip(numbers, offsets.items(), strict=True):
            self._process.record(Commit(self._process.now_ns(), client, number, group, place, offset, transaction))
        return numbers

    def record_acknowledged(self, client: str, numbers: list[int]) -> None:
        """Record that the coordinator acknowledged commits."""
        for number in numbers:
            self._process.record(CommitAcknowledged(self._process.now_ns(), client, number))


async def commit_offsets(
    process: ClientProcess,
    commits: RecordedCommits,
    coordinator: Coordinator,
    member: GroupMember,
    offsets: Mapping[HistoryPartition, int],
) -> bool:
    """Commit offsets in the name of a member; return whether the coordinator acknowledged all of them."""
    numbers = commits.record(process.name, member.group, offsets)
    sender = member.member_id, member.generation
    try:
        # The ids of topics may be unknown at the first attempt.
        await coordinator.ask(lambda: _build_commit(process, member.group, *sender, offsets), _find_commit_error)
    except KafkaError:
        # The group is in its next generation, for example: another member reads on from an earlier commit.
        return False
    commits.record_acknowledged(process.name, numbers)
    return True


def _build_commit(
    process: ClientProcess, group: str, member_id: str, generation: int, offsets: Mapping[HistoryPartition, int]
) -> OffsetCommitRequest:
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for place, offset in offsets.items():
        topic = OffsetCommitRequestTopic(
            name=place.topic, topic_id=process.cluster.topic_id(place.topic), partitions=[]
        )
        topics.setdefault(place.topic, topic).partitions.append(
            OffsetCommitRequestPartition(
                partition_index=place.partition, committed_offset=offset, committed_metadata=""
            )
        )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=list(topics.values()),
    )


def _find_commit_error(response: OffsetCommitResponse) -> int:
    codes = (partition.error_code for topic in response.topics for partition in topic.partitions)
    return next((code for code in codes if code), 0)
