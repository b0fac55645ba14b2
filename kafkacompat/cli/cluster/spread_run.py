"""One run that spreads partitions over the brokers of a cluster: planned, throttled, followed to its end.

The brokers do the work. A run that was interrupted leaves reassignments that go on; the next run adopts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kafkacompat.cli.cluster.folder import ClusterCommandError
from kafkacompat.cli.cluster.reading import NO_NODE, PartitionName
from kafkacompat.cli.cluster.reassigning import ClusterLayout, ClusterMover
from kafkacompat.cli.cluster.spreading import ReplicaMove, plan_spread
from kafkacompat.cli.requests import NoResponseError

LOOK_EVERY_S = 1.0
MOST_SILENT_LOOKS = 60
"""Answers in a row that may fail while partitions move: brokers may start again, and the controller may change."""
MOST_LATE_LOOKS = 10
"""Times that the metadata of a broker may still show old replicas, once the controller has finished every move."""


@dataclass(frozen=True)
class SpreadPlan:
    """What a run has to do; ``sizes`` holds the bytes of each partition that moves, ``ongoing`` the moves of an earlier run."""

    layout: ClusterLayout
    moves: Sequence[ReplicaMove]
    ongoing: Sequence[ReplicaMove]
    sizes: dict[PartitionName, int]

    @property
    def all_moves(self) -> list[ReplicaMove]:
        """The moves of this run, and those that an earlier run began."""
        # A partition that already moves may get another target.
        started = {move.name: move for move in self.ongoing}
        return list({**started, **{move.name: move for move in self.moves}}.values())

    @property
    def replicas_moved(self) -> int:
        """How many replicas are copied."""
        return sum(len(move.added) for move in self.all_moves)

    @property
    def size_bytes(self) -> int:
        """How many bytes are copied, as far as they are written already."""
        return sum(self.sizes.get(move.name, 0) * len(move.added) for move in self.all_moves)


class SpreadRun:
    """Spreads the partitions of one cluster; ``pause`` waits for seconds."""

    def __init__(self, mover: ClusterMover, pause: Callable[[float], None]) -> None:
        self._mover = mover
        self._pause = pause

    def await_brokers(self, node_ids: Iterable[int]) -> None:
        """Return once all these brokers are registered; raises ClusterCommandError."""
        missing = set(node_ids)
        for _ in range(MOST_SILENT_LOOKS):
            missing -= set(self._mover.read_layout().addresses)
            if not missing:
                return
            self._pause(LOOK_EVERY_S)
        raise ClusterCommandError(f"broker {min(missing)} is ready, but the cluster does not know it: see its log")

    def plan(self, further: Iterable[int] = ()) -> SpreadPlan:
        """Plan for the registered brokers, and for *further* ones that have yet to start.

        Raises ClusterCommandError if a partition has no leader, or a replica on a broker that is down.
        """
        layout = self._mover.read_layout()
        _check_health(layout)
        moves = plan_spread(layout.assignments, {**layout.racks, **dict.fromkeys(further)})
        return self.measure(layout, moves, layout.ongoing)

    def measure(
        self, layout: ClusterLayout, moves: Sequence[ReplicaMove], ongoing: Sequence[ReplicaMove]
    ) -> SpreadPlan:
        """Return the plan for these moves and the *ongoing* ones, with the sizes of the partitions."""
        held = self._mover.read_sizes(layout, {node for move in (*moves, *ongoing) for node in move.before})
        names = [move.name for move in (*moves, *ongoing)]
        sizes = {name: max((held_by.get(name, 0) for held_by in held.values()), default=0) for name in names}
        return SpreadPlan(layout, moves, ongoing, sizes)

    def carry_out(self, plan: SpreadPlan, throttle: int | None, report_progress: Callable[[int], None]) -> bool:
        """Move, and return once everything has its place and its leader; returns whether a throttle was removed.

        ``report_progress`` receives the bytes copied so far. Raises ClusterCommandError if the cluster refuses a step or
        somebody cancels a move, and NoResponseError if no broker answers for a minute.
        """
        moves = plan.all_moves
        try:
            if throttle is not None and moves:
                self._mover.set_throttle(plan.layout, moves, throttle)
            self._mover.begin(plan.layout, plan.moves)
        except ClusterCommandError:
            if not self._mover.read_layout().ongoing:
                self._mover.remove_throttle(plan.layout)
            raise
        layout = self._follow(plan, report_progress)
        was_throttled = self._mover.remove_throttle(layout)
        self._check_outcome(layout, moves)
        self._elect_leaders(layout, moves)
        return was_throttled

    def _follow(self, plan: SpreadPlan, report_progress: Callable[[int], None]) -> ClusterLayout:
        """Return the layout in which nothing moves any more."""
        targets = sorted({node_id for move in plan.all_moves for node_id in move.added})
        silent_looks = late_looks = 0
        while True:
            try:
                layout = self._mover.read_layout()
                report_progress(self._count_copied(plan, layout, targets))
                if not layout.ongoing:
                    late_looks += 1
                    if late_looks > MOST_LATE_LOOKS or not _find_missed(layout, plan.all_moves):
                        return layout
                silent_looks = 0
            except NoResponseError:
                silent_looks += 1
                if silent_looks == MOST_SILENT_LOOKS:
                    raise
            self._pause(LOOK_EVERY_S)

    def _count_copied(self, plan: SpreadPlan, layout: ClusterLayout, targets: Sequence[int]) -> int:
        is_moving = {move.name for move in layout.ongoing}
        held = self._mover.read_sizes(layout, targets) if is_moving else {}
        copied = 0
        for move in plan.all_moves:
            size = plan.sizes.get(move.name, 0)
            for node_id in move.added:
                copied += min(held.get(node_id, {}).get(move.name, 0), size) if move.name in is_moving else size
        return copied

    def _check_outcome(self, layout: ClusterLayout, moves: Iterable[ReplicaMove]) -> None:
        missed = _find_missed(layout, moves)
        if missed:
            raise ClusterCommandError(
                f"{len(missed)} reassignments were cancelled or changed, such as that of {_show(missed[0].name)}: "
                "run the command again"
            )

    def _elect_leaders(self, layout: ClusterLayout, moves: Iterable[ReplicaMove]) -> None:
        others = [
            move.name
            for move in moves
            if move.name in layout.places and layout.places[move.name].leader != layout.places[move.name].replicas[0]
        ]
        if others:
            self._mover.elect_preferred(layout, others)


def _find_missed(layout: ClusterLayout, moves: Iterable[ReplicaMove]) -> list[ReplicaMove]:
    """Return the moves whose partitions have other replicas; topics may be deleted in the meantime."""
    places = layout.places
    return [move for move in moves if move.name in places and set(places[move.name].replicas) != set(move.after)]


def _check_health(layout: ClusterLayout) -> None:
    for name, place in layout.places.items():
        absent = [node_id for node_id in place.present if node_id not in layout.addresses]
        if absent:
            raise ClusterCommandError(
                f"broker {absent[0]} has a replica of {_show(name)} and is down: start it, or move its replicas away"
            )
        if place.leader == NO_NODE:
            raise ClusterCommandError(f"{_show(name)} has no leader: see kafkacompat cluster status")


def _show(name: PartitionName) -> str:
    return f"{name.topic}-{name.partition}"
