"""ListGroups, DeleteGroups and OffsetDelete."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.groups.deletion import GroupDeletion
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.wire.apis.list_groups import ListedGroup
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)

DeleteAnswer: TypeAlias = "ErrorCode | Deferred[ErrorCode]"
OffsetDeleteOutcome: TypeAlias = "ErrorCode | list[ErrorCode]"
OffsetDeleteAnswer: TypeAlias = "OffsetDeleteOutcome | Deferred[OffsetDeleteOutcome]"


class GroupAdministration:
    """Lists groups, and deletes groups and offsets, for administrators."""

    def __init__(self, registry: GroupRegistry, deletion: GroupDeletion) -> None:
        self._registry = registry
        self._deletion = deletion

    def list(self, states: Iterable[str], types: Iterable[str]) -> ErrorCode | Iterator[ListedGroup | None]:
        """List the groups that are in one of *states* and of one of *types*, ignoring case. Without names all match.

        Each group that is left out yields None, so that a caller may end its turn. Blanks around a state are ignored, blanks around a
        type are not, as in Kafka.
        """
        if self._registry.is_stopped:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if any(shard.is_loading for shard in self._registry.shards.values()):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        wanted_states = {state.strip().lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        return (
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.listed_protocol_type,
                group_state=group.state_name,
                group_type=group.TYPE,
            )
            if (not wanted_types or group.TYPE in wanted_types)
            and (not wanted_states or group.state_name.lower() in wanted_states)
            else None
            for group in [*self._registry.by_id.values()]
        )

    def delete(self, group_id: str) -> DeleteAnswer:
        """Delete an empty group and its offsets, once the log has decided on the commits under way."""
        error = self._registry.check(group_id)
        if error:
            return error
        waiting = self._registry.shard_for(group_id).writer.wait_for_writes()
        return waiting.addCallback(self._delete_settled, group_id) if waiting else self._delete(group_id)

    def _delete_settled(self, is_settled: bool, group_id: str) -> DeleteAnswer:
        return self._delete(group_id) if is_settled else ErrorCode.COORDINATOR_NOT_AVAILABLE

    def _delete(self, group_id: str) -> DeleteAnswer:
        group = self._registry.find(group_id)
        if isinstance(group, ErrorCode):
            return group or ErrorCode.GROUP_ID_NOT_FOUND
        if not group.is_empty:
            return ErrorCode.NON_EMPTY_GROUP
        log.info("Deleting group %s", group_id)
        return self._deletion.delete_group(group)

    def delete_offsets(self, group_id: str, partitions: Sequence[tuple[str, int]]) -> OffsetDeleteAnswer:
        """Delete a group's offsets for some partitions, once the log has decided on the commits under way.

        Returns one code for each partition, GROUP_SUBSCRIBED_TO_TOPIC if members still read it, or one code for all. A group
        whose members are not consumers keeps its offsets.
        """
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        error = self._registry.check(group_id)
        if error:
            return error
        waiting = self._registry.shard_for(group_id).writer.wait_for_writes()
        if waiting is None:
            return self._delete_offsets(group_id, partitions)
        return waiting.addCallback(
            lambda is_settled: (
                self._delete_offsets(group_id, partitions) if is_settled else ErrorCode.COORDINATOR_NOT_AVAILABLE
            )
        )

    def _delete_offsets(self, group_id: str, partitions: Sequence[tuple[str, int]]) -> OffsetDeleteAnswer:
        group = self._registry.find(group_id)
        if isinstance(group, ErrorCode):
            return group or ErrorCode.GROUP_ID_NOT_FOUND
        if not group.is_empty and not group.is_of_consumers:
            return ErrorCode.NON_EMPTY_GROUP
        codes = [
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed(topic) else ErrorCode.NONE
            for topic, _ in partitions
        ]
        committed = group.offsets
        deletable = {name: None for name, code in zip(partitions, codes, strict=True) if not code and name in committed}
        if not deletable:
            return codes
        return self._deletion.delete_offsets(group, deletable).addCallback(partial(_as_outcome, codes))


def _as_outcome(codes: list[ErrorCode], written: ErrorCode) -> OffsetDeleteOutcome:
    return written or codes
