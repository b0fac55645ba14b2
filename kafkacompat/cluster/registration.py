"""A broker's place in the cluster: ZooKeeper's tree made ready, the cluster's id, and the broker's own registration."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from kafkacompat.metadata.znodes.brokers import decode_broker, encode_broker
from kafkacompat.metadata.znodes.cluster import decode_cluster_id, decode_controller, encode_cluster_id
from kafkacompat.metadata.znodes.paths import PERSISTENT_PATHS, Znode
from kafkacompat.timers import Clock, now_ms
from kafkacompat.zookeeper.client import NodeExistsError, NoNodeError, ZooKeeper

if TYPE_CHECKING:
    from kafkacompat.metadata.image import BrokerImage

log = logging.getLogger(__name__)


class ClusterError(Exception):
    """The broker cannot be a member of this cluster; the message is one sentence for its user."""


class BrokerRegistration:
    """Joins the cluster of a ZooKeeper ensemble.

    ``epoch`` is the broker epoch: the czxid of /brokers/ids/N (KIP-380), -1 before the registration.
    """

    def __init__(self, zookeeper: ZooKeeper, node_id: int, clock: Clock) -> None:
        self._zookeeper = zookeeper
        self._node_id = node_id
        self._clock = clock
        self.epoch = -1

    async def join(self, own_cluster_id: str | None, new_cluster_id: str) -> str:
        """Create what is missing of Kafka's tree, and return the cluster's id.

        *own_cluster_id* is that of the log directories. A new cluster gets it, or else *new_cluster_id*. Raises ClusterError
        when the tree is another cluster's or is no longer kept by ZooKeeper's controllers, and ZooKeeperError.
        """
        await self._check_mode()
        for path in PERSISTENT_PATHS:
            await self._ensure(path)
        stored = await self._read_cluster_id(own_cluster_id or new_cluster_id)
        if own_cluster_id is not None and own_cluster_id != stored:
            reason = f"the log directories belong to the cluster {own_cluster_id}, zookeeper.connect leads to {stored}"
            raise ClusterError(f"{reason}: correct zookeeper.connect or log.dirs")
        return stored

    async def _check_mode(self) -> None:
        """Raise ClusterError if Kafka's own controllers (KRaft) have taken the tree over (KIP-866)."""
        try:
            value, _ = await self._zookeeper.get(Znode.CONTROLLER.path())
        except NoNodeError:
            return
        if decode_controller(value).is_kraft:
            raise ClusterError("a KRaft controller has taken over the cluster at zookeeper.connect: use another chroot")

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
        try:
            value, stat = await self._zookeeper.get(path)
            if stat.ephemeral_owner == self._zookeeper.session_id:
                return
            old = decode_broker(self._node_id, value, stat.czxid)
            if old.endpoints != broker.endpoints:
                shown = ", ".join(f"{name}://{host}:{port}" for name, (host, port) in old.endpoints.items())
                raise ClusterError(
                    f"broker {self._node_id} is running already at {shown}: set another broker.id or stop that one"
                )
            log.info("Removing the registration of this broker's last process, whose session has not expired yet")
            await self._remove_old_controller(stat.ephemeral_owner)
            await self._zookeeper.delete(path, stat.version)
        except NoNodeError:
            return

    async def _remove_old_controller(self, session_id: int) -> None:
        """Let another controller be elected at once if this broker's last process was it."""
        path = Znode.CONTROLLER.path()
        with suppress(NoNodeError):
            _, stat = await self._zookeeper.get(path)
            if stat.ephemeral_owner == session_id:
                await self._zookeeper.delete(path, stat.version)

    async def deregister(self) -> None:
        """Delete the registration, so that nobody waits for the end of the session."""
        try:
            await self._zookeeper.delete(Znode.BROKER.path(node_id=self._node_id))
        except NoNodeError:
            return
