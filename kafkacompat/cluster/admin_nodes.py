"""What old tools and brokers ask of the controller by writing to ZooKeeper: topics, elections, reassignments, configurations.

Tools up to 2.8 with --zookeeper write the nodes that the controller of that time watches. The controller carries out what they
want and deletes the node, by which a tool knows that it is done. Watches fire once: each handler reads and watches again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from twisted.internet.defer import Deferred, gatherResults

from kafkacompat.cluster.bounces import find_bounced
from kafkacompat.cluster.deciding import Decide, Results, decide_each
from kafkacompat.cluster.decisions.broker_changes import elect_leaderless, end_reassignments, fail_over
from kafkacompat.cluster.decisions.foreign_topics import accept_topics
from kafkacompat.cluster.decisions.leader_balance import ElectionType, elect_leaders
from kafkacompat.cluster.decisions.reassignment import keep_unfinished, reassign_stored
from kafkacompat.cluster.decisions.situation import Decision, Situation, TopicPartition, changes_unclean_elections
from kafkacompat.cluster.decisions.topic_deletion import resume_deletions
from kafkacompat.cluster.notifications import Notifications
from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes.administration import (
    decode_isr_change,
    decode_preferred_election,
    decode_reassignment,
    encode_reassignment,
)
from kafkacompat.metadata.znodes.configs import decode_config_change
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import ZERO_UUID, new_uuid
from kafkacompat.zookeeper.client import BadVersionError, NodeStat, NoNodeError, WatchEvent, WatchKind, ZooKeeper

if TYPE_CHECKING:
    from kafkacompat.metadata.draft import MetadataDraft
    from kafkacompat.metadata.image import MetadataImage, TopicImage
    from kafkacompat.metadata.ledger import MetadataLedger

log = logging.getLogger(__name__)

TOPICS = Znode.TOPICS.path()
CONFIG_CHANGES = Znode.CONFIG_CHANGES.path()
ISR_CHANGES = Znode.ISR_CHANGES.path()
PREFERRED_ELECTION = Znode.PREFERRED_ELECTION.path()
REASSIGNMENT = Znode.REASSIGNMENT.path()

READS_AT_ONCE = 64

Work: TypeAlias = Callable[[], Coroutine[Deferred[Any], Any, None]]
Handle: TypeAlias = Callable[[Work, str], None]


class AdminNodes:
    """Watches the nodes for one controller.

    ``handle`` runs an event's work when the controller has nothing else to do; ``decide`` commits and announces a decision.
    """

    def __init__(
        self,
        zookeeper: ZooKeeper,
        ledger: MetadataLedger,
        rng: Random,
        handle: Handle,
        decide: Decide,
        situation: Callable[[], Situation],
        find_topic_id: Callable[[TopicImage], bytes],
    ) -> None:
        self._zookeeper = zookeeper
        self._ledger = ledger
        self._rng = rng
        self._handle = handle
        self._decide = decide
        self._situation = situation
        self._find_topic_id = find_topic_id
        self._scheduled: set[str] = set()
        self._topics: frozenset[str] = frozenset()
        self._watched: set[str] = set()
        self._without_id: set[str] = set()
        self._notifications = Notifications(zookeeper, CONFIG_CHANGES, self._on_config_changes)
        self._reassignments: Mapping[TopicPartition, Sequence[int]] = {}
        self._reassignments_version = 0

    async def load(self) -> None:
        """Read the metadata as the first step of a controller, and complete the topics that lack an id; raises StoreError.

        The ledger has the brokers already. What the nodes hold is carried out afterwards.
        """
        # The watch first: a change in between is read twice rather than never.
        await self._notifications.begin()
        await self._ledger.load()
        await self._accept_topics(self._ledger.image.topics.keys(), {})
        self._read_all()

    def look_again(self) -> None:
        """Read again what the watches of a lost connection may have missed."""
        self._read_all()
        self._schedule(self._read_config_changes, "changed configurations")

    def _read_all(self) -> None:
        self._schedule(self._list_topics, "new topics")
        self._schedule(self._elect_preferred, "a requested election")
        self._schedule(self._reassign, "requested reassignments")
        self._schedule(self._read_isr_changes, "changed in-sync sets")

    def notice_change(self, image: MetadataImage) -> None:
        """Learn of the image after a decision: it may end reassignments that a tool waits for."""
        if keep_unfinished(image, self._reassignments) != self._reassignments:
            self._schedule(self._settle_reassignments, "the end of reassignments")

    def _schedule(self, work: Work, subject: str) -> None:
        """Handle an event, unless one of its kind waits already."""
        if subject in self._scheduled:
            return
        self._scheduled.add(subject)

        async def begin() -> None:
            self._scheduled.discard(subject)
            await work()

        self._handle(begin, subject)

    def _watch(self, work: Work, subject: str, event: WatchEvent) -> None:
        if event.kind is not WatchKind.LOST:
            self._schedule(work, subject)

    # Topics

    async def _list_topics(self) -> None:
        receive = partial(self._watch, self._list_topics, "new topics")
        self._topics = frozenset(await self._zookeeper.children(TOPICS, receive))
        gone = self._ledger.image.topics.keys() - self._topics
        await self._refresh_topics(gone | await self._watch_topics())

    async def _read_written_topics(self) -> None:
        await self._refresh_topics(await self._watch_topics())

    async def _watch_topics(self) -> set[str]:
        """Watch the topics that are not watched; return those that others have written."""
        unwatched = sorted(self._topics - self._watched)
        written: set[str] = set()
        for start in range(0, len(unwatched), READS_AT_ONCE):
            names = unwatched[start : start + READS_AT_ONCE]
            reads = [Deferred.fromCoroutine(self._watch_topic(name)) for name in names]
            written.update(name for name in await gatherResults(reads, consumeErrors=True) if name is not None)
        return written

    async def _watch_topic(self, name: str) -> str | None:
        """Watch a topic's node; return its name if its value is not the one that is known, or has no id."""
        path = Znode.TOPIC.path(topic=name)
        self._watched.add(name)
        try:
            _, stat = await self._zookeeper.get(path, partial(self._on_topic, name))
        except NoNodeError:
            self._watched.discard(name)
            return None
        except Exception:
            self._watched.discard(name)
            raise
        known = self._ledger.image.topics.get(name)
        has_id = known is not None and known.topic_id != ZERO_UUID
        return None if has_id and self._ledger.knows_version(path, stat.version) else name

    def _on_topic(self, name: str, event: WatchEvent) -> None:
        self._watched.discard(name)
        self._watch(self._read_written_topics, "changed topics", event)

    async def _refresh_topics(self, names: Iterable[str]) -> None:
        """Take over topics that others have written or removed."""
        before = self._ledger.image.topics
        refreshed = []
        for name in sorted(names):
            try:
                await self._ledger.refresh_topics([name])
            except StoreError as problem:
                log.error("Left out topic %s: %s", name, problem)
            else:
                refreshed.append(name)
        if refreshed:
            await self._accept_topics(refreshed, before)
            log.info("Others have written or removed the topics %s", refreshed)
            image = self._ledger.image
            # Brokers may have started again while a topic that is repaired now was left out.
            returning = [image.topics[name] for name in refreshed if name in image.topics and name not in before]
            bounced = await find_bounced(self._zookeeper, image.brokers, returning)
            await self._decide(partial(_move_leaders, {topic.name for topic in returning}, bounced))
            await self._decide(partial(_elect_and_resume, refreshed))

    async def _accept_topics(self, names: Collection[str], before: Mapping[str, TopicImage]) -> None:
        await self._ledger.commit(
            lambda draft: accept_topics(draft, self._situation(), names, before, self._choose_topic_id)
        )
        topics = self._ledger.image.topics
        self._without_id = {
            name for name in self._without_id.union(names) if name in topics and topics[name].topic_id == ZERO_UUID
        }

    async def complete_topics(self) -> None:
        """Give ids to topics whose in-sync replicas have been away, when brokers have started; raises KafkaError."""
        if self._without_id:
            await self._accept_topics(list(self._without_id), self._ledger.image.topics)

    def _choose_topic_id(self, topic: TopicImage) -> bytes:
        """Return the id of a topic without one: that of its replicas, if it has been led, else a new one.

        A broker that starts with records of such a topic restores the id before it registers. So zeros are returned until an
        in-sync replica's broker is registered: nobody can lead before.
        """
        in_sync = {node for partition in topic.partitions for node in partition.in_sync_replicas}
        known = self._find_topic_id(topic) if in_sync else ZERO_UUID
        if known != ZERO_UUID or (in_sync and not in_sync & self._ledger.image.brokers.keys()):
            return known
        return new_uuid(self._rng)

    # Elections

    async def _elect_preferred(self) -> None:
        node = await self._read(PREFERRED_ELECTION, self._elect_preferred, "a requested election")
        if node is None:
            return
        value, stat = node
        try:
            wanted = [TopicPartition(*key) for key in sorted(decode_preferred_election(value))]
        except StoreError as problem:
            log.error("Left out an election: %s", problem)
            wanted = []
        results = await decide_each(
            self._decide, lambda draft, situation: elect_leaders(draft, situation, ElectionType.PREFERRED, wanted)
        )
        _log_problems("election", results, ErrorCode.ELECTION_NOT_NEEDED)
        await self._delete(PREFERRED_ELECTION, stat.version)

    # Reassignments

    async def _reassign(self) -> None:
        node = await self._read(REASSIGNMENT, self._reassign, "requested reassignments")
        self._reassignments = {}
        if node is None:
            return
        value, stat = node
        try:
            wanted = {TopicPartition(*key): replicas for key, replicas in decode_reassignment(value).items()}
        except StoreError as problem:
            log.error("Left out reassignments: %s", problem)
            await self._delete(REASSIGNMENT, stat.version)
            return
        under_way = keep_unfinished(self._ledger.image, wanted)
        await self._begin_reassignments({key: nodes for key, nodes in wanted.items() if key not in under_way})
        self._reassignments, self._reassignments_version = wanted, stat.version
        await self._settle_reassignments()

    async def _begin_reassignments(self, wanted: Mapping[TopicPartition, Sequence[int]]) -> None:
        if wanted:
            results = await decide_each(
                self._decide, lambda draft, situation: reassign_stored(draft, situation, wanted)
            )
            _log_problems("reassignment", results)

    async def _settle_reassignments(self) -> None:
        """Take reassignments that have ended out of the node, and delete it with the last one."""
        unfinished = keep_unfinished(self._ledger.image, self._reassignments)
        if unfinished == self._reassignments:
            return
        self._reassignments = unfinished
        if not unfinished:
            await self._delete(REASSIGNMENT, self._reassignments_version)
            return
        value = encode_reassignment({(key.topic, key.partition): nodes for key, nodes in unfinished.items()})
        with suppress(NoNodeError, BadVersionError):
            stat = await self._zookeeper.set(REASSIGNMENT, value, self._reassignments_version)
            self._reassignments_version = stat.version

    # States that old brokers have written

    async def _read_isr_changes(self) -> None:
        receive = partial(self._watch, self._read_isr_changes, "changed in-sync sets")
        names = await self._zookeeper.children(ISR_CHANGES, receive)
        paths = [f"{ISR_CHANGES}/{name}" for name in sorted(names)]
        keys: set[TopicPartition] = set()
        for path in paths:
            try:
                value, _ = await self._zookeeper.get(path)
                keys.update(TopicPartition(*key) for key in decode_isr_change(path, value))
            except NoNodeError:
                continue
            except StoreError as problem:
                log.warning("Left out changed in-sync sets: %s", problem)
        known = [key for key in sorted(keys) if self._ledger.image.partition(*key) is not None]
        if known:
            await self._ledger.refresh_states(known)
            await self._decide(lambda draft, situation: end_reassignments(draft, situation, known))
        for path in paths:
            await self._delete(path)

    # Configurations

    def _on_config_changes(self, event: WatchEvent) -> None:
        self._watch(self._read_config_changes, "changed configurations", event)

    async def _read_config_changes(self) -> None:
        keys = await self._notifications.read_new(decode_config_change)
        if keys:
            await self._take_configs(list(dict.fromkeys(keys)))

    async def _take_configs(self, keys: Collection[str]) -> None:
        """Read changed configurations; they may allow the elections that partitions without a leader wait for."""
        before = self._ledger.image
        await self._ledger.refresh_configs(keys)
        after = self._ledger.image
        if before.configs != after.configs:
            names = after.topics.keys() if changes_unclean_elections(before, after) else ()
            await self._decide(partial(_elect_and_resume, names))

    # Nodes

    async def _read(self, path: str, work: Work, subject: str) -> tuple[bytes, NodeStat] | None:
        """Read a node, None if there is none, and let *work* follow its next change."""
        if await self._zookeeper.exists(path, partial(self._watch, work, subject)) is None:
            return None
        try:
            return await self._zookeeper.get(path)
        except NoNodeError:
            return None

    async def _delete(self, path: str, version: int = -1) -> None:
        """Delete a node, unless another one has deleted or changed it."""
        with suppress(NoNodeError, BadVersionError):
            await self._zookeeper.delete(path, version)


def _move_leaders(
    names: Collection[str], gone: Collection[int], draft: MetadataDraft, situation: Situation
) -> Decision:
    return Decision(situation, fail_over(draft, situation, gone, names))


def _elect_and_resume(names: Collection[str], draft: MetadataDraft, situation: Situation) -> Decision:
    """Elect leaders where there are none, and end the deletions of topics that are gone."""
    elected = Decision(situation, elect_leaderless(draft, situation, names))
    gone = [name for name in names if name not in draft.topics]
    return resume_deletions(draft, situation, gone).after(elected)


def _log_problems(change: str, results: Results, expected: ErrorCode | None = None) -> None:
    for key, problem in results.items():
        if problem is not None and problem.code != expected:
            log.warning("The %s of %s-%d that a tool has requested fails: %s", change, *key, problem)
