"""Patterns of RE2: what matches, what is refused, and that no pattern takes long."""

from __future__ import annotations

from time import thread_time

import pytest

from kafkacompat.patterns import LONGEST_TOPIC, MAX_LENGTH, MOST_WORK, Pattern, PatternError

MATCHES = [
    ("", ""),
    ("foo.*|bar[0-9]+", "bar17"),
    ("(a)(?P<name>b)(?<other>c)", "abc"),
    (r"[[:alpha:]]+[[:^digit:]]", "abZ"),
    (r"\p{Lu}\PN\p{Greek}", "Aaβ"),
    (r"\Qa.b*\E+", "a.b***"),
    ("(?i)ToPiC", "tOpIc"),
    ("(?s).", "\n"),
    ("(?m)a$\n^b", "a\nb"),
    (r"\Aabc\z", "abc"),
]

DIFFERS = [("abc", "abcd"), ("abc", "xabc"), ("a.c", "a\nc"), ("a$b", "ab"), (r"\d", "٣"), (r"\w", "ä"), ("A", "a")]

REFUSED = [
    "*",
    "a**",
    "(",
    "[b-a]",
    r"\1",
    r"\Z",
    r"\p{Nothing}",
    "a{1001}",
    "(?=a)",
    "(?<!a)b",
    "(?>a)",
    "(?P=a)",
    "(?x)a",
    "a" * (MAX_LENGTH + 1),
    "(?:a{100}){101}",
    r"\pL{1000}",
]


@pytest.mark.parametrize(("pattern", "text"), MATCHES)
def test_patterns_match(pattern: str, text: str) -> None:
    assert Pattern(pattern).matches(text)


@pytest.mark.parametrize(("pattern", "text"), DIFFERS)
def test_patterns_do_not_match_other_texts(pattern: str, text: str) -> None:
    assert not Pattern(pattern).matches(text)


@pytest.mark.parametrize("pattern", REFUSED)
def test_bad_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError) as refusal:
        Pattern(pattern)
    assert str(refusal.value)


@pytest.mark.parametrize("text", ["(a*)*b" * 50, "(a|aa)+$" * 20, "(?:(?:a|b)?(?:ab|ba)?){900}", "[ab]*a[ab]{240}"])
def test_a_pattern_that_keeps_others_busy_for_years_takes_no_time_here(text: str) -> None:
    pattern = Pattern(text)
    began = thread_time()
    pattern.matches("ab" * (LONGEST_TOPIC // 2))
    assert thread_time() - began < 1


def test_a_long_pattern_is_no_large_one() -> None:
    assert Pattern("a" * MAX_LENGTH).matches("b") is False


def test_a_match_that_takes_too_much_work_fails() -> None:
    pattern = Pattern("a{1000}a*")
    assert pattern.matches("a" * 2000)
    assert not pattern.matches("a" * (MOST_WORK // 1000))


@pytest.mark.parametrize("text", [r"\pL" * 3333, r"[\pL\PN\p{Han}]" * 600, r"\pL|" * 3333, "(?i)" + r"\pL{10}" * 1000])
def test_a_pattern_with_many_classes_of_unicode_is_refused_at_once(text: str) -> None:
    begun_s = thread_time()
    with pytest.raises(PatternError, match="it has more than 10 classes of Unicode"):
        Pattern(text[:MAX_LENGTH])
    assert thread_time() - begun_s < 0.05
    assert Pattern(r"[\pL\pN]+-\PZ*").matches("größe-1")
