"""Subscriptions by pattern. Their topics are looked up over several turns of the reactor, so that other requests go on.

A member that joins with a new pattern waits some milliseconds for its topics. (Kafka returns them with the second heartbeat, five
seconds later.)

All patterns of a group are matched together, so that a new topic causes one rebalance and not several. They are matched again when
there are new topics, at most every ten seconds, and every group.consumer.regex.refresh.interval.ms.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from enum import Enum, auto
from time import thread_time

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator

from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.consumer.contents import GroupContents, ResolvedPattern
from kafkacompat.groups.consumer.draft import GroupDraft
from kafkacompat.groups.consumer.group import CompilePattern, ConsumerGroup, TopicFilter, compile_pattern
from kafkacompat.groups.consumer.group_writer import GroupWriter
from kafkacompat.groups.consumer.member import ConsumerMember
from kafkacompat.groups.consumer.retargeting import increment_epoch, increment_epoch_if_topics_changed
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.metadata.image import ImageHolder, MetadataImage
from kafkacompat.patterns import PatternError
from kafkacompat.timers import TURN_SECONDS, Clock, now_ms
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

MAX_SECONDS = 2.0
"""Maximum CPU time for the topics of one pattern. Most patterns take some 20 ms for 10,000 topics."""


class PatternChange(Enum):
    """How a heartbeat changed the pattern that its sender is subscribed to."""

    UNCHANGED = auto()
    UNKNOWN = auto()  # another pattern, whose topics are not known yet
    KNOWN = auto()  # another pattern, whose topics are known, or no pattern any more


class PatternSubscriptions:
    """Keeps the topics of the patterns of consumer groups up to date."""

    def __init__(
        self,
        clock: Clock,
        settings: ConsumerGroupSettings,
        registry: GroupRegistry,
        outbox: Outbox,
        metadata: ImageHolder,
        storing: GroupWriter,
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
        """Return whether a group does not know the topics of a pattern yet."""
        group = self._registry.by_id.get(group_id)
        return bool(pattern) and not (isinstance(group, ConsumerGroup) and pattern in group.contents.patterns)

    def look_up(
        self, pattern: str, may_see: TopicFilter | None = None, compile_pattern: CompilePattern = compile_pattern
    ) -> Deferred[ResolvedPattern]:
        """Find the topics of a pattern, of those that the client may see. Raises KafkaError: INVALID_REGULAR_EXPRESSION."""
        _check_pattern(pattern, compile_pattern)
        resolved: dict[str, ResolvedPattern] = {}
        walk = self._cooperator.coiterate(
            _resolve_patterns([pattern], self._metadata.image, now_ms(self._clock), resolved, may_see, compile_pattern)
        )
        return walk.addCallback(lambda _: resolved[pattern])

    def subscribe(
        self,
        draft: GroupDraft,
        before: GroupContents,
        old: ConsumerMember,
        new: ConsumerMember,
        resolved: ResolvedPattern | None,
        compile_pattern: CompilePattern = compile_pattern,
    ) -> PatternChange:
        """Add the new pattern of a member to the draft, and remove its old one.

        *before* is the group without this heartbeat. *resolved* has the topics of the pattern, if they were looked up. Raises
        KafkaError: INVALID_REGULAR_EXPRESSION.
        """
        if old.pattern == new.pattern:
            return PatternChange.UNCHANGED
        if old.pattern and before.pattern_members[old.pattern] == 1:
            draft.set_pattern(old.pattern, None)
        if not new.pattern:
            return PatternChange.KNOWN if old.pattern else PatternChange.UNKNOWN
        if new.pattern in before.patterns:
            return PatternChange.KNOWN
        _check_pattern(new.pattern, compile_pattern)
        if resolved is None:
            return PatternChange.UNKNOWN
        draft.set_pattern(new.pattern, resolved)
        return PatternChange.KNOWN

    def refresh_if_due(self, group: ConsumerGroup) -> None:
        """Look up the topics of a group's patterns again if that is due."""
        contents = group.contents
        wanted = list(contents.pattern_members)
        if not wanted or group.is_resolving:
            return
        at_ms = now_ms(self._clock)
        version = self._topics.version(self._metadata.image)
        known = [contents.patterns[pattern] for pattern in wanted if pattern in contents.patterns]
        last_ms = max((pattern.timestamp_ms for pattern in known), default=None)
        if last_ms is not None and at_ms <= last_ms + self._settings.patterns_refresh_least_ms:
            return
        is_old = last_ms is not None and at_ms > last_ms + self._settings.regex_refresh_interval_ms
        if len(known) < len(wanted) or group.resolved_topics_version < version or is_old:
            self._refresh(group, wanted, version, at_ms)

    def _refresh(self, group: ConsumerGroup, wanted: Collection[str], version: int, at_ms: int) -> None:
        group.is_resolving = True
        image = self._metadata.image
        resolved: dict[str, ResolvedPattern] = {}
        walk = self._cooperator.coiterate(
            _resolve_patterns(wanted, image, at_ms, resolved, group.may_see, group.compile_pattern)
        )
        walk.addBoth(self._end_resolving, group)
        walk.addCallback(lambda _: self._outbox.run(self._apply, group, resolved, version))
        walk.addErrback(
            lambda failure: log.error(
                "Group %s: failed to look up the topics of its patterns", group.group_id, exc_info=failure.value
            )
        )

    def _end_resolving(self, outcome: object, group: ConsumerGroup) -> object:
        group.is_resolving = False
        return outcome

    def _apply(self, group: ConsumerGroup, resolved: dict[str, ResolvedPattern], version: int) -> None:
        if not self._registry.is_current(group):
            return
        draft = GroupDraft(group.group_id, group.contents)
        has_new_topics = False
        for pattern, result in resolved.items():
            if pattern in group.contents.pattern_members:
                known = group.contents.patterns.get(pattern)
                has_new_topics |= result.topics != (known.topics if known else frozenset())
                draft.set_pattern(pattern, result)
        (increment_epoch if has_new_topics else increment_epoch_if_topics_changed)(draft, self._metadata.image)
        try:
            self._storing.check_memory(group, draft)
        except KafkaError as problem:
            log.error("Group %s: no memory for the topics of its patterns: %s", group.group_id, problem.detail)
            return
        group.resolved_topics_version = version
        if draft.changes:
            self._storing.apply_and_write(group, draft, [])


class TopicsVersion:
    """Detects new topics."""

    def __init__(self) -> None:
        self._image = MetadataImage()
        self._version = 0

    def version(self, image: MetadataImage) -> int:
        """Return the version of the first image that has the newest topic."""
        if image is not self._image:
            if image.topics_by_id.keys() - self._image.topics_by_id.keys():
                self._version = image.version
            self._image = image
        return self._version


def _check_pattern(text: str, compile_pattern: CompilePattern) -> None:
    try:
        compile_pattern(text)
    except PatternError as problem:
        message = f"subscribed_topic_regex={text} is not valid in RE2: {problem}"
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None


def _resolve_patterns(
    wanted: Collection[str],
    image: MetadataImage,
    at_ms: int,
    resolved: dict[str, ResolvedPattern],
    may_see: TopicFilter | None,
    compile_pattern: CompilePattern,
) -> Iterator[None]:
    """Fill *resolved* with the topics of the wanted patterns; yields before each pattern and after each turn."""
    for text in wanted:
        yield
        topics: set[str] = set()
        yield from _match_topics(text, image, topics.add, may_see, compile_pattern)
        resolved[text] = ResolvedPattern(frozenset(topics), image.version, at_ms)


def _match_topics(
    text: str,
    image: MetadataImage,
    add: Callable[[str], None],
    may_see: TopicFilter | None,
    compile_pattern: CompilePattern,
) -> Iterator[None]:
    try:
        matches = compile_pattern(text)
    except PatternError as problem:
        # A log that Kafka wrote may have patterns that RE2 rejects.
        log.error("Ignoring the pattern %s: %s", text, problem)
        return
    left_seconds, turn_began = MAX_SECONDS, thread_time()
    for topic in tuple(image.topics):
        if matches(topic) and (may_see is None or may_see(topic)):
            add(topic)
        took = thread_time() - turn_began
        if took < TURN_SECONDS:
            continue
        left_seconds -= took
        if left_seconds < 0:
            log.error("The pattern %s takes more than %g s: it keeps the topics matched so far", text, MAX_SECONDS)
            return
        yield
        turn_began = thread_time()
