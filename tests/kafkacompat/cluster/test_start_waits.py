"""Waits of a broker that starts."""

from __future__ import annotations

from twisted.internet.task import Clock

from kafkacompat.cluster.start_waits import INFORMATION_TIMEOUT_S, StartWaits


def test_the_registration_ends_all_waits_for_it() -> None:
    waits = StartWaits(Clock())
    registered = [waits.wait_until_registered() for _ in range(2)]
    assert not any(wait.called for wait in registered)
    waits.note_registered()
    assert all(wait.called for wait in registered)


def test_metadata_end_all_waits_for_them() -> None:
    clock = Clock()
    waits = StartWaits(clock)
    informed = [waits.wait_until_informed() for _ in range(2)]
    waits.note_informed()
    assert all(wait.called for wait in informed) and not clock.getDelayedCalls()


def test_a_wait_for_metadata_ends_by_itself() -> None:
    clock = Clock()
    waits = StartWaits(clock)
    informed = waits.wait_until_informed()
    clock.advance(INFORMATION_TIMEOUT_S - 0.1)
    assert not informed.called
    clock.advance(0.2)
    assert informed.called
    waits.note_informed()
