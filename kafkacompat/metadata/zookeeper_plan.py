"""The operations on ZooKeeper that make the changes of a store, in an order in which each prefix leaves a sound tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from kafkacompat.metadata.store import ABSENT, ConflictError, StoreChange
from kafkacompat.metadata.znodes.configs import encode_config_change
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.security import build_notification, parse_acl_key
from kafkacompat.metadata.zookeeper_reading import NodeReader
from kafkacompat.zookeeper.client import (
    ANY_VERSION,
    BadVersionError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SetData,
    ZooKeeperError,
)
from kafkacompat.zookeeper.requests import MAX_REQUEST_BYTES, parent_of, size_of

TOPICS = "/brokers/topics"
CONFIG_CHANGE = Znode.CONFIG_CHANGE.path(sequence="")

MAX_CHROOT_BYTES = 128
"""Room in bytes that a request leaves for the chroot in each of its paths."""


class Step(NamedTuple):
    """An operation, and the change that it makes. A parent, or a node below a deleted topic, belongs to no change.

    A step that ``is_attached`` is part of the same transaction as the step before it.
    """

    operation: Operation
    change: StoreChange | None
    is_attached: bool = False


class ChangePlanner:
    """Plans changes, and learns from an operation that failed what the plan did not know.

    A node without a value counts as absent: it exists because it has children.
    """

    def __init__(self, reader: NodeReader) -> None:
        self._reader = reader
        self._bare: dict[str, int] = {}
        self._kept: set[str] = set()

    async def plan(self, changes: Sequence[StoreChange]) -> list[Step]:
        """Return the steps: new values in the given order, each after its missing parents, then deletions, children first."""
        puts = [change for change in changes if change.value is not None]
        deletions = [change for change in changes if change.value is None]
        steps = [*await self._plan_puts(puts), *await self._plan_deletions(deletions)]
        return [*chain.from_iterable(map(_announce, steps))]

    async def _plan_puts(self, puts: Sequence[StoreChange]) -> list[Step]:
        steps: list[Step] = []
        creations = {change.key for change in puts if self._creates(change)}
        missing = await self._find_missing_parents(creations)
        for change in puts:
            assert change.value is not None
            if change.key not in creations:
                version = self._bare.get(change.key, change.expected_version)
                steps.append(Step(SetData(change.key, change.value, version), change))
                continue
            for parent in _list_ancestors(change.key):
                if parent in missing:
                    missing.remove(parent)
                    steps.append(Step(Create(parent, b""), None))
            steps.append(Step(Create(change.key, change.value), change))
        return steps

    def _creates(self, change: StoreChange) -> bool:
        return change.expected_version == ABSENT and change.key not in self._bare

    async def _find_missing_parents(self, creations: set[str]) -> set[str]:
        """Return the ancestors of new nodes that do not exist, except those that are new nodes themselves.

        Nothing exists below a new node, so that only the other ancestors are looked up.
        """
        missing: set[str] = set()
        level: set[str] = set()
        for key in creations:
            ancestors = _list_ancestors(key)
            new = [index for index, path in enumerate(ancestors) if path in creations]
            missing.update(ancestors[new[-1] + 1 :] if new else ())
            level.update(() if new else ancestors[-1:])
        while level:
            absent = level - await self._reader.find_existing(sorted(level))
            missing |= absent
            level = {parent_of(path) for path in absent} - {"/"} - missing
        return missing

    async def _plan_deletions(self, deletions: Sequence[StoreChange]) -> list[Step]:
        steps = {change.key: self._plan_deletion(change) for change in deletions}
        for change in deletions:
            if is_topic(change.key):
                for path in await self._reader.list_descendants(change.key, set(steps)):
                    steps.setdefault(path, Step(Delete(path, ANY_VERSION), None))
        return [steps[path] for path in sorted(steps, reverse=True)]

    def _plan_deletion(self, change: StoreChange) -> Step:
        if change.key in self._kept:
            return Step(SetData(change.key, b"", change.expected_version), change)
        return Step(Delete(change.key, change.expected_version), change)

    async def learn(self, step: Step, problem: ZooKeeperError) -> None:
        """Learn why a step failed, so that a new plan avoids it; raises ConflictError, or *problem* if no plan can."""
        if not isinstance(problem, _CHANGED_BY_OTHERS):
            raise problem
        if step.change is not None and not await self._can_avoid(problem, step.operation, step.change):
            raise ConflictError(f"{step.change.key} no longer has version {step.change.expected_version}")

    async def _can_avoid(self, problem: ZooKeeperError, operation: Operation, change: StoreChange) -> bool:
        if isinstance(problem, NodeExistsError):
            return await self._is_bare(change.key)
        if isinstance(problem, NotEmptyError):
            if not is_topic(change.key):
                self._kept.add(change.key)
            return True
        return isinstance(operation, Create) or self._bare.pop(change.key, None) is not None

    async def _is_bare(self, path: str) -> bool:
        value, stat = (await self._reader.read_nodes([path])).get(path, (b"", None))
        if stat is not None and not value:
            self._bare[path] = stat.version
        return not value


_CHANGED_BY_OTHERS = (BadVersionError, NodeExistsError, NoNodeError, NotEmptyError)


def is_topic(key: str) -> bool:
    """Return whether a key is a topic's own, which the keys of its partitions begin with."""
    return parent_of(key) == TOPICS


def _announce(step: Step) -> Iterator[Step]:
    """Yield a step, and after it the notification of its change if that is to be announced."""
    yield step
    if step.change is not None and step.change.is_announced:
        path, value = _build_notification(step.change.key)
        yield Step(Create(path, value, sequence=True), None, is_attached=True)


def _build_notification(key: str) -> tuple[str, bytes]:
    """Return the path and the value of the znode that announces a changed key."""
    pattern = parse_acl_key(key)
    return build_notification(pattern) if pattern is not None else (CONFIG_CHANGE, encode_config_change(key))


def cut_into_pieces(steps: Sequence[Step], reserved_bytes: int) -> Iterator[list[Step]]:
    """Yield the steps in pieces that fit into a request beside *reserved_bytes*."""
    piece: list[Step] = []
    room = limit = MAX_REQUEST_BYTES - reserved_bytes
    for group in _join_attached(steps):
        size_bytes = sum(size_of(step.operation) + MAX_CHROOT_BYTES for step in group)
        if piece and size_bytes > room:
            yield piece
            piece, room = [], limit
        piece += group
        room -= size_bytes
    if piece:
        yield piece


def _join_attached(steps: Sequence[Step]) -> Iterator[list[Step]]:
    group: list[Step] = []
    for step in steps:
        if group and not step.is_attached:
            yield group
            group = []
        group.append(step)
    if group:
        yield group


def _list_ancestors(path: str) -> list[str]:
    """Return the paths of a node's parents, from below the root downwards."""
    names = path.split("/")
    return ["/".join(names[:length]) for length in range(2, len(names))]
