"""`kafkacompat groups` against a whole broker."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import click
import pytest

from kafkacompat.cli.remote.administration import group_reset
from kafkacompat.cli.remote.administration.group_description import find_lag_style
from kafkacompat.cli.remote.administration.group_reset import OffsetBounds
from tests.kafkacompat.cli.remote.world import RemoteWorld, misuse

RESET = ("groups", "reset", "billing", "--topic", "orders", "--execute")


def read_offset(world: RemoteWorld) -> tuple[int, int]:
    """Return the offset and the lag of the group billing in its one partition."""
    (described,) = world.read("groups", "describe", "billing")
    (row,) = described["offsets"]
    return row["offset"], row["lag"]


def test_offsets_are_reset_and_described(world: RemoteWorld) -> None:
    world.fill("orders", 5)
    planned = world.read("groups", "reset", "billing", "--topic", "orders", "--to-offset", "2")
    row = {"topic": "orders", "partition": 0, "offset": None, "new_offset": 2}
    assert planned == {"group": "billing", "is_executed": False, "offsets": [row]}
    assert world.read("groups", "list") == []

    assert world.read(*RESET, "--to-offset", "2") == {"group": "billing", "is_executed": True, "offsets": [row]}
    assert read_offset(world) == (2, 3)
    table = world.succeed("groups", "describe", "billing").stdout.splitlines()
    assert table == [
        "group    topic   partition  offset  log_end_offset  lag  client_id  host",
        "billing  orders          0       2               5    3  -          -",
    ]
    (state,) = world.read("groups", "describe", "--all-groups", "--state")
    assert (state["state"], state["coordinator"], state["lag"], state["members"]) == ("Empty", 1, 3, [])
    assert world.succeed("groups", "delete", "billing").stderr == "Deleted group billing\n"
    assert world.read("groups", "list") == []


def test_every_way_to_reset(world: RemoteWorld) -> None:
    world.fill("orders", 5)
    for option, offset in (
        (("--to-earliest",), 0),
        (("--to-latest",), 5),
        (("--to-current",), 2),
        (("--to-offset", "99"), 5),
        (("--shift-by", "-1"), 1),
        (("--shift-by", "2"), 4),
        (("--shift-by", "-99"), 0),
    ):
        world.succeed(*RESET, "--to-offset", "2")
        world.succeed("groups", "reset", "billing", "--all-topics", "--execute", *option)
        assert read_offset(world)[0] == offset, option


def test_times_choose_the_first_record_since_then(world: RemoteWorld) -> None:
    begin_s = int(world.clock.seconds())
    world.fill("orders", 5)
    third = datetime.fromtimestamp(begin_s + 2, timezone.utc).isoformat()
    # Each creation and request turns the clock by some hundredths of a second.
    world.succeed(*RESET, "--to-datetime", third)
    assert read_offset(world) == (2, 3)
    world.succeed(*RESET, "--to-datetime", "2999-01-01T00:00:00")
    assert read_offset(world) == (5, 0)


def test_members_of_both_protocols(world: RemoteWorld) -> None:
    world.fill("orders", 2)
    world.succeed("groups", "reset", "new", "--topic", "orders", "--to-earliest", "--execute")
    classic, new = world.join_classic_group("old", "orders"), world.join_consumer_group("new", "orders")
    assert [(group["group"], group["type"], group["state"]) for group in world.read("groups", "list")] == [
        ("new", "consumer", "Stable"),
        ("old", "classic", "Stable"),
    ]
    assert [group["group"] for group in world.read("groups", "list", "--type", "Classic")] == ["old"]
    assert world.read("groups", "list", "--state", "empty") == []
    described = {group["group"]: group for group in world.read("groups", "describe")}
    owned = [{"topic": "orders", "partition": 0}]
    assert [(row["member_id"], row["partitions"]) for row in described["old"]["members"]] == [(classic, owned)]
    assert [(row["member_id"], row["partitions"]) for row in described["new"]["members"]] == [(new, owned)]
    assert [(row["member_id"], row["offset"], row["lag"]) for row in described["old"]["offsets"]] == [
        (classic, None, None)
    ]
    assert [(row["member_id"], row["offset"], row["lag"]) for row in described["new"]["offsets"]] == [(new, 0, 2)]
    members = world.succeed("groups", "describe", "new", "--members").stdout.splitlines()
    assert members[1].split() == ["new", "member-1", "-", "broker-2", members[1].split()[4], "orders-0"]

    assert world.refuse("groups", "reset", "old", "--topic", "orders", "--to-latest") == (
        "the group old has members (it is Stable): stop its clients first"
    )
    assert world.refuse("groups", "delete", "old") == (
        "the group old is not deleted: the group has members: stop its clients first"
    )


def test_names_that_are_not_there(world: RemoteWorld) -> None:
    world.fill("orders", 1)
    world.succeed(*RESET, "--to-latest")
    assert world.refuse("groups", "describe", "biling") == "there is no group biling (did you mean billing?)"
    assert world.refuse("groups", "delete", "x") == "the group x is not deleted: there is no group x"
    resetting = ("groups", "reset", "billing", "--to-latest", "--topic")
    assert world.refuse(*resetting, "ordres") == (
        "the offsets of billing are not reset: there is no topic ordres (did you mean orders?)"
    )
    assert world.refuse(*resetting, "orders:1") == "the topic orders has no partition 1: the last one is 0"


@pytest.mark.parametrize(("option", "value"), [("--state", "Stabel"), ("--type", "old")])
def test_states_and_types_that_no_group_can_have(option: str, value: str) -> None:
    assert f"'{value}' is not one of " in misuse("groups", "list", option, value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--topic", "a"), "the new offsets need exactly one of --to-earliest, "),
        (("--topic", "a", "--to-latest", "--to-earliest"), "the new offsets need exactly one of --to-earliest, "),
        (("--to-latest",), "name the topics to reset with --topic, or give --all-topics"),
        (("--to-latest", "--topic", "a", "--all-topics"), "name the topics to reset with --topic, or give"),
        (("--to-latest", "--topic", "a:x"), "--topic a:x is not valid: it takes a topic, or one with partitions"),
        (("--to-latest", "--topic", "a", "--execute", "--dry-run"), "--dry-run and --execute exclude each other"),
        (("--to-datetime", "noon", "--topic", "a"), "--to-datetime noon is no time: it takes one such as 2026-"),
        (("--by-duration", "1h", "--topic", "a"), "--by-duration 1h is no period: it takes one of ISO 8601, such as"),
    ],
)
def test_wrong_usage_of_reset(options: tuple[str, ...], sentence: str) -> None:
    assert misuse("groups", "reset", "billing", *options).startswith(sentence)


@pytest.mark.parametrize(
    ("text", "period_ms"),
    [("PT1H", 3_600_000), ("P1DT12H", 129_600_000), ("PT0.5S", 500), ("P2D", 172_800_000), ("PT1M30S", 90_000)],
)
def test_periods(text: str, period_ms: int) -> None:
    assert group_reset.parse_duration_ms(text) == period_ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "P1H", "-PT1H", "PT1H1H"])
def test_wrong_periods(text: str) -> None:
    with pytest.raises(click.UsageError):
        group_reset.parse_duration_ms(text)


def test_times_are_in_utc_unless_they_name_their_zone() -> None:
    times = ("2026-01-31T08:00:00.500", "2026-01-31T08:00:00.500Z", "2026-01-31T10:00:00.500+02:00")
    assert {group_reset.parse_datetime(time) for time in times} == {1_769_846_400_500}


@pytest.mark.parametrize(
    ("given", "offset"), [({"shift_by": 3}, 10), ({"to_current": True}, 10), ({"shift_by": -3}, 7)]
)
def test_without_an_offset_a_group_is_at_the_end(given: dict[str, Any], offset: int) -> None:
    options: dict[str, Any] = dict.fromkeys(("to_offset", "shift_by", "to_datetime", "by_duration"))
    flags = dict.fromkeys(("to_earliest", "to_latest", "to_current"), False)
    destination = group_reset.choose_destination(**{**options, **flags, **given}, now_ms=0)
    assert destination.choose is not None
    assert destination.choose(OffsetBounds(0, 10, None)) == offset


def test_lags_are_coloured() -> None:
    assert [find_lag_style(lag) for lag in (None, 0, 1, 1000, 1001)] == ["", "green", "yellow", "yellow", "red"]


def test_the_partitions_of_a_topic_that_is_named_twice_add_up() -> None:
    assert group_reset.parse_topics(["a:0", "b", "a:1,2"]) == {"a": [0, 1, 2], "b": None}
    assert group_reset.parse_topics(["a", "a:1"]) == group_reset.parse_topics(["a:1", "a"]) == {"a": None}


def test_a_time_before_1970_is_the_first_one() -> None:
    assert group_reset.parse_datetime("1969-12-31T23:59:59.999") == 0
    unset: dict[str, Any] = dict.fromkeys(("to_earliest", "to_latest", "to_current"), False)
    unset |= dict.fromkeys(("to_offset", "shift_by", "to_datetime"))
    destination = group_reset.choose_destination(**unset, by_duration="P99999D", now_ms=1_769_846_400_500)
    assert destination.timestamp == 0
