"""Members that come, go, crash and lose answers at random: nobody ever reads what another one does."""

from __future__ import annotations

from random import Random

import pytest

from tests.kafkacompat.groups.consumer.support import Consumer, ConsumerWorld, topic

STEPS = 250
MEMBERS = [f"m{number}" for number in range(5)]


class Churn:
    """A group whose members do one thing after the other, each checked by what all of them believe."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = ConsumerWorld(seed=seed)
        self.topics = {"t": 4, "u": 2}
        self.members: dict[str, Consumer] = {}

    def run(self) -> None:
        actions = [self.join, self.beat, self.beat, self.beat, self.beat, self.leave, self.crash, self.lose]
        actions += [self.resubscribe, self.restart, self.grow]
        for _ in range(STEPS):
            self.random.choice(actions)()
            self.world.wait(self.random.choice([0, 0, 1, 3]))
            self.check()
        self.come_to_rest()

    def anybody(self) -> Consumer | None:
        return self.random.choice(list(self.members.values())) if self.members else None

    def join(self) -> None:
        name = self.random.choice(MEMBERS)
        if name not in self.members:
            topics = self.random.sample(sorted(self.topics), self.random.randint(1, len(self.topics)))
            assignor = self.random.choice(["uniform", "range", None])
            self.members[name] = Consumer(self.world, name, *topics, server_assignor=assignor).join()

    def beat(self) -> None:
        if member := self.anybody():
            member.beat()

    def lose(self) -> None:
        """An answer does not arrive: the member says all again."""
        if member := self.anybody():
            answer = self.world.beat(member.member_id, member.epoch, topic_partitions=self.world.owned(**member.has))
            assert answer is not None
            member.beat(
                rebalance_timeout_ms=30_000,
                subscribed_topic_names=list(member.topics),
                topic_partitions=self.world.owned(**member.has),
            )

    def leave(self) -> None:
        if member := self.anybody():
            self.world.beat(member.member_id, -1)
            del self.members[member.member_id]

    def crash(self) -> None:
        if member := self.anybody():
            del self.members[member.member_id]

    def resubscribe(self) -> None:
        if member := self.anybody():
            member.topics = tuple(self.random.sample(sorted(self.topics), self.random.randint(1, len(self.topics))))
            member.beat(subscribed_topic_names=list(member.topics))

    def restart(self) -> None:
        before = self.world
        self.world = ConsumerWorld(before.log)
        self.world.clock.rightNow = before.clock.seconds()
        self.publish()
        self.world.turn(200)
        for member in self.members.values():
            member.world = self.world

    def grow(self) -> None:
        name = self.random.choice(sorted(self.topics))
        if self.topics[name] < 6:
            self.topics[name] += 1
        self.publish()

    def publish(self) -> None:
        self.world.publish(*(topic(name, count) for name, count in self.topics.items()))

    def check(self) -> None:
        readers: dict[tuple[str, int], str] = {}
        alive = {name: member for name, member in self.members.items() if self.is_member(member)}
        for name, member in alive.items():
            for topic_name, partitions in member.has.items():
                for partition in partitions:
                    assert readers.setdefault((topic_name, partition), name) == name

    def is_member(self, member: Consumer) -> bool:
        """One that was taken out does not know it yet, and reads on until its next heartbeat."""
        if "g" not in self.world.coordinator._registry.groups:
            return False
        found = self.world.contents().members.get(member.member_id)
        return found is not None and member.epoch in (found.member_epoch, found.previous_member_epoch)

    def come_to_rest(self) -> None:
        for _ in range(60):
            self.world.wait(1)
            for member in self.members.values():
                member.beat()
        wanted = {name for member in self.members.values() for name in member.topics}
        had = [(name, number) for member in self.members.values() for name in member.has for number in member.has[name]]
        assert sorted(had) == sorted((name, number) for name in wanted for number in range(self.topics[name]))
        if self.members:
            assert self.world.group().state_name == "Stable"
            epochs = {member.epoch for member in self.members.values()}
            assert epochs == {self.world.contents().epoch}


@pytest.mark.parametrize("seed", range(12))
def test_no_partition_has_two_readers_and_in_the_end_each_has_one(seed: int) -> None:
    Churn(seed).run()
