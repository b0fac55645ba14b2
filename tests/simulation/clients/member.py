"""A member of a group: reads, commits what it has read, leaves or dies, and comes back."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from twisted.internet.defer import Deferred

from kafkacompat.timers import Clock
from tests.fakes.memory_network import MemoryHost
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.group_offsets import RecordedCommits, commit_offsets
from tests.simulation.clients.group_reader import GroupReader
from tests.simulation.clients.process import ClientProcess, HistorySink
from tests.simulation.clients.settings import MemberSettings


class Member:
    """Stays in a group again and again. ``commits`` counts the acknowledged commits, ``stays`` the times that it joined."""

    def __init__(
        self,
        clock: Clock,
        network: MemoryHost,
        rng: Random,
        bootstrap: Sequence[tuple[str, int]],
        sink: HistorySink,
        name: str,
        settings: MemberSettings,
        topics: Sequence[str],
    ) -> None:
        self.process = ClientProcess(clock, network, rng, bootstrap, sink, name, settings)
        self.fetcher = Fetcher(self.process, settings)
        self.commits = self.stays = 0
        self._settings = settings
        self._main: Deferred[None] = Deferred()
        self._topics = list(topics)
        self._recorded = RecordedCommits(self.process)

    def start(self) -> None:
        """Begin to work."""
        self._main = self.process.spawn(self._work())

    def stop(self) -> Deferred[None]:
        """Commit and leave the group; fires when that is done."""
        return self.process.finish(self._main)

    def kill(self) -> None:
        """End the process."""
        self.process.kill()

    async def _work(self) -> None:
        process, settings = self.process, self._settings
        while not process.is_stopping:
            reader = GroupReader(process, settings, self.fetcher, self._topics)
            reader.start()
            self.stays += 1
            ends_at = process.clock.seconds() + process.rng.uniform(*settings.stay_s)
            while not process.is_stopping and process.clock.seconds() < ends_at:
                await process.sleep(process.rng.uniform(*settings.commit_interval_s))
                await self._commit(reader)
            if not process.is_stopping and process.rng.random() < settings.silent_share:
                reader.membership.abandon()
            else:
                await reader.membership.leave()
            if not process.is_stopping:
                await process.sleep(process.rng.uniform(*settings.away_s))

    async def _commit(self, reader: GroupReader) -> None:
        offsets = reader.list_uncommitted()
        membership = reader.membership
        if offsets and await commit_offsets(
            self.process, self._recorded, membership.coordinator, membership.member, offsets
        ):
            self.commits += 1
            reader.note_committed(offsets)
