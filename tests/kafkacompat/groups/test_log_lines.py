"""What the log says of a group's rebalance: one line, whatever the protocol."""

from __future__ import annotations

import logging

import pytest

from tests.kafkacompat.groups.consumer.support import ConsumerWorld
from tests.kafkacompat.groups.support import GROUP, World


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_a_rebalance_of_a_classic_group_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    (first, second) = world.stable(2)
    (line,) = caplog.messages
    assert line.startswith(f"Rebalanced group {GROUP}: generation 1, 2 members, because {first} joins")
    caplog.clear()
    world.leave(second)
    world.join(first)
    assert caplog.messages == [f"Rebalanced group {GROUP}: generation 2, 1 member, because 1 of its members left"]
    caplog.clear()
    world.leave(first)
    assert caplog.messages == [f"Rebalanced group {GROUP}: generation 3 is empty"]


def test_a_rebalance_of_a_consumer_group_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    world = ConsumerWorld()
    world.come("m", "t")
    (line,) = caplog.messages
    assert line.startswith(f"Rebalanced group {GROUP}: epoch 2, 1 member, assignor uniform, ")
    caplog.clear()
    world.beat("m", -1)
    assert caplog.messages == [f"Rebalanced group {GROUP}: epoch 3 is empty"]
