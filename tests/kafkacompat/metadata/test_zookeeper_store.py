"""What ZooKeeper adds to the contract of stores: paths, fences, large changes, lost answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.metadata.store import ABSENT, ConflictError, StoreChange, StoreEntry, StoreError
from kafkacompat.metadata.zookeeper_reading import READS_AT_ONCE
from kafkacompat.metadata.zookeeper_store import WAIT_SECONDS, FencedError, ZooKeeperStore
from kafkacompat.zookeeper.client import Check, Create, Operation, Result, SessionState
from kafkacompat.zookeeper.memory_client import MemoryClient
from tests.kafkacompat.metadata.deferreds import has_fired
from tests.kafkacompat.metadata.store_contract import CLUSTER, CONFIG, STATES, TOPIC
from tests.kafkacompat.zookeeper.memory_world import MemoryWorld

EPOCH = "/controller_epoch"


class StoreWorld(MemoryWorld):
    """A store with a client of its own, and a second client that disturbs it.

    ``transactions`` are those of the store; ``before_transaction`` is called before each.
    """

    def __init__(self) -> None:
        super().__init__()
        self.client = self.connect()
        self.other = self.connect()
        self.fence: tuple[str, int] | None = None
        self.store = ZooKeeperStore(self.client, self.clock, lambda: self.fence)
        self.transactions: list[Sequence[Operation]] = []
        self.before_transaction: Callable[[], object] = lambda: None
        self._multi = self.client.multi
        self.client.multi = self._record  # type: ignore[method-assign]

    def _record(self, operations: Sequence[Operation]) -> Deferred[list[Result]]:
        self.transactions.append(operations)
        self.before_transaction()
        return self._multi(operations)

    def announce(self, *changes: tuple[str, int, bytes | None]) -> None:
        self.run(self.store.compare_and_set([StoreChange(*change, is_announced=True) for change in changes]))

    def notifications(self) -> list[str]:
        folder = "/config/changes/"
        return [json.loads(value)["entity_path"] for path, value in self.server.contents().items() if folder in path]

    def change(self, *changes: tuple[str, int, bytes | None]) -> None:
        self.run(self.begin(*changes))

    def begin(self, *changes: tuple[str, int, bytes | None]) -> Deferred[None]:
        return self.store.compare_and_set([StoreChange(*change) for change in changes])

    def once(self, disturb: Callable[[], object]) -> None:
        """Call *disturb* before the next transaction only."""

        def disturb_once() -> None:
            self.before_transaction = lambda: None
            disturb()

        self.before_transaction = disturb_once

    def load(self) -> dict[str, StoreEntry]:
        entries = self.run(self.store.load())
        return dict(entries)


@pytest.fixture
def world() -> StoreWorld:
    return StoreWorld()


def _list_paths(operations: Sequence[Operation]) -> list[str]:
    return [operation.path for operation in operations]


def test_missing_parents_are_part_of_the_transaction(world: StoreWorld) -> None:
    world.run(world.other.create("/brokers/topics", b"", make_path=True))
    world.change((TOPIC, ABSENT, b"1"), (STATES[0], ABSENT, b"2"), (STATES[1], ABSENT, b"3"))
    assert [_list_paths(operations) for operations in world.transactions] == [
        [
            TOPIC,
            f"{TOPIC}/partitions",
            f"{TOPIC}/partitions/0",
            STATES[0],
            f"{TOPIC}/partitions/1",
            STATES[1],
        ]
    ]
    assert world.server.contents()[f"{TOPIC}/partitions/0"] == b""


def test_a_change_of_one_partition_touches_this_partition_only(world: StoreWorld) -> None:
    world.change(*((key, ABSENT, b"1") for key in [TOPIC, *STATES]))
    world.transactions.clear()
    world.change((STATES[1], 0, b"2"))
    assert [_list_paths(operations) for operations in world.transactions] == [[STATES[1]]]


def test_nodes_that_are_no_metadata_are_not_loaded(world: StoreWorld) -> None:
    world.change((TOPIC, ABSENT, b"1"), (CONFIG, ABSENT, b"2"))
    for path in ("/config/changes/config_change_0000000000", "/controller", f"{TOPIC}/partitions/x/y", "/admin/x"):
        world.run(world.other.create(path, b"{}", make_path=True))
    assert world.load().keys() == {TOPIC, CONFIG}


def test_a_topic_without_states_is_loaded(world: StoreWorld) -> None:
    world.run(world.other.create(f"{TOPIC}/partitions/0", b"", make_path=True))
    world.run(world.other.set(TOPIC, b"1"))
    assert world.load() == {TOPIC: StoreEntry(b"1", 1)}


def test_few_reads_are_under_way_at_a_time(world: StoreWorld) -> None:
    keys = [f"/config/topics/t{index}" for index in range(5 * READS_AT_ONCE)]
    world.change(*((key, ABSENT, b"1") for key in keys))
    pending: list[int] = []
    get = world.client.get

    def count(path: str, watch: Any = None) -> Any:
        pending.append(len(world.client._pending) + 1)
        return get(path, watch)

    world.client.get = count  # type: ignore[method-assign]
    assert len(world.load()) == len(keys)
    assert max(pending) == READS_AT_ONCE


def test_a_large_change_is_several_transactions_each_with_the_fence(world: StoreWorld) -> None:
    world.run(world.other.create(EPOCH, b"1"))
    world.fence = (EPOCH, 0)
    states = [f"{TOPIC}/partitions/{index}/state" for index in range(3_000)]
    world.change((TOPIC, ABSENT, b"1"), *((state, ABSENT, bytes(300)) for state in states))
    assert len(world.transactions) > 1
    assert all(operations[0] == Check(EPOCH, 0) for operations in world.transactions)
    created = [operation for operations in world.transactions for operation in operations[1:]]
    assert [operation.path for operation in created if isinstance(operation, Create) and operation.value] == [
        TOPIC,
        *states,
    ]
    assert len(world.load()) == 3_001
    world.transactions.clear()
    world.change((TOPIC, 0, None), *((state, 0, None) for state in states))
    assert len(world.transactions) > 1
    assert world.transactions[-1][-1].path == TOPIC
    assert world.run(world.other.children("/brokers/topics")) == []


def test_a_conflict_is_found_before_the_first_of_several_transactions(world: StoreWorld) -> None:
    with pytest.raises(ConflictError):
        world.change(*((f"/config/topics/{index}", ABSENT, bytes(400_000)) for index in range(3)), (CONFIG, 3, b"1"))
    assert world.transactions == [] and world.load() == {}


def test_a_conflict_in_a_later_transaction_leaves_the_earlier_ones(world: StoreWorld) -> None:
    keys = [f"/config/topics/{index}" for index in range(3)]
    world.once(lambda: world.other.create(keys[2], b"other", make_path=True))
    with pytest.raises(ConflictError, match=keys[2]):
        world.change(*((key, ABSENT, bytes(600_000)) for key in keys))
    assert {key: len(entry.value) for key, entry in world.load().items()} == {
        keys[0]: 600_000,
        keys[1]: 600_000,
        keys[2]: 5,
    }


def test_a_controller_that_was_replaced_changes_nothing(world: StoreWorld) -> None:
    world.run(world.other.create(EPOCH, b"1"))
    world.fence = (EPOCH, 0)
    world.change((CONFIG, ABSENT, b"1"))
    world.run(world.other.set(EPOCH, b"2"))
    with pytest.raises(FencedError, match=r"another broker has become the controller: .*has version 1, not 0"):
        world.change((CONFIG, 0, b"2"))
    world.fence = ("/none", 0)
    with pytest.raises(FencedError):
        world.change((CONFIG, 0, b"2"))
    world.fence = None
    world.change((CONFIG, 0, b"2"))
    assert world.load() == {CONFIG: StoreEntry(b"2", 1)}


def test_a_node_without_a_value_is_absent_and_can_be_filled(world: StoreWorld) -> None:
    block = "/latest_producer_id_block"
    world.run(world.other.create(block, b""))
    assert world.load() == {}
    world.change((block, ABSENT, b"1"))
    assert world.load() == {block: StoreEntry(b"1", 1)}
    with pytest.raises(ConflictError):
        world.change((block, ABSENT, b"2"))


def test_a_node_that_is_filled_by_another_in_between_is_a_conflict(world: StoreWorld) -> None:
    block = "/latest_producer_id_block"
    world.run(world.other.create(block, b""))

    def fill_before_the_second() -> None:
        world.once(lambda: world.other.set(block, b"other"))

    world.once(fill_before_the_second)
    with pytest.raises(ConflictError):
        world.change((block, ABSENT, b"1"))
    assert world.load() == {block: StoreEntry(b"other", 1)}


def test_parents_that_others_create_or_delete_in_between_are_planned_again(world: StoreWorld) -> None:
    offset = "/consumers/g/offsets/t/0"
    world.once(lambda: world.other.create("/consumers/g", b"", make_path=True))
    world.change((offset, ABSENT, b"1"))
    world.change((offset, 0, None))

    def delete_parents() -> None:
        world.other.delete("/consumers/g/offsets/t")
        world.other.delete("/consumers/g/offsets")

    world.once(delete_parents)
    world.change((offset, ABSENT, b"2"))
    assert world.run(world.store.read([offset])) == {offset: StoreEntry(b"2", 0)}


def test_a_change_that_others_always_outrun_fails(world: StoreWorld) -> None:
    numbers = iter(range(1_000))
    world.change(*((key, ABSENT, b"1") for key in [TOPIC, STATES[0]]))
    world.before_transaction = lambda: world.other.create(f"{TOPIC}/{next(numbers)}", b"")
    with pytest.raises(StoreError, match="others keep changing the same nodes"):
        world.change((TOPIC, 0, None), (STATES[0], 0, None))


def test_a_deleted_topic_takes_everything_below_it_along(world: StoreWorld) -> None:
    world.change(*((key, ABSENT, b"1") for key in [TOPIC, *STATES]))
    world.run(world.other.create(f"{TOPIC}/partitions/7/state/deep", b"2", make_path=True))
    world.once(lambda: world.other.create(f"{TOPIC}/partitions/8", b""))
    world.change((TOPIC, 0, None), (STATES[0], 0, None), (STATES[1], 0, None))
    assert [path for path in world.server.contents() if path.startswith(TOPIC)] == []


@pytest.mark.parametrize("before", ["nothing", "value", "value to delete"])
def test_a_change_whose_answer_is_lost_is_made_once(world: StoreWorld, before: str) -> None:
    version = ABSENT if before == "nothing" else 0
    if before != "nothing":
        world.change((CONFIG, ABSENT, b"1"))
    value = None if before == "value to delete" else b"2"
    world.transactions.clear()
    world.server.lose_next_answer(world.client)
    world.change((CONFIG, version, value), (CLUSTER, ABSENT, b"id"))
    assert len(world.transactions) == 1
    entries = world.load()
    assert entries.pop(CLUSTER) == StoreEntry(b"id", 0)
    assert entries == ({} if value is None else {CONFIG: StoreEntry(b"2", version + 1)})


def test_a_change_that_did_not_arrive_is_repeated_after_the_next_connection(world: StoreWorld) -> None:
    world.change((CONFIG, ABSENT, b"1"))
    world.transactions.clear()
    changing = world.begin((CONFIG, 0, b"2"))
    world.server.disconnect(world.client)
    world.settle()
    assert not has_fired(changing)
    world.server.reconnect(world.client)
    world.run(changing)
    assert len(world.transactions) == 2 and world.load() == {CONFIG: StoreEntry(b"2", 1)}


def test_a_change_that_did_not_arrive_may_conflict_after_the_next_connection(world: StoreWorld) -> None:
    world.change((CONFIG, ABSENT, b"1"))
    changing = world.begin((CONFIG, 0, b"2"))
    world.server.disconnect(world.client)
    world.run(world.other.set(CONFIG, b"other"))
    world.server.reconnect(world.client)
    with pytest.raises(ConflictError):
        world.run(changing)


def test_a_change_goes_on_after_its_session_has_expired(world: StoreWorld) -> None:
    states: list[SessionState] = []
    world.client.add_listener(states.append)
    world.server.disconnect(world.client)
    world.clock.advance(7)
    changing = world.begin((CONFIG, ABSENT, b"1"))
    world.server.reconnect(world.client)
    world.run(changing)
    assert states == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]
    assert world.load() == {CONFIG: StoreEntry(b"1", 0)}


def test_a_load_goes_on_after_a_lost_connection(world: StoreWorld) -> None:
    keys = [f"/config/topics/t{index}" for index in range(300)]
    world.change(*((key, ABSENT, b"1") for key in keys))
    get, count = world.client.get, iter(range(1_000))

    def cut(path: str, watch: Any = None) -> Any:
        if next(count) in (20, 200):
            world.server.disconnect(world.client)
            world.server.reconnect(world.client)
        return get(path, watch)

    world.client.get = cut  # type: ignore[method-assign]
    assert len(world.load()) == len(keys)


@pytest.mark.parametrize("begin", [lambda world: world.store.load(), lambda world: world.begin((CONFIG, 0, b"1"))])
def test_an_operation_without_a_connection_fails_in_the_end(
    world: StoreWorld, begin: Callable[[StoreWorld], Deferred[Any]]
) -> None:
    world.change((CONFIG, ABSENT, b"1"))
    world.server.disconnect(world.client)
    world.settle()
    failing = begin(world)
    world.clock.advance(WAIT_SECONDS - 1)
    assert not has_fired(failing)
    world.clock.advance(1)
    with pytest.raises(
        StoreError, match=r"^the metadata in ZooKeeper cannot be used: ZooKeeper has not answered for 30 s$"
    ):
        world.run(failing)


def test_closing_the_client_fails_waiting_operations(world: StoreWorld) -> None:
    world.server.disconnect(world.client)
    world.settle()
    loading = world.store.load()
    world.run(world.client.close())
    with pytest.raises(StoreError, match="closed"):
        world.run(loading)
    with pytest.raises(StoreError, match="closed"):
        world.run(world.store.load())


def test_closing_the_store_leaves_the_client(world: StoreWorld) -> None:
    world.run(world.store.close())
    assert world.client.state is SessionState.CONNECTED


def test_a_connection_that_keeps_breaking_fails_a_change(world: StoreWorld) -> None:
    def cut() -> None:
        client: MemoryClient = world.client
        world.server.disconnect(client)
        world.server.reconnect(client)

    world.before_transaction = cut
    with pytest.raises(StoreError, match="the connection keeps breaking"):
        world.change((CONFIG, ABSENT, b"1"))


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("/consumers//offsets/t/0", b"1", "is not the path of a node"),
        ("/consumers/./offsets/t/0", b"1", "is not the path of a node"),
        (TOPIC, bytes(1_100_000), "too large; ZooKeeper takes 1000000"),
    ],
)
def test_a_value_too_large_for_zookeeper_is_a_store_error(
    world: StoreWorld, key: str, value: bytes, reason: str
) -> None:
    with pytest.raises(StoreError, match=reason):
        world.change((key, ABSENT, value))


@pytest.fixture
def announcing(world: StoreWorld) -> StoreWorld:
    for path in ("/config/topics", "/config/changes"):
        world.run(world.other.create(path, b"", make_path=True))
    return world


def test_a_change_and_its_notification_are_one_transaction(announcing: StoreWorld) -> None:
    announcing.announce((CONFIG, ABSENT, b"1"))
    assert [_list_paths(operations) for operations in announcing.transactions] == [
        [CONFIG, "/config/changes/config_change_"]
    ]
    announcing.announce((CONFIG, 0, None))
    assert announcing.notifications() == [CONFIG.removeprefix("/config/")] * 2


def test_a_change_stays_with_its_notification_where_transactions_are_cut(announcing: StoreWorld) -> None:
    large = [(f"/config/topics/{index:03}", ABSENT, bytes(60_000)) for index in range(70)]
    announcing.announce(*large)
    assert len(announcing.transactions) > 3
    for operations in announcing.transactions:
        assert [path.count("config_change_") for path in _list_paths(operations)] == [0, 1] * (len(operations) // 2)
    assert announcing.notifications() == [f"topics/{index:03}" for index in range(70)]


def test_a_change_that_is_refused_announces_nothing(announcing: StoreWorld) -> None:
    with pytest.raises(ConflictError):
        announcing.announce((CONFIG, 7, b"1"))
    assert announcing.notifications() == []


def test_a_change_whose_answer_is_lost_is_announced_once(announcing: StoreWorld) -> None:
    announcing.before_transaction = lambda: announcing.server.lose_next_answer(announcing.client)
    announcing.announce((CONFIG, ABSENT, b"1"))
    assert announcing.notifications() == [CONFIG.removeprefix("/config/")]
