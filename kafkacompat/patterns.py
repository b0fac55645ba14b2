"""Regular expressions in the syntax of RE2, which is the one that Kafka's protocol speaks (KIP-848, KIP-1152).

They are written for patterns that clients send: matching takes time in proportion to the text and to the pattern, whatever
the two are, unlike Python's `re`, which a short pattern can keep busy for years. RE2 itself does it: see
docs/decisions/006-patterns.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re2

MAX_LENGTH = 10_000
MEMORY_BYTES = 1 << 20
"""What one pattern takes at most while there is a `Pattern` for it."""

MOST_WORK = 2_500_000
"""Characters times steps of the program that a pattern comes to: some 50 ms, at the very worst."""

MAX_UNICODE_CLASSES = 10
"""Classes such as \\pL have hundreds of ranges: RE2 reads ten in 7 ms, and 3,000 in half a second."""
_UNICODE_CLASS = re.compile(r"\\[pP]")

LONGEST_TOPIC = 249
MAX_STEPS = MOST_WORK // LONGEST_TOPIC


class PatternError(Exception):
    """A pattern is not one; the text says in a few words why."""


class Pattern:
    """A pattern that was read; raises PatternError if it is none, or is too large."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise PatternError(f"it has {len(text)} characters, of at most {MAX_LENGTH}")
        if len(_UNICODE_CLASS.findall(text)) > MAX_UNICODE_CLASSES:
            raise PatternError(f"it has more than {MAX_UNICODE_CLASSES} classes of Unicode")
        self._compiled = _compile_pattern(text)
        if self._compiled.programsize > MAX_STEPS:
            raise PatternError(f"it takes more than {MAX_STEPS} steps")

    def matches(self, text: str) -> bool:
        """Whether all of *text* is of this pattern; not so for a text that would take more than MOST_WORK."""
        is_short = len(text) * self._compiled.programsize <= MOST_WORK
        return is_short and self._compiled.fullmatch(text) is not None


def _compile_pattern(text: str) -> re2._Regexp:
    import re2  # The first pattern may never come.

    options = re2.Options()
    options.max_mem = MEMORY_BYTES
    options.never_capture = True  # Nobody asks what a group matched, and to know takes time.
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as problem:
        raise PatternError(problem.args[0].decode(errors="replace")) from None
    finally:
        re2.purge()  # It would keep the last 128.
