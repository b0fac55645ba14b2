"""Brokers for tests: ``with kafkacompat.testing.broker() as kafka`` starts one in this process.

Everything that is importable from here is stable, see docs/testing/fixtures.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacompat.testing.acls import Acl
from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.starting import broker, cluster

if TYPE_CHECKING:
    from kafkacompat.testing.rows import Record
    from kafkacompat.testing.running import RunningBroker, RunningCluster

__all__ = ["Acl", "BrokerError", "Record", "RunningBroker", "RunningCluster", "broker", "cluster"]

_HOMES = {
    "Record": "kafkacompat.testing.rows",
    "RunningBroker": "kafkacompat.testing.running",
    "RunningCluster": "kafkacompat.testing.running",
}
"""The modules of classes that are imported at their first use, since they load the broker."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
