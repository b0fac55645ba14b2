"""From subscriptions to the group's epoch, to the targets of members, and to their assignments."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from time import perf_counter

from kafkacompat.groups.consumer.assignors import ASSIGNORS, Subscriber
from kafkacompat.groups.consumer.contents import GroupContents
from kafkacompat.groups.consumer.draft import GroupDraft
from kafkacompat.groups.consumer.member import ConsumerMember
from kafkacompat.groups.consumer.metadata_hash import compute_metadata_hash
from kafkacompat.groups.consumer.reconciliation import MemberTarget, OwnedPartitions, reconcile_member
from kafkacompat.metadata.image import MetadataImage

log = logging.getLogger(__name__)


# Subscriptions


def find_topics_of_member(member: ConsumerMember, contents: GroupContents) -> frozenset[str]:
    """Return the topics that a member is subscribed to, by name and by pattern; an unmatched pattern has none."""
    pattern = contents.patterns.get(member.pattern or "")
    if pattern is None:
        return member.topics
    return member.topics | pattern.topics if member.topics else pattern.topics


def find_subscribed_topics(contents: GroupContents) -> set[str]:
    """Return the topics that any member is subscribed to."""
    matched = (pattern.topics for pattern in contents.patterns.values())
    return set().union(*matched, *contents.subscriptions)


# The group's epoch


def increment_epoch(draft: GroupDraft, image: MetadataImage) -> None:
    """Increment the group's epoch."""
    contents = draft.contents
    draft.set_epoch(contents.epoch + 1, compute_metadata_hash(find_subscribed_topics(contents), image))
    if draft.contents.members:
        log.debug("Group %s begins epoch %d", draft.group_id, draft.contents.epoch)
    else:
        log.info("Rebalanced group %s: epoch %d is empty", draft.group_id, draft.contents.epoch)


def increment_epoch_if_topics_changed(draft: GroupDraft, image: MetadataImage) -> None:
    """Increment the group's epoch if its topics have changed since."""
    if compute_metadata_hash(find_subscribed_topics(draft.contents), image) != draft.contents.metadata_hash:
        increment_epoch(draft, image)


# Targets


def update_targets(
    draft: GroupDraft, image: MetadataImage, default_assignor: str, now_ms: int, least_interval_ms: int
) -> None:
    """Compute new targets if the group's epoch is newer than theirs, and if the last ones are *least_interval_ms* old."""
    contents = draft.contents
    since_ms = contents.assignment_timestamp_ms
    # An interval of 0 never delays, not even after the clock was set back.
    is_too_early = since_ms and least_interval_ms and now_ms < since_ms + least_interval_ms
    if contents.assignment_epoch >= contents.epoch or is_too_early:
        return
    name = find_preferred_assignor(contents.members.values()) or default_assignor
    began = perf_counter()
    targets = ASSIGNORS.get(name, ASSIGNORS[default_assignor])(
        _list_subscribers(contents, image), _PartitionCounts(image)
    )
    took_ms = (perf_counter() - began) * 1000
    members = "1 member" if len(contents.members) == 1 else f"{len(contents.members)} members"
    words = "Rebalanced group %s: epoch %d, %s, assignor %s, %.1f ms"
    log.info(words, draft.group_id, contents.epoch, members, name, took_ms)
    for member_id, target in targets.items():
        if target != contents.targets.get(member_id):
            draft.set_target(member_id, target)
    draft.set_assignment_epoch(contents.epoch, now_ms)


def find_preferred_assignor(members: Iterable[ConsumerMember]) -> str | None:
    """Return the assignor that most members name. In a tie the first one wins; None if no member names one."""
    votes = Counter(member.assignor for member in members if member.assignor is not None)
    return max(votes, key=votes.__getitem__, default=None)


class _PartitionCounts(dict[bytes, int]):
    """The numbers of partitions by topic id, read from the image when first used; every topic has to exist."""

    def __init__(self, image: MetadataImage) -> None:
        super().__init__()
        self._image = image

    def __missing__(self, topic_id: bytes) -> int:
        count = self[topic_id] = len(self._image.topics_by_id[topic_id].partitions)
        return count


def _list_subscribers(contents: GroupContents, image: MetadataImage) -> dict[str, Subscriber]:
    known: dict[frozenset[str], frozenset[bytes]] = {}

    def topic_ids(names: frozenset[str]) -> frozenset[bytes]:
        if names not in known:
            known[names] = frozenset(image.topics[name].topic_id for name in names if name in image.topics)
        return known[names]

    return {
        member_id: Subscriber(
            member.instance_id, topic_ids(find_topics_of_member(member, contents)), contents.targets.get(member_id, {})
        )
        for member_id, member in contents.members.items()
    }


# Assignments


def reconcile_in_draft(
    draft: GroupDraft,
    member: ConsumerMember,
    image: MetadataImage,
    owned: OwnedPartitions,
    *,
    has_new_subscription: bool,
) -> ConsumerMember:
    """Move a member towards its target; see `reconciliation`. Raises KafkaError: FENCED_MEMBER_EPOCH."""
    contents = draft.contents
    if not has_new_subscription and member.is_reconciled_to(contents.assignment_epoch):
        return member
    target = MemberTarget(
        contents.assignment_epoch,
        contents.targets.get(member.member_id, {}),
        _subscription_test(find_topics_of_member(member, contents), image),
        contents.find_owner,
    )
    moved = reconcile_member(member, target, owned, has_new_subscription=has_new_subscription)
    if moved is not member:
        draft.set_current_assignment(moved)
        log.debug("Group %s: %s", draft.group_id, moved)
    return moved


def _subscription_test(names: frozenset[str], image: MetadataImage) -> Callable[[bytes], bool]:
    def is_subscribed(topic_id: bytes) -> bool:
        topic = image.topics_by_id.get(topic_id)
        return topic is not None and topic.name in names

    return is_subscribed
