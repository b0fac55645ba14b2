"""Patterns of RE2: what matches, what is refused, and that no pattern takes long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkacompat.patterns import Pattern, PatternError
from kafkacompat.patterns.automaton import MAX_NODES
from kafkacompat.patterns.syntax import MAX_DEPTH, MAX_LENGTH

MATCHES = [
    ("", ""),
    ("abc", "abc"),
    ("a|b|", "b"),
    ("a|b|", ""),
    (".*", "any.topic-1"),
    ("foo.*|bar[0-9]+", "bar17"),
    ("(?:ab)*c", "ababc"),
    ("(a)(?P<name>b)(?<other>c)", "abc"),
    ("a{2,3}", "aaa"),
    ("a{2}", "aa"),
    ("a{0}", ""),
    ("(a*)*", "aaa"),
    ("(|a)+", "aa"),
    ("a{,2}", "a{,2}"),
    ("x{", "x{"),
    ("a+?b*?", "aab"),
    ("[^a-c.]", "d"),
    ("[]a]+", "]a"),
    ("[a-]+", "a-"),
    ("[-a]+", "a-"),
    (r"[\w.]+", "a_9.b"),
    (r"[[:alpha:]]+[[:^digit:]]", "abZ"),
    (r"\d\D\s\S\w\W", "1a ba-"),
    (r"\pL\PL\p{Lu}\P{Lu}\p{^N}", "l1Uux"),
    (r"\p{Any}", "-"),
    (r"\x41\x{42}\103\n\t\.", "ABC\n\t."),
    (r"\Qa.b*\E+", "a.b***"),
    (r"\Qa.b", "a.b"),
    ("(?i)ToPiC", "tOpIc"),
    ("(?i:a)b", "Ab"),
    ("a(?i)b|c", "C"),
    ("(?i)[a-c]+", "aBC"),
    ("(?s).", "\n"),
    ("^abc$", "abc"),
    (r"\Aabc\z", "abc"),
    ("(?m)a$\n^b", "a\nb"),
    (r"\bfoo\b.\B", "foo-"),
    ("(?U)a+", "aa"),
    ("(?i-s:.)", "a"),
    (r"(?i)\p{Lu}(?)", "a"),
    ("ab(?i)*", "abb"),
    ("(?:a{30}){30}", "a" * 900),
]

DIFFERS = [
    ("abc", "abcd"),
    ("abc", "xabc"),
    ("a.c", "a\nc"),
    ("a$b", "ab"),
    ("a^b", "ab"),
    ("(?i:a)b", "AB"),
    ("[^a]", "a"),
    (r"\bo\b", "oo"),
    ("a{2}", "aaa"),
    ("(?m)a$b", "ab"),
]

REFUSED = [
    "*",
    "a**",
    "a*+",
    "a{2}{3}",
    "a???",
    "(",
    ")",
    "(a",
    "a)",
    "[a",
    "[",
    "[b-a]",
    "[[:foo:]]",
    "\\",
    r"\1",
    r"\8",
    r"\Z",
    r"\C",
    r"\h",
    r"\p{Nothing}",
    r"\x{110000}",
    "a{1001}",
    "a{2,1}",
    "(?i)*",
    "({+)",
    "(?=a)",
    "(?!a)",
    "(?<=a)b",
    "(?<!a)b",
    "(?>a)",
    "(?P=a)",
    "(?x)a",
    "(?P<a>b)(?P<a>c)",
    "(?P<>a)",
    "(|*)",
]


@pytest.mark.parametrize(("pattern", "text"), MATCHES)
def test_it_matches(pattern: str, text: str) -> None:
    assert Pattern(pattern).matches(text)


@pytest.mark.parametrize(("pattern", "text"), DIFFERS)
def test_it_does_not_match(pattern: str, text: str) -> None:
    assert not Pattern(pattern).matches(text)


@pytest.mark.parametrize("pattern", REFUSED)
def test_it_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        Pattern(pattern)


def test_too_much_of_anything_is_refused() -> None:
    for pattern in ("a" * (MAX_LENGTH + 1), "(" * (MAX_DEPTH + 1) + ")" * (MAX_DEPTH + 1), "(a|b){1000}" * 20):
        with pytest.raises(PatternError):
            Pattern(pattern)
    Pattern("a" * MAX_LENGTH)
    Pattern("(" * MAX_DEPTH + ")" * MAX_DEPTH)


def test_a_pattern_that_keeps_others_busy_for_years_takes_no_time_here() -> None:
    assert not Pattern("(a*)*b").matches("a" * 249)
    assert not Pattern("(a|aa)+$" * 20).matches("a" * 248 + "b")


def test_much_work_is_done_in_pieces() -> None:
    pattern = Pattern("((a|b|c|d|e)*(f|g|h)?){100}")
    steps = pattern.matching("abcdefgh" * 30)
    pauses = sum(1 for _ in steps)
    assert pauses >= 1
    assert pattern.steps > MAX_NODES


WORDS = st.recursive(
    st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]", r"\w", r"\d", "", "(?i)B", "^", "$", r"\b"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}"])).map(
            lambda each: f"(?:{each[0]}){each[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(WORDS.filter(lambda pattern: "(?i)" not in pattern), st.text("ab-1", max_size=8))
def test_it_agrees_with_pythons_expressions(pattern: str, text: str) -> None:
    # A text that ends with a newline is the one case where `$` differs; there is none here.
    assert Pattern(pattern).matches(text) is (re.fullmatch(pattern, text, re.ASCII) is not None)
