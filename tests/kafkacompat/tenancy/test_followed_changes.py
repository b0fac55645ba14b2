"""What follows single changes of instances is, after any history, what the last image alone gives."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.config.topics import PRODUCE_WHITELIST
from kafkacompat.metadata.image import ConfigKey, MetadataImage, list_changed_configs
from kafkacompat.metadata.instance_defaults import InstanceDefaults
from kafkacompat.tenancy.registry import Instances
from kafkacompat.tenancy.routes import Routes
from kafkacompat.tenancy.whitelists import TopicWhitelists
from kafkacompat.wire import entities
from tests.kafkacompat.tenancy.test_registry import make_topics

NAMES = ("shop", "bank", "blog", "mail")
TOPICS = [*(f"{name}.{topic}" for name in NAMES for topic in "ab"), "legacy", "ops"]
USERS = [f"{name}.alice" for name in NAMES]
STEPS = 60


class History:
    """Images that change at random; *rng* draws what changes."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._configs: dict[ConfigKey, Mapping[str, str]] = {}
        self._topics: set[str] = set()

    def advance(self) -> MetadataImage:
        """Return the next image."""
        rng = self._rng
        for _ in range(rng.choice((0, 1, 1, 3))):
            name = rng.choice(NAMES)
            self._put((ResourceType.INSTANCE, name), self._draw_instance(name))
        if rng.random() < 0.3:
            whitelist = {PRODUCE_WHITELIST: rng.choice(("10.0.0.0/8", "none", "192.168.0.0/16"))}
            self._put((ResourceType.TOPIC, rng.choice(TOPICS)), rng.choice((whitelist, {})))
        self._topics ^= set(rng.sample(TOPICS, rng.choice((0, 1, 3))))
        return MetadataImage(configs=dict(self._configs)).with_topics(make_topics(sorted(self._topics)))

    def _put(self, key: ConfigKey, given: Mapping[str, str]) -> None:
        self._configs.pop(key, None)
        if given:
            self._configs[key] = given

    def _draw_instance(self, name: str) -> Mapping[str, str]:
        rng = self._rng
        if rng.random() < 0.3:
            return {}
        given = {"cluster.id": name, "secret": "secret", "limit.topics": str(rng.randrange(3))}
        if rng.random() < 0.5:
            given |= {"default.topic.configs": f"retention.ms={rng.randrange(9)}"}
        if rng.random() < 0.5:
            given |= {"listeners": f"PLAINTEXT://:{9000 + NAMES.index(name)}", "sni.hosts": f"{name}.example"}
        if rng.random() < 0.5:
            given |= {"sasl.users": "*", "state": rng.choice(("active", "deleting"))}
        is_free = all("topic.names" not in other for other in self._configs.values())
        return {**given, "topic.names": "old:legacy"} if is_free and rng.random() < 0.3 else given


def describe_instances(instances: Instances) -> object:
    owners = [instances.find_owner(entities.TOPIC, topic) for topic in TOPICS]
    return (
        {name: (dict(view.instance.given), instances.list_topics(view)) for name, view in instances.by_name.items()},
        [owner and owner.name for owner in owners],
    )


def describe_routes(routes: Routes) -> object:
    hosts = [routes.find_by_server_name(f"{name}.example") for name in NAMES]
    users = [routes.leads_by_user(user.partition(".")[0], user) for user in USERS]
    return routes.listeners, routes.has_server_names, hosts, users


def describe_whitelists(whitelists: TopicWhitelists) -> object:
    allowed = [whitelists.may_produce(topic, address) for topic in TOPICS for address in ("10.1.1.1", "192.168.1.1")]
    return whitelists.are_set, allowed


@pytest.mark.parametrize("seed", range(10))
def test_followers_are_as_those_that_see_only_the_last_image(seed: int) -> None:
    history, instances, whitelists = History(Random(seed)), Instances(), TopicWhitelists()
    routes, defaults, before = Routes(), InstanceDefaults(), MetadataImage()
    heard: list[set[str]] = []
    instances.watchers.append(lambda changed: heard.append(set(changed)))
    for _ in range(STEPS):
        image = history.advance()
        changed = {
            name for kind, name in list_changed_configs(before.configs, image.configs) if kind == ResourceType.INSTANCE
        }
        before = image
        heard.clear()
        instances.update(image)
        assert heard == ([changed] if changed else [])
        for name in changed:
            routes.remove(name)
        for name in changed & instances.by_name.keys():
            routes.put(instances.by_name[name].instance)
        defaults = InstanceDefaults(image.configs, defaults)
        whitelists.update(image)

        fresh = Instances()
        fresh.update(image)
        assert describe_instances(instances) == describe_instances(fresh)
        assert describe_routes(routes) == describe_routes(Routes(view.instance for view in fresh.by_name.values()))
        fresh_defaults = InstanceDefaults(image.configs)
        assert [defaults.find(topic) for topic in TOPICS] == [fresh_defaults.find(topic) for topic in TOPICS]
        fresh_whitelists = TopicWhitelists()
        fresh_whitelists.update(image)
        assert describe_whitelists(whitelists) == describe_whitelists(fresh_whitelists)
