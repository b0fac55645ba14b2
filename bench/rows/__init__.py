"""Every row of the benchmark, in the order of the report."""

from __future__ import annotations

from bench.row import AnyRow
from bench.rows import (
    codec,
    cold_reader,
    compaction,
    down_conversion,
    fetch,
    group_commit,
    java_tools,
    latency,
    produce,
    scale,
    start,
)

ROWS: dict[str, AnyRow] = {
    row.name: row
    for kind in (
        produce,
        fetch,
        java_tools,
        latency,
        group_commit,
        cold_reader,
        compaction,
        down_conversion,
        scale,
        start,
        codec,
    )
    for row in kind.ROWS
}
