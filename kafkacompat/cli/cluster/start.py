"""`kafkacompat cluster start`: the supervisor as a process, in the foreground or detached."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import click

from kafkacompat.cli.cluster.folder import ClusterCommandError, ClusterFolder, ClusterState, ProcessRecord, this_process
from kafkacompat.cli.cluster.launcher import ProcessLauncher, ProcessPlan
from kafkacompat.cli.cluster.plan import ClusterOptions, broker_name, check_options, find_addresses, plan_broker
from kafkacompat.cli.cluster.start_checks import check_folder, check_ports
from kafkacompat.cli.cluster.supervision import ClusterSupervision
from kafkacompat.cli.cluster.supervisor import READY_PREFIX, Supervisor
from kafkacompat.cli.cluster.zookeeper import (
    NAME,
    choose_port,
    find_java,
    plan_zookeeper,
    provide_jars,
    write_config,
)
from kafkacompat.storage.files.os_errors import describe_error

FOLLOW_EVERY_S = 0.05
DEFAULT_BROKERS = 3


def start(options: ClusterOptions, *, detach: bool) -> int:
    """Start a cluster; returns the exit code, in the foreground once the cluster has ended."""
    try:
        options = options._replace(brokers=options.brokers or _count_brokers(options.data))
        connect = check_options(options, os.environ)
        check_folder(options.data, options.brokers)
        java = None if connect is not None else find_java(os.environ)
        jars = None if java is None else provide_jars(os.environ, report)
        if detach:
            return _start_detached(options)
        return _ClusterStart(options).run(connect, java, jars)
    except (ClusterCommandError, OSError) as problem:
        click.echo(f"kafkacompat: {describe_error(problem)}", err=True)
        return problem.exit_code if isinstance(problem, ClusterCommandError) else 1


def _count_brokers(data: Path) -> int:
    """Return how many brokers the cluster in the folder has, or how many a new one gets; raises ClusterCommandError."""
    state = ClusterFolder(data).read_state()
    return DEFAULT_BROKERS if state is None else len(state.brokers)


def report(line: str) -> None:
    """Write an event with its time to standard error."""
    click.echo(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", err=True)


def refuse_running(folder: ClusterFolder) -> None:
    """Raise ClusterCommandError if processes of this folder still run; the caller has its lock."""
    state = folder.read_state()
    orphans = [] if state is None else state.orphans()
    if orphans:
        raise ClusterCommandError(
            f"{orphans[0].name} of an earlier start still runs as process {orphans[0].pid}: "
            f"end it with kafkacompat cluster stop --data {folder.path}"
        )


def describe_running(folder: ClusterFolder) -> str:
    """Say that a cluster runs in the folder."""
    return f"a cluster runs in {folder.path} already: stop it with kafkacompat cluster stop --data {folder.path}"


class _ClusterStart:
    """One run in the foreground."""

    def __init__(self, options: ClusterOptions) -> None:
        self._options = options
        self._folder = ClusterFolder(options.data)
        self._exit_code = 0

    def run(self, connect: str | None, java: str | None, jars: Path | None) -> int:
        """Supervise until the cluster has ended; returns the exit code. Raises ClusterCommandError and OSError."""
        self._options.data.mkdir(parents=True, exist_ok=True)
        if not self._folder.try_lock():
            raise ClusterCommandError(describe_running(self._folder))
        refuse_running(self._folder)
        for host, port in find_addresses(self._options, os.environ):
            if port:
                check_ports(host, port, self._options.brokers)
        plans: list[ProcessPlan] = []
        if java is not None and jars is not None:
            port = choose_port()
            connect = f"127.0.0.1:{port}"
            plans.append(plan_zookeeper(java, jars, self._folder.process_folder(NAME), port))
            write_config(self._folder.process_folder(NAME), port)
        assert connect is not None
        numbers = range(1, self._options.brokers + 1)
        plans += [self._plan_broker(number, connect) for number in numbers]
        supervision = ClusterSupervision([broker_name(number) for number in numbers], None if java is None else NAME)
        self._supervise(supervision, plans, connect)
        return self._exit_code

    def _plan_broker(self, number: int, connect: str) -> ProcessPlan:
        return plan_broker(number, self._options, os.environ, connect)

    def _supervise(self, supervision: ClusterSupervision, plans: list[ProcessPlan], connect: str) -> None:
        from kafkacompat.cli.process import install_reactor

        logging.basicConfig(level=logging.WARNING)
        reactor = install_reactor()
        own_log = self._folder.log if self._folder.log.exists() else None
        launcher = ProcessLauncher({plan.name: plan for plan in plans}, reactor.callFromThread, own_log)
        own = this_process()
        records = [_make_record(plan) for plan in plans]
        addresses = find_addresses(self._options, os.environ)
        state = ClusterState("starting", own.pid, own.started, "", connect, records, growths=0, addresses=addresses)

        def end(exit_code: int) -> None:
            self._exit_code = exit_code
            reactor.stop()

        supervisor = Supervisor(
            reactor, supervision, launcher, self._folder, state, report=report, announce=click.echo, end=end
        )

        def grow() -> None:
            further = [
                self._plan_broker(number, connect) for number in range(1, self._folder.read_wanted_brokers() + 1)
            ]
            for plan in further:
                launcher.add(plan)
            supervisor.add_brokers([_make_record(plan) for plan in further])

        _handle_signals(reactor, supervisor, grow)
        reactor.callWhenRunning(supervisor.begin)
        reactor.run(installSignalHandlers=False)


def _make_record(plan: ProcessPlan) -> ProcessRecord:
    return ProcessRecord(plan.name, "waiting", str(plan.log))


def _handle_signals(reactor: Any, supervisor: Supervisor, grow: Callable[[], None]) -> None:
    """Let SIGTERM, SIGINT and SIGHUP stop the cluster, and SIGUSR1 grow it; under nohup, SIGHUP stays ignored."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        reactor.callFromThread(supervisor.stop)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
    signal.signal(signal.SIGUSR1, lambda _number, _frame: reactor.callFromThread(grow))


def _start_detached(options: ClusterOptions) -> int:
    """Start a supervisor in the background, and show its lines until the cluster is ready or has ended."""
    folder = ClusterFolder(options.data)
    options.data.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "kafkacompat", "cluster", "start", *options.to_arguments()]
    with folder.log.open("ab") as log:
        position = log.tell()
        supervisor = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        return _follow(supervisor, folder.log, position)
    except KeyboardInterrupt:
        supervisor.terminate()
        supervisor.wait()
        return 1


def _follow(supervisor: subprocess.Popen[bytes], log: Path, position: int) -> int:
    """Show the lines of the log from *position* on; returns 0 after the ready line, else the supervisor's exit code."""
    never = threading.Event()
    with log.open() as file:
        file.seek(position)
        partial = ""
        while True:
            # Asked before the last lines are read, so that none is missed.
            code = supervisor.poll()
            *lines, partial = (partial + file.read()).split("\n")
            for line in lines:
                is_ready = line.startswith(READY_PREFIX)
                click.echo(line, err=not is_ready)
                if is_ready:
                    return 0
            if code is not None:
                return code
            never.wait(FOLLOW_EVERY_S)
