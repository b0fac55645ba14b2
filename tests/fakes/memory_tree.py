"""Files and folders in memory, each with two truths: what a process sees, and what is on the disk.

What was done since the last sync is kept in its order, for a power failure to choose from (power_failures.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from operator import eq
from typing import NamedTuple, Protocol, TypeAlias

Write: TypeAlias = "bytes | int"
"""What happened to a file: bytes were appended, or it was cut to a length."""


@dataclass(eq=False)
class Contents:
    """A file; several open handles may share it."""

    data: bytearray = field(default_factory=bytearray)
    on_disk: bytes = b""
    unsynced: list[Write] = field(default_factory=list)
    modified_ms: int = 0
    let_go_of: range = range(0)
    """What a failed sync did not write, which later ones take to be on the disk."""

    def append(self, data: bytes) -> None:
        """Write at the end."""
        self.data += data
        self.unsynced.append(data)

    def truncate(self, size_bytes: int) -> None:
        """Make it so long."""
        _cut(self.data, size_bytes)
        self.unsynced.append(size_bytes)
        self.let_go_of = range(self.let_go_of.start, min(self.let_go_of.stop, size_bytes))

    def write_again(self, position: int) -> None:
        """Write what it holds from a position on."""
        self.let_go_of = range(self.let_go_of.start, min(self.let_go_of.stop, position))

    def sync(self) -> None:
        """Put everything on the disk but what an earlier sync has let go of."""
        data = bytearray(self.data)
        data[self.let_go_of.start : self.let_go_of.stop] = bytes(len(self.let_go_of))
        self.on_disk = bytes(data)
        self.unsynced.clear()

    def let_go(self) -> None:
        """Fail to sync: as ever it shows what was written, but nothing of it will come to the disk any more."""
        same = sum(1 for _ in takewhile(bool, map(eq, self.on_disk, self.data)))
        self.let_go_of = range(same, len(self.data))
        self.sync()

    def written(self, count: int) -> bytearray:
        """What it held after the first `count` of the writes that are not synced."""
        data = bytearray(self.on_disk)
        for write in self.unsynced[:count]:
            if isinstance(write, int):
                _cut(data, write)
            else:
                data += write
        return data


def _cut(data: bytearray, size_bytes: int) -> None:
    del data[size_bytes:]
    data.extend(bytes(size_bytes - len(data)))


class NameChange(NamedTuple):
    """A name that went, and one that came with what it names: a creation, a removal, or both at once."""

    gone: str | None
    name: str | None
    node: Node | None

    def apply(self, names: dict[str, Node]) -> None:
        """Let it happen."""
        if self.gone is not None:
            names.pop(self.gone, None)
        if self.name is not None and self.node is not None:
            names[self.name] = self.node

    @property
    def touched(self) -> set[str]:
        """The names that it concerns."""
        return {name for name in (self.gone, self.name) if name is not None}


@dataclass(eq=False)
class Folder:
    """A folder; its names are synced apart from what they name."""

    names: dict[str, Node] = field(default_factory=dict)
    on_disk: dict[str, Node] = field(default_factory=dict)
    unsynced: list[NameChange] = field(default_factory=list)

    def change(self, change: NameChange) -> None:
        """Let names come and go."""
        change.apply(self.names)
        self.unsynced.append(change)

    def sync(self) -> None:
        """Put the names on the disk."""
        self.on_disk = dict(self.names)
        self.unsynced.clear()


Node: TypeAlias = "Contents | Folder"


class PowerFailure(Protocol):
    """What a power failure leaves of what was not synced."""

    def names(self, folder: Folder) -> Mapping[str, Node]:
        """The names that a folder has afterwards."""

    def contents(self, file: Contents) -> bytes:
        """What a file holds afterwards."""


def fallen(folder: Folder, failure: PowerFailure) -> Folder:
    """A folder, with everything in it, as the next process finds it; the one given stays as it is."""
    names: dict[str, Node] = {}
    for name, node in sorted(failure.names(folder).items()):
        if isinstance(node, Folder):
            names[name] = fallen(node, failure)
        else:
            data = failure.contents(node)
            names[name] = Contents(bytearray(data), data, [], node.modified_ms)
    return Folder(names, dict(names))


def copied(folder: Folder, known: dict[int, Node]) -> Folder:
    """The same once more, with what is not synced; ``known`` are the nodes that were copied already, by their ids."""

    def copy(node: Node) -> Node:
        if id(node) not in known:
            if isinstance(node, Folder):
                return copied(node, known)
            known[id(node)] = replace(node, data=bytearray(node.data), unsynced=list(node.unsynced))
        return known[id(node)]

    twin = known[id(folder)] = Folder()
    twin.names = {name: copy(node) for name, node in folder.names.items()}
    twin.on_disk = {name: copy(node) for name, node in folder.on_disk.items()}
    twin.unsynced = [
        change._replace(node=None if change.node is None else copy(change.node)) for change in folder.unsynced
    ]
    return twin


def fingerprint(folder: Folder) -> int:
    """Equal for folders of which a process sees the same."""
    nodes = sorted(folder.names.items())
    return hash(
        tuple((name, fingerprint(node) if isinstance(node, Folder) else bytes(node.data)) for name, node in nodes)
    )


def lose(folder: Folder) -> None:
    """Go back to what is on the disk, with everything in it."""
    folder.names = dict(folder.on_disk)
    folder.unsynced.clear()
    for node in folder.names.values():
        if isinstance(node, Folder):
            lose(node)
        else:
            node.data = bytearray(node.on_disk)
            node.unsynced.clear()
            node.let_go_of = range(0)
