"""What must be so some time after the last fault: everything is served again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.machines import State

if TYPE_CHECKING:
    from tests.simulation.world import World


def find_unserved(world: World) -> list[str]:
    """Return a sentence for each broker and partition that is not served as it should be."""
    down = [
        f"{machine!r} is {machine.state.name}" for machine in world.machines.values() if machine.state is not State.UP
    ]
    if down:
        return down
    if world.controller() is None:
        return ["there is no controller"]
    sentences = []
    for (topic, index), stored in world.stored.partitions.items():
        name, state = f"{topic}-{index}", stored.state
        if state is None:
            sentences.append(f"{name} has no state")
        elif stored.is_reassigned:
            sentences.append(f"{name} is being reassigned to {stored.replicas}, in sync are {state.in_sync_replicas}")
        elif set(state.in_sync_replicas) != set(stored.replicas):
            sentences.append(f"{name} has the replicas {stored.replicas}, in sync are {state.in_sync_replicas}")
        elif (problem := _find_unknown(world, topic, index, state.leader, state.leader_epoch)) is not None:
            sentences.append(f"{name} {problem}")
    return sentences


def _find_unknown(world: World, topic: str, index: int, leader: int, leader_epoch: int) -> str | None:
    """Return what a broker does not know of a partition that ZooKeeper says is led."""
    if leader not in world.machines:
        return "has no leader"
    for machine in world.machines.values():
        assert machine.broker is not None
        known = machine.broker.metadata.image.topics.get(topic)
        if known is None or index >= len(known.partitions):
            return f"is not known to {machine!r}"
        image = known.partitions[index]
        if (image.leader, image.leader_epoch) != (leader, leader_epoch):
            return f"is led by {leader} in epoch {leader_epoch}, and {machine!r} knows {image.leader}, {image.leader_epoch}"
    return None
