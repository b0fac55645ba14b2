"""Further brokers for a cluster that `cluster start` runs: requested from its supervisor, and awaited until they serve.

The request is a file with the wanted number and a SIGUSR1. It can be repeated: the supervisor starts what does not run.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from kafkacompat.cli.cluster.folder import ClusterCommandError, ClusterFolder, ClusterState
from kafkacompat.cli.cluster.start_checks import check_distinct_ports, check_ports
from kafkacompat.cli.cluster.supervision import EXIT_BAD_CONFIG
from kafkacompat.cli.requests import parse_address
from kafkacompat.config.listeners import MAX_PORT

LONGEST_START_S = 180.0
LOOK_EVERY_S = 0.1
READY, GIVEN_UP = "ready", "given up"


def read_running(folder: ClusterFolder) -> ClusterState:
    """Return the state of a cluster that runs and can grow; raises ClusterCommandError."""
    state = folder.read_state()
    if state is None:
        raise ClusterCommandError(
            f"{folder.path} holds no cluster: name its folder with --data, or a broker with --bootstrap-server"
        )
    if not state.supervisor.is_alive() or state.stage != READY:
        raise ClusterCommandError(
            f"the cluster in {folder.path} is not ready: start it with kafkacompat cluster start --data {folder.path}"
        )
    if state.growths is None:
        raise ClusterCommandError(
            f"the cluster in {folder.path} was started by an older release, which cannot add brokers: "
            "stop it, and start it with this release"
        )
    return state


def check_growth(state: ClusterState, brokers: int) -> None:
    """Raise ClusterCommandError if the cluster cannot have that number of brokers."""
    present = len(state.brokers)
    if brokers < present:
        raise ClusterCommandError(
            f"--brokers {brokers} is less than the {present} brokers that run, and grow removes none", EXIT_BAD_CONFIG
        )
    if brokers > present:
        # The state of an older release has the first listener only.
        addresses = [(host, port) for host, port in state.addresses if port] or [
            parse_address(state.brokers[0].address)
        ]
        for _, first_port in addresses:
            if first_port + brokers - 1 > MAX_PORT:
                raise ClusterCommandError(
                    f"--brokers {brokers} is too many: the last one would listen on {first_port + brokers - 1}, "
                    f"and {MAX_PORT} is the highest port",
                    EXIT_BAD_CONFIG,
                )
        check_distinct_ports([port for _, port in addresses], brokers)
        for host, first_port in addresses:
            check_ports(host, first_port + present, brokers - present)


def add_brokers(folder: ClusterFolder, brokers: int, pause: Callable[[float], None]) -> ClusterState:
    """Let the supervisor run that number of brokers, and return once all are ready; raises ClusterCommandError."""
    state = read_running(folder)
    earlier_growths = state.growths
    folder.write_wanted_brokers(brokers)
    os.kill(state.supervisor.pid, signal.SIGUSR1)
    waited_s = 0.0
    while waited_s < LONGEST_START_S:
        state = read_running(folder)
        # What the state says of brokers that were given up before is no outcome of this request.
        if state.growths != earlier_growths:
            for record in state.brokers:
                if record.stage == GIVEN_UP:
                    raise ClusterCommandError(f"{record.name} cannot be started: {record.sentence or record.log}")
            if all(record.stage == READY for record in state.brokers):
                return state
        pause(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
    slow = [record.name for record in state.brokers if record.stage != READY]
    raise ClusterCommandError(
        f"{', '.join(slow) or 'the supervisor'} is not ready after {LONGEST_START_S:g} s: see the logs in {folder.path}"
    )
