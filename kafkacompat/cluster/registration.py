"""A broker's place in the cluster: ZooKeeper's tree made ready, the cluster's id, and the broker's own registration."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from kafkacompat.cluster.errors import ClusterError
from kafkacompat.metadata.znodes.brokers import decode_broker, encode_broker
from kafkacompat.metadata.znodes.cluster import (
    decode_cluster_id,
    decode_controller,
    decode_migration,
    encode_cluster_id,
)
from kafkacompat.metadata.znodes.paths import PERSISTENT_PATHS, Znode
from kafkacompat.timers import Clock, now_ms
from kafkacompat.zookeeper.client import NodeExistsError, NodeStat, NoNodeError, ZooKeeper

if TYPE_CHECKING:
    from kafkacompat.metadata.image import BrokerImage

log = logging.getLogger(__name__)


class BrokerRegistration:
    """Joins the cluster of a ZooKeeper ensemble.

    ``epoch`` is the broker epoch: the czxid of /brokers/ids/N (KIP-380), -1 before the registration.
    """

    def __init__(self, zookeeper: ZooKeeper, node_id: int, clock: Clock) -> None:
        self._zookeeper = zookeeper
        self._node_id = node_id
        self._clock = clock
        self.epoch = -1

    async def find_cluster_id(self, own_cluster_id: str | None, addresses: Mapping[str, tuple[str, int]]) -> str | None:
        """Return the id of the tree's cluster, None for an empty tree. Writes nothing.

        *own_cluster_id* is that of the log directories, *addresses* are those that this broker will register. Raises
        ClusterError when the tree is another cluster's, when ZooKeeper's controllers no longer keep it, or when another broker
        has the id, and StoreError and ZooKeeperError.
        """
        await check_mode(self._zookeeper)
        value = await read_value(self._zookeeper, Znode.CLUSTER_ID.path())
        stored = None if value is None else decode_cluster_id(value)
        if own_cluster_id is not None and own_cluster_id != stored:
            leads_to = "holds no cluster" if stored is None else f"leads to {stored}"
            way = ", or move a single node's metadata by `kafkacompat metadata import`" if stored is None else ""
            reason = f"the log directories belong to the cluster {own_cluster_id}, zookeeper.connect {leads_to}"
            raise ClusterError(f"{reason}: correct zookeeper.connect or log.dirs{way}")
        registered = await self._read_old(Znode.BROKER.path(node_id=self._node_id))
        if registered is not None:
            self._check_same_broker(registered[0], addresses)
        return stored

    async def join(self, new_cluster_id: str) -> str:
        """Create what is missing of Kafka's tree, and return the cluster's id, which a new cluster receives."""
        for path in PERSISTENT_PATHS:
            await self._ensure(path)
        return await self._read_cluster_id(new_cluster_id)

    async def _ensure(self, path: str) -> None:
        try:
            await self._zookeeper.create(path, b"", make_path=True)
        except NodeExistsError:
            return

    async def _read_cluster_id(self, if_new: str) -> str:
        path = Znode.CLUSTER_ID.path()
        try:
            await self._zookeeper.create(path, encode_cluster_id(if_new), make_path=True)
        except NodeExistsError:
            value, _ = await self._zookeeper.get(path)
            return decode_cluster_id(value)
        return if_new

    async def register(self, broker: BrokerImage) -> int:
        """Create /brokers/ids/N, and return the broker epoch.

        An old registration of the same addresses is removed: this broker has bound them, so its last process is dead although
        the session has not expired. Raises ClusterError when a broker at other addresses has the id.
        """
        path = Znode.BROKER.path(node_id=self._node_id)
        while True:
            try:
                await self._zookeeper.create(path, encode_broker(broker, now_ms(self._clock)), ephemeral=True)
            except NodeExistsError:
                await self._remove_old(path, broker)
            stat = await self._zookeeper.exists(path)
            if stat is not None and stat.ephemeral_owner == self._zookeeper.session_id:
                self.epoch = stat.czxid
                log.info("Registered broker %d in broker epoch %d", self._node_id, self.epoch)
                return self.epoch

    async def _remove_old(self, path: str, broker: BrokerImage) -> None:
        registered = await self._read_old(path)
        if registered is None:
            return
        old, stat = registered
        self._check_same_broker(old, broker.endpoints)
        try:
            log.info("Removing the registration of this broker's last process, whose session has not expired yet")
            await self._remove_old_controller(stat.ephemeral_owner)
            await self._zookeeper.delete(path, stat.version)
        except NoNodeError:
            return

    async def _read_old(self, path: str) -> tuple[BrokerImage, NodeStat] | None:
        """Return the registration of another session."""
        try:
            value, stat = await self._zookeeper.get(path)
        except NoNodeError:
            return None
        if stat.ephemeral_owner == self._zookeeper.session_id:
            return None
        return decode_broker(self._node_id, value, stat.czxid), stat

    def _check_same_broker(self, old: BrokerImage, addresses: Mapping[str, tuple[str, int]]) -> None:
        if old.endpoints != addresses:
            shown = ", ".join(f"{name}://{host}:{port}" for name, (host, port) in old.endpoints.items())
            raise ClusterError(
                f"broker {self._node_id} is running already at {shown}: set another broker.id or stop that one"
            )

    async def _remove_old_controller(self, session_id: int) -> None:
        """Let another controller be elected at once if this broker's last process was it."""
        path = Znode.CONTROLLER.path()
        with suppress(NoNodeError):
            _, stat = await self._zookeeper.get(path)
            if stat.ephemeral_owner == session_id:
                await self._zookeeper.delete(path, stat.version)


async def check_mode(zookeeper: ZooKeeper) -> None:
    """Raise ClusterError if controllers of KRaft have taken the tree over, or begin to (KIP-866). Writes nothing."""
    controller = await read_value(zookeeper, Znode.CONTROLLER.path())
    if controller is not None and decode_controller(controller).is_kraft:
        raise ClusterError("a KRaft controller has taken over the cluster at zookeeper.connect: use another chroot")
    migration = await read_value(zookeeper, Znode.MIGRATION.path())
    if migration is not None:
        number = decode_migration(migration).kraft_controller_id
        advice = "end the migration and delete /migration, or use another chroot"
        raise ClusterError(f"the KRaft controller {number} migrates the cluster at zookeeper.connect: {advice}")


async def read_value(zookeeper: ZooKeeper, path: str) -> bytes | None:
    """Return a node's value, None if there is no node."""
    try:
        value, _ = await zookeeper.get(path)
    except NoNodeError:
        return None
    return value
