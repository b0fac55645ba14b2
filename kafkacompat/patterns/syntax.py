"""Reads a pattern into a tree. The syntax is that of RE2 as Google's RE2/J reads it for Kafka.

Rule 1. What RE2 leaves out of Perl's syntax is refused: looking around, back references, atomic groups,
repetitions of repetitions, more than 1000 of anything.

Rule 2. Whether something is taken greedily does not change whether a whole text matches, so `*?` is read as `*`,
and groups are not captured.

Rule 3. A pattern of more than `MAX_LENGTH` characters, or nested deeper than `MAX_DEPTH`, is refused.
"""

from __future__ import annotations

import re

from kafkacompat.patterns.characters import CATEGORIES, LAST, PERL, POSIX, CharacterSet
from kafkacompat.patterns.tree import At, Choice, One, Place, Repeat, Sequence, Tree

MAX_LENGTH = 10_000
MAX_DEPTH = 100
MAX_REPEAT = 1000


class PatternError(Exception):
    """A pattern is not one; the text says in a few words why."""


_REPEAT = re.compile(r"([*+?])|\{([0-9]{1,9})(,([0-9]{0,9}))?\}", re.ASCII)
_REPEATS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_NAMED = re.compile(r"\(\?P?<([^>]*)>")
_FLAGS = re.compile(r"\(\?([imsU]*)(-[imsU]+)?([:)])")
_ESCAPED = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NUMBERED = re.compile(r"\\(?:x\{([0-9A-Fa-f]{1,8})\}|x([0-9A-Fa-f]{2})|(0[0-7]{0,2}|[1-7][0-7]{1,2}))")
_UNICODE = re.compile(r"\\([pP])(?:\{(\^?)([A-Za-z_]+)\}|([A-Z]))")
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_PLACES = {
    "\\A": Place.TEXT_START,
    "\\z": Place.TEXT_END,
    "\\b": Place.WORD_EDGE,
    "\\B": Place.NO_WORD_EDGE,
}


def parse(text: str) -> Tree:
    """Read a whole pattern; raises PatternError."""
    if len(text) > MAX_LENGTH:
        raise PatternError(f"it has {len(text)} characters, of at most {MAX_LENGTH}")
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._names: set[str] = set()
        self._flags: frozenset[str] = frozenset()

    def whole(self) -> Tree:
        tree = self._choice()
        if self._at < len(self._text):
            raise PatternError("a ) has no (")
        return tree

    # Reading on

    def _peek(self, token: str) -> bool:
        return self._text.startswith(token, self._at)

    def _take(self, token: str) -> bool:
        if not self._peek(token):
            return False
        self._at += len(token)
        return True

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        match = expression.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise PatternError("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    # Structure

    def _choice(self) -> Tree:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        while self._at < len(self._text) and not self._peek("|") and not self._peek(")"):
            if self._take("\\Q"):
                self._quoted(parts)
            elif (match := self._match(_REPEAT)) is not None:
                self._repeat(parts, match)
            elif (atom := self._atom()) is not None:
                parts.append(atom)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quoted(self, parts: list[Tree]) -> None:
        end = self._text.find("\\E", self._at)
        quoted = self._text[self._at :] if end < 0 else self._text[self._at : end]
        self._at = len(self._text) if end < 0 else end + 2
        parts.extend(self._literal(character) for character in quoted)

    def _repeat(self, parts: list[Tree], match: re.Match[str]) -> None:
        least, most = _times(match)
        if not parts:
            raise PatternError(f"{match[0]} has nothing to repeat")
        self._take("?")
        self._check_not_repeated(match[0])
        parts[-1] = Repeat(parts[-1], least, most)

    def _check_not_repeated(self, what: str) -> None:
        if _REPEAT.match(self._text, self._at):
            raise PatternError(f"{what} cannot be repeated itself")

    def _atom(self) -> Tree | None:
        """What stands for itself; None for flags, which stand for nothing."""
        if self._peek("("):
            return self._group()
        for token, place in _PLACES.items():
            if self._take(token):
                return At(place)
        if self._peek("["):
            return One(self._bracket())
        if self._peek("\\"):
            return One(self._class_escape() or self._set_of(self._escape()))
        return self._plain(self._next())

    def _plain(self, character: str) -> Tree:
        many_lines = "m" in self._flags
        if character == "^":
            return At(Place.LINE_START if many_lines else Place.TEXT_START)
        if character == "$":
            return At(Place.LINE_END if many_lines else Place.TEXT_END)
        if character == "{":
            self._check_not_repeated("{")
        if character == ".":
            return One(CharacterSet(() if "s" in self._flags else [("\n", "\n")], is_negated=True))
        return self._literal(character)

    def _literal(self, character: str) -> Tree:
        return One(self._set_of(character))

    def _set_of(self, character: str) -> CharacterSet:
        return CharacterSet([(character, character)], folds="i" in self._flags)

    # Groups

    def _group(self) -> Tree | None:
        outside = self._flags
        if (named := self._match(_NAMED)) is not None:
            self._name(named[1])
        elif (flags := self._match(_FLAGS)) is not None:
            self._flags = (self._flags | set(flags[1])) - set(flags[2] or "")
            if flags[3] == ")":
                return None
        elif self._peek("(?"):
            raise PatternError(f"{self._text[self._at : self._at + 4]} begins no group of RE2")
        else:
            self._next()
        tree = self._inside()
        self._flags = outside
        return Sequence((tree,))

    def _name(self, name: str) -> None:
        if not re.fullmatch(r"[0-9A-Za-z_]+", name) or name in self._names:
            raise PatternError(f"a group cannot be named <{name}>")
        self._names.add(name)

    def _inside(self) -> Tree:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise PatternError(f"it is nested deeper than {MAX_DEPTH} groups")
        tree = self._choice()
        self._depth -= 1
        if not self._take(")"):
            raise PatternError("a ( has no )")
        return tree

    # Characters

    def _class_escape(self) -> CharacterSet | None:
        """\\d and its like, if one is next."""
        name = self._text[self._at + 1 : self._at + 2]
        folds = "i" in self._flags
        if name.lower() in PERL and name:
            self._at += 2
            return CharacterSet(PERL[name.lower()], is_negated=name.isupper(), folds=folds)
        if (match := self._match(_UNICODE)) is None:
            return None
        is_negated = (match[1] == "P") is not bool(match[2])
        return _unicode_class(match[3] or match[4], is_negated=is_negated, folds=folds)

    def _escape(self) -> str:
        """The character that \\ and what follows stand for."""
        if (match := self._match(_NUMBERED)) is not None:
            number = int(match[1] or match[2] or "0", 16) if match[3] is None else int(match[3], 8)
            if number > ord(LAST):
                raise PatternError(f"{match[0]} is no character")
            return chr(number)
        self._next()
        character = self._next()
        if character in _ESCAPED:
            return _ESCAPED[character]
        if character.isascii() and not character.isalnum():
            return character
        raise PatternError(f"\\{character} means nothing")

    def _bracket(self) -> CharacterSet:
        self._next()
        is_negated = self._take("^")
        ranges: list[tuple[str, str]] = []
        others: list[CharacterSet] = []
        is_first = True
        while is_first or not self._peek("]"):
            is_first = False
            named = self._named_in_bracket()
            if named is not None:
                others.append(named)
            else:
                ranges.append(self._range())
        self._next()
        return CharacterSet(ranges, others=others, is_negated=is_negated, folds="i" in self._flags)

    def _named_in_bracket(self) -> CharacterSet | None:
        if (match := self._match(_POSIX)) is not None:
            if match[2] not in POSIX:
                raise PatternError(f"{match[0]} is no class of characters")
            return CharacterSet(POSIX[match[2]], is_negated=bool(match[1]), folds="i" in self._flags)
        return self._class_escape() if self._peek("\\") else None

    def _range(self) -> tuple[str, str]:
        first = last = self._bracket_character()
        if self._peek("-") and not self._peek("-]"):
            self._next()
            last = self._bracket_character()
        if last < first:
            raise PatternError(f"{first}-{last} is no range")
        return first, last

    def _bracket_character(self) -> str:
        return self._escape() if self._peek("\\") else self._next()


def _times(match: re.Match[str]) -> tuple[int, int | None]:
    if match[1]:
        return _REPEATS[match[1]]
    least = int(match[2])
    most = least if match[3] is None else int(match[4]) if match[4] else None
    if (most is not None and most < least) or max(least, most or 0) > MAX_REPEAT:
        raise PatternError(f"{match[0]} is no number of times")
    return least, most


def _unicode_class(name: str, *, is_negated: bool, folds: bool) -> CharacterSet:
    if name == "Any":
        return CharacterSet([("\0", LAST)], is_negated=is_negated)
    if name not in CATEGORIES:
        raise PatternError(f"{name} is no category of characters")
    return CharacterSet(categories=[name], is_negated=is_negated, folds=folds)
