"""The contents that a disk may have after a power failure, where a real file system makes no promise.

Synced data is there. Of other data, names (creations, renames, removals) survive independently of the contents of files:
none, all, the first ones in their order, or any of them, except that one which concerns a name never survives without those
before it that concern the same name. Of contents nothing survives, everything, the first writes, or a torn write: cut
off somewhere, with zeros from somewhere on, or with a page of zeros in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from tests.fakes.memory_tree import Contents, Folder, Node

PAGE_SIZES = (16, 64, 512)


class Survivors(NamedTuple):
    """A power failure after which names and contents survive in ways of these tables."""

    names_survive: str
    contents_survive: str
    random: Random

    def names(self, folder: Folder) -> Mapping[str, Node]:
        """See PowerFailure."""
        return NAMES[self.names_survive](folder, self.random)

    def contents(self, file: Contents) -> bytes:
        """See PowerFailure."""
        return bytes(CONTENTS[self.contents_survive](file, self.random))


class OneName(NamedTuple):
    """A power failure that one of a folder's changes of names survives alone (``survives``), or alone does not; -1 is none of them.

    No unsynced bytes of files survive.
    """

    number: int
    survives: bool

    @classmethod
    def list_failures(cls, count: int) -> list[OneName]:
        """Return the failures for each of *count* unsynced changes, and those in which all survive and none does."""
        return [cls(number, survives) for number in range(-1, count) for survives in (False, True)]

    def names(self, folder: Folder) -> Mapping[str, Node]:
        """See PowerFailure."""
        return _chosen_names(folder, lambda number: (number == self.number) is self.survives)

    def contents(self, file: Contents) -> bytes:
        """See PowerFailure."""
        return file.on_disk


# --- names ---


def _first_names(folder: Folder, rng: Random) -> dict[str, Node]:
    names = dict(folder.on_disk)
    for change in folder.unsynced[: rng.randint(0, len(folder.unsynced))]:
        change.apply(names)
    return names


def _any_names(folder: Folder, rng: Random) -> dict[str, Node]:
    return _chosen_names(folder, lambda _: rng.random() >= 0.5)


def _chosen_names(folder: Folder, survives: Callable[[int], bool]) -> dict[str, Node]:
    names, lost = dict(folder.on_disk), set[str]()
    for number, change in enumerate(folder.unsynced):
        if change.touched & lost or not survives(number):
            lost |= change.touched
        else:
            change.apply(names)
    return names


NAMES: dict[str, Callable[[Folder, Random], Mapping[str, Node]]] = {
    "none": lambda folder, _: folder.on_disk,
    "all": lambda folder, _: folder.names,
    "first": _first_names,
    "any": _any_names,
}

# --- contents ---


def _first_writes(file: Contents, rng: Random) -> bytearray:
    return file.written(rng.randint(0, len(file.unsynced)))


def _tear(file: Contents, rng: Random) -> bytearray:
    count = rng.randint(0, len(file.unsynced))
    data = file.written(count)
    cuts = [write for write in file.unsynced[:count] if isinstance(write, int)]
    sure_bytes = min([len(file.on_disk), *cuts, len(data)])
    if sure_bytes < len(data):
        rng.choice(_TEARS)(data, sure_bytes, rng)
    return data


def _cut_off(data: bytearray, sure_bytes: int, rng: Random) -> None:
    del data[rng.randint(sure_bytes, len(data)) :]


def _end_in_zeros(data: bytearray, sure_bytes: int, rng: Random) -> None:
    start = rng.randint(sure_bytes, len(data))
    data[start:] = bytes(len(data) - start)


def _miss_a_page(data: bytearray, sure_bytes: int, rng: Random) -> None:
    page = rng.choice(PAGE_SIZES)
    start = rng.randrange(sure_bytes, len(data)) // page * page
    start, end = max(sure_bytes, start), min(start + page, len(data))
    data[start:end] = bytes(end - start)


_TEARS: tuple[Callable[[bytearray, int, Random], None], ...] = (_cut_off, _end_in_zeros, _miss_a_page)

CONTENTS: dict[str, Callable[[Contents, Random], bytes | bytearray]] = {
    "none": lambda file, _: file.on_disk,
    "all": lambda file, _: file.data,
    "first": _first_writes,
    "torn": _tear,
}
