"""The things that faults act on, and how a fault finds its target and waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.chaos.cluster import ChaosCluster
from compat_tests.chaos.ensemble import ZooKeeperEnsemble
from compat_tests.chaos.roles import Roles
from compat_tests.waiting import pause

ASK_AGAIN_SECONDS = 0.2


@dataclass
class FaultWorld:
    """The things that faults act on. ``clocks`` are the files with the offsets of brokers' clocks."""

    cluster: ChaosCluster
    roles: Roles
    disks: Mapping[int, Path]
    clocks: Mapping[int, Path]

    @property
    def ensemble(self) -> ZooKeeperEnsemble:
        """The ZooKeeper of the cluster."""
        assert self.cluster.ensemble is not None
        return self.cluster.ensemble

    @property
    def zookeeper_hosts(self) -> list[str]:
        """The names of ZooKeeper's hosts."""
        return [] if self.cluster.ensemble is None else list(self.cluster.ensemble.servers)

    def find(self, arguments: Mapping[str, Any]) -> int:
        """Return the node that the arguments of a fault mean."""
        return self.roles.find(arguments["target"], arguments["number"])

    def wait_for(self, check: Callable[[], bool], longest_s: float) -> bool:
        """Wait until a check holds, at most *longest_s*; return whether it does."""
        for _ in range(int(longest_s / ASK_AGAIN_SECONDS)):
            if check():
                return True
            pause(ASK_AGAIN_SECONDS)
        return False

    def find_zookeeper_leader(self) -> str:
        """Return the host of the server that leads, or of the first one."""
        return self.ensemble.find_leader() or next(iter(self.ensemble.servers))
