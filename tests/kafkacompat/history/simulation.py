"""Sound histories: what clients see of a broker that is a few lists, step by random step."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from kafkacompat.history.events import (
    ISOLATIONS,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Acknowledged,
    Commit,
    CommitAcknowledged,
    End,
    Ended,
    Event,
    Faulted,
    Fetched,
    Finished,
    HistoryPartition,
    Listed,
    Positioned,
    Read,
    Restarted,
    Send,
    Worked,
)
from kafkacompat.history.index import value_text

PLACES = [HistoryPartition("records", 0), HistoryPartition("records", 1)]
COPIES = HistoryPartition("copies", 0)
MEMBERS, COPIERS = "members", "copiers"

Records = list[tuple[int, str]]


@dataclass
class Entry:
    """A record or, without text, a marker."""

    text: str
    transaction: str | None


@dataclass
class World:
    """The broker, and the history so far."""

    random: Random
    events: list[Event] = field(default_factory=list)
    logs: dict[HistoryPartition, list[Entry]] = field(
        default_factory=lambda: {place: [] for place in [*PLACES, COPIES]}
    )
    ends: dict[str, bool] = field(default_factory=dict)
    """Whether each transaction that ended was committed."""
    offsets: dict[tuple[str, HistoryPartition], int] = field(default_factory=dict)

    def now(self) -> int:
        """Time goes by with each event."""
        return len(self.events) + 1

    def note(self, event: Event) -> None:
        """Add to the history."""
        self.events.append(event)

    def visible(self, place: HistoryPartition, isolation: str, start: int, at_most: int) -> tuple[Records, int]:
        """Records from an offset on, and where reading goes on."""
        records: Records = []
        for offset in range(start, len(self.logs[place])):
            entry = self.logs[place][offset]
            if len(records) == at_most or (
                isolation == READ_COMMITTED and entry.transaction is not None and entry.transaction not in self.ends
            ):
                return records, offset
            is_shown = isolation == READ_UNCOMMITTED or self.ends.get(entry.transaction or "", True)
            if entry.text and is_shown:
                records.append((offset, entry.text))
        return records, len(self.logs[place])

    def end(self, transaction: str, committed: bool) -> None:
        """Write markers."""
        self.ends[transaction] = committed
        for log in self.logs.values():
            if any(entry.transaction == transaction for entry in log):
                log.append(Entry("", None))


class Sending:
    """A producer; with a transaction in hand if it is transactional."""

    def __init__(self, world: World, role: str) -> None:
        self.world, self._role = world, role
        self._incarnation = -1
        self.anew()

    def anew(self) -> None:
        """Be killed, and come again: what was open is aborted."""
        if self._incarnation >= 0 and self.key in self.open:
            self.world.end(self.key, False)
        self._incarnation += 1
        self.name = f"{self._role}.{self._incarnation}"
        self.number = self.transaction = 0
        self.open: set[str] = set()

    @property
    def key(self) -> str:
        return f"{self.name}/{self.transaction}"

    def send(self, place: HistoryPartition, in_transaction: bool, source: tuple[str, int, int] | None = None) -> None:
        """Send a value, which is not always acknowledged, nor always stored then."""
        world, log = self.world, self.world.logs[place]
        number, self.number = self.number, self.number + 1
        transaction = self.transaction if in_transaction else None
        world.note(Send(world.now(), self.name, number, place, transaction, source))
        if in_transaction:
            self.open.add(self.key)
        fate = world.random.random()
        if fate > 0.05 or in_transaction:
            log.append(Entry(value_text(self.name, number), self.key if in_transaction else None))
            if fate > 0.1:
                offset = len(log) - 1 if fate > 0.15 else -1
                world.note(Acknowledged(world.now(), self.name, number, offset))

    def end(self, commit: bool, is_answered: bool) -> None:
        """End the transaction."""
        world = self.world
        world.note(End(world.now(), self.name, self.transaction, commit))
        world.end(self.key, commit)
        if is_answered:
            world.note(Ended(world.now(), self.name, self.transaction, commit))
        self.open.clear()
        self.transaction += 1


class Consuming:
    """A consumer of one partition, in a group or not."""

    def __init__(
        self, world: World, name: str, isolation: str, place: HistoryPartition, group: str | None = None
    ) -> None:
        self.world, self.name, self._isolation, self.place, self._group = world, name, isolation, place, group
        self.number = 0
        self.position()

    def position(self) -> None:
        """Begin where the group is, or at the beginning."""
        world = self.world
        self.at = 0
        if self._group is not None:
            offset = world.offsets.get((self._group, self.place), -1)
            asked_ns = world.now()
            world.note(Fetched(world.now(), self.name, self._group, self.place, offset, asked_ns))
            self.at = max(offset, 0)
        world.note(Positioned(world.now(), self.name, self.place, self.at))

    def read(self) -> Records:
        """Take what is there."""
        world = self.world
        records, self.at = world.visible(self.place, self._isolation, self.at, world.random.randint(1, 5))
        if records:
            world.note(Read(world.now(), self.name, self._isolation, self.place, records))
        return records

    def list_end(self) -> None:
        """Ask where the partition ends."""
        world, asked_ns = self.world, self.world.now()
        _, end = world.visible(self.place, self._isolation, 0, len(world.logs[self.place]) + 1)
        world.note(Listed(world.now(), self.name, self._isolation, self.place, end, asked_ns))

    def finish(self) -> None:
        """Read to the end."""
        world, end = self.world, len(self.world.logs[self.place])
        while self.at < end:
            self.read()
        world.note(Finished(world.now(), self.name, self._isolation, self.place, self.at, end))

    def commit(self, records: Records, client: str, transaction: int | None) -> int:
        """Ask for the commit of what was read; return the offset."""
        world, offset = self.world, records[-1][0] + 1
        assert self._group is not None
        world.note(Commit(world.now(), client, self.number, self._group, self.place, offset, transaction))
        self.number += 1
        return offset


def produce(sending: Sending) -> None:
    sending.send(sending.world.random.choice(PLACES), False)


def transact(sending: Sending) -> None:
    """Go on with a transaction, end it, or be killed."""
    random = sending.world.random
    step = random.random()
    if step < 0.7 or not sending.open:
        sending.send(random.choice(PLACES), True)
    elif step < 0.95:
        sending.end(commit=random.random() < 0.7, is_answered=random.random() < 0.9)
    else:
        sending.anew()


def copy(consuming: Consuming, sending: Sending) -> None:
    """Consume, transform, produce."""
    world = sending.world
    if not (records := consuming.read()):
        return
    for offset, _ in records:
        sending.send(COPIES, True, (*consuming.place, offset))
    offset = consuming.commit(records, sending.name, sending.transaction)
    world.note(CommitAcknowledged(world.now(), sending.name, consuming.number - 1))
    commit = world.random.random() < 0.8
    if commit:
        world.offsets[COPIERS, consuming.place] = offset
    sending.end(commit, is_answered=world.random.random() < 0.9)
    if not commit:
        consuming.position()


def take_part(consuming: Consuming) -> None:
    """Read and commit, or come anew."""
    world = consuming.world
    if world.random.random() < 0.1:
        consuming.position()
    elif (records := consuming.read()) and world.random.random() < 0.7:
        offset = consuming.commit(records, consuming.name, None)
        if world.random.random() < 0.9:
            world.offsets[MEMBERS, consuming.place] = offset
            if world.random.random() < 0.9:
                world.note(CommitAcknowledged(world.now(), consuming.name, consuming.number - 1))


def sound_history(seed: int, steps: int = 250) -> list[Event]:
    """A history of that many steps, in which nothing is wrong."""
    world = World(Random(seed))
    producers = [Sending(world, f"producer-{number}") for number in range(2)]
    transactional = [Sending(world, f"transactional-{number}") for number in range(2)]
    readers = [Consuming(world, f"reader-{level}.0", level, place) for level in ISOLATIONS for place in PLACES]
    members = [Consuming(world, f"member-{place.partition}.0", READ_UNCOMMITTED, place, MEMBERS) for place in PLACES]
    copiers = [
        (
            Consuming(world, f"copier-{place.partition}.0", READ_COMMITTED, place, COPIERS),
            Sending(world, f"copier-{place.partition}"),
        )
        for place in PLACES
    ]
    for _ in range(steps):
        match world.random.randrange(10):
            case 0 | 1:
                produce(world.random.choice(producers))
            case 2 | 3:
                transact(world.random.choice(transactional))
            case 4:
                copy(*world.random.choice(copiers))
            case 5:
                take_part(world.random.choice(members))
            case 6:
                world.random.choice(readers).list_end()
            case 7 if world.random.random() < 0.3:
                world.note(Restarted(world.now(), "run.0", world.now()))
            case _:
                world.random.choice(readers).read()
    for sending in transactional:
        sending.anew()
    for reader in readers:
        reader.finish()
    world.note(Faulted(world.now(), "chaos.0", "paused", "broker 1", 1))
    world.note(Worked(world.now(), "run.0", 1))
    read_all(world)
    return world.events


def read_all(world: World) -> None:
    """What the last readers do."""
    for group in (MEMBERS, COPIERS):
        for place in PLACES:
            Consuming(world, f"last-{READ_COMMITTED}.0", READ_COMMITTED, place, group)
    for isolation in ISOLATIONS:
        name = f"last-{isolation}.0"
        for place, log in world.logs.items():
            world.note(Positioned(world.now(), name, place, 0))
            records, end = world.visible(place, isolation, 0, len(log) + 1)
            world.note(Read(world.now(), name, isolation, place, records))
            world.note(Finished(world.now(), name, isolation, place, end, len(log)))
