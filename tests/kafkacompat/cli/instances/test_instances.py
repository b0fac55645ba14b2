"""`kafkacompat instances` against a whole broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ResourceChange
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.kafkacompat.cli.instances.world import InstanceWorld


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstanceWorld:
    return InstanceWorld(tmp_path, monkeypatch)


def given(world: InstanceWorld, name: str) -> dict[str, str]:
    return dict(world.broker.metadata.image.config(ResourceType.INSTANCE, name))


def test_create_draws_an_identity_and_sets_the_rest(world: InstanceWorld) -> None:
    arguments = ("--instance", "shop", "--add-config", "limit.topics=3,whitelist=[10.0.0.0/8,fd00::/8]")
    created = world.read("create", *arguments)
    properties = given(world, "shop")
    assert created == {"instance": "shop", "cluster.id": properties["cluster.id"], "created": True}
    assert len(properties["cluster.id"]) == 22 and len(properties["secret"]) == 64
    assert (properties["limit.topics"], properties["whitelist"]) == ("3", "10.0.0.0/8,fd00::/8")
    assert world.broker.instances.by_name["shop"].instance.is_active
    world.succeed("create", "--instance", "other")
    assert given(world, "other")["secret"] != properties["secret"]


def test_create_of_an_existing_name_changes_nothing(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop")
    before = given(world, "shop")
    assert world.refuse("create", "--instance", "shop") == (
        "the instance shop exists already: change it by `kafkacompat instances alter`"
    )
    again = world.read("create", "--instance", "shop", "--if-not-exists")
    assert again == {"instance": "shop", "cluster.id": before["cluster.id"], "created": False}
    assert given(world, "shop") == before


@pytest.mark.parametrize(
    ("configs", "sentence"),
    [
        ("limit.topic=1", "limit.topic is not a property of instances (did you mean limit.topics?)"),
        ("limit.topics=-2", "limit.topics=-2 is not valid: it takes a whole number of -1 or more"),
        ("num.partitions=0", "num.partitions=0 is not valid: it takes 1 or more, or -1 for the brokers' default"),
        ("name.prefix=__a.", "name.prefix=__a. is not valid: names that begin with '__' are the brokers' own"),
        ("name.prefix=a/b", "name.prefix=a/b is not valid"),
        ("name.prefix=s", "name.prefix=s is not valid"),
        ("topic.name.regex=a=>b", "topic.name.regex and topic.name.regex.back need each other: set both, or none"),
        ("topic.name.regex=(=>b,topic.name.regex.back=b=>a", "topic.name.regex=(=>b is not valid"),
        ("topic.name.regex=a,topic.name.regex.back=b=>a", "topic.name.regex=a is not valid: it takes pattern=>repl"),
        ("topic.names=a:__consumer_offsets", "topic.names is not valid at 'a:__consumer_offsets'"),
        ("topic.names=[a:x,b:x]", "the topic 'x' has two names in the instance: give it one"),
        ("listeners=PLAINTEXT://:0", "listeners is not valid at 'PLAINTEXT://:0'"),
        (
            "limit.retention.min.ms=5,limit.retention.max.ms=4",
            "limit.retention.min.ms=5 is not valid: it takes at most",
        ),
        ("delete.at.ms=5", "delete.at.ms is not set by hand: create, delete and restore set it"),
    ],
)
def test_wrong_properties_are_one_sentence(world: InstanceWorld, configs: str, sentence: str) -> None:
    result = world.command("create", "--instance", "shop", "--add-config", configs)
    assert result.exit_code in (1, 2)
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"kafkacompat: {sentence}")
    assert not world.broker.instances


def test_a_limit_of_0_is_as_asked(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop", "--add-config", "limit.topics=0")
    assert world.broker.instances.by_name["shop"].instance.int("limit.topics") == 0


def test_two_instances_share_no_address_and_no_prefix(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop", "--add-config", "listeners=PLAINTEXT://:19092")
    assert world.refuse(
        "create", "--instance", "bank", "--add-config", "listeners=PLAINTEXT://127.0.0.1:19092"
    ).startswith("the address 127.0.0.1:19092 leads to the instance shop already")
    assert "could name what belongs to the instance shop" in world.refuse(
        "create", "--instance", "bank", "--add-config", "name.prefix=shop.a."
    )
    world.make_topic("bank.orders")
    assert world.refuse("create", "--instance", "bank") == (
        "name.prefix=bank. is the beginning of the existing topic bank.orders: choose another name.prefix"
    )


def test_an_existing_group_does_not_become_an_instances_by_its_name(world: InstanceWorld) -> None:
    """The deletion of the instance would delete it."""
    topic_id = world.make_topic("orders")
    offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    commit = OffsetCommitRequest(
        group_id="shop.billing",
        topics=[OffsetCommitRequestTopic(name="orders", topic_id=topic_id, partitions=[offset])],
    )
    # The first attempts find no coordinator, as the topic of the offsets is new.
    for _ in range(10):
        world.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["shop.billing"]))
        world.ask(commit)
        world.clock.pump([0.1] * 10)
    for arguments in ((), ("--dry-run",)):
        assert world.refuse("create", "--instance", "shop", *arguments) == (
            "name.prefix=shop. is the beginning of the existing group shop.billing: choose another name.prefix, and adopt"
            " the group"
        )
    assert not world.broker.instances
    world.succeed("create", "--instance", "shop", "--add-config", "name.prefix=shop-")


def test_alter_sets_and_deletes_together_or_not_at_all(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop", "--add-config", "limit.topics=3,limit.groups=4")
    world.succeed(
        "alter", "--instance", "shop", "--add-config", "limit.partitions=9", "--delete-config", "limit.topics"
    )
    changed = given(world, "shop")
    assert "limit.topics" not in changed and changed["limit.partitions"] == "9" and changed["limit.groups"] == "4"
    world.refuse("alter", "--instance", "shop", "--add-config", "limit.groups=5,limit.partitions=x")
    assert given(world, "shop") == changed
    assert world.refuse("alter", "--instance", "gone", "--add-config", "limit.groups=5") == (
        "there is no instance gone: see `kafkacompat instances list`"
    )
    assert world.refuse("alter", "--instance", "shop", "--add-config", "name.prefix=other.") == (
        "name.prefix of the instance shop cannot change: its clients' names depend on it"
    )
    world.succeed("alter", "--instance", "shop", "--add-config", "limit.groups=7", "--dry-run")
    assert given(world, "shop") == changed


def test_whitelist(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop")
    name = ("--instance", "shop")
    assert world.read("whitelist", "list", *name) == {"instance": "shop", "whitelist": []}
    world.succeed("whitelist", "add", "10.0.0.0/8", "fd00::/8", *name)
    assert world.read("whitelist", "list", *name)["whitelist"] == ["10.0.0.0/8", "fd00::/8"]
    world.succeed("whitelist", "remove", "10.0.0.0/8", *name)
    assert world.succeed("whitelist", "list", *name).stdout == "fd00::/8\n"
    for networks, sentence in (("10.0.0.0/8", "the whitelist has no network 10.0.0.0/8"), ("fd00::/8", "without its")):
        result = world.command("whitelist", "remove", networks, *name)
        assert result.exit_code == 2 and result.stderr.startswith(f"kafkacompat: {sentence}")
    assert world.refuse("alter", "--instance", "shop", "--add-config", "whitelist=").startswith("an empty whitelist")
    world.succeed("whitelist", "set", "none", *name)
    world.succeed("whitelist", "add", "10.0.0.1", *name)
    assert world.read("whitelist", "list", *name)["whitelist"] == ["10.0.0.1"]
    world.succeed("whitelist", "set", *name)
    assert "whitelist" not in given(world, "shop")


def test_list_describe_and_usage(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop", "--add-config", "limit.topics=3,description=A [shop]")
    world.succeed("create", "--instance", "bank", "--add-config", "limit.storage.counts=partitions")
    topic_id = world.make_topic("shop.orders")
    world.make_topic("others")
    world.produce("shop.orders", topic_id, b"x" * 1000)
    assert [row["instance"] for row in world.read("list")] == ["bank", "shop"]
    assert "shop" in world.succeed("list").stdout
    described = world.read("describe", "--instance", "shop")
    assert described["properties"]["limit.topics"] == "3"
    assert "secret" not in described["properties"]
    assert described["brokers"] == [1]
    assert {**described["usage"], "storage.bytes": 0} == {
        "topics": 1,
        "partitions": 1,
        "groups": 0,
        "storage.bytes": 0,
    }
    assert described["usage"]["storage.bytes"] > 1000
    assert described["limits"] == {"topics": 3, "partitions": None, "groups": None, "storage.bytes": None}
    assert "A [shop]" in world.succeed("describe", "--instance", "shop").stdout
    rows = {row["instance"]: row["usage"]["topics"] for row in world.read("usage")}
    assert rows == {"bank": 0, "shop": 1}
    assert "1 of 3" in world.succeed("usage", "--instance", "shop").stdout


def test_delete_is_taken_back_within_the_grace_period(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop")
    world.make_topic("shop.orders")
    assert world.refuse("restore", "--instance", "shop") == ("the instance shop is active: there is nothing to restore")
    world.succeed("delete", "--instance", "shop", "--grace", "1h")
    assert not world.broker.instances.by_name["shop"].instance.is_active
    world.clock.advance(3000)
    world.succeed("restore", "--instance", "shop")
    assert world.broker.instances.by_name["shop"].instance.is_active
    world.clock.advance(3000)
    assert "shop.orders" in world.broker.metadata.image.topics


def test_data_go_after_the_grace_period(world: InstanceWorld) -> None:
    for name in ("shop", "shop2"):
        world.succeed("create", "--instance", name)
        world.make_topic(f"{name}.orders")
    world.succeed("delete", "--instance", "shop", "--grace", "2h")
    world.clock.pump([60] * 119)
    assert "shop.orders" in world.broker.metadata.image.topics
    world.clock.pump([60] + [0.01] * 200)
    topics = world.broker.metadata.image.topics
    assert "shop2.orders" in topics and "shop.orders" not in topics
    assert list(world.broker.instances.by_name) == ["shop2"]
    assert (
        world.refuse("describe", "--instance", "shop") == "there is no instance shop: see `kafkacompat instances list`"
    )


def test_delete_at_once_asks_for_the_name_and_waits(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop")
    world.make_topic("shop.orders")
    name = ("--instance", "shop", "--grace", "0")
    assert world.command("delete", *name, stdin="shopp\n").exit_code == 2
    assert world.broker.instances.by_name["shop"].instance.is_active
    result = world.command("delete", *name, stdin="shop\n")
    assert result.exit_code == 0 and result.stderr.endswith("Deleted instance shop\n")
    assert "shop.orders" not in world.broker.metadata.image.topics and not world.broker.instances


def test_options_that_are_not_valid(world: InstanceWorld) -> None:
    for arguments in (
        ("create", "--instance", "shop", "--add-config", "x"),
        ("alter", "--instance", "shop"),
        ("whitelist", "add", "--instance", "shop"),
        ("delete", "--instance", "shop", "--grace", "soon"),
        ("adopt", "--instance", "shop"),
    ):
        assert world.command(*arguments).exit_code == 2, arguments
    assert world.refuse("create", "--instance", "a.b").startswith("the instance name 'a.b' is not valid")


def test_adopt(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop")
    world.succeed("create", "--instance", "bank")
    for topic in ("orders", "payments-eu", "payments-us", "bank.orders", "other"):
        world.make_topic(topic)
    wanted = ("adopt", "--instance", "shop", "--topics", "orders,payments-.*")
    adopted = {"topic.names": ["orders", "payments-eu", "payments-us"]}
    assert world.read(*wanted, "--dry-run") == {"instance": "shop", "adopted": adopted, "dry_run": True}
    assert "topic.names" not in given(world, "shop")
    world.succeed(*wanted)
    assert given(world, "shop")["topic.names"] == "orders:orders,payments-eu:payments-eu,payments-us:payments-us"
    shop = world.broker.instances.by_name["shop"]
    assert world.broker.instances.list_topics(shop) == adopted["topic.names"]
    result = world.command("adopt", "--instance", "bank", "--topics", "orders")
    assert result.exit_code == 2 and "no topic that is free to adopt has a name like 'orders'" in result.stderr
    assert "is no regular expression" in world.command("adopt", "--instance", "bank", "--topics", "(").stderr
    world.succeed("adopt", "--instance", "bank", "--topics", ".*")
    assert given(world, "bank")["topic.names"] == "other:other"


def test_an_instance_with_topics_does_not_vanish_with_its_properties(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop")
    change = ResourceChange(ResourceType.INSTANCE, "shop", [], replace=True)
    world.make_topic("shop.orders")
    (outcome,) = world.run(world.broker.controller.alter_configs([change]))
    assert outcome.detail == (
        "the instance shop has the topic shop.orders: remove both by `kafkacompat instances delete`"
    )


def test_the_address_of_an_instance_is_refused(world: InstanceWorld) -> None:
    world.succeed("create", "--instance", "shop", "--add-config", "listeners=PLAINTEXT://:19092")
    world.address = world.address._replace(port=19092)
    for arguments in (("list",), ("usage",), ("adopt", "--instance", "shop", "--topics", "a")):
        assert world.refuse(*arguments).startswith("the broker lists no instances: give the address of")
    for command in ("describe", "delete"):
        assert world.refuse(command, "--instance", "shop")
    assert world.broker.instances.by_name["shop"].instance.is_active


def test_a_whitelist_of_ten_thousand_networks(world: InstanceWorld) -> None:
    networks = [f"10.{number // 250}.{number % 250}.0/24" for number in range(10_000)]
    world.succeed("create", "--instance", "shop", "--add-config", f"whitelist=[{','.join(networks)}]")
    name = ("--instance", "shop")
    assert world.read("whitelist", "list", *name)["whitelist"] == networks
    world.succeed("whitelist", "remove", *networks[:5000], *name)
    assert world.read("whitelist", "list", *name)["whitelist"] == networks[5000:]
    world.succeed("whitelist", "set", *networks, *name)
    assert given(world, "shop")["whitelist"] == ",".join(networks)
