"""Matches whole texts against a pattern, by all ways at once.

The tree becomes a net of nodes; matching keeps the set of nodes that the text so far can lead to. What a set and a
character lead to is remembered, so most characters cost one look into a dict.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import NamedTuple, TypeAlias

from kafkacompat.patterns.characters import WORD, CharacterSet
from kafkacompat.patterns.syntax import PatternError, parse
from kafkacompat.patterns.tree import At, Choice, One, Place, Repeat, Sequence, Tree

MAX_NODES = 20_000
MAX_REMEMBERED = 10_000
STEPS_A_PAUSE = 5_000

_WORD = CharacterSet(WORD)


class _Before(Enum):
    """What stands before a place in the text."""

    NOTHING = 0
    NEWLINE = 1
    WORD = 2
    OTHER = 3


class _Character(NamedTuple):
    """Go on over a character of this set."""

    characters: CharacterSet
    target: int


class _Place(NamedTuple):
    """Go on where this is so."""

    place: Place
    target: int


class _Fork(NamedTuple):
    """Go on to any of these; without targets, the end of the pattern."""

    targets: tuple[int, ...]


_Node: TypeAlias = _Character | _Place | _Fork
_State: TypeAlias = tuple[frozenset[int], _Before]


class Pattern:
    """A pattern that was read; raises PatternError if it is none, or takes more than MAX_NODES nodes.

    ``steps`` counts the work so far; a million of them take about a second.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._nodes: list[_Node] = [_Fork(())]
        self._start: _State = (frozenset([self._add_tree(parse(text), 0)]), _Before.NOTHING)
        self._known: dict[tuple[_State, str], _State] = {}
        self.steps = 0
        self._pause_at = STEPS_A_PAUSE

    def matches(self, text: str) -> bool:
        """Whether all of *text* is of this pattern."""
        steps = self.matching(text)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return bool(end.value)

    def matching(self, text: str) -> Generator[None, None, bool]:
        """As `matches`, which is the value returned, with a pause (a yield) before much work."""
        state = self._start
        for character in text:
            following = self._known.get((state, character))
            if following is None:
                if self.steps > self._pause_at:
                    self._pause_at = self.steps + STEPS_A_PAUSE
                    yield
                following = self._learn(state, character)
            state = following
            if not state[0]:
                return False
        return 0 in self._reach(state, "")

    # The net

    def _add(self, node: _Node) -> int:
        if len(self._nodes) >= MAX_NODES:
            raise PatternError(f"it takes more than {MAX_NODES} steps")
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _add_tree(self, tree: Tree, target: int) -> int:
        """Add what leads to *target* over this tree; return where it begins."""
        if isinstance(tree, One):
            return self._add(_Character(tree.characters, target))
        if isinstance(tree, At):
            return self._add(_Place(tree.place, target))
        if isinstance(tree, Choice):
            return self._add(_Fork(tuple(self._add_tree(option, target) for option in tree.options)))
        if isinstance(tree, Repeat):
            return self._add_repeat(tree, target)
        for part in reversed(tree.parts):
            target = self._add_tree(part, target)
        return target

    def _add_repeat(self, tree: Repeat, target: int) -> int:
        if tree.most is None:
            target = self._add_loop(tree.part, target)
        else:
            end = target
            for _ in range(tree.most - tree.least):
                target = self._add(_Fork((self._add_tree(tree.part, target), end)))
        return self._add_tree(Sequence((tree.part,) * tree.least), target)

    def _add_loop(self, part: Tree, target: int) -> int:
        loop = self._add(_Fork((target,)))
        self._nodes[loop] = _Fork((self._add_tree(part, loop), target))
        return loop

    # Walking it

    def _learn(self, state: _State, character: str) -> _State:
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        reached = self._reach(state, character)
        nodes = (self._nodes[index] for index in reached)
        targets = frozenset(
            node.target for node in nodes if isinstance(node, _Character) and character in node.characters
        )
        following = self._known[state, character] = (targets, _kind(character))
        return following

    def _reach(self, state: _State, character: str) -> set[int]:
        """Every node there is a way to before the next *character*; "" is the end of the text."""
        waiting, before = list(state[0]), state[1]
        reached = set(waiting)
        while waiting:
            self.steps += 1
            node = self._nodes[waiting.pop()]
            for target in self._onward(node, before, character):
                if target not in reached:
                    reached.add(target)
                    waiting.append(target)
        return reached

    @staticmethod
    def _onward(node: _Node, before: _Before, character: str) -> tuple[int, ...]:
        if isinstance(node, _Fork):
            return node.targets
        if isinstance(node, _Place) and _is_at(node.place, before, character):
            return (node.target,)
        return ()


def _kind(character: str) -> _Before:
    if character == "\n":
        return _Before.NEWLINE
    return _Before.WORD if character in _WORD else _Before.OTHER


def _is_at(place: Place, before: _Before, character: str) -> bool:
    is_edge = (before is _Before.WORD) is not (character != "" and character in _WORD)
    return {
        Place.TEXT_START: before is _Before.NOTHING,
        Place.TEXT_END: character == "",
        Place.LINE_START: before in (_Before.NOTHING, _Before.NEWLINE),
        Place.LINE_END: character in ("", "\n"),
        Place.WORD_EDGE: is_edge,
        Place.NO_WORD_EDGE: not is_edge,
    }[place]
