"""What docs/DURABILITY.md promises of acknowledged records: each cell of its table is a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafkacompat.zookeeper.memory import SESSION_TIMEOUT_SECONDS
from tests.kafkacompat.three_brokers.support import NODES, Cluster
from tests.kafkacompat.three_brokers.test_leaders import produce_some

RECORDS = [b"0", b"1", b"2"]
DURABILITY = Path(__file__).parents[3] / "docs" / "DURABILITY.md"
LEVELS = ("kafka", "fsync")
FIRST_EVENT = 3
"""Column of the first event."""


class Event(NamedTuple):
    """What happens to the first *failed* brokers, the leader among them."""

    failed: int
    loses_power: bool = False
    loses_disk: bool = False


EVENTS = {
    "one process dies": Event(1),
    "all processes die": Event(3),
    "one machine loses its power": Event(1, loses_power=True),
    "two machines lose their power at once": Event(2, loses_power=True),
    "all machines lose their power": Event(3, loses_power=True),
    "one disk is lost": Event(1, loses_disk=True),
    "two disks are lost at once": Event(2, loses_disk=True),
}


class Promise(NamedTuple):
    """One cell; ``outcome`` is "nothing lost", "lost" or "no leader"."""

    acks: int
    in_sync: int
    level: str
    event: str
    outcome: str


def read_table() -> list[list[str]]:
    """Return the cells of the table of promises, the head first, without footnotes."""
    lines = DURABILITY.read_text("utf-8").splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("| acks |"))
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip(" `¹²³⁴") for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def list_promises() -> Iterator[Promise]:
    head, *rows = read_table()
    for acks, in_sync, level, *outcomes in rows:
        for one_level in LEVELS if level == "any" else (level,):
            for event, outcome in zip(head[FIRST_EVENT:], outcomes, strict=True):
                number = len(NODES) if in_sync == "any" else int(in_sync)
                yield Promise(-1 if acks == "all" else int(acks), number, one_level, event, outcome)


PROMISES = [*list_promises()]


def test_the_table_has_all_rows_and_events() -> None:
    head, *rows = read_table()
    assert head[FIRST_EVENT:] == [*EVENTS]
    assert [row[:FIRST_EVENT] for row in rows] == [
        ["0", "any", "any"],
        ["1", "any", "any"],
        *(["all", str(in_sync), level] for in_sync in NODES for level in LEVELS),
    ]
    assert {promise.outcome for promise in PROMISES} == {"nothing lost", "lost", "no leader"}


def acknowledge(cluster: Cluster, promise: Promise) -> None:
    """Write the records in the worst case that the promise allows."""
    if promise.acks == 0:
        # Nothing is acknowledged: the requests are on their way when the failure comes.
        for value in RECORDS:
            cluster.send(1, cluster.build_produce("t", value, 0)).addErrback(lambda failure: None)
    elif promise.acks == 1:
        for node in NODES[1:]:
            cluster.network.cut("broker-1", f"broker-{node}")
        for value in RECORDS:
            assert cluster.produce(1, "t", value, acks=1).error_code == 0
    else:
        for node in NODES[promise.in_sync :]:
            cluster.kill(node)
        cluster.wait_for_in_sync("t", NODES[: promise.in_sync])
        produce_some(cluster, "t", RECORDS)


def fail(cluster: Cluster, event: Event) -> None:
    for node in NODES[: event.failed]:
        if node in cluster.brokers:
            cluster.kill(node, lose_unsynced=event.loses_power)
    for node in NODES[: event.failed] if event.loses_disk else ():
        cluster.lose_disk(node)
    for node in NODES[1:]:
        cluster.network.heal("broker-1", f"broker-{node}")


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: "-".join(map(str, promise)))
def test_a_promise(promise: Promise) -> None:
    cluster = Cluster(auto_leader_rebalance_enable="false", kafkacompat_acks_after=promise.level)
    cluster.create("t", assignment={0: NODES}, min_insync_replicas=str(promise.in_sync if promise.acks == -1 else 1))
    assert cluster.wait_for_leader("t") == 1
    cluster.advance(3)
    acknowledge(cluster, promise)
    fail(cluster, EVENTS[promise.event])
    # Those that failed first come back last.
    for node in reversed(NODES):
        if node not in cluster.brokers:
            cluster.start(node)
    if promise.outcome == "no leader":
        cluster.advance(5)
        assert {cluster.leader("t", node=node) for node in NODES} == {-1}
        return
    leader = cluster.wait_for_leader("t")
    cluster.wait_for_in_sync("t", NODES)
    cluster.advance(1)
    records = cluster.read(leader, "t")
    assert records == RECORDS[: len(records)]
    assert (len(records) == len(RECORDS)) == (promise.outcome == "nothing lost")
    produce_some(cluster, "t", [b"new"])
    assert {tuple(cluster.read_log(node, "t")) for node in NODES} == {tuple(cluster.read_log(leader, "t"))}


@pytest.mark.parametrize(
    ("in_sync", "level", "is_lost"), [(2, "kafka", True), (2, "fsync", False), (3, "kafka", False)]
)
def test_a_leader_that_stops_in_order_hands_over_to_a_machine_whose_power_failure_is_not_noticed(
    in_sync: int, level: str, is_lost: bool
) -> None:
    cluster = Cluster(auto_leader_rebalance_enable="false", kafkacompat_acks_after=level)
    cluster.create("t", assignment={0: NODES}, min_insync_replicas=str(in_sync))
    assert cluster.wait_for_leader("t") == 1
    cluster.advance(3)
    acknowledge(cluster, Promise(-1, in_sync, level, "", ""))
    cluster.kill(2, expire=False, lose_unsynced=True)
    cluster.stop(1)
    cluster.advance(SESSION_TIMEOUT_SECONDS + 1)
    for node in NODES:
        if node not in cluster.brokers:
            cluster.start(node)
    leader = cluster.wait_for_leader("t")
    cluster.wait_for_in_sync("t", NODES)
    cluster.advance(1)
    records = cluster.read(leader, "t")
    assert records == RECORDS[: len(records)]
    assert (len(records) < len(RECORDS)) == is_lost
