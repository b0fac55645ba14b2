"""How much the log is told about one peer."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from kafkacompat.server.listener import COMPLAINTS_PER_SECOND, Complaints


def test_a_peer_gets_so_many_lines_a_second_and_then_a_sum(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    complain = Complaints(clock)
    for number in range(COMPLAINTS_PER_SECOND + 7):
        complain("192.0.2.1", f"line {number}")
    complain("192.0.2.2", "another peer")
    assert len(caplog.messages) == COMPLAINTS_PER_SECOND + 1
    clock.advance(1)
    complain("192.0.2.1", "again")
    assert caplog.messages[-2:] == ["7 more lines like these about 192.0.2.1", "again"]
