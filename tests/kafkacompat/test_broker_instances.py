"""The parts of a broker that begin with the first instance."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from kafkacompat.config.resources import ResourceType
from tests.kafkacompat.tenancy.world import InstanceWorld

STARTED = """
import sys
import kafkacompat.broker
print(*sorted(name for name in sys.modules if name.startswith(("kafkacompat.tenancy.", "kafkacompat.usage"))))
"""
LIGHT = {"registry", "routes", "whitelists"}


def test_a_broker_without_instances_loads_only_their_tables() -> None:
    loaded = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) == {f"kafkacompat.tenancy.{name}" for name in LIGHT}


def test_nothing_begins_after_the_stop(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path)
    tenancy = world.broker.tenancy
    assert (tenancy.storage, tenancy.traffic, tenancy.usage) == (None, None, None)
    world.stop()
    configs = {(int(ResourceType.INSTANCE), "shop"): {"cluster.id": "c", "secret": "s"}}
    world.broker.metadata.publish(replace(world.broker.metadata.image, configs=configs))
    assert (tenancy.storage, tenancy.traffic, tenancy.usage) == (None, None, None)
