"""An administrator's client beside three brokers."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred

from kafkacompat.history.events import HistoryPartition
from kafkacompat.wire.errors import ErrorCode
from tests.simulation.clients.admin import Admin
from tests.simulation.clients.settings import AdminSettings
from tests.simulation.clients.support import Clients

PLACE = HistoryPartition("new", 0)


def test_topics_are_changed_through_any_broker() -> None:
    clients = Clients()
    cluster = clients.cluster
    admin: Admin = clients.start(Admin, "admin", AdminSettings())
    changes: tuple[tuple[Callable[[], Deferred[ErrorCode]], ErrorCode], ...] = (
        (lambda: admin.create_topic("new", 1, 2, {"retention.ms": "1000"}), ErrorCode.NONE),
        (lambda: admin.create_topic("new", 1, 2), ErrorCode.TOPIC_ALREADY_EXISTS),
        (lambda: admin.grow_topic("new", 3), ErrorCode.NONE),
        (lambda: admin.grow_topic("new", 2), ErrorCode.INVALID_PARTITIONS),
        (lambda: admin.reassign(PLACE, [3, 1]), ErrorCode.NONE),
        (lambda: admin.alter_config("new", "retention.ms", None), ErrorCode.NONE),
    )
    for change, expected in changes:
        assert cluster.run(change()) == expected
    cluster.wait_for_in_sync("new", [1, 3])
    assert cluster.run(admin.elect(PLACE)) in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    cluster.wait(lambda: cluster.leader("new", 0) == 3)
    assert cluster.run(admin.delete_topic("new")) == ErrorCode.NONE
    assert cluster.run(admin.delete_topic("new")) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_changes_go_on_with_the_next_controller() -> None:
    clients = Clients()
    admin: Admin = clients.start(Admin, "admin", AdminSettings())
    clients.cluster.advance(0.1)
    creation = admin.create_topic("new", 1, 2)
    clients.cluster.kill(clients.cluster.controller(), expire=False)
    assert clients.cluster.run(creation) == ErrorCode.NONE
    assert clients.cluster.leader("new", 0) >= 0
