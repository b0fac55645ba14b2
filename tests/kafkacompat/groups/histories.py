"""Random histories of commits to a coordinator, compared with a model that reads the log in the simplest way."""

from __future__ import annotations

from random import Random

from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.producers import LateLog, ProducerWorld

GROUPS = ("a", "b")
PARTITIONS = (0, 1, 2)
PRODUCERS = (1, 2, 3)

Place = tuple[str, int]


class Model:
    """Visible and pending offsets: by partition the commit whose record is the last one, and by producer the pending commits."""

    def __init__(self) -> None:
        self.length = 0
        self.counting: dict[Place, tuple[int, int]] = {}
        self.waiting: dict[int, dict[Place, tuple[int, int]]] = {}

    def commit(self, place: Place, offset: int, producer_id: int | None) -> None:
        self.length += 1
        table = self.counting if producer_id is None else self.waiting.setdefault(producer_id, {})
        table[place] = (self.length, offset)

    def end(self, producer_id: int, is_commit: bool) -> None:
        for place, entry in self.waiting.pop(producer_id, {}).items():
            if is_commit and entry > self.counting.get(place, (0, 0)):
                self.counting[place] = entry

    def delete(self, place: Place) -> None:
        self.counting.pop(place, None)
        for waiting in self.waiting.values():
            waiting.pop(place, None)

    def seen(self, place: Place) -> tuple[int, bool]:
        is_unstable = any(place in waiting for waiting in self.waiting.values())
        return self.counting.get(place, (0, -1))[1], is_unstable


class History:
    """One random history of a coordinator. Some appends are rejected, and appends are reported late and in any order."""

    def __init__(self, seed: int, world: ProducerWorld) -> None:
        self.rng = Random(seed)
        self.world = world
        assert isinstance(world.log, LateLog)
        self.log = world.log
        self.model = Model()
        self.offset = 0

    def step(self) -> None:
        group, partition = self.rng.choice(GROUPS), self.rng.choice(PARTITIONS)
        place, producer_id = (group, partition), self.rng.choice(PRODUCERS)
        is_refused = self.rng.random() < 0.1
        self.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS if is_refused else None
        match self.rng.choices(["plain", "pending", "end", "tell", "delete", "reload"], [4, 8, 4, 9, 1, 1])[0]:
            case "plain":
                self.commit(place, None, is_refused)
            case "pending":
                self.commit(place, producer_id, is_refused)
            case "end":
                self.end(producer_id, self.rng.random() < 0.6, is_refused)
            case "tell" if self.log.late:
                self.log.tell(self.rng.randrange(len(self.log.late)))
            case "delete":
                self.delete(place, is_refused)
            case "reload":
                self.reload()
        self.log.refuse_with = None

    def commit(self, place: Place, producer_id: int | None, is_refused: bool) -> None:
        self.offset += 1
        group, partition = place
        if producer_id is None:
            self.world.commit(self.offset, group=group, partition=partition)
        else:
            self.world.commit_in_transaction(self.offset, producer_id, group=group, partition=partition)
        if not is_refused:
            self.model.commit(place, self.offset, producer_id)

    def end(self, producer_id: int, is_commit: bool, is_refused: bool) -> None:
        for group in GROUPS:
            self.world.end(producer_id, is_commit=is_commit, group=group)
        if not is_refused:
            self.model.end(producer_id, is_commit)

    def delete(self, place: Place, is_refused: bool) -> None:
        """Delete the group or its offsets; this waits for the writes under way."""
        self.settle()
        group, partition = place
        if self.rng.random() < 0.5:
            self.world.coordinator.delete(group)
            places = [(group, index) for index in PARTITIONS]
        else:
            self.world.coordinator.delete_offsets(group, [("t", partition)])
            places = [place]
        for target in places if not is_refused else ():
            self.model.delete(target)
        self.settle()

    def reload(self) -> None:
        """Kill the coordinator, so that unreported appends stay unreported, and start it again; or resign and be elected again."""
        if self.rng.random() < 0.5:
            self.log.late.clear()
            self.world = self.world.again()
            return
        for partition in range(self.log.partition_count):
            self.world.coordinator.on_resignation(partition)
            self.world.coordinator.on_election(partition)
        self.world.turn(20)

    def settle(self) -> None:
        while self.log.late:
            self.log.tell(self.rng.randrange(len(self.log.late)))

    def live(self, steps: int) -> None:
        """Make *steps* random steps, and check the offsets now and then, after a restart and when all transactions have ended."""
        for number in range(steps):
            self.step()
            if number % 10 == 9:
                self.check()
        self.check()
        self.world = self.world.again()
        self.check()
        for producer_id in PRODUCERS:
            self.end(producer_id, True, False)
        self.check()
        assert self.world.open_transactions() == 0

    def check(self) -> None:
        self.settle()
        for group in GROUPS:
            for partition in PARTITIONS:
                state = (
                    self.world.committed(group=group, partition=partition),
                    self.world.is_unstable(group=group, partition=partition),
                )
                assert state == self.model.seen((group, partition)), (group, partition)
