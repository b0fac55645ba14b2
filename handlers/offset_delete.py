"""OffsetDelete (key 47), v0: forget what a group committed for some partitions (KIP-496)."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafkacompat.wire.errors import ErrorCode


def handle_offset_delete(
    request: OffsetDeleteRequest, context: RequestContext, services: Services
) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
    """Delete the offsets; the answer comes when the log knows that they are gone."""
    deletion = _Deletion(request, services)
    outcome = services.coordinators.groups.delete_offsets(request.group_id, list(deletion.known))
    if isinstance(outcome, Deferred):
        return Pending(outcome.addCallback(deletion.settled))
    return deletion.settled(outcome)


class _Deletion:
    """One request; ``known`` are its partitions that exist, with their places in the answer."""

    def __init__(self, request: OffsetDeleteRequest, services: Services) -> None:
        self.known: dict[tuple[str, int], list[OffsetDeleteResponsePartition]] = {}
        self._image = services.metadata.image
        self._topics = [
            OffsetDeleteResponseTopic(
                name=topic.name, partitions=[self._place(topic.name, each.partition_index) for each in topic.partitions]
            )
            for topic in request.topics
            if topic.partitions
        ]

    def _place(self, topic: str, index: int) -> OffsetDeleteResponsePartition:
        answer = OffsetDeleteResponsePartition(partition_index=index)
        if self._image.partition(topic, index) is None:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            self.known.setdefault((topic, index), []).append(answer)
        return answer

    def settled(self, outcome: ErrorCode | list[ErrorCode]) -> OffsetDeleteResponse:
        if isinstance(outcome, ErrorCode):
            return OffsetDeleteResponse(error_code=outcome)
        for answers, code in zip(self.known.values(), outcome, strict=True):
            for answer in answers:
                answer.error_code = code
        return OffsetDeleteResponse(topics=self._topics)
