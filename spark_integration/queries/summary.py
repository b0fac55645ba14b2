"""What a pipeline did, printed for a person or as JSON. Imports no pyspark."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Summary:
    """What a pipeline did. Subclasses add fields, in the order in which they are printed."""

    @property
    def exit_code(self) -> int:
        """0, or 1 if the work is done and found what the user asked to be warned of."""
        return 0

    def show(self) -> None:
        """Print the summary for a person: a line for each figure."""
        for name, value in asdict(self).items():
            if value is not None:
                print(f"{_format_value(value):>14} {name.replace('_', ' ')}")


def print_summary(summary: Summary, as_json: bool) -> None:
    """Print *summary* on standard output, for a person or as one JSON object."""
    if as_json:
        print(json.dumps(asdict(summary), default=str))
    else:
        summary.show()
    sys.stdout.flush()


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_format_value(count)}" for name, count in value.items()) or "no"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
