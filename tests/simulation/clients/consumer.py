"""A consumer of assigned partitions, without a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from twisted.internet.defer import Deferred

from kafkacompat.history.events import READ_UNCOMMITTED, Finished, HistoryPartition
from kafkacompat.timers import Clock
from tests.fakes.memory_network import MemoryHost
from tests.simulation.clients.coordinators import GROUP, Coordinator, fetch_committed
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.leaders import LATEST, find_offset, list_end
from tests.simulation.clients.process import ClientProcess, HistorySink
from tests.simulation.clients.settings import ConsumerSettings

LOOK_AGAIN_S = 0.1


class Consumer:
    """Reads some partitions from their beginnings, and lists their ends now and then."""

    def __init__(
        self,
        clock: Clock,
        network: MemoryHost,
        rng: Random,
        bootstrap: Sequence[tuple[str, int]],
        sink: HistorySink,
        name: str,
        settings: ConsumerSettings,
        places: Sequence[HistoryPartition],
    ) -> None:
        self.process = ClientProcess(clock, network, rng, bootstrap, sink, name, settings)
        self.fetcher = Fetcher(self.process, settings)
        self._settings = settings
        self._places = list(places)
        self.is_current: Callable[[HistoryPartition, int], bool] = lambda place, leader_epoch: True
        """Whether no other leader than that of an epoch is elected; see `list_end`."""

    def start(self) -> None:
        """Begin to read."""
        self.fetcher.assign(dict.fromkeys(self._places, 0))
        self.process.spawn(self._list_ends())

    def stop(self) -> None:
        """Stop reading."""
        self.process.close()

    def kill(self) -> None:
        """End the process."""
        self.process.kill()

    def finish(self, within_s: float = 60.0, groups: Iterable[str] = ()) -> Deferred[None]:
        """Read to the present ends, record how far that came, and stop; fires when that is done.

        The committed offsets of *groups* in the partitions are fetched, too.

        All producers must have ended. The last consumers of both isolation levels that do this decide which records there are in the
        end, so they have to begin afterwards.
        """
        return self.process.spawn(self._finish(within_s, list(groups)))

    async def _list_ends(self) -> None:
        process = self.process
        while not process.is_stopping:
            await process.sleep(self._settings.list_interval_s * process.rng.uniform(0.5, 1.5))
            if not process.is_stopping:
                await list_end(process, process.rng.choice(self._places), self._settings.isolation, self.is_current)

    async def _finish(self, within_s: float, groups: list[str]) -> None:
        process = self.process
        for group in groups:
            await fetch_committed(process, Coordinator(process, GROUP, group), self._places)
        # The end at read_uncommitted is also after aborted records.
        goals = {place: (await find_offset(process, place, LATEST, READ_UNCOMMITTED))[0] for place in self._places}
        deadline = process.clock.seconds() + within_s
        while process.clock.seconds() < deadline and any(
            self.fetcher.position(place).offset < goal for place, goal in goals.items()
        ):
            await process.sleep(LOOK_AGAIN_S)
        for place, goal in goals.items():
            reached = self.fetcher.position(place).offset
            process.record(Finished(process.now_ns(), process.name, self._settings.isolation, place, reached, goal))
        process.close()
