"""One piece of work on ZooKeeper, for which a command runs the reactor until it is done."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from kafkacompat.zookeeper.client import ZooKeeperError

if TYPE_CHECKING:
    from kafkacompat.timers import Clock
    from kafkacompat.zookeeper.client import ZooKeeper
    from kafkacompat.zookeeper.settings import ZooKeeperSettings

Result = TypeVar("Result")


def work_on_zookeeper(
    settings: ZooKeeperSettings, work: Callable[[ZooKeeper, Clock], Coroutine[Any, Any, Result]], interruption: str
) -> Result:
    """Connect, do the work, and close; return its result, or raise its failure.

    A signal in between leads to a ZooKeeperError with the text *interruption*.
    """
    from kafkacompat.cli.process import install_reactor

    reactor = install_reactor()
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from kafkacompat.zookeeper.kazoo_client import KazooZooKeeper

    results: list[Any] = []

    async def run() -> Result:
        zookeeper = KazooZooKeeper(reactor, settings)
        await zookeeper.start()
        try:
            return await work(zookeeper, reactor)
        finally:
            await zookeeper.close()

    def start() -> None:
        running = Deferred.fromCoroutine(run())
        running.addBoth(results.append)
        running.addBoth(lambda _: reactor.stop())

    reactor.callWhenRunning(start)
    reactor.run()
    if not results:
        raise ZooKeeperError(interruption)
    if isinstance(results[0], Failure):
        results[0].raiseException()
    result: Result = results[0]
    return result
