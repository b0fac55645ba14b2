"""The states of a session."""

from __future__ import annotations

import pytest

from kafkacompat.zookeeper.client import ConnectionLossError, SessionExpiredError, SessionState, ZooKeeperError
from kafkacompat.zookeeper.session import TRANSITIONS, Session, SessionEvent

ESTABLISHED, DISCONNECTED, EXPIRED, ENDED = SessionEvent
CONNECTED, SUSPENDED, LOST, CLOSED = SessionState


@pytest.mark.parametrize(
    ("events", "states"),
    [
        ([ESTABLISHED, ENDED, ESTABLISHED, EXPIRED], [CONNECTED, CLOSED]),
        ([ESTABLISHED, DISCONNECTED, DISCONNECTED, ESTABLISHED], [CONNECTED, SUSPENDED, CONNECTED]),
        ([ESTABLISHED, DISCONNECTED, EXPIRED, DISCONNECTED, ESTABLISHED], [CONNECTED, SUSPENDED, LOST, CONNECTED]),
        ([ESTABLISHED, EXPIRED, ENDED], [CONNECTED, LOST, CLOSED]),
        ([DISCONNECTED, EXPIRED, ESTABLISHED], [CONNECTED]),
        ([ENDED, ESTABLISHED], []),
    ],
)
def test_listeners_are_notified_of_changes_only(events: list[SessionEvent], states: list[SessionState]) -> None:
    session, seen = Session(), list[SessionState]()
    session.add_listener(seen.append)
    for event in events:
        session.apply(event, 5)
    assert seen == states
    assert session.state is (states[-1] if states else CLOSED)


def test_an_expired_session_never_comes_back_as_suspended() -> None:
    assert (LOST, DISCONNECTED) not in TRANSITIONS
    assert {state for (_, event), state in TRANSITIONS.items() if event is ENDED} == {CLOSED}


def test_the_newest_session_has_the_id() -> None:
    session = Session()
    assert session.session_id == 0
    for event, session_id in ((ESTABLISHED, 7), (DISCONNECTED, 0), (EXPIRED, 0), (ESTABLISHED, 8), (ENDED, 0)):
        session.apply(event, session_id)
    assert session.session_id == 8


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ([], SessionExpiredError),
        ([ESTABLISHED, DISCONNECTED], ConnectionLossError),
        ([ESTABLISHED, EXPIRED], SessionExpiredError),
        ([ESTABLISHED, ENDED], SessionExpiredError),
    ],
)
def test_operations_need_a_connection(events: list[SessionEvent], error: type[ZooKeeperError]) -> None:
    session = Session()
    for event in events:
        session.apply(event, 1)
    with pytest.raises(error):
        session.check_connected()
    connected = Session()
    connected.apply(ESTABLISHED, 1)
    connected.check_connected()
