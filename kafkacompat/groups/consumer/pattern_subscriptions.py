"""Subscriptions by pattern: which topics there are for them is looked up a little at a turn, beside other requests.

Who joins with a new pattern waits for its topics, which takes milliseconds; Kafka tells it of them with the second
heartbeat, five seconds later.

All patterns of a group are matched at once, so that a new topic makes one rebalance and not several. They are matched
again when there are new topics, but at most every ten seconds, and every group.consumer.regex.refresh.interval.ms.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from enum import Enum, auto
from time import thread_time

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator

from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.consumer.contents import Contents, ResolvedPattern
from kafkacompat.groups.consumer.draft import Draft
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.group_writer import Storing
from kafkacompat.groups.consumer.member import ConsumerMember
from kafkacompat.groups.consumer.retargeting import bump, bump_if_topics_changed
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.metadata.image import ImageHolder, MetadataImage
from kafkacompat.patterns import Pattern, PatternError
from kafkacompat.timers import TURN_SECONDS, Clock, now_ms
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

MOST_SECONDS = 2.0
"""So much work is done to find the topics of one pattern: most take some 20 ms for 10,000 topics."""


class Subscription(Enum):
    """What a heartbeat did to the pattern that its sender is subscribed to."""

    UNCHANGED = auto()
    UNKNOWN = auto()  # another one, and its topics are not known yet
    KNOWN = auto()  # another one with known topics, or none any more


class Patterns:
    """Keeps the patterns of consumer groups resolved."""

    def __init__(
        self,
        clock: Clock,
        settings: ConsumerGroupSettings,
        registry: GroupRegistry,
        outbox: Outbox,
        metadata: ImageHolder,
        storing: Storing,
        cooperator: Cooperator,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._outbox = outbox
        self._metadata = metadata
        self._storing = storing
        self._cooperator = cooperator
        self._topics = TopicsVersion()

    def is_new(self, group_id: str, pattern: str | None) -> bool:
        """Whether it is not known yet which topics a pattern matches for a group."""
        group = self._registry.by_id.get(group_id)
        return bool(pattern) and not (isinstance(group, ConsumerGroup) and pattern in group.contents.patterns)

    def look_up(self, pattern: str) -> Deferred[ResolvedPattern]:
        """Find the topics of a pattern; raises KafkaError: INVALID_REGULAR_EXPRESSION."""
        _check(pattern)
        found: dict[str, ResolvedPattern] = {}
        walk = self._cooperator.coiterate(_resolve([pattern], self._metadata.image, now_ms(self._clock), found))
        return walk.addCallback(lambda _: found[pattern])

    def subscribe(
        self,
        draft: Draft,
        before: Contents,
        old: ConsumerMember,
        new: ConsumerMember,
        found: ResolvedPattern | None,
    ) -> Subscription:
        """Take the pattern that a member is subscribed to now; raises KafkaError: INVALID_REGULAR_EXPRESSION.

        *before* is what the group was without this heartbeat, *found* what was looked up for the pattern, if it was.
        """
        if old.pattern == new.pattern:
            return Subscription.UNCHANGED
        if old.pattern and before.pattern_members[old.pattern] == 1:
            draft.set_pattern(old.pattern, None)
        if not new.pattern:
            return Subscription.KNOWN if old.pattern else Subscription.UNKNOWN
        if new.pattern in before.patterns:
            return Subscription.KNOWN
        _check(new.pattern)
        if found is None:
            return Subscription.UNKNOWN
        draft.set_pattern(new.pattern, found)
        return Subscription.KNOWN

    def refresh_if_due(self, group: ConsumerGroup) -> None:
        """Look the topics of a group's patterns up again if it is time to."""
        contents = group.contents
        wanted = list(contents.pattern_members)
        if not wanted or group.is_resolving:
            return
        at_ms = now_ms(self._clock)
        version = self._topics.version(self._metadata.image)
        known = [contents.patterns[pattern] for pattern in wanted if pattern in contents.patterns]
        last_ms = max((each.timestamp_ms for each in known), default=None)
        if last_ms is not None and at_ms <= last_ms + self._settings.patterns_refresh_least_ms:
            return
        is_old = last_ms is not None and at_ms > last_ms + self._settings.regex_refresh_interval_ms
        if len(known) < len(wanted) or group.resolved_topics_version < version or is_old:
            self._refresh(group, wanted, version, at_ms)

    def _refresh(self, group: ConsumerGroup, wanted: Collection[str], version: int, at_ms: int) -> None:
        group.is_resolving = True
        image = self._metadata.image
        found: dict[str, ResolvedPattern] = {}
        walk = self._cooperator.coiterate(_resolve(wanted, image, at_ms, found))
        walk.addBoth(self._ended, group)
        walk.addCallback(lambda _: self._outbox.run(self._resolved, group, found, version))
        walk.addErrback(lambda failure: log.error("group %s: patterns failed", group.group_id, exc_info=failure.value))

    def _ended(self, outcome: object, group: ConsumerGroup) -> object:
        group.is_resolving = False
        return outcome

    def _resolved(self, group: ConsumerGroup, found: dict[str, ResolvedPattern], version: int) -> None:
        if not self._registry.is_current(group):
            return
        draft = Draft(group.group_id, group.contents)
        has_new_topics = False
        for pattern, resolved in found.items():
            if pattern in group.contents.pattern_members:
                known = group.contents.patterns.get(pattern)
                has_new_topics |= resolved.topics != (known.topics if known else frozenset())
                draft.set_pattern(pattern, resolved)
        (bump if has_new_topics else bump_if_topics_changed)(draft, self._metadata.image)
        try:
            self._storing.check_room(group, draft)
        except KafkaError as problem:
            log.error("group %s: the topics of its patterns are not taken: %s", group.group_id, problem.detail)
            return
        group.resolved_topics_version = version
        if draft.changes:
            self._storing.store(group, draft, [])


class TopicsVersion:
    """Tells when there are new topics."""

    def __init__(self) -> None:
        self._image = MetadataImage()
        self._version = 0

    def version(self, image: MetadataImage) -> int:
        """The version of the first image with the newest topic."""
        if image is not self._image:
            if image.topics_by_id.keys() - self._image.topics_by_id.keys():
                self._version = image.version
            self._image = image
        return self._version


def _check(text: str) -> None:
    try:
        Pattern(text)
    except PatternError as problem:
        message = f"subscribed_topic_regex={text} is no regular expression of RE2: {problem}"
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None


def _resolve(
    wanted: Collection[str], image: MetadataImage, at_ms: int, found: dict[str, ResolvedPattern]
) -> Iterator[None]:
    """Fill *found*, with a pause (a yield) before each piece of work."""
    for text in wanted:
        yield
        topics: set[str] = set()
        yield from _match(text, image, topics.add)
        found[text] = ResolvedPattern(frozenset(topics), image.version, at_ms)


def _match(text: str, image: MetadataImage, add: Callable[[str], None]) -> Iterator[None]:
    try:
        pattern = Pattern(text)
    except PatternError as problem:
        # A log that Kafka wrote may hold what it reads and we do not.
        log.error("the pattern %s is not read: %s", text, problem)
        return
    left, turn_began = MOST_SECONDS, thread_time()
    for topic in tuple(image.topics):
        if pattern.matches(topic):
            add(topic)
        took = thread_time() - turn_began
        if took < TURN_SECONDS:
            continue
        left -= took
        if left < 0:
            log.error("the pattern %s takes more than %g s: it is left with what it matched", text, MOST_SECONDS)
            return
        yield
        turn_began = thread_time()
