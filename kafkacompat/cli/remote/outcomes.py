"""The outcomes of changes: a sentence for each, or one line of JSON, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkacompat.cli.remote.errors import EXIT_DONE, EXIT_REFUSED
from kafkacompat.cli.remote.output import Output


class Outcome(NamedTuple):
    """What became of one change: done, refused for a *problem*, or left out because it was done already."""

    name: str
    problem: str | None = None
    is_unchanged: bool = False

    def find_word(self, verb: str) -> str:
        """Return *verb* for a change that is done, else `refused` or `unchanged`."""
        if self.problem is not None:
            return "refused"
        return "unchanged" if self.is_unchanged else verb


def write_outcomes(output: Output, noun: str, verb: str, outcomes: Sequence[Outcome]) -> int:
    """Write what became of changes of *noun*, such as `topic`, by a *verb* such as `created`; returns the exit code."""
    if output.as_json:
        output.write_json(
            [
                {noun: outcome.name, "outcome": outcome.find_word(verb), "problem": outcome.problem}
                for outcome in outcomes
            ]
        )
    for outcome in outcomes:
        if outcome.problem is not None:
            output.complain(f"the {noun} {outcome.name} is not {verb}: {outcome.problem}")
        elif not output.as_json and not outcome.is_unchanged:
            output.report(f"{verb.capitalize()} {noun} {outcome.name}")
    return EXIT_REFUSED if any(outcome.problem is not None for outcome in outcomes) else EXIT_DONE
