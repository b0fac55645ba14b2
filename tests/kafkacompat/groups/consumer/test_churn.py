"""Members that join, leave, crash and lose responses at random: no two members ever read the same partition."""

from __future__ import annotations

from random import Random

import pytest

from kafkacompat.groups.consumer.contents import GroupContents
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.churn_support import ClassicMember, Member, Partition
from tests.kafkacompat.groups.consumer.support import SESSION_S, ConsumerWorld, make_topic

STEPS = 250
MOST_MEMBERS = 6
PATTERNS = ["t|u", "[uv].*", "x?"]
# Members of the classic protocol may join, and do not convert the group.
SETTINGS = ConsumerGroupSettings(migration_policy="UPGRADE")


class Churn:
    """A group whose members act one after the other. After each step the assignments that all of them believe in are checked."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = ConsumerWorld(seed=seed, consumer_settings=SETTINGS)
        self.topics = {"t": [4, 0], "u": [2, 0], "v": [1, 0]}
        self.members: list[Member | ClassicMember] = []
        self.away: list[str] = []
        self.count = 0

    def run(self) -> None:
        actions = [self.join, self.join_classic, self.leave, self.crash, self.lose, self.go_away, self.come_back]
        actions += [self.resubscribe, self.restart, self.grow, self.make_again, self.refuse, self.hold]
        actions += [self.beat] * 9 + [self.decide] * 2
        for _ in range(STEPS):
            self.random.choice(actions)()
            self.world.wait(self.random.choice([0, 0, 1, 3]))
            self.check()
        self.come_to_rest()

    # Events

    def some_topics(self) -> list[str]:
        return self.random.sample(sorted(self.topics), self.random.randint(0, len(self.topics)))

    def new(self, instance: str | None) -> None:
        self.count += 1
        pattern = self.random.choice(PATTERNS) if self.random.random() < 0.3 else None
        assignor = self.random.choice(["uniform", "range", None])
        member = Member(self.world, f"m{self.count}", self.some_topics(), pattern, instance, assignor)
        self.members.append(member)
        member.beat()

    def join(self) -> None:
        if len(self.members) < MOST_MEMBERS:
            self.new(f"i{self.count}" if self.random.random() < 0.5 else None)

    def join_classic(self) -> None:
        group = self.world.coordinator._registry.by_id.get("g")
        if len(self.members) < MOST_MEMBERS and group is not None and not group.is_empty:
            self.members.append(ClassicMember(self.world, self.some_topics() or ["t"]))

    def anybody(self) -> Member | ClassicMember | None:
        return self.random.choice(self.members) if self.members else None

    def beat(self) -> None:
        if member := self.anybody():
            member.beat()

    def lose(self) -> None:
        if isinstance(member := self.anybody(), Member):
            member.beat()
            member.lose()

    def leave(self) -> None:
        if member := self.anybody():
            member.leave(-1)
            self.members.remove(member)

    def crash(self) -> None:
        if member := self.anybody():
            self.members.remove(member)

    def go_away(self) -> None:
        if isinstance(member := self.anybody(), Member) and member.instance:
            member.leave(-2)
            self.members.remove(member)
            self.away.append(member.instance)

    def come_back(self) -> None:
        if self.away and not self.world.log.hold:
            instance = self.away.pop()
            known = self.world.contents().find_static_member(instance) if self.has_group() else None
            if known is None or known.has_left_temporarily:
                self.new(instance)

    def resubscribe(self) -> None:
        if isinstance(member := self.anybody(), Member):
            member.subscribe(self.some_topics())
            member.beat()

    def restart(self) -> None:
        self.decide()
        before = self.world
        self.world = ConsumerWorld(before.log, seed=self.random.randrange(10**9), consumer_settings=SETTINGS)
        self.world.clock.rightNow = before.clock.seconds()
        self.publish()
        self.world.turn(200)
        if self.has_group():
            assert self.world.contents() == before.contents()
        for member in self.members:
            member.world = self.world

    def grow(self) -> None:
        shape = self.topics[self.random.choice(sorted(self.topics))]
        shape[0] = min(6, shape[0] + 1)
        self.publish()

    def make_again(self) -> None:
        """Delete a topic, and create it again later."""
        name = self.random.choice(sorted(self.topics))
        count, generation = self.topics.pop(name)
        self.publish()
        if self.random.random() < 0.5:
            self.beat()
        self.topics[name] = [count, generation + 1]
        self.publish()

    def publish(self) -> None:
        self.world.publish(*(make_topic(name, *shape) for name, shape in self.topics.items()))

    def refuse(self) -> None:
        """Let the log reject appends for a moment."""
        if not self.world.log.hold:
            self.world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
            self.random.choice([self.beat, self.leave, self.join, self.resubscribe, self.be_silent])()
            self.world.log.refuse_with = None

    def be_silent(self) -> None:
        """Let all members be silent for longer than their session timeout."""
        self.world.wait(SESSION_S + 1)

    def hold(self) -> None:
        """Make the log slow."""
        self.world.log.hold = True

    def decide(self) -> None:
        """Let the slow log accept all pending appends, or reject them from some point on."""
        log = self.world.log
        held, log.held, log.hold = log.held, [], False
        taken = self.random.choice([len(held), self.random.randint(0, len(held))])
        for number, append in enumerate(held):
            if number < taken:
                append.succeed()
            else:
                append.fail(ErrorCode.KAFKA_STORAGE_ERROR)
        while log.held:
            log.held.pop(0).succeed()
        self.world.turn(50)

    # Invariants

    def has_group(self) -> bool:
        return "g" in self.world.coordinator._registry.by_id

    def check(self) -> None:
        for member in self.members:
            if isinstance(member, Member):
                member.hear()
        if not self.has_group():
            return
        contents = self.world.contents()
        self.check_contents(contents)
        topic_ids = self.world.metadata.image.topics_by_id.keys()
        readers: dict[Partition, str] = {}
        for member in self.members:
            known = contents.members.get(member.member_id)
            # A member that was removed does not know it yet, and reads on until its next heartbeat.
            if known is not None:
                for partition in member.has:
                    assert partition[0] not in topic_ids or known.assignment_epoch(*partition) is not None, (
                        member.member_id,
                        partition,
                    )
                    assert readers.setdefault(partition, member.member_id) == member.member_id

    def check_contents(self, contents: GroupContents) -> None:
        """Check that the fields of the contents that repeat the members agree with them."""
        held = [
            ((topic_id, number), member_id)
            for member_id, member in contents.members.items()
            for holding in (member.assigned, member.pending_revocation)
            for topic_id, numbers in holding.items()
            for number in numbers
        ]
        assert len(held) == len(contents.owners)
        assert dict(held) == contents.owners
        members = contents.members.values()
        assert sum(count for _, count in contents.subscriptions.values()) == len(members)
        assert contents.subscriptions.keys() == {member.topics for member in members}
        assert contents.pattern_members.total() == sum(bool(member.pattern) for member in members)
        assert contents.statics == {member.instance_id: member.member_id for member in members if member.instance_id}
        assert {member_id for _, member_id in self.world.group().timers} >= contents.members.keys()

    def come_to_rest(self) -> None:
        self.decide()
        self.new(None)
        for _ in range(60):
            self.world.wait(1)
            self.world.turn(5)
            for member in self.members:
                member.beat()
                self.check()
        wanted = {name for member in self.members for name in self.reads(member)}
        had = sorted(partition for member in self.members for partition in member.has)
        image = self.world.metadata.image
        assert had == sorted((image.topics[name].topic_id, number) for name in wanted for number in self.numbers(name))
        if self.members:
            assert self.world.group().state_name == "Stable"
            assert {known.member_epoch for known in self.world.contents().members.values()} == {
                self.world.contents().epoch
            }

    def reads(self, member: Member | ClassicMember) -> set[str]:
        pattern = member.pattern if isinstance(member, Member) else None
        matches = {"t|u": {"t", "u"}, "[uv].*": {"u", "v"}, "x?": set[str](), None: set[str]()}[pattern]
        return {*member.topics, *matches}

    def numbers(self, name: str) -> range:
        return range(self.topics[name][0])


@pytest.mark.parametrize("seed", range(12))
def test_no_partition_has_two_readers_and_in_the_end_each_has_one(seed: int) -> None:
    Churn(seed).run()
