"""Small clusters for the tests of decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafkacompat.cluster.decisions.situation import Situation, TopicPartition
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage

NOBODY = Situation()
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
U0 = TopicPartition("u", 0)


def brokers(epochs: Iterable[int] | Mapping[int, int]) -> dict[int, BrokerImage]:
    """Registered brokers: of epoch 100 + id, or of the given epochs by id."""
    by_id = epochs if isinstance(epochs, Mapping) else {node: 100 + node for node in epochs}
    return {node: BrokerImage(node, None, {}, epoch) for node, epoch in by_id.items()}


def partition(
    leader: int,
    replicas: Iterable[int],
    isr: Iterable[int],
    *,
    adding: Iterable[int] = (),
    removing: Iterable[int] = (),
    epoch: int = 5,
    recovering: bool = False,
) -> PartitionImage:
    """A partition 0 of leader epoch 5 and partition epoch 7."""
    return PartitionImage(0, leader, epoch, tuple(replicas), tuple(isr), 7, tuple(adding), tuple(removing), recovering)


def stateless(replicas: Iterable[int]) -> PartitionImage:
    """A partition that never had a leader."""
    return PartitionImage(0, -1, -1, tuple(replicas), (), -1)


def build_image(nodes: Iterable[int] | Mapping[int, int], **topics: Iterable[PartitionImage]) -> MetadataImage:
    """An image of brokers and topics; the partitions are numbered in their order."""
    images = {}
    for name, partitions in topics.items():
        numbered = tuple(image._replace(partition=index) for index, image in enumerate(partitions))
        images[name] = TopicImage(name, name.encode().ljust(16, b"."), numbered)
    return replace(MetadataImage(brokers=brokers(nodes)).with_topics(images), controller_id=1)


def build_draft(nodes: Iterable[int] | Mapping[int, int], **topics: Iterable[PartitionImage]) -> MetadataDraft:
    """A draft of `build_image`."""
    return MetadataDraft(build_image(nodes, **topics))


def allow_unclean(draft: MetadataDraft, topic: str) -> MetadataDraft:
    """Let replicas of a topic lead that are not in sync."""
    draft.put_config((ResourceType.TOPIC, topic), {"unclean.leader.election.enable": "true"})
    return draft


def summarize(draft: MetadataDraft, key: TopicPartition = T0) -> tuple[int, int, tuple[int, ...]]:
    """A partition's leader, leader epoch and in-sync set."""
    image = draft.topics[key.topic].partitions[key.partition]
    return image.leader, image.leader_epoch, image.in_sync_replicas
