"""Log lines about clients, up to a bound."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from kafkacompat.complaints import MOST_CLIENTS, MOST_LINES, LoggedComplaints


def test_complaints_of_a_peer_are_limited_and_summed(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    complain = LoggedComplaints(clock)
    for number in range(MOST_LINES + 7):
        complain("192.0.2.1", f"line {number}")
    complain("192.0.2.2", "another peer")
    assert len(caplog.messages) == MOST_LINES + 1
    clock.advance(1)
    complain("192.0.2.1", "again")
    assert caplog.messages[-2:] == ["7 more lines like these about 192.0.2.1", "again"]


def test_clients_without_end_share_a_bound() -> None:
    lines: list[str] = []
    complain = LoggedComplaints(Clock(), most_lines=1, say=lambda _, text: lines.append(text))
    for number in range(3 * MOST_CLIENTS):
        complain(f"client {number}", f"line {number}")
    assert len(lines) == MOST_CLIENTS + 1
