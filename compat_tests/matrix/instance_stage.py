"""Two instances of one of our brokers as stages, each with a proxy before it; both have the same topics and groups.

The broker reports to an instance's clients the port to which they connected. Therefore an instance listens on another
loopback address, at the port of its proxy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compat_tests.brokers import Broker, KafkacompatBroker
from compat_tests.instances import alter_instance, await_listeners, list_properties
from compat_tests.matrix.driver import Launch
from compat_tests.matrix.programme import PARTITIONS, Outcome, Programme
from compat_tests.matrix.proxy import RecordingProxy
from compat_tests.matrix.rows import Row
from compat_tests.matrix.run import Tell, make_internal_topics, served_apis
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient

NAMES = ("shop", "bank")
NODE_ID = 1
LISTENER_HOST, PROXY_HOST = "127.0.0.2", "127.0.0.1"
BROKER_PROPERTIES = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}
PROPERTIES = {"num.partitions": str(PARTITIONS), "advertised.hosts": f"{NODE_ID}:{PROXY_HOST}"}


class InstanceStage:
    """One instance behind a proxy, whose address the broker reports to the instance's clients."""

    def __init__(self, name: str, folder: Path) -> None:
        self.kind = f"kafkacompat, instance {name}"
        self.port = free_port()
        self._folder = folder / f"{name}-clients"
        self._proxy = RecordingProxy(self.port, self.port, LISTENER_HOST)

    def perform(self, row: Row, launch: Launch, tell: Tell) -> Outcome:
        """Run one client's programme."""
        self._folder.mkdir(exist_ok=True)
        served = served_apis(self.port)
        programme = Programme(row.name, launch, self._proxy, f"{PROXY_HOST}:{self.port}", self._folder, served)
        return programme.run(row.features, lambda step: tell(f"{self.kind}: {step}"))

    def close(self) -> None:
        """Close the proxy."""
        self._proxy.close()


@contextmanager
def running_instance_stages(folder: Path) -> Iterator[list[InstanceStage]]:
    """Give the stages of two instances of one running broker."""
    with KafkacompatBroker(folder / "broker", BROKER_PROPERTIES) as broker:
        make_internal_topics(broker.port)
        stages = {name: InstanceStage(name, folder) for name in NAMES}
        try:
            create_instances(broker, stages)
            yield list(stages.values())
        finally:
            for stage in stages.values():
                stage.close()


def create_instances(broker: Broker, stages: dict[str, InstanceStage]) -> None:
    """Create the stages' instances, and wait for their listeners."""
    with RawClient(broker.port) as client:
        for name, stage in stages.items():
            alter_instance(client, name, list_properties(name, stage.port, PROPERTIES, LISTENER_HOST))
    await_listeners((stage.port for stage in stages.values()), LISTENER_HOST)
