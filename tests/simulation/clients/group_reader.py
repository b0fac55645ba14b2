"""Reading the partitions that a group assigns, from the group's committed offsets on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkacompat.history.events import HistoryPartition
from kafkacompat.wire.errors import KafkaError
from tests.simulation.clients.classic_membership import ClassicMembership
from tests.simulation.clients.consumer_membership import ConsumerMembership
from tests.simulation.clients.coordinators import fetch_committed
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.membership import Membership
from tests.simulation.clients.process import ClientProcess
from tests.simulation.clients.settings import MemberSettings

CLASSIC = "classic"


class GroupReader:
    """One stay of a client in a group. ``on_revoked(partitions)`` is called when it loses partitions.

    ``is_busy()`` says whether the client is at work on what it has read. It takes assigned partitions up when it is not, as a client
    that polls, works and commits in one thread: a commit that is still under way would follow an older offset that it has fetched.
    """

    def __init__(
        self, process: ClientProcess, settings: MemberSettings, fetcher: Fetcher, topics: Sequence[str]
    ) -> None:
        kind = ClassicMembership if settings.protocol == CLASSIC else ConsumerMembership
        self.membership: Membership = kind(process, settings, topics)
        self.membership.on_revoked = self._revoke
        self.membership.on_assigned = self._assign
        self.on_revoked: Callable[[Sequence[HistoryPartition]], None] = lambda places: None
        self.is_busy: Callable[[], bool] = lambda: False
        self._process = process
        self._settings = settings
        self._fetcher = fetcher
        self._starts = 0
        self._assigned: dict[HistoryPartition, int] = {}
        self._committed: dict[HistoryPartition, int] = {}

    def start(self) -> None:
        """Join the group."""
        self._process.spawn(self.membership.stay())

    def list_uncommitted(self) -> dict[HistoryPartition, int]:
        """Return the positions that are after the committed offsets, as far as the member knows."""
        positions = {place: self._fetcher.position(place).offset for place in self._fetcher.assigned}
        return {place: offset for place, offset in positions.items() if offset > self._committed.get(place, 0)}

    def note_committed(self, offsets: dict[HistoryPartition, int]) -> None:
        """The offsets are committed."""
        self._committed.update(offsets)

    async def rewind(self) -> None:
        """Read again from the committed offsets."""
        places = list(self._assigned)
        self._fetcher.revoke(places)
        await self._start_reading(places)

    def _revoke(self, places: Sequence[HistoryPartition]) -> None:
        for place in places:
            self._assigned.pop(place, None)
        self._fetcher.revoke(places)
        self.on_revoked(places)

    def _assign(self, places: Sequence[HistoryPartition]) -> None:
        if places:
            self._process.spawn(self._start_reading(places))

    async def _start_reading(self, places: Sequence[HistoryPartition]) -> None:
        """Read partitions from their committed offsets on. A later start of the same partition takes the place of this one."""
        self._starts += 1
        number = self._starts
        self._assigned.update(dict.fromkeys(places, number))
        while not self._process.is_stopping:
            left = [place for place in places if self._assigned.get(place) == number]
            if not left:
                return
            if self.is_busy():
                await self._process.sleep(self._settings.retry_backoff_s / 4)
                continue
            try:
                offsets = await self._fetch_committed(left)
            except KafkaError:
                # The member has another epoch by now, in which it asks again.
                await self._process.sleep(self._settings.retry_backoff_s)
            else:
                kept = {place: max(offsets[place], 0) for place in left if self._assigned.get(place) == number}
                self._committed.update(kept)
                self._fetcher.assign(kept)
                return

    async def _fetch_committed(self, places: Sequence[HistoryPartition]) -> dict[HistoryPartition, int]:
        coordinator, member = self.membership.coordinator, self.membership.member
        if self._settings.protocol == CLASSIC:
            return await fetch_committed(self._process, coordinator, places)
        return await fetch_committed(self._process, coordinator, places, member.member_id, member.generation)
