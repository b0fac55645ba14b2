"""The report of `kafkacompat verify history`, as tables or as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import click

from kafkacompat.cli.columns import escape_control_characters, write_columns
from kafkacompat.history.checks import CheckVerdict
from kafkacompat.history.index import History
from kafkacompat.history.service import count_faults, count_operations, find_longest_gaps
from kafkacompat.storage.inspection.rows import DumpRow


@dataclass(frozen=True)
class HistoryReport:
    """The report of a history. ``counts`` are the numbers of events by their names."""

    counts: Mapping[str, int]
    history: History
    verdicts: list[CheckVerdict]

    @property
    def finding_count(self) -> int:
        """The number of findings of all checks."""
        return sum(verdict.finding_count for verdict in self.verdicts)

    def summarize(self) -> dict[str, object]:
        """Return operations, faults and findings by kind, and the longest times without service in seconds."""
        return {
            "operations": count_operations(self.history)._asdict(),
            "faults": count_faults(self.history),
            "findings": {
                verdict.check.name: verdict.finding_count for verdict in self.verdicts if verdict.finding_count
            },
            "longest_gaps_s": find_longest_gaps(self.history),
        }

    def write_json(self, missing: list[str]) -> None:
        """Write everything to standard output; *missing* is the work that never succeeded."""
        checks = [
            {"check": check.name, "what must hold": check.holds, "found": count, "first": first}
            for check, count, first in self.verdicts
        ]
        click.echo(json.dumps({"counts": dict(self.counts), "checks": checks, "missing": missing, **self.summarize()}))

    def write_tables(self) -> None:
        """Write tables of the counts, the operations, the faults, the times without service and the checks, and all findings."""
        rows = [DumpRow("count", {"what": name, "how many": count}) for name, count in self.counts.items()]
        rows.append(DumpRow("operations", count_operations(self.history)._asdict()))
        rows += (
            DumpRow("fault", {"fault": fault, "how many": count}) for fault, count in count_faults(self.history).items()
        )
        rows += (
            DumpRow("gap", {"clients": clients, "longest time without service": f"{seconds:.2f} s"})
            for clients, seconds in find_longest_gaps(self.history).items()
        )
        write_columns(rows, click.echo, click.echo)
        write_columns(map(_verdict_row, self.verdicts), click.echo, click.echo)
        for verdict in self.verdicts:
            for finding in verdict.first:
                click.echo(f"{verdict.check.name}: {escape_control_characters(finding)}")


def _verdict_row(verdict: CheckVerdict) -> DumpRow:
    return DumpRow(
        "check", {"check": verdict.check.name, "found": verdict.finding_count, "what must hold": verdict.check.holds}
    )
