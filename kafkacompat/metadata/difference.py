"""The steps on a broker when one image replaces another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import ConfigKey, MetadataImage, TopicImage, list_changed_configs
from kafkacompat.metadata.instance_defaults import InstanceDefaults


class ImageDifference(NamedTuple):
    """Topics to delete, topics with partitions to open, and topics whose configuration changed."""

    deleted: list[TopicImage]
    opened: list[TopicImage]
    reconfigured: list[TopicImage]


def compare_images(old: MetadataImage, new: MetadataImage) -> ImageDifference:
    """Compare two images; a topic that was deleted and created again is in both lists."""
    deleted = [topic for topic in old.topics.values() if topic.topic_id not in new.topics_by_id]
    opened = [topic for topic in new.topics.values() if _count_partitions(old, topic) < len(topic.partitions)]
    return ImageDifference(deleted, opened, _list_reconfigured(old, new))


def _count_partitions(old: MetadataImage, topic: TopicImage) -> int:
    before = old.topics_by_id.get(topic.topic_id)
    return 0 if before is None else len(before.partitions)


def _list_reconfigured(old: MetadataImage, new: MetadataImage) -> list[TopicImage]:
    resources = list_changed_configs(old.configs, new.configs)
    if not resources:
        return []
    kept = [topic for topic in new.topics.values() if topic.topic_id in old.topics_by_id]
    if any(kind == ResourceType.BROKER for kind, _ in resources):
        return kept
    names = {name for kind, name in resources if kind == ResourceType.TOPIC}
    before, after = (InstanceDefaults(_select_instances(image, resources)) for image in (old, new))
    if before or after:
        names |= {topic.name for topic in kept if before.find(topic.name) != after.find(topic.name)}
    return [topic for topic in kept if topic.name in names]


def _select_instances(image: MetadataImage, resources: Iterable[ConfigKey]) -> Mapping[ConfigKey, Mapping[str, str]]:
    """Return the properties of those resources that are instances."""
    return {key: image.configs[key] for key in resources if key[0] == ResourceType.INSTANCE and key in image.configs}
