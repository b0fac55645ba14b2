"""The contract of a `ZooKeeper`: `test_memory.py` runs it on the memory ZooKeeper, compat_tests on a real one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sized
from functools import partial
from typing import Any, Protocol, TypeVar

import pytest
from twisted.internet.defer import Deferred, gatherResults

from kafkacompat.zookeeper.client import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NodeStat,
    NoNodeError,
    NotEmptyError,
    Operation,
    SessionExpiredError,
    SessionState,
    SetData,
    WatchEvent,
    WatchKind,
    ZooKeeper,
    ZooKeeperError,
)

Result = TypeVar("Result")


class World(Protocol):
    """A server with clients, and what moves time or waits for it."""

    def connect(self, chroot: str = "") -> ZooKeeper:
        """Return a client that is started."""

    def run(self, deferred: Deferred[Result]) -> Result:
        """Return the result of a Deferred, or raise its error."""

    def until(self, check: Callable[[], object]) -> None:
        """Go on until *check* returns something true."""

    def expire(self, client: ZooKeeper) -> None:
        """End a client's session, as the server's timeout would."""


def _error_of(world: World, deferred: Deferred[Any]) -> ZooKeeperError:
    with pytest.raises(ZooKeeperError) as problem:
        world.run(deferred)
    assert "\n" not in str(problem.value)
    return problem.value


def _has_length(items: Sized, length: int) -> bool:
    return len(items) == length


def _names(world: World, client: ZooKeeper, path: str) -> list[str]:
    names = world.run(client.children(path))
    return sorted(names)


class ZooKeeperContract:
    """The tests; a module that runs them has a fixture ``world``."""

    def test_a_node_has_a_value_and_versions(self, world: World) -> None:
        client = world.connect()
        assert world.run(client.create("/a", b"1")) == "/a"
        value, created = world.run(client.get("/a"))
        assert (value, created.version, created.ephemeral_owner, created.children) == (b"1", 0, 0, 0)
        assert created.mzxid == created.czxid > 0 and created.mtime_ms == created.ctime_ms
        changed = world.run(client.set("/a", b"2"))
        assert (changed.version, changed.czxid, changed.ctime_ms) == (1, created.czxid, created.ctime_ms)
        assert changed.mzxid > created.mzxid and changed.mtime_ms >= created.mtime_ms
        assert world.run(client.get("/a")) == (b"2", changed)
        world.run(client.create("/a/b", b""))
        assert world.run(client.exists("/a")) == changed._replace(children=1)
        assert world.run(client.exists("/c")) is None

    def test_a_change_may_require_a_version(self, world: World) -> None:
        client = world.connect()
        world.run(client.create("/a", b"1"))
        assert world.run(client.set("/a", b"2", 0)).version == 1
        for change in (lambda: client.set("/a", b"3", 0), lambda: client.delete("/a", 2)):
            assert type(_error_of(world, change())) is BadVersionError
        assert world.run(client.get("/a"))[0] == b"2"
        world.run(client.delete("/a", 1))
        assert world.run(client.exists("/a")) is None
        world.run(client.create("/a", b"new"))
        assert world.run(client.get("/a"))[1].version == 0

    def test_operations_fail_with_their_error(self, world: World) -> None:
        client = world.connect()
        world.run(client.create("/a/b", b"", make_path=True))
        world.run(client.create("/ephemeral", b"", ephemeral=True))
        cases: list[tuple[Deferred[Any], type[ZooKeeperError]]] = [
            (client.create("/a", b""), NodeExistsError),
            (client.create("/x/y", b""), NoNodeError),
            (client.create("/ephemeral/a", b""), ZooKeeperError),
            (client.get("/x"), NoNodeError),
            (client.set("/x", b""), NoNodeError),
            (client.delete("/x"), NoNodeError),
            (client.delete("/a"), NotEmptyError),
            (client.children("/x"), NoNodeError),
        ]
        assert [type(_error_of(world, failing)) for failing, _ in cases] == [error for _, error in cases]

    @pytest.mark.parametrize("path", ["", "a", "/a/", "/a//b", "/a/./b", "/..", "/a\0"])
    def test_a_path_names_a_node(self, world: World, path: str) -> None:
        client = world.connect()
        for operation in (client.create(path, b""), client.get(path), client.multi([Create(path, b"")])):
            assert "is not the path of a node" in str(_error_of(world, operation))

    def test_names_may_be_any_text(self, world: World) -> None:
        client = world.connect()
        path = "/grüße %2F <default> .a"
        assert world.run(client.create(path, b"\x00\xff")) == path
        assert world.run(client.children("/")) == [path[1:]]
        assert world.run(client.get(path))[0] == b"\x00\xff"

    def test_missing_parents_are_created_on_request(self, world: World) -> None:
        client = world.connect()
        assert world.run(client.create("/a/b/c", b"1", ephemeral=True, make_path=True)) == "/a/b/c"
        assert world.run(client.get("/a/b"))[0] == b""
        assert world.run(client.get("/a/b"))[1].ephemeral_owner == 0
        assert world.run(client.get("/a/b/c"))[1].ephemeral_owner == client.session_id
        assert type(_error_of(world, client.create("/a/b/c", b"", make_path=True))) is NodeExistsError

    def test_the_number_of_a_sequence_node_counts_all_children_ever_created(self, world: World) -> None:
        client = world.connect()
        world.run(client.create("/s", b""))
        assert world.run(client.create("/s/n_", b"", sequence=True)) == "/s/n_0000000000"
        assert world.run(client.create("/s/n_", b"", sequence=True, ephemeral=True)) == "/s/n_0000000001"
        world.run(client.delete("/s/n_0000000000"))
        world.run(client.create("/s/other", b""))
        assert world.run(client.create("/s/m_", b"", sequence=True)) == "/s/m_0000000003"
        assert world.run(client.multi([Create("/s/n_", b"", sequence=True)])) == ["/s/n_0000000004"]
        with pytest.raises(NodeExistsError):
            world.run(client.multi([Create("/s/n_", b"", sequence=True), Create("/s/other", b"")]))
        assert world.run(client.create("/s/n_", b"", sequence=True)) == "/s/n_0000000005"
        names = ["m_0000000003", "n_0000000001", "n_0000000004", "n_0000000005", "other"]
        assert _names(world, client, "/s") == names

    def test_ephemeral_nodes_end_with_their_session(self, world: World) -> None:
        owner, observer = world.connect(), world.connect()
        world.run(owner.create("/ids", b""))
        world.run(owner.create("/ids/1", b"", ephemeral=True))
        world.run(owner.multi([Create("/ids/2", b"", ephemeral=True)]))
        assert world.run(observer.get("/ids/1"))[1].ephemeral_owner == owner.session_id != observer.session_id
        events: list[WatchEvent] = []
        world.run(observer.children("/ids", events.append))
        assert _names(world, observer, "/ids") == ["1", "2"]
        world.run(owner.close())
        assert world.run(observer.children("/ids")) == []
        world.until(lambda: events == [WatchEvent(WatchKind.CHILDREN, "/ids")])

    def test_an_expired_session_is_lost_and_another_one_follows(self, world: World) -> None:
        client, observer = world.connect(), world.connect()
        states: list[SessionState] = []
        client.add_listener(states.append)
        world.run(client.create("/id", b"", ephemeral=True))
        before = client.session_id
        events: list[WatchEvent] = []
        world.run(client.exists("/other", events.append))
        world.expire(client)
        world.until(lambda: states[-1:] == [SessionState.CONNECTED])
        assert states == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]
        assert client.session_id not in (0, before)
        assert events == [WatchEvent(WatchKind.LOST, "/other")]
        world.until(lambda: world.run(observer.exists("/id")) is None)
        world.run(client.create("/id", b"", ephemeral=True))
        assert world.run(observer.get("/id"))[1].ephemeral_owner == client.session_id
        assert events == [WatchEvent(WatchKind.LOST, "/other")]

    def test_a_transaction_returns_one_result_for_each_operation(self, world: World) -> None:
        client = world.connect()
        world.run(client.create("/a", b"1"))
        operations: list[Operation] = [
            Check("/a", 0),
            Create("/b", b"2"),
            Create("/b/c", b"3"),
            SetData("/a", b"4", 0),
            SetData("/b/c", b"5"),
            Delete("/b/c", 1),
        ]
        results = world.run(client.multi(operations))
        assert [type(result) for result in results] == [type(None), str, str, NodeStat, NodeStat, type(None)]
        assert results[1:3] == ["/b", "/b/c"]
        value, stat = world.run(client.get("/a"))
        assert (value, stat) == (b"4", results[3]) and stat.version == 1
        assert world.run(client.children("/b")) == []
        assert world.run(client.get("/b"))[1].czxid == stat.mzxid
        assert world.run(client.multi([])) == []

    @pytest.mark.parametrize(
        ("failing", "error"),
        [
            (Check("/a", 1), BadVersionError),
            (Check("/x", 0), NoNodeError),
            (Create("/new", b""), NodeExistsError),
            (Create("/x/y", b""), NoNodeError),
            (SetData("/a", b"", 1), BadVersionError),
            (SetData("/x", b""), NoNodeError),
            (Delete("/a", 3), BadVersionError),
            (Delete("/parent"), NotEmptyError),
        ],
    )
    def test_a_transaction_that_fails_changes_nothing(
        self, world: World, failing: Operation, error: type[ZooKeeperError]
    ) -> None:
        client = world.connect()
        for path in ("/a", "/parent", "/parent/child"):
            world.run(client.create(path, b"1"))
        before = world.run(gatherResults([client.get(path) for path in ("/a", "/parent", "/parent/child")]))
        events: list[WatchEvent] = []
        world.run(client.get("/parent/child", events.append))
        first: list[Operation] = [Create("/new", b""), SetData("/parent", b"2", 0), SetData("/parent", b"3", 1)]
        rest: list[Operation] = [Delete("/a"), Create("/late", b"")]
        problem = _error_of(world, client.multi([*first, failing, *rest]))
        assert (type(problem), problem.operation_index) == (error, 3)
        assert world.run(gatherResults([client.get(path) for path in ("/a", "/parent", "/parent/child")])) == before
        assert _names(world, client, "/") == ["a", "parent"]
        assert events == []

    def test_a_request_has_a_largest_size(self, world: World) -> None:
        client = world.connect()
        world.run(client.create("/large", bytes(900_000)))
        assert len(world.run(client.get("/large"))[0]) == 900_000
        halves: list[Operation] = [Create("/half", bytes(600_000)), SetData("/large", bytes(600_000))]
        operations = (
            client.create("/a", bytes(1_100_000)),
            client.set("/large", bytes(1_100_000)),
            client.multi(halves),
        )
        for operation in operations:
            assert "too large" in str(_error_of(world, operation))
        assert client.state is SessionState.CONNECTED
        assert world.run(client.children("/")) == ["large"]

    @pytest.mark.parametrize("operation", ["set", "delete", "multi"])
    def test_a_watch_on_a_node_fires_once(self, world: World, operation: str) -> None:
        client, other = world.connect(), world.connect()
        world.run(client.create("/a", b"1"))
        read, looked_up = list[WatchEvent](), list[WatchEvent]()
        world.run(client.get("/a", read.append))
        world.run(client.exists("/a", looked_up.append))
        changes: dict[str, Callable[[], Deferred[Any]]] = {
            "set": lambda: other.set("/a", b"2"),
            "delete": lambda: other.delete("/a"),
            "multi": lambda: other.multi([SetData("/a", b"2"), SetData("/a", b"3")]),
        }
        world.run(changes[operation]())
        kind = WatchKind.DELETED if operation == "delete" else WatchKind.CHANGED
        world.until(lambda: read and looked_up)
        world.run(client.create("/a/b" if operation != "delete" else "/a", b""))
        if operation != "delete":
            world.run(client.set("/a", b"4"))
        assert read == looked_up == [WatchEvent(kind, "/a")]

    def test_a_watch_on_a_missing_node_fires_when_it_is_created(self, world: World) -> None:
        client, other = world.connect(), world.connect()
        events: list[WatchEvent] = []
        assert world.run(client.exists("/a", events.append)) is None
        with pytest.raises(NoNodeError):
            world.run(client.get("/a", events.append))
        world.run(other.create("/a", b""))
        world.until(lambda: events)
        world.run(client.delete("/a"))
        assert events == [WatchEvent(WatchKind.CREATED, "/a")]

    def test_a_watch_on_children_fires_once(self, world: World) -> None:
        client, other = world.connect(), world.connect()
        world.run(client.create("/a", b""))
        changes: list[Callable[[], Deferred[Any]]] = [
            lambda: other.create("/a/b", b""),
            lambda: other.delete("/a/b"),
            lambda: other.delete("/a"),
        ]
        events: list[WatchEvent] = []
        for number, change in enumerate(changes):
            world.run(client.children("/a", events.append))
            world.run(client.set("/a", b"does not matter"))
            assert len(events) == number
            world.run(change())
            world.until(partial(_has_length, events, number + 1))
        kinds = [WatchKind.CHILDREN, WatchKind.CHILDREN, WatchKind.DELETED]
        assert events == [WatchEvent(kind, "/a") for kind in kinds]

    def test_a_watch_fires_before_the_answer_that_shows_the_change(self, world: World) -> None:
        client = world.connect()
        world.run(client.create("/a", b"1"))
        order: list[object] = []
        world.run(client.get("/a", lambda event: order.append(event.kind)))
        writing = client.set("/a", b"2").addCallback(lambda stat: order.append(stat.version))
        reading = client.get("/a").addCallback(lambda node: order.append(node[0]))
        world.run(gatherResults([writing, reading]))
        assert order == [WatchKind.CHANGED, 1, b"2"]

    def test_a_watch_may_be_set_again_when_it_fires(self, world: World) -> None:
        client, other = world.connect(), world.connect()
        world.run(client.create("/a", b""))
        versions: list[int] = []

        def read(_: object = None) -> None:
            client.get("/a", read).addCallback(lambda node: versions.append(node[1].version))

        read()
        for count in range(1, 4):
            world.until(partial(_has_length, versions, count))
            world.run(other.set("/a", b""))
        world.until(lambda: versions == [0, 1, 2, 3])

    def test_many_requests_are_answered_in_order(self, world: World) -> None:
        client = world.connect()
        world.run(client.create("/many", b""))
        finished: list[int] = []

        def create(number: int) -> Deferred[None]:
            return client.create(f"/many/{number}", b"").addCallback(lambda _: finished.append(number))

        world.run(gatherResults([create(number) for number in range(500)]))
        assert finished == [*range(500)]
        nodes = world.run(gatherResults([client.get(f"/many/{number}") for number in range(500)]))
        zxids = [stat.czxid for _, stat in nodes]
        assert all(earlier < later for earlier, later in itertools.pairwise(zxids))

    def test_a_chroot_is_the_root_of_its_clients(self, world: World) -> None:
        outside = world.connect()
        inside = world.connect("/some/chroot")
        assert world.run(inside.children("/")) == []
        assert world.run(inside.create("/a", b"1")) == "/a"
        assert world.run(inside.multi([Create("/a/b", b"2"), Create("/a/s", b"", sequence=True)])) == [
            "/a/b",
            "/a/s0000000001",
        ]
        assert world.run(inside.create("/c/d", b"", make_path=True)) == "/c/d"
        assert world.run(outside.get("/some/chroot/a/b"))[0] == b"2"
        assert _names(world, outside, "/some/chroot") == ["a", "c"]
        events: list[WatchEvent] = []
        world.run(inside.get("/a/b", events.append))
        world.run(outside.set("/some/chroot/a/b", b"3"))
        world.until(lambda: events == [WatchEvent(WatchKind.CHANGED, "/a/b")])
        assert world.run(world.connect("/some/chroot").get("/a/b"))[0] == b"3"

    def test_a_closed_client_takes_no_operation(self, world: World) -> None:
        client = world.connect()
        states: list[SessionState] = []
        client.add_listener(states.append)
        events: list[WatchEvent] = []
        world.run(client.exists("/a", events.append))
        assert client.state is SessionState.CONNECTED
        world.run(client.close())
        world.run(client.close())
        assert (client.state, states, events) == (SessionState.CLOSED, [SessionState.CLOSED], [])
        for operation in (client.get("/"), client.create("/a", b""), client.multi([Check("/", 0)])):
            assert type(_error_of(world, operation)) is SessionExpiredError
