"""Topics that old tools wrote to /brokers/topics by themselves: new ones without an id, and partitions added to others.

An old tool writes the whole value of a topic. It knows no id and no reassignment, so that its value lacks those of the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafkacompat.cluster.decisions.situation import Situation
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import PartitionImage, TopicImage
from kafkacompat.wire.primitives import ZERO_UUID

MakeId = Callable[[TopicImage], bytes]


def accept_topics(
    draft: MetadataDraft,
    situation: Situation,
    names: Iterable[str],
    before: Mapping[str, TopicImage],
    make_id: MakeId,
) -> None:
    """Complete topics that others have written: the draft has their stored values, *before* has what was known of them.

    A known topic keeps its id and the replicas of its partitions; only partitions that are added count, as in Kafka, and none
    while the topic waits for its deletion. A new topic without an id gets one from *make_id*.
    """
    for name in names:
        stored = draft.topics.get(name)
        if stored is None:
            continue
        known = before.get(name)
        accepted = stored
        if known is not None and stored.topic_id in (ZERO_UUID, known.topic_id):
            accepted = _keep_known(known, stored, may_grow=not situation.is_queued(name))
        if accepted.topic_id == ZERO_UUID:
            accepted = accepted._replace(topic_id=make_id(accepted))
        if accepted != stored:
            draft.put_topic(accepted)


def _keep_known(known: TopicImage, stored: TopicImage, *, may_grow: bool) -> TopicImage:
    count = len(known.partitions)
    kept = tuple(map(_keep_replicas, known.partitions, stored.partitions))
    missing = known.partitions[len(stored.partitions) :]
    added = stored.partitions[count:] if may_grow else ()
    return TopicImage(known.name, known.topic_id, (*kept, *missing, *added))


def _keep_replicas(known: PartitionImage, stored: PartitionImage) -> PartitionImage:
    """Return the partition in its stored state on its known replicas."""
    return stored._replace(
        replicas=known.replicas, adding_replicas=known.adding_replicas, removing_replicas=known.removing_replicas
    )
