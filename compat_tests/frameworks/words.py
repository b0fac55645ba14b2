"""Lines of words, and the counts that a word count must write for them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

WORDS_PER_LINE = 4


def make_lines(count: int, seed: int, words: int = 100) -> list[str]:
    """Return lines of four of *words* different words."""
    chosen = random.Random(seed)
    return [" ".join(f"word{chosen.randrange(words)}" for _ in range(WORDS_PER_LINE)) for _ in range(count)]


def count_words(lines: Sequence[str]) -> dict[str, list[str]]:
    """Every count of each word: one, two, three ..."""
    totals = Counter(word for line in lines for word in line.split())
    return {word: [str(number + 1) for number in range(total)] for word, total in totals.items()}
