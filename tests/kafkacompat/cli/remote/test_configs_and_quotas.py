"""`kafkacompat configs` and `quotas` against a whole broker."""

from __future__ import annotations

import pytest

from tests.kafkacompat.cli.remote.world import RemoteWorld, misuse


def test_configs_are_set_reset_and_described(world: RemoteWorld) -> None:
    world.make_topic("orders")
    setting = ("--add-config", "cleanup.policy=[compact,delete],retention.ms=5")
    assert world.succeed("configs", "alter", "topics", "orders", *setting).stderr == "Altered topic orders\n"
    world.succeed(
        "configs", "alter", "--entity-type", "topics", "--entity-name", "orders", "--delete-config", "retention.ms"
    )
    (described,) = world.read("configs", "describe", "topics")
    assert (described["type"], described["name"]) == ("topics", "orders")
    assert [(entry["config"], entry["value"]) for entry in described["configs"]] == [
        ("cleanup.policy", "compact,delete")
    ]

    world.succeed("configs", "alter", "brokers", "--entity-default", "--add-config", "log.cleaner.threads=2")
    (described,) = world.read("configs", "describe", "brokers", "--entity-default")
    assert described["name"] == ""
    assert [(entry["config"], entry["source"]) for entry in described["configs"]] == [
        ("log.cleaner.threads", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    ]
    (described,) = world.read("configs", "describe", "brokers")
    threads = next(entry for entry in described["configs"] if entry["config"] == "log.cleaner.threads")
    assert (described["name"], threads["value"]) == ("1", "2")

    world.succeed("configs", "alter", "groups", "g", "--add-config", "consumer.session.timeout.ms=50000")
    assert [group["name"] for group in world.read("configs", "describe", "groups")] == ["g"]
    assert world.read("configs", "describe", "client-metrics") == []


def test_refused_configs(world: RemoteWorld) -> None:
    assert world.refuse("configs", "describe", "topics", "x") == (
        "the configs of topic x are not shown: there is no topic x"
    )
    refused = world.refuse("configs", "alter", "brokers", "1", "--add-config", "node.id=2")
    assert refused.startswith("the broker 1 is not altered: ") and "node.id" in refused


def test_a_config_that_does_not_exist_is_not_reset(world: RemoteWorld) -> None:
    world.make_topic("orders")
    sentence = "the topic orders is not altered: it has no config retention.m (did you mean retention.ms?)"
    assert world.refuse("configs", "alter", "topics", "orders", "--delete-config", "retention.m") == sentence
    assert world.refuse("topics", "alter", "orders", "--delete-config", "retention.m") == sentence
    assert world.refuse("configs", "alter", "topics", "x", "--delete-config", "retention.ms") == (
        "the topic x is not altered: there is no topic x"
    )
    default = ("configs", "alter", "brokers", "--entity-default")
    assert world.refuse(*default, "--delete-config", "log.cleaner.threads") == (
        "the broker default is not altered: it has no config log.cleaner.threads"
    )
    world.succeed(*default, "--add-config", "log.cleaner.threads=2")
    world.succeed(*default, "--delete-config", "log.cleaner.threads")
    # A config with its default value exists.
    world.succeed("configs", "alter", "topics", "orders", "--delete-config", "retention.ms")
    world.succeed("configs", "alter", "brokers", "1", "--delete-config", "log.cleaner.threads")
    world.succeed("configs", "alter", "groups", "g", "--delete-config", "consumer.session.timeout.ms")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("describe",), "name the type of the entity: topics, brokers, broker-loggers, groups, client-metrics"),
        (("describe", "users"), "users have quotas, which `kafkacompat quotas` describes and alters"),
        (("describe", "topic"), "topic is no type of entities: it takes one of topics, brokers, "),
        (("describe", "topics", "--entity-default"), "only brokers have a default, --entity-default"),
        (("alter", "topics", "a"), "nothing to change: give --add-config or --delete-config"),
        (("alter", "topics", "--add-config", "a=1"), "name the topics to alter"),
        (("alter", "topics", "a", "--add-config", "a"), "'a' is not of the form NAME=VALUE"),
    ],
)
def test_wrong_usage_of_configs(words: tuple[str, ...], sentence: str) -> None:
    assert sentence in misuse("configs", *words)


def test_quotas_are_set_removed_and_described(world: RemoteWorld) -> None:
    setting = ("--add-config", "producer_byte_rate=1048576,request_percentage=12.5")
    assert world.succeed("quotas", "alter", "--user", "alice", *setting).stderr == "Altered entity user alice\n"
    world.succeed("quotas", "alter", "--user", "alice", "--client-defaults", "--add-config", "consumer_byte_rate=1")
    world.succeed("quotas", "alter", "--ip", "10.0.0.1", "--add-config", "connection_creation_rate=10")
    assert world.succeed("quotas", "describe").stdout.splitlines() == [
        "entity                         quota                     value",
        "ip 10.0.0.1                    connection_creation_rate  10",
        "user alice                     producer_byte_rate        1048576",
        "user alice                     request_percentage        12.5",
        "user alice, client-id default  consumer_byte_rate        1",
    ]
    assert world.read("quotas", "describe", "--user", "alice", "--client-defaults") == [
        {"entity": {"user": "alice", "client-id": None}, "quotas": {"consumer_byte_rate": 1.0}}
    ]
    world.succeed("quotas", "alter", "--ip", "10.0.0.1", "--delete-config", "connection_creation_rate")
    assert world.read("quotas", "describe", "--ip", "10.0.0.1") == []
    world.succeed("quotas", "alter", "--user", "alice", "--delete-config", "request_percentage")
    # The quota of alice with a client id is not hers alone.
    assert world.refuse("quotas", "alter", "--user", "alice", "--delete-config", "consumer_byte_rate") == (
        "the entity user alice is not altered: it has no quota consumer_byte_rate (did you mean producer_byte_rate?)"
    )
    refused = world.refuse("quotas", "alter", "--user", "a", "--add-config", "speed=1")
    assert refused.startswith("the entity user a is not altered: 'speed' is not one of ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--user", "a"), "nothing to change: give --add-config or --delete-config"),
        (("--add-config", "a=1"), "name an entity: --user, --client, --ip or their defaults"),
        (("--user", "a", "--user-defaults"), "user a and the default of all others exclude each other"),
        (("--user", "a", "--ip", "1.2.3.4"), "quotas of addresses have neither a user nor a client id"),
        (
            ("--user", "a", "--add-config", "producer_byte_rate=x"),
            "producer_byte_rate=x is not valid: it takes a number",
        ),
    ],
)
def test_wrong_usage_of_quotas(words: tuple[str, ...], sentence: str) -> None:
    assert misuse("quotas", "alter", *words) == sentence
