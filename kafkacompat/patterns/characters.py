"""Sets of characters as patterns name them: ranges, Perl's and POSIX's classes, Unicode's categories."""

from __future__ import annotations

import unicodedata
from bisect import bisect
from collections.abc import Iterable

Ranges = tuple[tuple[str, str], ...]

LAST = "\U0010ffff"
DIGIT: Ranges = (("0", "9"),)
UPPER: Ranges = (("A", "Z"),)
LOWER: Ranges = (("a", "z"),)
ALPHA: Ranges = UPPER + LOWER
WORD: Ranges = DIGIT + ALPHA + (("_", "_"),)

PERL: dict[str, Ranges] = {"d": DIGIT, "s": (("\t", "\n"), ("\f", "\r"), (" ", " ")), "w": WORD}

POSIX: dict[str, Ranges] = {
    "alnum": DIGIT + ALPHA,
    "alpha": ALPHA,
    "ascii": (("\0", "\x7f"),),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": DIGIT,
    "graph": (("!", "~"),),
    "lower": LOWER,
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": UPPER,
    "word": WORD,
    "xdigit": (*DIGIT, ("A", "F"), ("a", "f")),
}

CATEGORIES = frozenset(
    [
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cs",
        "L",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "M",
        "Mc",
        "Me",
        "Mn",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Pe",
        "Pf",
        "Pi",
        "Po",
        "Ps",
        "S",
        "Sc",
        "Sk",
        "Sm",
        "So",
        "Z",
        "Zl",
        "Zp",
        "Zs",
    ]
)


class CharacterSet:
    """A set of characters: *ranges*, the members of Unicode *categories*, and of *others*; or all but these."""

    __slots__ = ("_categories", "_folds", "_is_negated", "_others", "_starts", "_stops")

    def __init__(
        self,
        ranges: Iterable[tuple[str, str]] = (),
        categories: Iterable[str] = (),
        others: Iterable[CharacterSet] = (),
        *,
        is_negated: bool = False,
        folds: bool = False,
    ) -> None:
        merged = _merge(ranges)
        self._starts = [first for first, _ in merged]
        self._stops = [last for _, last in merged]
        self._categories = tuple(categories)
        self._others = tuple(others)
        self._is_negated = is_negated
        self._folds = folds

    def __contains__(self, character: str) -> bool:
        variants = {character, character.lower(), character.upper()} if self._folds else (character,)
        return any(len(variant) == 1 and self._names(variant) for variant in variants) is not self._is_negated

    def _names(self, character: str) -> bool:
        place = bisect(self._starts, character) - 1
        if place >= 0 and character <= self._stops[place]:
            return True
        if self._categories and unicodedata.category(character).startswith(self._categories):
            return True
        return any(character in other for other in self._others)


def _merge(ranges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    merged: list[tuple[str, str]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
