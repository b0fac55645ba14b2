"""All instances of an image: whose a physical name is, and the topics of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import ConfigKey, MetadataImage, PartitionImage, TopicImage
from kafkacompat.tenancy.registry import Instances
from kafkacompat.wire import entities


def make_topics(names: Iterable[str]) -> dict[str, TopicImage]:
    partition = PartitionImage(0, 1, 0, (1,), (1,), 0)
    return {name: TopicImage(name, name.encode().ljust(16, b"."), (partition,)) for name in names}


def make_image(*topics: str, **instances: dict[str, str]) -> MetadataImage:
    configs: dict[ConfigKey, Mapping[str, str]] = {
        (ResourceType.INSTANCE, name): {"cluster.id": name, "secret": "secret", **given}
        for name, given in instances.items()
    }
    return MetadataImage(configs=configs).with_topics(make_topics(topics))


def test_each_instance_has_its_topics_in_order() -> None:
    instances = Instances()
    image = make_image("shop.b", "ops", "shop.a", "bank.a", shop={}, bank={})
    instances.update(image)
    shop, bank = instances.by_name["shop"], instances.by_name["bank"]
    assert instances.list_topics(shop) == ["shop.a", "shop.b"]
    assert instances.list_topics(bank) == ["bank.a"]
    for topics, of_shop, of_bank in (
        (["shop.b", "shop.c", "bank.a", "ops"], ["shop.b", "shop.c"], ["bank.a"]),
        (["ops", "shopping"], [], []),
        (["bank.b", "bank.a"], [], ["bank.a", "bank.b"]),
    ):
        instances.update(image.with_topics(make_topics(topics)))
        assert (instances.list_topics(shop), instances.list_topics(bank)) == (of_shop, of_bank)


def test_a_list_of_topics_stays_as_it_was() -> None:
    instances = Instances()
    image = make_image("shop.a", shop={})
    instances.update(image)
    shop = instances.by_name["shop"]
    listed = instances.list_topics(shop)
    instances.update(image.with_topics(make_topics(["shop.b"])))
    assert instances.list_topics(shop) == ["shop.b"]
    assert listed == ["shop.a"]


def test_the_topics_of_a_new_instance_are_found() -> None:
    instances = Instances()
    instances.update(make_image("shop.a", "legacy", shop={}))
    assert instances.list_topics(instances.by_name["shop"]) == ["shop.a"]
    instances.update(make_image("shop.a", "legacy", shop={"topic.names": "orders:legacy"}))
    assert instances.list_topics(instances.by_name["shop"]) == ["legacy", "shop.a"]


def test_names_have_the_owner_of_their_prefix_or_table() -> None:
    instances = Instances()
    instances.update(make_image(shop={"group.names": "g:legacy"}, bank={"name.prefix": "money/"}))
    for kind, physical, owner in (
        (entities.TOPIC, "shop.orders", "shop"),
        (entities.TOPIC, "shop", None),
        (entities.TOPIC, "legacy", None),
        (entities.GROUP, "legacy", "shop"),
        (entities.GROUP, "money/g", "bank"),
        (entities.GROUP, "bank.g", None),
        (entities.GROUP, "", None),
    ):
        instance = instances.find_owner(kind, physical)
        assert (instance and instance.name) == owner
