"""What one client can make the broker hold or do: bytes that wait, the length of a turn, idleness."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.server.connection import MAX_TURN_SECONDS, MAX_UNSENT_BYTES
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkacompat.wire.apis.heartbeat import HeartbeatResponse
from kafkacompat.wire.apis.list_groups import ListedGroup, ListGroupsResponse
from kafkacompat.wire.apis.sync_group import SyncGroupResponse
from kafkacompat.wire.compile_source import STEP_ELEMENTS
from kafkacompat.wire.compiler import encode_message
from tests.fakes.busy_clock import LOOKS_A_TURN, BusyClock
from tests.kafkacompat.server.regions import is_closed, log_file, make_region
from tests.kafkacompat.server.world import World, make_request

ELEMENTS_A_TURN = LOOKS_A_TURN * STEP_ELEMENTS
MANY = ListGroupsResponse(groups=[ListedGroup(group_id=f"g{number}") for number in range(10 * ELEMENTS_A_TURN)])
LARGE = SyncGroupResponse(assignment=bytes(MAX_UNSENT_BYTES // 4))


def test_answers_after_a_late_one_are_bounded_by_their_bytes() -> None:
    world = World()
    late = world.pending()
    world.dispatcher.results += [LARGE] * 10
    world.receive(*range(11))
    assert len(world.dispatcher.seen) == 5
    assert not world.transport.reading
    late.response.callback(HeartbeatResponse())
    assert len(world.dispatcher.seen) == 11
    assert world.transport.reading


def test_answers_leave_before_more_of_them_are_made_than_may_wait() -> None:
    world = World()
    world.dispatcher.results = [LARGE] * 12
    world.receive(*range(12))
    assert len(world.dispatcher.seen) == 12
    assert len(world.transport.sends) == 3
    assert max(world.transport.sends) < MAX_UNSENT_BYTES * 1.5


def test_an_answer_in_order_is_counted_before_the_next_request_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What old consumers are answered lies on the disk, and of who reads nothing two such answers did."""
    world = World()
    transport = world.transport
    monkeypatch.setattr(transport, "send_parts", lambda _: setattr(transport, "stuck_bytes", MAX_UNSENT_BYTES))
    pending = world.pending(in_order=True)
    world.receive(1, 2)
    pending.response.callback(HeartbeatResponse())
    assert world.dispatcher.seen == [1]
    assert not transport.reading


def test_a_turn_ends_by_time() -> None:
    world = World()
    world.dispatcher.seconds = MAX_TURN_SECONDS * 0.6
    world.receive(*range(5))
    assert world.answered() == [0, 1]
    assert not world.transport.reading
    world.clock.advance(0)
    assert world.answered() == [0, 1, 2, 3, 4]
    assert world.transport.sends == [20, 20, 10]
    assert world.transport.reading


def test_while_a_large_answer_is_written_others_go_on_and_the_next_request_waits() -> None:
    world = World(BusyClock())
    world.dispatcher.results.append(MANY)
    world.receive(1, 2)
    assert world.dispatcher.seen == [1]
    assert world.transport.sent == b""
    assert not world.transport.reading
    assert world.clock.turns() > len(MANY.groups) / ELEMENTS_A_TURN - 1
    assert world.transport.sent[8:].startswith(encode_message(MANY, 0))
    assert world.dispatcher.seen == [1, 2]
    assert world.transport.reading


def test_a_large_answer_that_cannot_be_encoded_closes(caplog: pytest.LogCaptureFixture) -> None:
    world = World(BusyClock())
    world.dispatcher.results.append(ListGroupsResponse(groups=[*MANY.groups, ListedGroup(group_id="g" * 40_000)]))
    world.receive(1)
    assert not world.transport.aborted
    world.clock.turns()
    assert world.transport.aborted
    assert "could not be served" in caplog.text


def test_a_large_answer_to_a_client_that_has_gone_lets_go_of_its_files(tmp_path: Path) -> None:
    world, file = World(BusyClock()), log_file(tmp_path / "log", b"abc")
    partitions = [PartitionData(records=b"") for _ in range(3 * ELEMENTS_A_TURN)]
    partitions[0].records = make_region(file, 0, 3)
    world.dispatcher.results.append(FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)]))
    world.receive(1)
    world.lose()
    assert not is_closed(file)
    world.clock.turns()
    assert is_closed(file)


def test_answered_requests_of_a_slow_reader_are_released() -> None:
    world = World()
    world.transport.stuck_bytes = MAX_UNSENT_BYTES
    data = make_request(1, "g" * 30_000)
    world.connection.dataReceived(data)
    assert world.budget.held_bytes == len(data) - 4
    world.transport.stuck_bytes = 0
    assert world.transport.on_drained is not None
    world.transport.on_drained()
    assert world.budget.held_bytes == 0


def test_dropped_requests_are_released() -> None:
    world = World()
    world.transport.stuck_bytes = MAX_UNSENT_BYTES
    world.receive(1)
    world.connection.finish()
    assert world.budget.held_bytes == 0


def test_idleness_begins_when_bytes_came_or_were_seen_to_have_left() -> None:
    world = World()
    world.receive(1)
    assert world.connection.idle_ms(100) == 0
    assert world.connection.idle_ms(150) == 50
    world.clock.advance(0.2)
    world.receive(2)
    assert world.connection.idle_ms(210) == 0
    assert world.connection.idle_ms(215) == 5


def test_a_client_that_waits_for_us_is_not_idle() -> None:
    world = World()
    pending = world.pending()
    world.receive(1)
    assert world.connection.idle_ms(1_000_000) == 0
    pending.response.callback(HeartbeatResponse())
    world.connection.idle_ms(1_000_001)
    assert world.connection.idle_ms(1_000_011) == 10


def test_a_client_that_we_stopped_for_memory_is_not_idle() -> None:
    world = World()
    world.connection.pause_for_memory()
    assert world.connection.idle_ms(1_000_000) == 0
    world.connection.resume_for_memory()
    assert world.connection.idle_ms(1_000_010) == 10


def test_a_client_that_takes_nothing_is_idle_whatever_it_asked() -> None:
    world = World()
    world.pending()
    world.receive(1)
    world.transport.stuck_bytes = 50
    world.connection.idle_ms(100)
    assert world.connection.idle_ms(1_100) == 1_000
    world.transport.stuck_bytes = 40
    assert world.connection.idle_ms(1_200) == 0
