"""Hosts for brokers, ZooKeeper and clients: a network namespace for each of them, or addresses of the loopback device."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from compat_tests.chaos.isolation import CLONE_NEWNET, enter, unshare
from compat_tests.chaos.switch import CUT, LinkRule, Switch

DEVICE = "eth0"
NETWORK = "10.77.0"
MTU_BYTES = 9_000
QUEUED_PACKETS = 10_000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

CLIENTS = "clients"

Value = TypeVar("Value")


@dataclass(frozen=True)
class Host:
    """A place for processes: its name and number, its address, and the command that runs a command there."""

    name: str
    number: int
    address: str
    prefix: Sequence[str]


class Network:
    """Hosts by their names. ``switch`` is None where the links between them cannot be disturbed."""

    def __init__(self, hosts: Sequence[Host], switch: Switch | None) -> None:
        self.hosts: Mapping[str, Host] = {host.name: host for host in hosts}
        self.switch = switch

    def cut(self, names: Collection[str], others: Collection[str] | None = None, direction: str = "both") -> None:
        """Drop all packets between *names* and *others* (the rest by default): both ways, or "in" to or "out" of *names*."""
        rest = [name for name in self.hosts if name not in names] if others is None else others
        links = set()
        for name in names:
            for other in rest:
                inside, outside = self.hosts[name].number, self.hosts[other].number
                if direction != "in":
                    links.add((inside, outside))
                if direction != "out":
                    links.add((outside, inside))
        self._disturb(dict.fromkeys(links, CUT))

    def slow(self, names: Collection[str], delay_s: float, lost_share: float) -> None:
        """Delay packets from and to *names*, and lose a share of them."""
        numbers = {self.hosts[name].number for name in names}
        every = [host.number for host in self.hosts.values()]
        links = [(source, target) for source in every for target in every if source in numbers or target in numbers]
        self._disturb(dict.fromkeys(links, LinkRule(delay_s, lost_share)))

    def heal(self) -> None:
        """Make all links sound."""
        if self.switch is not None:
            self.switch.set_rules({})

    def _disturb(self, rules: Mapping[tuple[int, int], LinkRule]) -> None:
        assert self.switch is not None, "loopback has no links that can be disturbed"
        self.switch.set_rules({**self.switch.rules, **rules})


def build_loopback(names: Sequence[str]) -> Network:
    """Build hosts with loopback addresses that other runs at the same time do not use."""
    prefix = f"127.{1 + os.getpid() % 250}.{1 + os.getpid() // 250 % 250}"
    return Network([Host(name, number, f"{prefix}.{number}", ()) for number, name in enumerate(names, 1)], None)


def build_namespaces(names: Sequence[str], random: Random) -> Network:
    """Build a network namespace for each host, and enter that of the clients; raises OSError where it is not permitted.

    A namespace and its device exist as long as this process has their descriptors open, or a process runs there.
    """
    hosts, devices = [], {}
    for number, name in enumerate(names, 1):
        address = f"{NETWORK}.{number}"
        namespace, devices[number] = _call_in_thread(lambda address=address: _make_namespace(address))  # type: ignore[misc]
        prefix = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{namespace}"]
        if name == CLIENTS:
            enter(namespace, CLONE_NEWNET)
            prefix = []
        hosts.append(Host(name, number, address, prefix))
    switch = Switch(devices, random)
    switch.start()
    return Network(hosts, switch)


def _make_namespace(address: str) -> tuple[int, int]:
    """Return the descriptors of a new namespace and of the device in it; the calling thread stays there."""
    unshare(CLONE_NEWNET)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI))
    for words in (
        ["link", "set", "lo", "up"],
        ["addr", "add", f"{address}/24", "dev", DEVICE],
        ["link", "set", DEVICE, "mtu", str(MTU_BYTES), "txqueuelen", str(QUEUED_PACKETS), "up"],
    ):
        subprocess.run(["ip", *words], check=True)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY), device


def _call_in_thread(call: Callable[[], Value]) -> Value:
    """Call a function in a thread that ends with it, so that the caller keeps its namespaces; raises its OSError."""
    results: list[Value] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(call())
        except (OSError, subprocess.CalledProcessError) as problem:
            errors.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise OSError(str(errors[0])) from errors[0]
    return results[0]
