"""The machine of one broker, through all lives of its process."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from enum import Enum, auto
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.broker import START_ERRORS, Broker
from kafkacompat.config import BrokerConfig
from kafkacompat.disk import OwnedDisk
from kafkacompat.zookeeper.memory_client import MemoryClient
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.memory_host import MemoryHost
from tests.fakes.power_failures import Survivors
from tests.simulation.disks import DiskSpeed, SimulatedDisk
from tests.simulation.settings import host_of
from tests.simulation.timeline import MachineClock

if TYPE_CHECKING:
    from twisted.internet.protocol import Factory, Protocol

    from kafkacompat.zookeeper.client import ZooKeeper
    from kafkacompat.zookeeper.settings import ZooKeeperSettings
    from tests.fakes.memory_network import MemoryHost as NetworkHost
    from tests.fakes.memory_network import MemoryPort
    from tests.simulation.world import World

log = logging.getLogger(__name__)

RESTART_S = 1.0
"""Pause before a broker whose start failed starts again."""


NEVER_S = 1e9
RESERVED_BYTES = 32 << 20
FREE_BYTES = 1 << 39


class State(Enum):
    """State of a machine's process."""

    DOWN = auto()
    STARTING = auto()
    UP = auto()
    STOPPING = auto()


class Life(NamedTuple):
    """One process of a broker, by its number."""

    node: int
    number: int


class _ProcessNetwork:
    """A host's network as one process sees it: a killed one makes no connections."""

    def __init__(self, host: NetworkHost) -> None:
        self._host = host
        self.is_alive = True

    def listen(self, port: int, factory: Factory, backlog: int, host: str) -> MemoryPort:
        return self._host.listen(port, factory, backlog, host)

    def connect(self, host: str, port: int, protocol: Protocol, timeout_s: float) -> Deferred[None]:
        return self._host.connect(host, port, protocol, timeout_s) if self.is_alive else Deferred()


class _ProcessHost(MemoryHost):
    """What the operating system is to one process."""

    def __init__(self, machine: Machine, life: Life, clock: MachineClock, network: _ProcessNetwork) -> None:
        rng = Random(f"{machine.world.seed} {life}")
        super().__init__(
            clock,
            network,
            files=machine.files,
            rng=rng,
            zookeeper=machine.world.zookeeper,
            boot_id=f"boot {machine.boots}",
        )
        self._machine = machine
        self._life = life
        self.zookeeper_clients: list[MemoryClient] = []

    def new_disk(self, name: str) -> OwnedDisk:
        """See Host."""
        disk: OwnedDisk = SimulatedDisk(self._life, self.reactor, self._machine.disk_speed)
        return disk

    def open_zookeeper(self, settings: ZooKeeperSettings) -> ZooKeeper:
        """See Host."""
        client = super().open_zookeeper(settings)
        assert isinstance(client, MemoryClient)
        self.zookeeper_clients.append(client)
        return client


class Machine:
    """A machine with disks that outlive its processes; ``broker`` is that of the present life, None while it is down."""

    def __init__(self, world: World, node: int) -> None:
        self.world = world
        self.node = node
        self.name = host_of(node)
        self.lane = world.timeline.lane(self.name)
        self.files = MemoryFiles()
        self.rng = Random(f"{world.seed} machine {node}")
        self.disk_speed = DiskSpeed(world.settings.disk_ms / 1000, Random(f"{world.seed} disk {node}"))
        self.network = world.network.at(self.name, self.lane)
        self.state = State.DOWN
        self.life = Life(node, 0)
        self.broker: Broker | None = None
        self.clock = MachineClock(self.lane)
        self.has_no_power = False
        self.boots = 1
        self._process_network = _ProcessNetwork(self.network)
        self._host: _ProcessHost | None = None
        self._restart_wanted = False

    def __repr__(self) -> str:
        return f"broker {self.node}"

    # Starting

    def start(self) -> None:
        """Start a process, unless there is one."""
        if self.state is not State.DOWN:
            return
        self.state = State.STARTING
        self.life = life = Life(self.node, self.life.number + 1)
        settings = self.world.settings
        self.clock = MachineClock(self.lane, settings.clock_rates[self.node - 1])
        self._process_network = _ProcessNetwork(self.network)
        self._host = _ProcessHost(self, life, self.clock, self._process_network)
        self.broker = broker = Broker(self._host, BrokerConfig(settings.properties(self.node)))
        starting = Deferred.fromCoroutine(broker.start())
        starting.addCallbacks(self._started, self._not_started, callbackArgs=(life,), errbackArgs=(life,))
        starting.addErrback(self.world.fail, f"{self!r} cannot start")

    def _started(self, _: object, life: Life) -> None:
        if life == self.life and self.state is State.STARTING:
            self.state = State.UP

    def _not_started(self, failure: Failure, life: Life) -> None:
        if life != self.life or self.state is not State.STARTING:
            return
        self.world.counts.happen("a start fails")
        log.info("%r cannot start: %s", self, failure.value)
        if failure.check(*START_ERRORS) is None:
            self.world.fail(failure, f"{self!r} cannot start")
        self.kill()
        self.start_later(RESTART_S)

    def start_later(self, seconds: float) -> None:
        """Start a process after some time, unless another one was started."""
        life = self.life

        def start() -> None:
            if self.life == life:
                self.start()

        self.lane.callLater(seconds, start)

    # Ending

    def kill(self) -> None:
        """End the process: the other ends of its connections are reset."""
        self.files = self._end().hand_over()

    def lose_power(self, names: str, contents: str) -> None:
        """End the process, and lose unsynced data; no other process is notified. See `power_failures` for the ways."""
        self.world.cuts.isolate(self.name)
        self.has_no_power = True
        self.boots += 1
        rng = Random(f"{self.world.seed} {self.life} loses power")
        files = self._end().after(Survivors(names, contents, rng))
        self.files.hand_over()
        self.files = files

    def return_power(self) -> None:
        """Let the machine reset the connections that its last process had."""
        if self.has_no_power:
            self.has_no_power = False
            self.world.cuts.rejoin(self.name)

    def _end(self) -> MemoryFiles:
        """End the process, and return its files."""
        self.state = State.DOWN
        self._process_network.is_alive = False
        self.lane.resume()
        self.clock.kill()
        self.network.kill()
        for client in self.zookeeper_clients:
            self.world.zookeeper.abandon(client, arriving=self.rng.choice((0, 0, 1, 2)))
        self.broker = None
        self._host = None
        self.world.monitor.forget(self.life)
        return self.files

    def stop(self, ended: Callable[[], object]) -> None:
        """Stop the broker in order, and call *ended*."""
        assert self.broker is not None
        life = self.life
        self.state = State.STOPPING

        def stopped(result: Any) -> None:
            if life == self.life and self.state is State.STOPPING:
                if isinstance(result, Failure):
                    self.world.fail(result, f"{self!r} cannot stop")
                self.kill()
                ended()

        Deferred.fromCoroutine(self.broker.stop()).addBoth(stopped).addErrback(self.world.fail, f"{self!r} stops")

    # The session

    @property
    def zookeeper_clients(self) -> list[MemoryClient]:
        """The process's clients of ZooKeeper."""
        return [] if self._host is None else self._host.zookeeper_clients

    @property
    def session(self) -> MemoryClient | None:
        """The client whose session is the broker's; None before there is one."""
        clients = self.zookeeper_clients
        return clients[-1] if clients and clients[-1].session_id else None

    def owns_session(self, session_id: int) -> bool:
        """Return whether a session is the broker's."""
        return session_id != 0 and any(client.session_id == session_id for client in self.zookeeper_clients)

    # Disks

    def fill_disk(self, is_full_for_all: bool) -> None:
        """Leave so little space that clients may not write, or none at all."""
        self.files.free_bytes = 0 if is_full_for_all else RESERVED_BYTES
        if is_full_for_all:
            self.files.fail_on("append", errno.ENOSPC, times=1 << 30)

    def empty_disk(self) -> None:
        """Make space again."""
        self.files.free_bytes = FREE_BYTES
        self.files.succeed()

    def repair(self) -> None:
        """Repair the disk; a broker with a failed log directory, or with a partition that it could not open, starts again."""
        self.empty_disk()
        if self.broker is not None and self._has_failed(self.broker):
            self.world.counts.happen("a log directory fails")
            self.kill()
            self.world.monitor.note_outage()
            self.start_later(0.5)

    @staticmethod
    def _has_failed(broker: Broker) -> bool:
        replicas = getattr(broker, "replica_manager", None)
        return any(directory.offline for directory in broker._disks.directories) or bool(replicas and replicas._offline)

    # Pauses

    def pause(self) -> None:
        """Stop the process without its knowledge; its connections stay open, and its session expires in time."""
        self.lane.pause()
        for client in self.zookeeper_clients:
            self.world.zookeeper.disconnect(client, noticed_after_seconds=NEVER_S)

    def resume(self, noticed_after_s: float) -> None:
        """Continue the process, which learns after some time what has become of its session."""
        if not self.lane.is_paused:
            return
        self.lane.resume()
        for client in self.zookeeper_clients:
            self.clock.callLater(noticed_after_s, self.world.zookeeper.reconnect, client)
