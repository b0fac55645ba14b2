"""The folder of a cluster: its state in one JSON file, the lock of its supervisor, and the folders of its processes.

A process is known by its id and the time of its start, so that a signal never reaches another process that has been given the
same id.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

STATE_FILE, LOCK_FILE, LOG_FILE, GROWTH_FILE = "cluster.json", "cluster.lock", "cluster.log", "cluster.grow"
STATE_VERSION = 1
BROKER_PREFIX = "broker-"


class ClusterCommandError(Exception):
    """A command cannot do its work; the text is a sentence for the user, *exit_code* that of the command."""

    def __init__(self, sentence: str, exit_code: int = 1) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class ProcessIdentity(NamedTuple):
    """A process: its id, and the boot of the machine with the time of its start; "" if the system does not report that."""

    pid: int
    started: str

    def is_alive(self) -> bool:
        """Return whether exactly this process still runs; False if its start is not known."""
        return bool(self.started) and _read_start(self.pid) == self.started


def identify_process(pid: int) -> ProcessIdentity:
    """Return the identity of a process that runs."""
    return ProcessIdentity(pid, _read_start(pid))


def _read_start(pid: int) -> str:
    """Return the start of a process as proc(5) reports it, with the boot; "" if it has ended, or without such files."""
    try:
        # The command between the parentheses may hold blanks and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    state, started = fields[0], fields[19]
    return "" if state in "ZX" else f"{boot} {started}"


@dataclass
class ProcessRecord:
    """What the state file says of one process; ``exit_code`` and ``sentence`` are those of its last exit."""

    name: str
    stage: str
    log: str
    pid: int | None = None
    started: str = ""
    address: str = ""
    restarts: int = 0
    exit_code: int | None = None
    sentence: str = ""

    @property
    def is_broker(self) -> bool:
        """Whether the process is a broker, and not ZooKeeper."""
        return self.name.startswith(BROKER_PREFIX)

    @property
    def identity(self) -> ProcessIdentity | None:
        """The running process, or None."""
        return None if self.pid is None else ProcessIdentity(self.pid, self.started)


@dataclass
class ClusterState:
    """The contents of the state file; ``bootstrap`` is complete once the cluster was ready.

    ``growths`` counts the requests for further brokers that the supervisor has read. It is None if that is of an older release,
    which SIGUSR1 would end. ``addresses`` are the hosts and ports of the listeners of broker 1, a host "" for every address and a port 0
    for a free one.
    """

    stage: str
    supervisor_pid: int
    supervisor_started: str
    bootstrap: str
    zookeeper: str
    processes: list[ProcessRecord] = field(default_factory=list)
    version: int = STATE_VERSION
    growths: int | None = None
    addresses: list[tuple[str, int]] = field(default_factory=list)

    @property
    def brokers(self) -> list[ProcessRecord]:
        """The brokers, in the order of their numbers."""
        return [record for record in self.processes if record.is_broker]

    @property
    def supervisor(self) -> ProcessIdentity:
        """The process of `kafkacompat cluster start`."""
        return ProcessIdentity(self.supervisor_pid, self.supervisor_started)

    def orphans(self) -> Sequence[ProcessRecord]:
        """List the processes that still run, in the order of their start."""
        return [record for record in self.processes if record.identity is not None and record.identity.is_alive()]


class ClusterFolder:
    """The files of one cluster."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / LOG_FILE
        self._lock: IO[str] | None = None

    def process_folder(self, name: str) -> Path:
        """Return the folder of a process."""
        return self.path / name

    def try_lock(self) -> bool:
        """Take the supervisor's lock, which the system releases when this process ends; False if another one has it."""
        lock = (self.path / LOCK_FILE).open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self._lock = lock
        return True

    def unlock(self) -> None:
        """Release the lock, if this process has it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def read_state(self) -> ClusterState | None:
        """Return the state, or None if there never was a cluster; raises ClusterCommandError for a file of another form."""
        path = self.path / STATE_FILE
        try:
            return _parse_state(json.loads(path.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError) as problem:
            raise ClusterCommandError(
                f"{path} is not the state of a cluster of this release ({problem}): remove it, or use that release"
            ) from problem

    def write_state(self, state: ClusterState) -> None:
        """Replace the state file."""
        self._replace(STATE_FILE, json.dumps(asdict(state), indent=2) + "\n")

    def write_wanted_brokers(self, brokers: int) -> None:
        """Note how many brokers the supervisor has to run."""
        self._replace(GROWTH_FILE, f"{brokers}\n")

    def read_wanted_brokers(self) -> int:
        """Return how many brokers the supervisor has to run; 0 if nobody has noted a number."""
        try:
            return int((self.path / GROWTH_FILE).read_text())
        except (OSError, ValueError):
            return 0

    def _replace(self, name: str, text: str) -> None:
        """Write a file completely or not at all."""
        partial = self.path / f"{name}.tmp"
        partial.write_text(text)
        partial.replace(self.path / name)


def _parse_state(fields: dict[str, Any]) -> ClusterState:
    if fields["version"] != STATE_VERSION:
        raise ValueError(f"version {fields['version']}")
    processes = [ProcessRecord(**record) for record in fields.pop("processes")]
    addresses = [(str(host), int(port)) for host, port in fields.pop("addresses", ())]
    return ClusterState(**fields, processes=processes, addresses=addresses)


def this_process() -> ProcessIdentity:
    """Return the identity of this process."""
    return identify_process(os.getpid())
