"""Every row of the benchmark, in the order of the report."""

from __future__ import annotations

from bench.row import Row
from bench.rows import cold_reader, fetch, java_tools, latency, produce, start

ROWS: dict[str, Row] = {
    row.name: row for kind in (produce, fetch, java_tools, latency, cold_reader, start) for row in kind.ROWS
}
