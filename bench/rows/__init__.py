"""Every row of the benchmark, in the order of the report."""

from __future__ import annotations

from bench.row import AnyRow
from bench.rows import (
    acls,
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
    quotas,
    reassignment,
    sasl,
    scale,
    sendfile,
    spark,
    start,
    tenants,
    tls,
    transactions,
)

ROWS: dict[str, AnyRow] = {
    row.name: row
    for kind in (
        produce,
        acls,
        metrics,
        fetch,
        sendfile,
        java_tools,
        latency,
        quotas,
        tenants,
        group_commit,
        cold_reader,
        compaction,
        down_conversion,
        first_record,
        groups,
        transactions,
        sasl,
        scale,
        start,
        tls,
        spark,
        codec,
        cluster,
        failover,
        reassignment,
    )
    for row in kind.ROWS
}
