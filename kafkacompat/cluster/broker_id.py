"""The id of a broker without one: that of its log directories, or a new one from ZooKeeper (broker.id.generation.enable)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafkacompat.cluster.errors import ClusterError
from kafkacompat.cluster.registration import BrokerRegistration
from kafkacompat.metadata.codec import decode_topics
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.zookeeper_store import ZooKeeperStore
from kafkacompat.storage.directory.meta_properties import find_cluster_id, read_owners
from kafkacompat.zookeeper.client import NodeExistsError, NoNodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkacompat.config import BrokerConfig
    from kafkacompat.storage.files.filesystem import Files
    from kafkacompat.timers import Clock
    from kafkacompat.zookeeper.client import ZooKeeper

log = logging.getLogger(__name__)

UNKNOWN_ID = -1


async def choose_broker_id(
    config: BrokerConfig, files: Files, open_zookeeper: Callable[[], ZooKeeper], clock: Clock
) -> BrokerConfig:
    """Return *config* with an id.

    A generated id is larger than ``reserved.broker.max.id``, and the ids that people choose are not. Raises ClusterError,
    LogDirectoryError, StoreError and ZooKeeperError; the tree is then as it was.
    """
    if not config.needs_broker_id:
        _check_reserved(config)
        return config
    directories = (*config.log_dirs, config.metadata_log_dir)
    stored = (owner.node_id for owner in read_owners(files, directories))
    node_id = next((number for number in stored if number is not None), None)
    if node_id is None:
        own_cluster_id = find_cluster_id(files, directories, UNKNOWN_ID)
        node_id = config.int("reserved.broker.max.id") + await _count_broker(open_zookeeper(), own_cluster_id, clock)
        log.info("ZooKeeper numbers this broker %d", node_id)
    return config.with_broker_id(node_id)


def _check_reserved(config: BrokerConfig) -> None:
    largest = config.int("reserved.broker.max.id")
    if config.bool("broker.id.generation.enable") and config.node_id > largest:
        raise ClusterError(
            f"broker.id={config.node_id} is among the generated ids: choose one up to reserved.broker.max.id={largest},"
            " or set broker.id.generation.enable=false"
        )


async def _count_broker(zookeeper: ZooKeeper, own_cluster_id: str | None, clock: Clock) -> int:
    """Return how many brokers have received an id, this one included. A broker that the cluster rejects does not count."""
    try:
        await zookeeper.start()
        await BrokerRegistration(zookeeper, UNKNOWN_ID, clock, 0).find_cluster_id(own_cluster_id, {})
        decode_topics(await ZooKeeperStore(zookeeper, clock).load())
        return await _increment_sequence(zookeeper)
    finally:
        await zookeeper.close()


async def _increment_sequence(zookeeper: ZooKeeper) -> int:
    path = Znode.BROKER_SEQUENCE.path()
    while True:
        try:
            return (await zookeeper.set(path, b"")).version
        except NoNodeError:
            try:
                await zookeeper.create(path, b"", make_path=True)
            except NodeExistsError:
                continue
