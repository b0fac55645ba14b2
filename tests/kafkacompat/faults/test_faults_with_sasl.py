"""Faults on a listener with SASL: clients log in as ever, and their later requests meet the rules."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.broker import Broker
from kafkacompat.faults import Faults
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.memory_host import MemoryHost
from tests.kafkacompat.test_broker_over_memory_network import HOST, TURN_S
from tests.kafkacompat.test_broker_with_sasl import ALICE, SaslWorld


def start(folder: Path, faults: Faults) -> SaslWorld:
    world = SaslWorld(folder)
    host = MemoryHost(world.clock, world.network.at(HOST), files=world.files)
    world.broker = Broker(host, world.broker.config, faults=faults)
    world.run(world.broker.start())
    return world


@pytest.mark.parametrize("fault", [{"delay_ms": 10}, {"drop": True}, {"error": "UNSUPPORTED_VERSION"}])
def test_no_rule_sees_the_versions_that_a_login_begins_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: dict[str, Any]
) -> None:
    faults = Faults()
    world = start(tmp_path, faults)
    faults.add(api="ApiVersions", **fault)
    faults.add(api="Heartbeat", error="REBALANCE_IN_PROGRESS")
    with caplog.at_level(logging.WARNING):
        answered = world.ask(HeartbeatRequest(group_id="g", member_id="m"))
    assert answered.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert caplog.records == []


def test_clients_log_in_during_a_pause(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    faults = Faults()
    world = start(tmp_path, faults)
    faults.add(api="Heartbeat", pause_ms=1_000)
    request = HeartbeatRequest(group_id="g", member_id="m")
    codes: list[int] = []
    with caplog.at_level(logging.WARNING):
        world.begin(request).addCallback(lambda response: codes.append(response.error_code))
        world.clock.pump([TURN_S] * 30)
        world.log_in(ALICE)
        assert world.ask(request).error_code == ErrorCode.NOT_COORDINATOR
    assert codes == [ErrorCode.NOT_COORDINATOR]
    assert caplog.records == []
