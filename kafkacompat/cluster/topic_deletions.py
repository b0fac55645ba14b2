"""The deletion of topics by the controller: nodes below /admin/delete_topics, decisions about them, and clients that wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kafkacompat.cluster.controller_events import not_controller
from kafkacompat.cluster.decisions.topic_deletion import explain_wait, queue_deletions
from kafkacompat.cluster.deletion_waits import DeletionWait, DeletionWaits
from kafkacompat.metadata.topic_changes import AdmitPartitions
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.zookeeper.client import NoNodeError, WatchEvent, WatchKind, ZooKeeper

if TYPE_CHECKING:
    from kafkacompat.cluster.broadcasts import Broadcasts
    from kafkacompat.cluster.controller_events import ControllerEvents
    from kafkacompat.cluster.deciding import Decide
    from kafkacompat.cluster.decisions.situation import Decision, Situation
    from kafkacompat.metadata.ledger import MetadataLedger

log = logging.getLogger(__name__)

DELETED_TOPICS = Znode.DELETED_TOPICS.path()


class TopicDeletions:
    """Deletes topics for one controller; the node of a topic lets the next controller go on if this one dies.

    Without *may_delete* (delete.topic.enable) the requests of old tools are removed, and no topic is deleted.
    """

    def __init__(
        self,
        zookeeper: ZooKeeper,
        ledger: MetadataLedger,
        broadcasts: Broadcasts,
        events: ControllerEvents,
        decide: Decide,
        situation: Callable[[], Situation],
        *,
        may_delete: bool,
    ) -> None:
        self._zookeeper = zookeeper
        self._ledger = ledger
        self._broadcasts = broadcasts
        self._events = events
        self._decide = decide
        self._situation = situation
        self._may_delete = may_delete
        self._waits = DeletionWaits()

    async def delete(self, topic_ids: Sequence[bytes], admit: AdmitPartitions) -> list[KafkaError | None]:
        """Delete topics; return None or an error for each, once all replicas that are alive have deleted them.

        A broker that does not answer holds this up for a while only. A topic that is being reassigned is deleted at the end of that.
        """
        names: dict[bytes, str] = {}
        refused: dict[bytes, KafkaError] = {}
        waits: list[DeletionWait] = []

        async def begin() -> None:
            for topic_id in topic_ids:
                topic = self._ledger.image.topics_by_id.get(topic_id)
                if topic is not None:
                    try:
                        admit(topic.name, len(topic.partitions))
                    except KafkaError as problem:
                        refused[topic_id] = problem.with_traceback(None)
                        continue
                    names[topic_id] = topic.name
                    await self._store_request(topic.name)
                    waits.append(self._waits.add(topic.name))
            await self._begin(names.values())

        await self._events.run(begin)
        for wait in waits:
            await wait.started
        await self._broadcasts.wait_a_while([wait.settled for wait in waits])
        if self._events.is_stopped:
            raise not_controller()
        unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
        return [None if topic_id in names else refused.get(topic_id, unknown) for topic_id in topic_ids]

    async def _store_request(self, topic: str) -> None:
        path = Znode.DELETED_TOPIC.path(topic=topic)
        if await self._zookeeper.exists(path) is None:
            await self._zookeeper.create(path, b"")

    async def _begin(self, names: Collection[str]) -> None:
        await self._decide(lambda draft, situation: queue_deletions(draft, situation, names))
        for name in names:
            if reason := explain_wait(self._ledger.image, self._situation(), name):
                log.info("The deletion of topic %s waits: %s", name, reason)

    async def note_decision(self, decision: Decision) -> None:
        """Remove the nodes of topics that are gone, and answer clients whose topics are."""
        for topic in decision.finished:
            # No topic of this name can be created before: the next controller would delete it.
            with suppress(NoNodeError):
                await self._events.insist(partial(self._zookeeper.delete, Znode.DELETED_TOPIC.path(topic=topic)))
            log.info("Deleted topic %s", topic)
        self._waits.notice(decision.situation.deletions)

    def stop(self) -> None:
        """Let every client learn that another broker has become the controller."""
        self._waits.fail(not_controller())

    # The nodes

    def look_again(self) -> None:
        """Read again what the watches of a lost connection may have missed."""
        self._events.handle(self._queue_new, "topics to delete")

    def _on_nodes(self, event: WatchEvent) -> None:
        if event.kind is not WatchKind.LOST:
            self.look_again()

    async def read(self) -> list[str]:
        """Return the topics to delete, and watch for further ones."""
        names = await self._zookeeper.children(DELETED_TOPICS, self._on_nodes)
        if self._may_delete or not names:
            return names
        log.warning("Left out the deletion of the topics %s, because delete.topic.enable is false", sorted(names))
        for name in names:
            with suppress(NoNodeError):
                await self._zookeeper.delete(Znode.DELETED_TOPIC.path(topic=name))
        return []

    async def _queue_new(self) -> None:
        names = await self.read()
        new = [name for name in names if not self._situation().is_queued(name)]
        if new:
            await self._begin(new)
