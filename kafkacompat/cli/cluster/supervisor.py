"""Carries out the orders of `ClusterSupervision`: starts and stops processes, writes a line an event and the state file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafkacompat.cli.cluster.folder import ClusterFolder, ClusterState, ProcessIdentity, ProcessRecord
from kafkacompat.cli.cluster.launcher import Launcher, ProcessExit
from kafkacompat.cli.cluster.supervision import (
    ClusterStage,
    ClusterSupervision,
    ProcessAction,
    ProcessLife,
    ProcessOrder,
    ProcessStage,
)
from kafkacompat.storage.files.os_errors import describe_error

READY_PREFIX = "kafkacompat cluster ready"
TRIM_LOGS_EVERY_S = 10.0


class Supervisor:
    """The supervision of one cluster; all calls come from the clock's thread.

    ``report`` receives a line for each event, ``announce`` the ready line, and ``end`` the exit code once all processes have
    ended. ``clock`` has Twisted's ``seconds`` and ``callLater``.
    """

    def __init__(
        self,
        clock: Any,
        supervision: ClusterSupervision,
        launcher: Launcher,
        folder: ClusterFolder,
        state: ClusterState,
        *,
        report: Callable[[str], None],
        announce: Callable[[str], None],
        end: Callable[[int], None],
    ) -> None:
        self._clock = clock
        self._supervision = supervision
        self._launcher = launcher
        self._folder = folder
        self._state = state
        self._report = report
        self._announce = announce
        self._end = end
        self._records = {record.name: record for record in state.processes}
        self._timer: Any = None
        self._stage = supervision.stage
        self._actions: dict[ProcessAction, Callable[[str], None]] = {
            ProcessAction.START: self._start_process,
            ProcessAction.TERMINATE: self._terminate_process,
            ProcessAction.KILL: self._kill_process,
            ProcessAction.GIVE_UP: self._give_up_process,
        }

    def begin(self) -> None:
        """Start the cluster."""
        self._carry_out(self._supervision.begin(self._clock.seconds()))
        self._clock.callLater(TRIM_LOGS_EVERY_S, self._trim_logs)

    def stop(self) -> None:
        """Stop the processes in their order; a second call ends them at once."""
        now_s = self._clock.seconds()
        if self._stage is ClusterStage.ENDED:
            return
        if self._stage is ClusterStage.STOPPING:
            self._report("Ending all processes at once")
            self._carry_out(self._supervision.kill(now_s))
        else:
            self._report("Stopping the cluster; a second signal ends all processes at once")
            self._carry_out(self._supervision.stop(now_s))

    def add_brokers(self, records: Iterable[ProcessRecord]) -> None:
        """Start the brokers of *records* that do not run yet, and those that were given up."""
        records = list(records)
        if self._stage not in (ClusterStage.STARTING, ClusterStage.READY):
            return
        self._state.growths = (self._state.growths or 0) + 1
        orders = self._supervision.add_brokers([record.name for record in records], self._clock.seconds())
        for record in records:
            if record.name not in self._records:
                self._records[record.name] = record
                self._state.processes.append(record)
        self._carry_out(orders)

    def note_ready(self, name: str, address: str) -> None:
        """Note that a process is ready at *address*."""
        orders = self._supervision.become_ready(name, self._clock.seconds())
        self._records[name].address = address
        if self._supervision.lives[name].stage is ProcessStage.READY:
            self._report(f"{name} is ready: {address}")
        self._state.bootstrap = ",".join(record.address for record in self._state.brokers if record.address)
        self._carry_out(orders)

    def note_exit(self, name: str, end: ProcessExit) -> None:
        """Note that a process ended."""
        now_s = self._clock.seconds()
        orders = self._supervision.exit(name, end.code, now_s)
        record = self._records[name]
        record.pid, record.started = None, ""
        record.exit_code, record.sentence = end.code, end.sentence
        self._report(f"{name} ended with {_describe_code(end.code)}{self._describe_end(name, end.sentence, now_s)}")
        self._carry_out(orders)

    def _describe_end(self, name: str, sentence: str, now_s: float) -> str:
        life = self._supervision.lives[name]
        if life.stage is ProcessStage.STOPPED:
            return ""
        said = f": {sentence}" if sentence else f", see {self._records[name].log}"
        return said if life.due_s is None else f"{said} (starts again in {life.due_s - now_s:g} s)"

    def _carry_out(self, orders: list[ProcessOrder]) -> None:
        for order in orders:
            self._actions[order.action](order.name)
        self._set_timer()
        self._follow_stage()
        self._write_state()
        if self._stage is ClusterStage.ENDED:
            self._end(self._supervision.exit_code)

    def _start_process(self, name: str) -> None:
        identity: ProcessIdentity | None = self._launcher.start(name, self)
        if identity is not None:
            record = self._records[name]
            record.pid, record.started = identity
            self._report(f"{name} started: process {identity.pid}, log {record.log}")

    def _terminate_process(self, name: str) -> None:
        self._launcher.terminate(name)

    def _kill_process(self, name: str) -> None:
        self._report(f"Killing {name}")
        self._launcher.kill(name)

    def _give_up_process(self, name: str) -> None:
        tries = self._supervision.lives[name].failed_starts
        self._report(f"{name} is given up after {tries} {'try' if tries == 1 else 'tries'}")

    def _follow_stage(self) -> None:
        before, self._stage = self._stage, self._supervision.stage
        if self._stage is ClusterStage.READY and before is ClusterStage.STARTING:
            self._announce(
                f"{READY_PREFIX} {self._state.bootstrap} zookeeper.connect={self._state.zookeeper} "
                f"data={self._folder.path}"
            )

    def _set_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
            self._timer = None
        due_s = self._supervision.next_due_s
        if due_s is not None:
            self._timer = self._clock.callLater(max(due_s - self._clock.seconds(), 0), self._pass_time)

    def _pass_time(self) -> None:
        self._carry_out(self._supervision.pass_time(self._clock.seconds()))

    def _write_state(self) -> None:
        self._state.stage = self._stage.name.lower()
        for name, record in self._records.items():
            life: ProcessLife = self._supervision.lives[name]
            record.stage = life.stage.name.lower().replace("_", " ")
            record.restarts = life.restarts
        try:
            self._folder.write_state(self._state)
        except OSError as problem:
            # Processes must be supervised on a full disk, too.
            self._report(f"The state file cannot be written: {describe_error(problem)}")

    def _trim_logs(self) -> None:
        self._launcher.trim_logs()
        self._clock.callLater(TRIM_LOGS_EVERY_S, self._trim_logs)


def _describe_code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"code {code}"
