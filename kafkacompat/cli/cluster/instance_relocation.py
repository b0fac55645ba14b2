"""Moves an instance to another group of brokers while its clients work.

The instance names both groups while it moves. New partitions are placed in the group that it moves to, so the end is certain. A
run that was interrupted leaves reassignments that go on; the next run to the same group goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafkacompat.cli.cluster.folder import ClusterCommandError
from kafkacompat.cli.cluster.reading import NO_NODE, PartitionName
from kafkacompat.cli.cluster.reassigning import ClusterLayout, ClusterMover
from kafkacompat.cli.cluster.relocating import plan_relocation
from kafkacompat.cli.cluster.spread_run import SpreadPlan, SpreadRun
from kafkacompat.config.broker_groups import GROUPS, MAX_BROKERS, BrokerGroups, parse_broker_groups
from kafkacompat.config.instances import Instance, check_instance_name
from kafkacompat.config.properties import ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.wire import entities

GROUP = "placement.group"
SUBJECTS = ("name.prefix", "topic.names", "placement.group", "placement.racks")
"""The properties that say which topics an instance has, and where."""
MAX_ROUNDS = 5
"""Times that the topics are read again, as others may be assigned to brokers outside the group in the meantime."""

Follow = Callable[[SpreadPlan], None]
"""Carries out a plan to its end."""


class Destination(NamedTuple):
    """An instance, the group that it moves to, and the racks of this group's live brokers that may have its replicas."""

    instance: Instance
    group: str
    racks: dict[int, str | None]


class InstanceRelocation:
    """Moves one instance of a cluster to a group of brokers."""

    def __init__(self, mover: ClusterMover, run: SpreadRun) -> None:
        self._mover = mover
        self._run = run

    def find_destination(self, name: str, group: str) -> Destination:
        """Read an instance and a group; raises ClusterCommandError if one does not exist, and NoResponseError."""
        try:
            check_instance_name(name)
            layout = self._mover.read_layout()
            instance = self._read_instance(layout, name)
            groups = self._read_groups(layout)
        except ConfigError as problem:
            raise ClusterCommandError(str(problem)) from problem
        if group not in groups:
            raise ClusterCommandError(
                f"there is no group of brokers {group}{did_you_mean(group, groups)}: {GROUPS} lists the groups"
            )
        allowed = instance.list("placement.racks")
        racks = {
            node_id: rack
            for node_id, rack in layout.racks.items()
            if node_id in groups[group] and (not allowed or (rack or "") in allowed)
        }
        return Destination(instance, group, racks)

    def _read_instance(self, layout: ClusterLayout, name: str) -> Instance:
        given = self._mover.read_configs(layout, ResourceType.INSTANCE, name)
        return Instance(name, {option: given[option] for option in SUBJECTS if option in given})

    def _read_groups(self, layout: ClusterLayout) -> BrokerGroups:
        configs = self._mover.read_configs(layout, ResourceType.BROKER, str(layout.controller))
        return parse_broker_groups(configs.get(GROUPS, ""), int(configs[MAX_BROKERS]))

    def plan(self, destination: Destination) -> SpreadPlan:
        """Plan what is outside the group now; raises ClusterCommandError if that cannot move, and NoResponseError."""
        layout = self._mover.read_layout()
        instance = destination.instance

        def is_own(name: PartitionName) -> bool:
            return instance.owns(entities.TOPIC, name.topic)

        assignments = {name: replicas for name, replicas in layout.assignments.items() if is_own(name)}
        for name in assignments:
            if layout.places[name].leader == NO_NODE:
                raise ClusterCommandError(
                    f"{name.topic}-{name.partition} has no leader: see kafkacompat cluster status"
                )
        try:
            moves = plan_relocation(assignments, destination.racks)
        except ValueError as problem:
            raise ClusterCommandError(
                f"the group {destination.group} is too small for the instance {instance.name}: {problem}"
            ) from problem
        return self._run.measure(layout, moves, [move for move in layout.ongoing if is_own(move.name)])

    def carry_out(self, destination: Destination, follow: Follow) -> None:
        """Move the instance to its end.

        Raises ClusterCommandError if the cluster refuses a step, and NoResponseError if no broker answers for a minute.
        """
        group = destination.group
        left = [name for name in destination.instance.list(GROUP) if name != group]
        # A plan that fails changes nothing.
        self.plan(destination)
        self._set_groups(destination, [*left[-1:], group])
        for _ in range(MAX_ROUNDS):
            plan = self.plan(destination)
            if not plan.all_moves:
                self._set_groups(destination, [group])
                return
            follow(plan)
        raise ClusterCommandError(
            f"topics of the instance {destination.instance.name} are still placed outside the group {group}: "
            "run the command again"
        )

    def _set_groups(self, destination: Destination, names: list[str]) -> None:
        layout = self._mover.read_layout()
        self._mover.set_configs(layout, ResourceType.INSTANCE, destination.instance.name, {GROUP: ",".join(names)})
