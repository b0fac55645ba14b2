"""The metadata store of a cluster: ZooKeeper. Keys are paths below the chroot, versions are those of the nodes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, succeed

from kafkacompat.metadata.codec import CLUSTER_ID, PRODUCER_IDS
from kafkacompat.metadata.store import ABSENT, ConflictError, StoreChange, StoreEntry, StoreError
from kafkacompat.metadata.znodes.paths import CONFIG_KINDS, OWN_CONFIG_KINDS, Znode
from kafkacompat.metadata.zookeeper_plan import TOPICS, ChangePlanner, Step, cut_into_pieces
from kafkacompat.metadata.zookeeper_reading import NodeReader
from kafkacompat.timers import Clock
from kafkacompat.zookeeper.client import Check, Create, NodeStat, SetData, ZooKeeper, ZooKeeperError
from kafkacompat.zookeeper.requests import size_of
from kafkacompat.zookeeper.waiting import LOSSES, ConnectionWaiter

CONFIG_FOLDERS = tuple(Znode.CONFIG_KIND.path(kind=kind) for kind in (*CONFIG_KINDS, *OWN_CONFIG_KINDS))
"""Folders of configurations. /config/changes beside them holds notifications."""
TOKENS = Znode.TOKENS.path()

ACL_FOLDERS = ("/kafka-acl", "/kafka-acl-extended")
"""Folders of access rules. Only a cluster with an authorizer has them."""

WAIT_SECONDS = 30.0
"""Longest wait for a connection before an operation fails. Then it is unknown whether a change was made."""

MAX_ATTEMPTS = 10

Result = TypeVar("Result")
Fence = Callable[[], tuple[str, int] | None]


class FencedError(StoreError):
    """Another broker is the controller: the fence's node has another version, and the store made no change."""


class ZooKeeperStore:
    """A `MetadataStore` over a client, which its caller starts and closes.

    *fence* returns a path and the version that it must have for each change, or None. A controller passes /controller_epoch.

    A change is one transaction if it fits into a request. A larger one is several, in the order of the changes and with all
    deletions last; the fence guards each of them. A conflict in a later one leaves the earlier ones made, and so does the end of
    this process.

    A change that is announced is made in one transaction with its notification, so that the end of this process
    leaves no reader without it.

    A node without a value is no entry: it holds others. If such a node receives its first value, its version is not 0. The
    next change of the key then conflicts, and its caller reads the version.
    """

    def __init__(
        self, client: ZooKeeper, clock: Clock, fence: Fence = lambda: None, *, with_acls: bool = False
    ) -> None:
        self._client = client
        self._connection = ConnectionWaiter(client, clock, WAIT_SECONDS)
        self._reader = NodeReader(client, self._connection)
        self._fence = fence
        self._folders = (*CONFIG_FOLDERS, TOKENS, *(ACL_FOLDERS if with_acls else ()))

    def load(self) -> Deferred[Mapping[str, StoreEntry]]:
        """Fire with all topics, partition states, configurations, delegation tokens and access rules, the cluster's id and the last block of producer ids.

        *with_acls* adds the access rules. They are read one by one, so a change made meanwhile may be missing in part.
        """
        return _as_deferred(self._load())

    def load_acls(self) -> Deferred[Mapping[str, StoreEntry]]:
        """Fire with all access rules, read one by one."""
        return _as_deferred(self._reader.walk(ACL_FOLDERS))

    def read(self, keys: Sequence[str]) -> Deferred[Mapping[str, StoreEntry]]:
        """Fire with the entries of those keys that exist, each read by itself."""
        return _as_deferred(self._reader.read_entries(keys))

    def keys(self, folder: str) -> Deferred[Sequence[str]]:
        """See MetadataStore.keys."""
        return _as_deferred(self._keys(folder))

    def compare_and_set(self, changes: Sequence[StoreChange]) -> Deferred[None]:
        """See MetadataStore.compare_and_set; fails with FencedError too."""
        return _as_deferred(self._compare_and_set(changes))

    def close(self) -> Deferred[None]:
        """Leave the client to its owner."""
        return succeed(None)

    # Reading

    async def _load(self) -> dict[str, StoreEntry]:
        topics = (await self._reader.list_children([TOPICS]))[TOPICS]
        entries = await self._reader.read_entries([CLUSTER_ID, PRODUCER_IDS, *topics])
        partitions = await self._reader.list_children([f"{topic}/partitions" for topic in topics])
        states = [f"{partition}/state" for paths in partitions.values() for partition in paths]
        entries.update(await self._reader.read_entries(states))
        entries.update(await self._reader.walk(self._folders))
        return entries

    async def _keys(self, folder: str) -> list[str]:
        path = folder.rstrip("/") or "/"
        return [key for key in await self._reader.walk([path]) if key != path]

    # Writing

    async def _compare_and_set(self, changes: Sequence[StoreChange]) -> None:
        fence = self._fence()
        checks = [] if fence is None else [Check(*fence)]
        waiting = {change.key: change for change in changes}
        for key in await self._find_deleted(changes):
            del waiting[key]
        planner = ChangePlanner(self._reader)
        for attempt in range(MAX_ATTEMPTS):
            steps = await planner.plan([*waiting.values()])
            pieces = [*cut_into_pieces(steps, sum(map(size_of, checks)))]
            if attempt == 0 and len(pieces) > 1:
                await self._check_versions(changes)
            if await self._write_pieces(pieces, checks, planner, waiting):
                return
        raise StoreError("the metadata in ZooKeeper cannot be changed: others keep changing the same nodes")

    async def _find_deleted(self, changes: Sequence[StoreChange]) -> list[str]:
        """Return the keys to delete that are absent, as expected."""
        keys = [change.key for change in changes if change.value is None and change.expected_version == ABSENT]
        if existing := await self._reader.read_entries(keys):
            raise ConflictError(f"{next(iter(existing))} exists")
        return keys

    async def _check_versions(self, changes: Sequence[StoreChange]) -> None:
        """Raise ConflictError before the first of several transactions, rather than between them."""
        entries = await self._reader.read_entries([change.key for change in changes])
        for change in changes:
            version = entries[change.key].version if change.key in entries else ABSENT
            if version != change.expected_version:
                raise ConflictError(f"{change.key} has version {version}, not {change.expected_version}")

    async def _write_pieces(
        self,
        pieces: Sequence[Sequence[Step]],
        checks: Sequence[Check],
        planner: ChangePlanner,
        waiting: dict[str, StoreChange],
    ) -> bool:
        """Write the pieces in turn and take their changes out of *waiting*; return False if a new plan is necessary."""
        for piece in pieces:
            try:
                await self._write_piece(piece, checks)
            except ZooKeeperError as problem:
                if problem.operation_index is None:
                    raise
                index = problem.operation_index - len(checks)
                if index < 0:
                    raise FencedError(f"another broker has become the controller: {problem}") from problem
                await planner.learn(piece[index], problem)
                return False
            for step in piece:
                if step.change is not None:
                    del waiting[step.change.key]
        return True

    async def _write_piece(self, piece: Sequence[Step], checks: Sequence[Check]) -> None:
        """Write one transaction. If its answer is lost, read whether it happened, and otherwise write it again."""
        operations = [*checks, *(step.operation for step in piece)]
        was_lost = False
        for _ in range(MAX_ATTEMPTS):
            try:
                await self._client.multi(operations)
                return
            except LOSSES:
                was_lost = True
                await self._connection.wait()
            except ZooKeeperError:
                # A server that lagged behind may have shown the tree before the first transaction.
                if was_lost and await self._has_happened(piece):
                    return
                raise
            if await self._has_happened(piece):
                return
        raise StoreError("the metadata in ZooKeeper cannot be changed: the connection keeps breaking")

    async def _has_happened(self, piece: Sequence[Step]) -> bool:
        steps = [step for step in piece if step.change is not None] or piece
        nodes = await self._reader.read_nodes([step.operation.path for step in steps])
        return all(_is_done(step, nodes.get(step.operation.path)) for step in steps)


def _is_done(step: Step, node: tuple[bytes, NodeStat] | None) -> bool:
    """Return whether a node is as the step's operation leaves it."""
    operation = step.operation
    if not isinstance(operation, Create | SetData):
        return node is None
    version = 0 if isinstance(operation, Create) else operation.version + 1
    return node is not None and (node[0], node[1].version) == (operation.value, version)


def _as_deferred(coroutine: Coroutine[Deferred[Any], Any, Result]) -> Deferred[Result]:
    """Return the result as a Deferred, which fails with StoreError for errors of ZooKeeper."""

    async def report() -> Result:
        try:
            return await coroutine
        except ZooKeeperError as problem:
            raise StoreError(f"the metadata in ZooKeeper cannot be used: {problem}") from problem

    return Deferred.fromCoroutine(report())
