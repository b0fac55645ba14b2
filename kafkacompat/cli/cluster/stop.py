"""`kafkacompat cluster stop`: ends the supervisor of a folder, or the processes that a killed supervisor left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import click

from kafkacompat.cli.cluster.folder import ClusterCommandError, ClusterFolder, ProcessRecord
from kafkacompat.cli.cluster.supervision import STOP_S
from kafkacompat.storage.files.os_errors import describe_error

LOOK_EVERY_S = 0.05
_NEVER_SET = threading.Event()


def stop(data: Path) -> int:
    """Stop the cluster of a folder; returns the exit code."""
    try:
        _stop(ClusterFolder(data))
    except (ClusterCommandError, OSError) as problem:
        click.echo(f"kafkacompat: {describe_error(problem)}", err=True)
        return problem.exit_code if isinstance(problem, ClusterCommandError) else 1
    click.echo(f"Stopped the cluster in {data}", err=True)
    return 0


def _stop(folder: ClusterFolder) -> None:
    state = folder.read_state() if folder.path.is_dir() else None
    if state is None:
        raise ClusterCommandError(f"{folder.path} holds no cluster: name its folder with --data")
    if not folder.try_lock():
        if not state.supervisor.is_alive():
            raise ClusterCommandError(
                f"the supervisor in {folder.path} cannot be identified: "
                "end the process of kafkacompat cluster start with SIGTERM"
            )
        os.kill(state.supervisor.pid, signal.SIGTERM)
        # The supervisor bounds its own end.
        _wait_for(folder.try_lock, float("inf"))
        return
    try:
        orphans = state.orphans()
        if not orphans:
            raise ClusterCommandError(f"no cluster runs in {folder.path}")
        for record in reversed(orphans):
            _stop_orphan(record)
    finally:
        folder.unlock()


def _stop_orphan(record: ProcessRecord) -> None:
    """End a process of a supervisor that was killed."""
    identity = record.identity
    assert identity is not None
    click.echo(f"Stopping {record.name}, process {identity.pid}, whose supervisor was killed", err=True)
    for number in (signal.SIGTERM, signal.SIGKILL):
        if identity.is_alive():
            os.kill(identity.pid, number)
        if _wait_for(lambda: not identity.is_alive(), STOP_S):
            return
    raise ClusterCommandError(f"{record.name} does not end: process {identity.pid} waits in the kernel")


def _wait_for(check: Callable[[], bool], longest_s: float) -> bool:
    deadline = time.monotonic() + longest_s
    while not check():
        if time.monotonic() > deadline:
            return False
        _NEVER_SET.wait(LOOK_EVERY_S)
    return True
