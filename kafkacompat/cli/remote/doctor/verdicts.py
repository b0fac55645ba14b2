"""Verdicts of `kafkacompat doctor`: one for each checked thing."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class CheckOutcome(Enum):
    """How a check ended. A skipped check says nothing about the broker."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


class Verdict(NamedTuple):
    """The outcome of one check: a text that names the result, and advice ("" if nothing is to be done)."""

    stage: str
    outcome: CheckOutcome
    text: str
    advice: str = ""


def accept(stage: str, text: str) -> Verdict:
    """Return a good verdict."""
    return Verdict(stage, CheckOutcome.OK, text)


def warn(stage: str, text: str, advice: str) -> Verdict:
    """Return a verdict that leaves the exit code at 0."""
    return Verdict(stage, CheckOutcome.WARNING, text, advice)


def fail(stage: str, text: str, advice: str) -> Verdict:
    """Return a verdict that makes the exit code 1."""
    return Verdict(stage, CheckOutcome.FAILED, text, advice)


def skip(stage: str, text: str) -> Verdict:
    """Return a verdict for a check that cannot be made."""
    return Verdict(stage, CheckOutcome.SKIPPED, text)
