"""The metadata of a single node become znodes of an empty tree, and of no other."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.cluster.errors import ClusterError
from kafkacompat.cluster.importing import import_metadata
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.codec import decode_image
from kafkacompat.metadata.export_file import format_export, parse_export
from kafkacompat.metadata.store import StoreEntry
from kafkacompat.metadata.znodes.configs import encode_config
from kafkacompat.metadata.zookeeper_store import ZooKeeperStore
from kafkacompat.zookeeper.client import Operation
from tests.kafkacompat.metadata.test_export_file import VALUES
from tests.kafkacompat.zookeeper.memory_world import MemoryWorld

NO_CONFIG = "/config/topics/plain"
OTHER_CLUSTER = b'{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAAA"}'
NODE_VALUES = {
    **VALUES,
    "/brokers/topics/plain": VALUES["/brokers/topics/t"].replace(b"AAEC", b"BBEC"),
    "/brokers/topics/plain/partitions/0/state": VALUES["/brokers/topics/t/partitions/0/state"],
}


class ImportWorld(MemoryWorld):
    """A tree below a chroot, with a client of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.client = self.connect("/kafka")
        self.store = ZooKeeperStore(self.client, self.clock)

    def import_values(self, values: Mapping[str, bytes] = NODE_VALUES) -> int:
        return self.run(Deferred.fromCoroutine(import_metadata(self.client, self.store, values)))

    def create(self, path: str, value: bytes = b"") -> None:
        self.run(self.client.create(path, value, make_path=True))

    def contents(self) -> dict[str, bytes]:
        nodes = self.server.contents()
        return {path.removeprefix("/kafka"): value for path, value in nodes.items() if value}


def test_every_key_becomes_a_node_and_every_topic_has_configs() -> None:
    world = ImportWorld()
    assert world.import_values() == len(NODE_VALUES) + 1
    assert world.contents() == {**NODE_VALUES, NO_CONFIG: b'{"version":1,"config":{}}'}


def test_leader_epochs_are_kept() -> None:
    world = ImportWorld()
    world.import_values()
    image = decode_image({path: StoreEntry(value, 0) for path, value in world.contents().items()})
    assert image.topics["t"].partitions[0].leader_epoch == 7


def test_folders_of_an_empty_tree_do_no_harm() -> None:
    world = ImportWorld()
    world.create("/brokers/ids")
    world.create("/latest_producer_id_block")
    world.create("/config/topics")
    values = {
        **NODE_VALUES,
        "/latest_producer_id_block": b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
    }
    world.import_values(values)
    assert world.contents()["/latest_producer_id_block"] == values["/latest_producer_id_block"]


def test_an_import_is_repeated() -> None:
    world = ImportWorld()
    world.import_values()
    before = world.contents()
    world.import_values()
    assert world.contents() == before


def test_the_cluster_id_is_created_last() -> None:
    world = ImportWorld()
    paths: list[str] = []
    multi = world.client.multi

    def record(operations: list[Operation]) -> object:
        paths.extend(operation.path for operation in operations)
        return multi(operations)

    world.client.multi = record  # type: ignore[assignment,method-assign]
    world.import_values()
    assert paths[-1] == "/cluster/id"


def test_an_import_that_did_not_end_is_completed() -> None:
    world = ImportWorld()
    world.create("/brokers/topics/t", NODE_VALUES["/brokers/topics/t"])
    world.import_values()
    assert world.contents().keys() == {*NODE_VALUES, NO_CONFIG}


REFUSED = {
    "another cluster": ({"/cluster/id": OTHER_CLUSTER}, "belongs to the cluster AAAA"),
    "another topic": ({"/brokers/topics/other": NODE_VALUES["/brokers/topics/t"]}, "has /brokers/topics/other"),
    "the same topic with another value": (
        {"/brokers/topics/t": NODE_VALUES["/brokers/topics/plain"]},
        "has /brokers/topics/t,",
    ),
    "offsets of old consumers": ({"/consumers/other/offsets/t/0": b"1"}, "has /consumers/other"),
    "configs": ({"/config/users/u": b'{"version":1,"config":{}}'}, "has /config/users/u"),
    "brokers that run": ({"/brokers/ids/12": b"{}", "/brokers/ids/2": b"{}"}, "brokers 2, 12 are registered"),
    "a migration": (
        {
            "/migration": b'{"version":0,"kraft_controller_id":3000,"kraft_controller_epoch":5,'
            b'"kraft_metadata_offset":7,"kraft_metadata_epoch":4}'
        },
        "KRaft controller 3000 migrates",
    ),
    "a controller of KRaft": (
        {"/controller": b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}'},
        "KRaft controller has taken over",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_tree_that_is_in_use_is_refused_and_stays_as_it_is(case: str) -> None:
    nodes, reason = REFUSED[case]
    world = ImportWorld()
    for path, value in nodes.items():
        world.create(path, value)
    before = world.server.contents()
    with pytest.raises(ClusterError, match=reason):
        world.import_values()
    assert world.server.contents() == before


def test_instances_come_with_the_import_of_an_export() -> None:
    key, properties = "/config/instances/shop", {"cluster.id": "c", "secret": "s", "topic.names": "t:t"}
    given = {**NODE_VALUES, key: encode_config(key, properties)}
    values = parse_export([f"{line}\n".encode() for line in format_export(given)], "file")
    world = ImportWorld()
    world.import_values(values)
    entries = world.run(world.store.load())
    assert decode_image(entries).config(ResourceType.INSTANCE, "shop") == properties
