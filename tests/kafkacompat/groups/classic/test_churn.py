"""Members that join, leave, fall silent and rejoin at random: invariants that always hold.

A failure prints its seed; ``CHURN_SEED=n pytest tests/kafkacompat/groups/classic/test_churn.py`` repeats it.
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.wire.apis.join_group import JoinGroupResponse
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupResponse
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import GROUP, SESSION_S, World, write_topics

T = TypeVar("T")

STEPS = 400
CLIENTS = 6
SEEDS = [int(os.environ["CHURN_SEED"])] if "CHURN_SEED" in os.environ else list(range(30))

REFUSALS = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


@dataclass
class Generation:
    """The assignments that the members received."""

    leaders: set[str] = field(default_factory=set)
    protocols: set[str | None] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    assignments: dict[str, list[bytes | ErrorCode]] = field(default_factory=dict)


class Client:
    """A consumer that obeys the responses, or misbehaves."""

    def __init__(self, churn: "Churn", number: int) -> None:
        self.churn = churn
        self.instance = f"i{number}" if number % 3 == 0 else None
        self.member_id = ""
        self.generation = -1
        self.leads: list[str] = []
        self.waiting: Deferred[JoinGroupResponse] | Deferred[SyncGroupResponse] | None = None

    def join(self) -> None:
        protocols = [(name, write_topics(name)) for name in self.churn.rng.choice(["ab", "ba", "a"])]
        version = 9 if self.instance else self.churn.rng.choice([3, 4, 9])
        answer = self.churn.world.join(
            self.member_id, instance=self.instance, protocols=protocols, rebalance_s=20, version=version
        )
        if isinstance(answer, Deferred):
            self.waiting = answer
            self.churn.requests.append(answer)
            answer.addCallback(self.unless_restarted, self.joined, answer)
        else:
            self.joined(answer)

    def joined(self, answer: JoinGroupResponse) -> None:
        self.waiting = None
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif code:
            if code not in REFUSALS:
                self.churn.broken.append(f"a join was refused with {code.name}")
            self.forget_if_unknown(code)
        else:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.leads = [member.member_id for member in answer.members] if not answer.skip_assignment else []
            self.churn.began(answer)

    def sync(self) -> None:
        assignments = {member_id: f"{self.generation} {member_id}".encode() for member_id in self.leads}
        answer = self.churn.world.sync(self.member_id, self.generation, assignments, instance=self.instance)
        if isinstance(answer, Deferred):
            self.waiting = answer
            self.churn.requests.append(answer)
            answer.addCallback(self.unless_restarted, self.synced, answer)
        else:
            self.synced(answer)

    def synced(self, answer: SyncGroupResponse) -> None:
        self.waiting = None
        code = ErrorCode(answer.error_code)
        self.churn.note_assignment(self.member_id, self.generation, code or answer.assignment)
        self.forget_if_unknown(code)

    def unless_restarted(self, response: T, then: Callable[[T], None], answer: object) -> None:
        """Ignore a response that comes after the process was killed."""
        if self.waiting is answer:
            then(response)

    def heartbeat(self) -> None:
        self.forget_if_unknown(self.churn.world.heartbeat(self.member_id, self.generation, instance=self.instance))

    def leave(self) -> None:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        self.churn.world.coordinator.leave(GROUP, [identity])
        self.member_id = ""

    def restart(self) -> None:
        """Forget everything, like a process that was killed."""
        self.member_id, self.waiting = "", None

    def forget_if_unknown(self, code: ErrorCode) -> None:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""


class Churn:
    """One run, all of whose choices come from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(seed=seed)
        self.clients = [Client(self, number) for number in range(CLIENTS)]
        self.generations: dict[int, Generation] = {}
        self.newest = 0
        self.requests: list[Deferred[Any]] = []
        # Errors that callbacks noticed: a failed assertion in a callback would be lost.
        self.broken: list[str] = []

    def began(self, answer: JoinGroupResponse) -> None:
        if answer.generation_id < self.newest:
            self.broken.append(f"generation {answer.generation_id} after {self.newest}")
        self.newest = answer.generation_id
        generation = self.generations.setdefault(answer.generation_id, Generation())
        generation.protocols.add(answer.protocol_name)
        generation.members.add(answer.member_id)
        if answer.members:
            generation.leaders.add(answer.member_id)
            if answer.leader != answer.member_id:
                self.broken.append(f"{answer.member_id} was told who is in the generation, but {answer.leader} leads")

    def note_assignment(self, member_id: str, generation: int, assignment: bytes | ErrorCode) -> None:
        self.generations.setdefault(generation, Generation()).assignments.setdefault(member_id, []).append(assignment)

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
            self.check()
        self.calm_down()

    def step(self) -> None:
        if self.rng.random() < 0.4:
            self.world.wait(self.rng.choice([1, 1, 2, SESSION_S // 2]))
            self.check()
        client = self.rng.choice(self.clients)
        if client.waiting is not None:
            if self.rng.random() < 0.05:
                client.restart()
            return
        actions = [client.join, client.sync, client.sync, client.heartbeat, client.heartbeat]
        actions += [client.leave] if self.rng.random() < 0.1 else []
        action = self.rng.choice(actions) if client.member_id else client.join
        action()

    def check(self) -> None:
        assert self.broken == []
        group = self.world.coordinator.describe(GROUP)
        if group.group_state == "Dead":
            # All members left before the first assignment: the next group of this name starts again.
            self.newest = 0
            self.generations.clear()
        members = [member.member_id for member in group.members]
        assert len(set(members)) == len(members)
        instances = [member.group_instance_id for member in group.members if member.group_instance_id]
        assert len(set(instances)) == len(instances)
        assert (group.group_state in ("Empty", "Dead")) == (not members) or group.group_state == "PreparingRebalance"
        for number, generation in self.generations.items():
            self.check_generation(number, generation)

    def check_generation(self, number: int, generation: Generation) -> None:
        assert len(generation.leaders) <= 2, "one leader, or one and the process that took its place over"
        assert len(generation.protocols) <= 1
        for member_id, assignments in generation.assignments.items():
            for assignment in assignments:
                assert assignment in REFUSALS or self.is_own(number, member_id, assignment), (
                    number,
                    member_id,
                    assignment,
                )

    def is_own(self, number: int, member_id: str, assignment: object) -> bool:
        """Return whether an assignment is the member's own, of this generation, or empty because the leader did not know it."""
        if not isinstance(assignment, bytes):
            return False
        same_instance = f"{number} {member_id[:2]}".encode()
        return assignment in (b"", f"{number} {member_id}".encode()) or (
            member_id[:1] == "i" and assignment.startswith(same_instance)
        )

    def calm_down(self) -> None:
        """When all members behave, the group becomes stable and has all of them."""
        for _ in range(120):
            for client in self.clients:
                if client.waiting is None:
                    self.behave(client)
            self.world.wait(1)
        described = self.world.coordinator.describe(GROUP)
        assert described.group_state == "Stable"
        assert {member.member_id for member in described.members} == {client.member_id for client in self.clients}
        assert all(member.member_assignment for member in described.members)
        assert all(answer.called for answer in self.requests), "every request was answered, wanted or not"

    def behave(self, client: Client) -> None:
        code = ErrorCode.UNKNOWN_MEMBER_ID
        if client.member_id:
            code = self.world.heartbeat(client.member_id, client.generation, instance=client.instance)
        if code:
            client.forget_if_unknown(code if client.generation == self.newest else ErrorCode.NONE)
            client.join()
        if client.waiting is None and client.member_id:
            client.sync()


@pytest.mark.parametrize("seed", SEEDS)
def test_churn(seed: int) -> None:
    print(f"CHURN_SEED={seed}")
    Churn(seed).run()
