"""`kafkacompat transactions` against a whole broker."""

from __future__ import annotations

import pytest

from kafkacompat.cli.remote.administration.producers import list_producers
from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.wire.apis.describe_producers import PartitionResponse
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.cli.remote.world import RemoteWorld, misuse


def test_an_open_transaction_is_described_and_aborted(world: RemoteWorld) -> None:
    world.make_topic("orders")
    producer_id = world.begin_transaction("billing-1", "orders")
    assert world.read("transactions", "list", "--state", "Ongoing") == [
        {"transactional_id": "billing-1", "state": "Ongoing", "producer_id": producer_id, "coordinator": 1}
    ]
    (described,) = world.read("transactions", "describe", "billing-1")
    assert described["started_ms"] > 0 and described["open_ms"] >= 0
    expected = {"state": "Ongoing", "timeout_ms": 60_000, "partitions": [{"topic": "orders", "partition": 0}]}
    assert {name: described[name] for name in expected} == expected
    table = world.succeed("transactions", "describe", "billing-1").stdout
    assert table.splitlines()[1].split()[-1] == "orders-0"

    assert world.succeed("transactions", "abort", "billing-1").stderr == "Aborted transaction billing-1\n"
    (described,) = world.read("transactions", "describe", "billing-1")
    assert (described["state"], described["open_ms"], described["partitions"]) == ("CompleteAbort", None, [])
    assert world.refuse("transactions", "abort", "billing-1") == (
        "the transaction billing-1 is not aborted: it is not open, but CompleteAbort"
    )


def test_names_that_are_not_there(world: RemoteWorld) -> None:
    world.make_topic("orders")
    world.begin_transaction("billing-1", "orders")
    assert world.refuse("transactions", "describe", "billing-2") == (
        "there is no transactional id billing-2 (did you mean billing-1?)"
    )
    producers = ("transactions", "describe-producers", "--topic")
    assert world.refuse(*producers, "order", "--partition", "0") == "there is no topic order (did you mean orders?)"
    assert (
        world.refuse(*producers, "orders", "--partition", "7")
        == "the topic orders has no partition 7: the last one is 0"
    )
    empty = world.succeed(*producers, "orders", "--partition", "0")
    assert empty.stderr == "The partition orders-0 has no idempotent producers\n"
    assert world.refuse("transactions", "find-hanging", "order") == "there is no topic order (did you mean orders?)"
    assert world.succeed("transactions", "find-hanging").stderr == "No transaction hangs\n"
    hanging = ("transactions", "abort", "--topic", "orders", "--partition", "0", "--start-offset", "7")
    assert world.refuse(*hanging).startswith("no open transaction begins in orders-0 at offset 7: ")


def test_a_partition_whose_producers_are_refused_is_no_sound_one() -> None:
    refused = PartitionResponse(
        partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=None, active_producers=[]
    )
    with pytest.raises(RemoteError, match=r"^the producers of orders-0 are not shown: the user of --command-con"):
        list_producers("orders", refused)


def test_wrong_usage() -> None:
    assert "'open' is not one of " in misuse("transactions", "list", "--state", "open")
    sentence = "name a transactional id, or all of --topic, --partition and --start-offset"
    assert misuse("transactions", "abort") == sentence
    assert misuse("transactions", "abort", "--topic", "a", "--partition", "0") == sentence
    assert misuse("transactions", "abort", "id", "--topic", "a") == sentence
    assert misuse("transactions", "describe") == "name a transactional id"
