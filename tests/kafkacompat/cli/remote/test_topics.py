"""`kafkacompat topics` against a whole broker."""

from __future__ import annotations

from tests.kafkacompat.cli.remote.world import RemoteWorld, misuse


def test_a_topic_from_creation_to_deletion(world: RemoteWorld) -> None:
    created = world.read("topics", "create", "orders", "--partitions", "3", "--config", "retention.ms=1000")
    assert created == [{"topic": "orders", "outcome": "created", "problem": None}]
    (listed,) = world.read("topics", "list")
    assert listed == {"topic": "orders", "partitions": 3, "replication_factor": 1, "is_internal": False}

    altering = ("--partitions", "4", "--config", "cleanup.policy=compact,delete", "--delete-config", "retention.ms")
    assert world.succeed("topics", "alter", "orders", *altering).stderr == "Altered topic orders\n"
    (described,) = world.read("topics", "describe", "--topic", "orders")
    assert described["configs"] == {"cleanup.policy": "compact,delete"}
    assert (described["partition_count"], len(described["topic_id"])) == (4, 22)
    assert described["partitions"][3] == {
        "partition": 3,
        "leader": 1,
        "leader_epoch": 0,
        "replicas": [1],
        "isr": [1],
        "offline_replicas": [],
        "state": "in sync",
    }
    assert world.read("topics", "delete", "orders") == [{"topic": "orders", "outcome": "deleted", "problem": None}]
    assert world.succeed("topics", "list").stderr == "There are no topics\n"


def test_tables_are_aligned_text_where_there_is_no_terminal(world: RemoteWorld) -> None:
    world.succeed("topics", "create", "orders", "a", "--partitions", "2")
    assert world.succeed("topics", "list").stdout.splitlines() == [
        "topic   partitions  replication_factor  is_internal",
        "a                2                   1        false",
        "orders           2                   1        false",
    ]
    described = world.succeed("topics", "describe", "a").stdout.splitlines()
    assert described[0].startswith("Topic a, partitions 2, replication factor 1, id ")
    assert described[1:] == [
        "partition  leader  replicas  isr  state",
        "        0       1  1         1    in sync",
        "        1       1  1         1    in sync",
    ]


def test_selections_of_partitions(world: RemoteWorld) -> None:
    world.succeed("topics", "create", "orders")
    for selection in ("--under-replicated-partitions", "--unavailable-partitions"):
        assert world.read("topics", "describe", selection) == []
        assert world.succeed("topics", "describe", selection).stderr == "No partition is of this kind\n"


def test_an_assignment_places_replicas(world: RemoteWorld) -> None:
    world.succeed("topics", "create", "orders", "--replica-assignment", "1,1")
    (described,) = world.read("topics", "describe", "orders")
    assert [partition["replicas"] for partition in described["partitions"]] == [[1], [1]]


def test_refusals_say_what_to_do(world: RemoteWorld) -> None:
    world.succeed("topics", "create", "orders")
    assert world.refuse("topics", "create", "orders") == (
        "the topic orders is not created: it exists already: --if-not-exists accepts that"
    )
    assert world.refuse("topics", "describe", "ordres") == (
        "the topic ordres is not shown: there is no topic ordres (did you mean orders?)"
    )
    assert (
        world.refuse("topics", "delete", "payments") == "the topic payments is not deleted: there is no topic payments"
    )
    assert "there is no topic x" in world.refuse("topics", "alter", "x", "--partitions", "2")
    assert "there is no topic x" in world.refuse("topics", "alter", "x", "--config", "retention.ms=1")
    assert "retention.m is not" in world.refuse("topics", "create", "x", "--config", "retention.m=1")
    assert "there is no topic x" in world.refuse("topics", "configs", "x")
    assert world.succeed("topics", "delete", "payments", "--if-exists").stderr == ""
    again = world.read("topics", "create", "orders", "--if-not-exists")
    assert again == [{"topic": "orders", "outcome": "unchanged", "problem": None}]


def test_wrong_usage() -> None:
    assert misuse("topics", "create") == "name a topic"
    assert misuse("topics", "create", "a", "--replica-assignment", "1:x") == (
        "--replica-assignment 1:x is not valid: it takes brokers' ids, such as 1:2,2:1 for two partitions"
    )
    assert "give it alone" in misuse("topics", "create", "a", "--replica-assignment", "1", "--partitions", "1")
    assert misuse("topics", "alter", "orders") == "nothing to change: give --partitions, --config or --delete-config"
    assert misuse("topics", "create", "a", "--config", "x") == "--config x is not of the form NAME=VALUE"
    assert misuse("topics", "create", "a", "--config", "x=1", "--config", "x=2") == "--config gives x twice"
    assert misuse("topics", "alter", "a", "--config", "x=1", "--delete-config", "x") == (
        "x is both set and deleted: choose one"
    )


def test_configs_of_a_topic(world: RemoteWorld) -> None:
    world.succeed("topics", "create", "orders", "--config", "retention.ms=1000")
    (described,) = world.read("topics", "configs", "orders")
    assert described["configs"] == [
        {
            "config": "retention.ms",
            "value": "1000",
            "source": "DYNAMIC_TOPIC_CONFIG",
            "is_sensitive": False,
            "is_read_only": False,
        }
    ]
    (described,) = world.read("topics", "configs", "orders", "--all")
    names = [entry["config"] for entry in described["configs"]]
    assert names == sorted(names) and {"cleanup.policy", "retention.ms"} < set(names)
