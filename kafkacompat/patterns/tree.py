"""A pattern as a tree."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from kafkacompat.patterns.characters import CharacterSet


class Place(Enum):
    """What can be asked about a place between two characters."""

    TEXT_START = auto()
    TEXT_END = auto()
    LINE_START = auto()
    LINE_END = auto()
    WORD_EDGE = auto()
    NO_WORD_EDGE = auto()


@dataclass(frozen=True)
class One:
    """One character of a set."""

    characters: CharacterSet


@dataclass(frozen=True)
class At:
    """Nothing, at a certain place."""

    place: Place


@dataclass(frozen=True)
class Sequence:
    """One part after the other; without parts it is nothing, anywhere."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Choice:
    """One of these."""

    options: tuple[Tree, ...]


@dataclass(frozen=True)
class Repeat:
    """A part from ``least`` to ``most`` times; None: any number of times."""

    part: Tree
    least: int
    most: int | None


Tree: TypeAlias = One | At | Sequence | Choice | Repeat
