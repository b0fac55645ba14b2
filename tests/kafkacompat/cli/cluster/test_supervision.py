"""The table of one process and the order of all, without processes and without a clock."""

from __future__ import annotations

import pytest

from kafkacompat.cli.cluster.supervision import (
    EXIT_BAD_CONFIG,
    LONGEST_PAUSE_S,
    MOST_FIRST_TRIES,
    MOST_LATER_TRIES,
    STEADY_S,
    STOP_S,
    TRANSITIONS,
    ClusterStage,
    ClusterSupervision,
    ProcessAction,
    ProcessEvent,
    ProcessLife,
    ProcessOrder,
    ProcessStage,
    advance_life,
)

START, TERMINATE, KILL, GIVE_UP = ProcessAction
BROKERS = ("broker-1", "broker-2", "broker-3")


def advance(life: ProcessLife, event: ProcessEvent, now_s: float = 0, code: int | None = None) -> ProcessLife:
    return advance_life(life, event, now_s, code)[0]


def start_again(life: ProcessLife) -> ProcessLife:
    assert life.due_s is not None
    return advance(life, ProcessEvent.TIME, life.due_s)


def ready_life(now_s: float = 0) -> ProcessLife:
    return advance(advance(ProcessLife(), ProcessEvent.START), ProcessEvent.READY, now_s)


def test_an_event_that_the_table_does_not_list_changes_nothing() -> None:
    for stage in ProcessStage:
        for event in ProcessEvent:
            if (stage, event) not in TRANSITIONS:
                life = ProcessLife(stage)
                assert advance_life(life, event, 1, 0) == (life, None)


def test_pauses_double_up_to_the_longest_for_a_process_that_was_ready() -> None:
    life, pauses = ready_life(), []
    for _ in range(9):
        life = advance(life, ProcessEvent.EXITED, 0, 1)
        assert life.due_s is not None
        pauses.append(life.due_s)
        life = advance(start_again(life), ProcessEvent.READY, 0)
    assert pauses == [0.5, 1, 2, 4, 8, 16, LONGEST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert life.restarts == 9


@pytest.mark.parametrize(("ready_s", "pause_s"), [(STEADY_S - 1, 1.0), (STEADY_S, 0.5)])
def test_a_process_that_was_ready_for_long_begins_with_the_first_pause_again(ready_s: float, pause_s: float) -> None:
    life = start_again(advance(ready_life(), ProcessEvent.EXITED, 0, 1))
    life = advance(life, ProcessEvent.READY, 100)
    life = advance(life, ProcessEvent.EXITED, 100 + ready_s, -9)
    assert life.due_s == 100 + ready_s + pause_s
    assert life.exit_code == -9


def test_a_pause_ends_when_it_is_due_and_not_before() -> None:
    life = advance(ready_life(), ProcessEvent.EXITED, 10, 1)
    assert advance_life(life, ProcessEvent.TIME, 10.4) == (life, None)
    assert advance_life(life, ProcessEvent.TIME, 10.5)[1] is START


def count_tries(life: ProcessLife) -> int:
    tries = 1
    while True:
        life, action = advance_life(life, ProcessEvent.EXITED, 0, 1)
        if action is GIVE_UP:
            assert (life.stage, life.failed_starts, life.due_s) == (ProcessStage.GIVEN_UP, tries, None)
            return tries
        life = start_again(life)
        tries += 1


def test_starts_that_fail_in_a_row_are_given_up() -> None:
    assert count_tries(advance(ProcessLife(), ProcessEvent.START)) == MOST_FIRST_TRIES
    restarted = start_again(advance(ready_life(), ProcessEvent.EXITED, 0, 1))
    assert count_tries(restarted) == MOST_LATER_TRIES


def test_a_configuration_that_cannot_be_used_is_tried_once() -> None:
    started = advance(ProcessLife(), ProcessEvent.START)
    life, action = advance_life(started, ProcessEvent.EXITED, 0, EXIT_BAD_CONFIG)
    assert (life.stage, life.exit_code, action) == (ProcessStage.GIVEN_UP, EXIT_BAD_CONFIG, GIVE_UP)


def test_a_process_that_ignores_sigterm_is_killed() -> None:
    life, action = advance_life(ready_life(), ProcessEvent.STOP, 5)
    assert (action, life.due_s) == (TERMINATE, 5 + STOP_S)
    assert advance_life(life, ProcessEvent.TIME, 5 + STOP_S - 1) == (life, None)
    life, action = advance_life(life, ProcessEvent.TIME, 5 + STOP_S)
    assert (action, life.due_s) == (KILL, None)
    assert advance(life, ProcessEvent.EXITED, 70, -9).stage is ProcessStage.STOPPED


def running_cluster(zookeeper: str | None = "zookeeper") -> ClusterSupervision:
    supervision = ClusterSupervision(BROKERS, zookeeper)
    supervision.begin(0)
    for name in supervision.lives:
        supervision.become_ready(name, 0)
    assert supervision.stage is ClusterStage.READY
    return supervision


def test_brokers_start_together_once_zookeeper_is_ready() -> None:
    supervision = ClusterSupervision(BROKERS, "zookeeper")
    assert supervision.begin(0) == [ProcessOrder("zookeeper", START)]
    assert supervision.become_ready("zookeeper", 1) == [ProcessOrder(name, START) for name in BROKERS]
    for name in BROKERS:
        assert supervision.stage is ClusterStage.STARTING
        assert supervision.become_ready(name, 2) == []
    assert supervision.stage is ClusterStage.READY


def test_with_a_zookeeper_elsewhere_brokers_start_at_once() -> None:
    assert ClusterSupervision(BROKERS, None).begin(0) == [ProcessOrder(name, START) for name in BROKERS]


def test_brokers_stop_one_after_the_other_and_zookeeper_last() -> None:
    supervision = running_cluster()
    orders = supervision.stop(0)
    stopped = []
    while orders:
        (order,) = orders
        assert order.action is TERMINATE
        stopped.append(order.name)
        assert supervision.stop(0) == []
        orders = supervision.exit(order.name, 0, 0)
    assert stopped == ["broker-3", "broker-2", "broker-1", "zookeeper"]
    assert (supervision.stage, supervision.exit_code) == (ClusterStage.ENDED, 0)


def test_a_process_that_dies_while_others_stop_is_not_started_again() -> None:
    supervision = running_cluster(None)
    supervision.stop(0)
    assert supervision.exit("broker-1", -9, 0) == []
    assert supervision.pass_time(30) == []
    assert supervision.exit("broker-3", 0, 30) == [ProcessOrder("broker-2", TERMINATE)]
    assert supervision.exit("broker-2", 0, 30) == []
    assert supervision.stage is ClusterStage.ENDED


def test_a_pausing_process_needs_no_stop() -> None:
    supervision = running_cluster(None)
    supervision.exit("broker-3", 1, 0)
    assert supervision.stop(0) == [ProcessOrder("broker-2", TERMINATE)]


def test_a_stop_before_zookeeper_is_ready_starts_no_broker() -> None:
    supervision = ClusterSupervision(BROKERS, "zookeeper")
    supervision.begin(0)
    assert supervision.stop(0) == [ProcessOrder("zookeeper", TERMINATE)]
    assert supervision.become_ready("zookeeper", 1) == []
    assert supervision.exit("zookeeper", 0, 1) == []
    assert supervision.stage is ClusterStage.ENDED


def test_all_processes_are_killed_at_once() -> None:
    supervision = running_cluster()
    supervision.stop(0)
    assert supervision.kill(1) == [ProcessOrder(name, KILL) for name in supervision.lives]
    for name in supervision.lives:
        supervision.exit(name, -9, 1)
    assert supervision.stage is ClusterStage.ENDED
    assert supervision.kill(2) == []


@pytest.mark.parametrize(("code", "exit_code"), [(1, 1), (EXIT_BAD_CONFIG, EXIT_BAD_CONFIG)])
def test_a_process_that_is_given_up_at_the_start_ends_the_cluster(code: int, exit_code: int) -> None:
    supervision = ClusterSupervision(BROKERS, None)
    supervision.begin(0)
    supervision.become_ready("broker-1", 0)
    supervision.become_ready("broker-2", 0)
    orders: list[ProcessOrder] = []
    while ProcessOrder("broker-3", GIVE_UP) not in orders:
        supervision.pass_time(supervision.next_due_s or 0)
        orders = supervision.exit("broker-3", code, 0)
    assert orders[1:] == [ProcessOrder("broker-2", TERMINATE)]
    supervision.exit("broker-2", 0, 0)
    supervision.exit("broker-1", 0, 0)
    assert (supervision.stage, supervision.exit_code) == (ClusterStage.ENDED, exit_code)


def give_up(supervision: ClusterSupervision, name: str) -> list[ProcessOrder]:
    supervision.exit(name, 1, 0)
    supervision.pass_time(1000)
    return supervision.exit(name, EXIT_BAD_CONFIG, 1000)


def test_a_cluster_that_was_ready_goes_on_with_the_other_brokers() -> None:
    supervision = running_cluster()
    assert give_up(supervision, "broker-2") == [ProcessOrder("broker-2", GIVE_UP)]
    assert give_up(supervision, "broker-1") == [ProcessOrder("broker-1", GIVE_UP)]
    assert supervision.stage is ClusterStage.READY
    assert give_up(supervision, "broker-3") == [ProcessOrder("broker-3", GIVE_UP), ProcessOrder("zookeeper", TERMINATE)]
    supervision.exit("zookeeper", 0, 1000)
    assert (supervision.stage, supervision.exit_code) == (ClusterStage.ENDED, 1)


def test_the_next_due_time_is_the_earliest() -> None:
    supervision = running_cluster()
    assert supervision.next_due_s is None
    supervision.exit("broker-1", 1, 10)
    supervision.exit("broker-2", 1, 9)
    assert supervision.next_due_s == 9.5
    assert supervision.pass_time(9.5) == [ProcessOrder("broker-2", START)]
    assert supervision.next_due_s == 10.5


def test_further_brokers_start_beside_those_that_run() -> None:
    supervision = running_cluster()
    assert supervision.add_brokers([*BROKERS, "broker-4"], 5) == [ProcessOrder("broker-4", START)]
    assert supervision.add_brokers([*BROKERS, "broker-4"], 6) == []
    assert supervision.stage is ClusterStage.READY
    supervision.become_ready("broker-4", 7)
    assert supervision.stop(8) == [ProcessOrder("broker-4", TERMINATE)]


def test_a_broker_that_was_given_up_is_started_again_on_request() -> None:
    supervision = running_cluster()
    give_up(supervision, "broker-2")
    assert supervision.add_brokers(BROKERS, 2000) == [ProcessOrder("broker-2", START)]
    assert supervision.lives["broker-2"].failed_starts == 0


def test_brokers_that_are_added_while_others_start_wait_for_zookeeper() -> None:
    supervision = ClusterSupervision(BROKERS, "zookeeper")
    supervision.begin(0)
    assert supervision.add_brokers([*BROKERS, "broker-4"], 0) == []
    orders = supervision.become_ready("zookeeper", 1)
    assert orders == [ProcessOrder(name, START) for name in (*BROKERS, "broker-4")]


def test_a_cluster_that_stops_gets_no_broker() -> None:
    supervision = running_cluster()
    supervision.stop(0)
    assert supervision.add_brokers(["broker-4"], 1) == []
    assert "broker-4" not in supervision.lives
