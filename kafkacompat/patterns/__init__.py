"""Regular expressions in the syntax of RE2, which is the one that Kafka's protocol speaks (KIP-848, KIP-1152).

Written for patterns that clients send: matching takes time in proportion to the text and to the pattern, whatever the
two are, unlike Python's `re`, which a short pattern can keep busy for years.
"""

from kafkacompat.patterns.automaton import Pattern
from kafkacompat.patterns.syntax import PatternError

__all__ = ["Pattern", "PatternError"]
