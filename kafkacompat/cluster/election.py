"""The election of the controller: the broker that creates /controller, under a controller epoch that only grows.

/controller and /controller_epoch change in one transaction, as in Apache Kafka 3.9 (KafkaZkClient). So the version of
/controller_epoch proves that a write is the current controller's: every write of a controller checks it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.metadata.image import NO_LEADER
from kafkacompat.metadata.znodes.cluster import (
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.timers import Clock, now_ms
from kafkacompat.zookeeper.client import (
    BadVersionError,
    Check,
    ConnectionLossError,
    Create,
    Delete,
    NodeExistsError,
    NodeStat,
    NoNodeError,
    SessionExpiredError,
    SessionState,
    SetData,
    WatchEvent,
    WatchKind,
    ZooKeeper,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

log = logging.getLogger(__name__)

CONTROLLER = Znode.CONTROLLER.path()
CONTROLLER_EPOCH = Znode.CONTROLLER_EPOCH.path()
FIRST_EPOCH = 0
"""The controller epoch before the first controller."""

RETRY_S = 0.5
"""Pause after an election whose outcome could not be read."""

PASS_ON_S = 2.0
"""Time that other brokers have to be elected after this one could not do the controller's work."""


class ControllerEpoch(NamedTuple):
    """An elected controller's epoch, and the version of /controller_epoch that proves it."""

    epoch: int
    version: int


class ControllerElection:
    """Takes part in the election, and knows the controller.

    ``on_elected`` is called when this broker becomes the controller, ``on_resigned`` when it no longer is. Call `take_part`
    after each registration of the broker.
    """

    def __init__(
        self,
        zookeeper: ZooKeeper,
        node_id: int,
        clock: Clock,
        on_elected: Callable[[ControllerEpoch], Coroutine[Deferred[Any], Any, None]],
        on_resigned: Callable[[], None],
    ) -> None:
        self._zookeeper = zookeeper
        self._node_id = node_id
        self._clock = clock
        self._on_elected = on_elected
        self._on_resigned = on_resigned
        self._lock = DeferredLock()
        self._stopped = False
        self.controller_id = NO_LEADER
        self.epoch: ControllerEpoch | None = None
        """This broker's epoch while it is the controller."""

    @property
    def fence(self) -> tuple[str, int] | None:
        """The path and version that each write of this controller checks; None while it is none."""
        return None if self.epoch is None else (CONTROLLER_EPOCH, self.epoch.version)

    def take_part(self) -> Deferred[None]:
        """Become the controller if there is none; fires when the controller is known. Does not fail."""
        return self._lock.run(lambda: Deferred.fromCoroutine(self._take_part()))

    async def _take_part(self) -> None:
        if self._stopped or self._zookeeper.state is not SessionState.CONNECTED:
            return
        try:
            if not await self._find_controller():
                await self._elect()
        except (ConnectionLossError, SessionExpiredError) as problem:
            log.info("The election of the controller is repeated: %s", problem)
            self._clock.callLater(RETRY_S, self.take_part)

    async def _find_controller(self) -> bool:
        """Learn who the controller is, and watch it; returns whether there is one."""
        try:
            value, stat = await self._zookeeper.get(CONTROLLER, self._on_change)
        except NoNodeError:
            self._resign()
            self.controller_id = NO_LEADER
            return False
        self.controller_id = decode_controller(value).node_id
        if self.epoch is not None and stat.ephemeral_owner != self._zookeeper.session_id:
            self._resign()
        if self.epoch is None and stat.ephemeral_owner == self._zookeeper.session_id:
            # Either this broker has just been elected, or the answer to its election was lost.
            await self._take_office(stat)
        return True

    async def _take_office(self, elected: NodeStat) -> None:
        """Begin the controller epoch that *elected*, the node /controller, was created with, in one transaction."""
        epoch, stat = await self._read_epoch()
        if stat.mzxid == elected.czxid:
            await self._succeed(ControllerEpoch(epoch, stat.version))
        else:
            log.warning(
                "/controller_epoch has changed since this broker was elected: it looks again who is the controller"
            )
            self._clock.callLater(RETRY_S, self.take_part)

    async def _elect(self) -> None:
        epoch, stat = await self._read_epoch()
        try:
            await self._zookeeper.multi(
                [
                    Create(CONTROLLER, encode_controller(self._node_id, now_ms(self._clock)), ephemeral=True),
                    SetData(CONTROLLER_EPOCH, encode_controller_epoch(epoch + 1), stat.version),
                ]
            )
        except (NodeExistsError, BadVersionError):
            if not await self._find_controller():
                self._clock.callLater(0, self.take_part)
            return
        await self._find_controller()

    async def _read_epoch(self) -> tuple[int, NodeStat]:
        try:
            value, stat = await self._zookeeper.get(CONTROLLER_EPOCH)
        except NoNodeError:
            with suppress(NodeExistsError):
                await self._zookeeper.create(CONTROLLER_EPOCH, encode_controller_epoch(FIRST_EPOCH))
            value, stat = await self._zookeeper.get(CONTROLLER_EPOCH)
        return decode_controller_epoch(value), stat

    async def _succeed(self, epoch: ControllerEpoch) -> None:
        self.epoch = epoch
        log.info("Broker %d is the controller, in controller epoch %d", self._node_id, epoch.epoch)
        await self._on_elected(epoch)

    def _on_change(self, event: WatchEvent) -> None:
        # After a lost connection the session's listener takes part again.
        if event.kind is not WatchKind.LOST:
            self.take_part()

    def _resign(self) -> None:
        if self.epoch is not None:
            log.info("Broker %d is no longer the controller", self._node_id)
            self.epoch = None
            self._on_resigned()

    def lose_session(self) -> None:
        """Resign, because the session has expired and /controller with it."""
        self.controller_id = NO_LEADER
        self._resign()

    async def stop(self) -> None:
        """Resign, and let another broker be elected at once."""
        self._stopped = True
        with suppress(ConnectionLossError, SessionExpiredError):
            await self._give_up()

    async def _give_up(self) -> None:
        """Resign, and delete /controller if it is still that of this broker's epoch."""
        fence = self.fence
        self._resign()
        if fence is not None and self._zookeeper.state is SessionState.CONNECTED:
            with suppress(NoNodeError, BadVersionError):
                await self._zookeeper.multi([Check(*fence), Delete(CONTROLLER)])

    def pass_on(self) -> Deferred[None]:
        """Resign because this broker cannot do the controller's work; another may be elected before it takes part again."""
        return self._lock.run(lambda: Deferred.fromCoroutine(self._pass_on()))

    async def _pass_on(self) -> None:
        try:
            await self._give_up()
        except (ConnectionLossError, SessionExpiredError) as problem:
            log.info("The controller resigns when ZooKeeper is there again: %s", problem)
        self._clock.callLater(PASS_ON_S, self.take_part)
