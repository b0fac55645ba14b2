"""What an instance uses, as the metadata say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacompat.metadata.image import MetadataImage
    from kafkacompat.tenancy.registry import Instances


def describe_usage(instances: Instances, image: MetadataImage, name: str) -> dict[str, int]:
    """Return the topics and partitions of an instance; nothing for an instance that is not known yet."""
    view = instances.by_name.get(name)
    if view is None:
        return {}
    topics = [image.topics[topic] for topic in instances.list_topics(view) if topic in image.topics]
    return {"topics": len(topics), "partitions": sum(len(topic.partitions) for topic in topics)}
