"""A broker's place in the cluster: ZooKeeper's tree made ready, the cluster's id, and the broker's own registration."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from twisted.internet.task import deferLater

from kafkacompat.cluster.errors import ClusterError
from kafkacompat.metadata.image import NO_LOSSES, Losses
from kafkacompat.metadata.znodes.brokers import ProcessHome, decode_broker, decode_home, encode_broker
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

LOOK_AGAIN_S = 0.5
"""Pause between two looks at a registration whose session may end."""

NOWHERE = ProcessHome(frozenset(), "")


class _Registered(NamedTuple):
    """What another session has registered under this broker's id."""

    broker: BrokerImage
    home: ProcessHome | None
    stat: NodeStat

    @property
    def addresses(self) -> str:
        return ", ".join(f"{name}://{host}:{port}" for name, (host, port) in self.broker.endpoints.items())


class BrokerRegistration:
    """Joins the cluster of a ZooKeeper ensemble.

    ``epoch`` is the broker epoch: the czxid of /brokers/ids/N (KIP-380), -1 before the registration. ``home`` is where this
    process runs. It has locked these directories when it registers, so that a registered process of the same home is dead.
    ``find_losses`` returns what its replicas lack at the moment.
    """

    def __init__(self, zookeeper: ZooKeeper, node_id: int, clock: Clock, session_timeout_s: float) -> None:
        self._zookeeper = zookeeper
        self._node_id = node_id
        self._clock = clock
        self._session_timeout_s = session_timeout_s
        self._awaited = -1
        self.epoch = -1
        self.home = NOWHERE
        self.find_losses: Callable[[], Losses] = lambda: NO_LOSSES

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
            self._check_may_be_own(registered, addresses)
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

        The registration of this broker's last process is removed if that process is proved dead although its session has not
        expired. Without the proof this waits for the session's end. Raises ClusterError when another broker has the id, or when
        the session does not end.
        """
        path = Znode.BROKER.path(node_id=self._node_id)
        give_up_s = self._clock.seconds() + 2 * self._session_timeout_s
        while True:
            try:
                lacking = broker._replace(losses=self.find_losses())
                value = encode_broker(lacking, now_ms(self._clock), home=self.home)
                await self._zookeeper.create(path, value, ephemeral=True)
            except NodeExistsError:
                await self._make_way(path, broker, give_up_s)
            stat = await self._zookeeper.exists(path)
            if stat is not None and stat.ephemeral_owner == self._zookeeper.session_id:
                self.epoch = stat.czxid
                log.info("Registered broker %d in broker epoch %d", self._node_id, self.epoch)
                return self.epoch

    async def _make_way(self, path: str, broker: BrokerImage, give_up_s: float) -> None:
        """Remove an old registration, or wait a moment for its end; raises ClusterError when it is another broker's."""
        old = await self._read_old(path)
        if old is None:
            return
        self._check_may_be_own(old, broker.endpoints)
        if old.home is not None and self.home.excludes(old.home):
            await self._remove_old(path, old.stat)
        elif self._clock.seconds() >= give_up_s:
            raise self._build_taken_error(old)
        else:
            if old.stat.czxid != self._awaited:
                self._awaited = old.stat.czxid
                log.info("Waiting for the end of the session that has registered broker %d", self._node_id)
            await deferLater(self._clock, LOOK_AGAIN_S)  # type: ignore[arg-type]

    async def _remove_old(self, path: str, stat: NodeStat) -> None:
        with suppress(NoNodeError):
            log.info("Removing the registration of this broker's last process, whose session has not expired yet")
            await self._remove_old_controller(stat.ephemeral_owner)
            await self._zookeeper.delete(path, stat.version)

    async def _read_old(self, path: str) -> _Registered | None:
        """Return the registration of another session."""
        try:
            value, stat = await self._zookeeper.get(path)
        except NoNodeError:
            return None
        if stat.ephemeral_owner == self._zookeeper.session_id:
            return None
        broker = decode_broker(self._node_id, value, stat.czxid)
        return _Registered(broker, decode_home(self._node_id, value), stat)

    def _check_may_be_own(self, old: _Registered, addresses: Mapping[str, tuple[str, int]]) -> None:
        """Raise ClusterError for a registration that no earlier process of this broker has made.

        Log directories tell that. Other programs do not register theirs, so that the same addresses have to do.
        """
        if old.home is None:
            may_be_own, where = old.broker.endpoints == addresses, ""
        else:
            may_be_own, where = self.home.shares_directory(old.home), " with other log directories"
        if not may_be_own:
            raise self._build_taken_error(old, where)

    def _build_taken_error(self, old: _Registered, where: str = "") -> ClusterError:
        return ClusterError(
            f"broker {self._node_id} is running already at {old.addresses}{where}: set another broker.id or stop that one,"
            f" or start this one again in {self._session_timeout_s:.0f} s if that one is dead"
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
