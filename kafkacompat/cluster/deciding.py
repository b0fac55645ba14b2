"""Decisions about the partitions that a request or a tool names: each succeeds or fails by itself."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.cluster.decisions.situation import Decision, PartitionResults, Situation, TopicPartition
from kafkacompat.wire.errors import KafkaError

if TYPE_CHECKING:
    from kafkacompat.metadata.draft import MetadataDraft

Decide: TypeAlias = "Callable[[Callable[[MetadataDraft, Situation], Decision]], Coroutine[Deferred[Any], Any, object]]"
"""Commits and announces a decision."""
Results: TypeAlias = Mapping[TopicPartition, "KafkaError | None"]
"""None or an error for each partition."""


async def decide_each(decide: Decide, change: Callable[[MetadataDraft, Situation], PartitionResults]) -> Results:
    """Decide about several partitions; return None or an error for each."""
    results: dict[TopicPartition, KafkaError | None] = {}

    def plan(draft: MetadataDraft, situation: Situation) -> Decision:
        made = change(draft, situation)
        # A commit that is repeated plans again.
        results.clear()
        results.update(made.results)
        return Decision(situation, made.changed)

    await decide(plan)
    return results
