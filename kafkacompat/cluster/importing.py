"""Moves the metadata of a single node into ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkacompat.cluster.errors import ClusterError
from kafkacompat.cluster.registration import check_mode
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.codec import CLUSTER_ID, format_config_key
from kafkacompat.metadata.export_file import check_values, read_whole_store
from kafkacompat.metadata.store import ABSENT, ConflictError, StoreChange
from kafkacompat.metadata.znodes.cluster import decode_cluster_id
from kafkacompat.metadata.znodes.configs import encode_config
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.zookeeper.client import NoNodeError

if TYPE_CHECKING:
    from kafkacompat.metadata.store import MetadataStore
    from kafkacompat.zookeeper.client import ZooKeeper


async def import_metadata(zookeeper: ZooKeeper, store: MetadataStore, values: Mapping[str, bytes]) -> int:
    """Create the nodes of the *values* of a single node's store; returns the number of nodes with a value.

    The tree has to be empty, or hold a part of the same import. /cluster/id is created last: no broker with these log
    directories joins a tree without it. Raises ClusterError, StoreError and ZooKeeperError; nothing has been created then,
    except if the connection is lost.
    """
    await check_mode(zookeeper)
    await _check_no_broker(zookeeper)
    wanted = _complete(values)
    stored = await read_whole_store(store)
    _check_stored(stored, wanted)
    missing = [StoreChange(key, ABSENT, value) for key, value in wanted.items() if key not in stored]
    missing.sort(key=lambda change: change.key == CLUSTER_ID)
    try:
        await store.compare_and_set(missing)
    except ConflictError as problem:
        raise ClusterError(f"another process changes the tree at the same time: {problem}; import again") from problem
    return len(wanted)


def _complete(values: Mapping[str, bytes]) -> dict[str, bytes]:
    """Add the nodes that a tree has and the store of a single node does not: configs of every topic."""
    complete = dict(values)
    for key in values:
        if (names := Znode.TOPIC.match(key)) is not None:
            config = format_config_key((ResourceType.TOPIC, names["topic"]))
            complete.setdefault(config, encode_config(config, {}))
    return complete


async def _check_no_broker(zookeeper: ZooKeeper) -> None:
    try:
        ids = await zookeeper.children(Znode.BROKER_IDS.path())
    except NoNodeError:
        return
    if ids:
        numbers = ", ".join(sorted(ids, key=int))
        raise ClusterError(f"the tree is not empty: brokers {numbers} are registered; stop them, or use another chroot")


def _check_stored(stored: Mapping[str, bytes], wanted: Mapping[str, bytes]) -> None:
    """Raise ClusterError unless the tree holds only what the import creates."""
    if CLUSTER_ID in stored:
        other, own = decode_cluster_id(stored[CLUSTER_ID]), check_values(wanted)
        if other != own:
            raise ClusterError(f"the tree belongs to the cluster {other}, the file to {own}; use another chroot")
    for key, value in stored.items():
        if wanted.get(key) != value:
            raise ClusterError(
                f"the tree is not empty: it has {key}, which the file does not have so; use another chroot"
            )
