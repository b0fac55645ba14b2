"""Patterns are read and matched as by the library that Kafka reads them with: random ones, good and bad."""

from __future__ import annotations

import base64
import random
import re
from pathlib import Path

from compat_tests.java_tools import compile_java, run_java
from kafkacompat.patterns import Pattern, PatternError

PROGRAM = Path(__file__).resolve().parent / "java" / "PatternOracle.java"
COUNT = 4000
ATOMS = [
    "a",
    "b",
    "c",
    ".",
    "-",
    "_",
    "A",
    "1",
    "{",
    "}",
    "]",
    "^",
    "$",
    "|",
    "[ab]",
    "[^a]",
    "[a-c]",
    "[]a]",
    "[a-]",
    "[[:alpha:]]",
    "[[:^digit:]x]",
    "[[:word:]]",
    "[[:foo:]]",
    "[\\d-z]",
    "[a\\-c]",
    "[\\w.]",
    "[a-\\d]",
    "[a",
    "\\d",
    "\\w",
    "\\s",
    "\\D",
    "\\W",
    "\\S",
    "\\.",
    "\\_",
    "\\e",
    "\\8",
    "\\0",
    "\\07",
    "\\n",
    "\\x61",
    "\\x{62}",
    "\\141",
    "\\C",
    "\\Z",
    "\\pL",
    "\\p{Lu}",
    "\\P{N}",
    "\\PN",
    "\\p{^L}",
    "\\b",
    "\\B",
    "\\A",
    "\\z",
    "\\Q.\\E",
    "\\Qa",
    "(?i)",
    "(?s)",
    "(?m)",
    "(?U)",
    "(?-i)",
    "(?)",
    "(?i:a)",
    "(?P<x>a)",
    "(?<y>b)",
    "(?=a)",
    "(?<=a)",
    "(?x)",
    "(?:",
    "(",
    ")",
]
REPEATS = [
    "*",
    "+",
    "?",
    "*?",
    "+?",
    "??",
    "{2}",
    "{0,2}",
    "{1,}",
    "{,2}",
    "{2}?",
    "{0}",
    "{2,1}",
    "**",
    "+*",
    "{1001}",
    "{1000}",
]
GROUPS = ("(", "(?:", "(?i:", "(?P<n>")
TEXTS = (
    "",
    "a",
    "b",
    "ab",
    "abc",
    "aab",
    "A",
    "a.b",
    "a-b",
    "a_1",
    "1",
    ".",
    "-",
    "abab",
    "bb",
    "a\nb",
    "{",
    "a{,2}",
    "aB1-_.",
)


def make_pattern(rng: random.Random, depth: int = 0) -> str:
    parts = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if kind < 0.25 and depth < 3:
            parts.append(rng.choice(GROUPS) + make_pattern(rng, depth + 1) + ")")
        elif kind < 0.32 and depth < 3:
            parts.append(f"{make_pattern(rng, depth + 1)}|{make_pattern(rng, depth + 1)}")
        else:
            parts.append(rng.choice(ATOMS))
        if rng.random() < 0.35:
            parts.append(rng.choice(REPEATS))
    return "".join(parts)


# Syntax that RE2 accepts and RE2/J does not: any byte, the repetition of a brace, and two groups of a name.
LOOSER = re.compile(r"\\C|\{[*+?{]|(\(\?P?<\w>).*\1")


# RE2 takes no repetitions of repetitions that come to more than 1000 either.
TOO_LARGE = ("steps", "too large", "repetition size")


def judge_pattern(text: str) -> str:
    try:
        pattern = Pattern(text)
    except PatternError as problem:
        return "too large" if any(phrase in str(problem) for phrase in TOO_LARGE) else "refused"
    return "".join("1" if pattern.matches(candidate) else "0" for candidate in TEXTS)


def test_random_patterns() -> None:
    rng = random.Random(3)
    patterns = [make_pattern(rng) for _ in range(COUNT)]
    lines = "\n".join(
        "\t".join(base64.b64encode(candidate.encode()).decode() for candidate in (text, *TEXTS)) for text in patterns
    )
    done = run_java("PatternOracle", stdin=lines + "\n", extra_class_path=[compile_java(PROGRAM)])
    kafkas = done.stdout.split()
    assert len(kafkas) == COUNT
    differ = [
        (text, theirs, mine)
        for text, theirs in zip(patterns, kafkas, strict=True)
        if (mine := judge_pattern(text)) not in (theirs, "too large")
        and not (theirs == "refused" and LOOSER.search(text))
    ]
    assert differ == []
    assert COUNT / 4 < kafkas.count("refused") < COUNT * 3 / 4
