"""Every row of the benchmark, in the order of the report."""

from __future__ import annotations

from bench.row import AnyRow
from bench.rows import (
    cluster,
    codec,
    cold_reader,
    compaction,
    down_conversion,
    failover,
    fetch,
    first_record,
    group_commit,
    groups,
    java_tools,
    latency,
    metrics,
    produce,
    reassignment,
    scale,
    sendfile,
    spark,
    start,
    transactions,
)

ROWS: dict[str, AnyRow] = {
    row.name: row
    for kind in (
        produce,
        metrics,
        fetch,
        sendfile,
        java_tools,
        latency,
        group_commit,
        cold_reader,
        compaction,
        down_conversion,
        first_record,
        groups,
        transactions,
        scale,
        start,
        spark,
        codec,
        cluster,
        failover,
        reassignment,
    )
    for row in kind.ROWS
}
