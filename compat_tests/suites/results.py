"""What a run of a suite has found: the outcome of each test, from the JUnit file that pytest writes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PASSED, SKIPPED, FAILED, KNOWN = "passed", "skipped", "failed", "known"
PROBLEMS = ("failure", "error")


class Outcome(NamedTuple):
    """The outcome of one test, with the reason why it did not pass."""

    test: str
    result: str
    reason: str = ""


def read_outcomes(path: Path, known: Mapping[str, str]) -> list[Outcome]:
    """Return the outcomes in a JUnit file. *known* has the reason for each test that may fail, by its name."""
    by_test: dict[str, Outcome] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        outcome = _read_case(case, known)
        # A test whose end fails too is reported twice.
        if outcome.test not in by_test or outcome.result != PASSED:
            by_test[outcome.test] = outcome
    return list(by_test.values())


def _read_case(case: ElementTree.Element, known: Mapping[str, str]) -> Outcome:
    name = case.get("name", "")
    test = f"{case.get('classname', '').rpartition('tests.')[2]}::{name}"
    for element in case:
        if element.tag in PROBLEMS:
            if name in known:
                return Outcome(test, KNOWN, known[name])
            return Outcome(test, FAILED, element.get("message", "").partition("\n")[0])
        if element.tag == "skipped":
            return Outcome(test, SKIPPED, element.get("message", "").partition("\n")[0])
    return Outcome(test, PASSED)


def count(outcomes: list[Outcome]) -> Counter[str]:
    """Return how many tests have each result."""
    return Counter(outcome.result for outcome in outcomes)


def list_reasons(outcomes: list[Outcome], result: str) -> Iterator[tuple[str, int]]:
    """Yield each reason for a result with the number of its tests, the most frequent first."""
    yield from Counter(outcome.reason for outcome in outcomes if outcome.result == result).most_common()
