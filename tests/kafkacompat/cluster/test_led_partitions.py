"""How many partitions of each instance a broker leads."""

from __future__ import annotations

from twisted.internet.task import Clock

from kafkacompat.cluster.led_partitions import RECOUNT_S, LedPartitions
from kafkacompat.tenancy.registry import Instances
from tests.kafkacompat.tenancy.test_registry import make_image


def test_a_topic_that_is_adopted_counts_for_its_instance() -> None:
    clock, instances = Clock(), Instances()
    image = make_image("shop.orders", "legacy", shop={})
    partitions = LedPartitions(lambda: image, instances, clock)

    def count() -> int:
        instances.update(image)
        clock.advance(RECOUNT_S)
        list(partitions.count())
        return sum(partitions.find("shop").values())

    assert count() == 1
    adopted = make_image("shop.orders", "legacy", shop={"topic.names": "old:legacy"})
    image = adopted.with_topics(image.topics)
    assert count() == 2
