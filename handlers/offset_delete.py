"""OffsetDelete (key 47), v0: delete a group's offsets for some partitions (KIP-496)."""

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
    """Delete the offsets; answer when their tombstones are in the log."""
    deletion = _OffsetDeletion(request, services)
    outcome = services.coordinators.groups.delete_offsets(request.group_id, list(deletion.known))
    if isinstance(outcome, Deferred):
        return Pending(outcome.addCallback(deletion.build_response))
    return deletion.build_response(outcome)


class _OffsetDeletion:
    """One request; ``known`` holds its existing partitions, with their results."""

    def __init__(self, request: OffsetDeleteRequest, services: Services) -> None:
        self.known: dict[tuple[str, int], list[OffsetDeleteResponsePartition]] = {}
        self._image = services.metadata.image
        self._topics = [
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    self._answer_partition(topic.name, partition.partition_index) for partition in topic.partitions
                ],
            )
            for topic in request.topics
            if topic.partitions
        ]

    def _answer_partition(self, topic: str, index: int) -> OffsetDeleteResponsePartition:
        answer = OffsetDeleteResponsePartition(partition_index=index)
        if self._image.partition(topic, index) is None:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            self.known.setdefault((topic, index), []).append(answer)
        return answer

    def build_response(self, outcome: ErrorCode | list[ErrorCode]) -> OffsetDeleteResponse:
        if isinstance(outcome, ErrorCode):
            return OffsetDeleteResponse(error_code=outcome)
        for answers, code in zip(self.known.values(), outcome, strict=True):
            for answer in answers:
                answer.error_code = code
        return OffsetDeleteResponse(topics=self._topics)
