"""The section of a row in the report."""

from __future__ import annotations

from bench.report import ARTICLE, row_section
from bench.row import KAFKA, RECORDS, ClusterRow, Options, Samples
from compat_tests.clusters import Cluster


def measure(_cluster: Cluster, _options: Options) -> Samples:
    raise AssertionError("nothing is measured here")


def lay_out(row: ClusterRow) -> list[str]:
    results = {name: [{"records/s": 1000.0, "resident MB": 50.0}] for name in (RECORDS, KAFKA)}
    return list(row_section(row, {"results": results, "note": ""}))


def test_published_figures_stand_beside_ours() -> None:
    lines = lay_out(ClusterRow("cluster-x", "Three nodes: x", "About x.", measure, [], article={"records/s": 821_557}))
    assert f"| | {RECORDS} | {KAFKA} | {ARTICLE} |" in lines
    assert lines[lines.index("|---|--:|--:|--:|") + 1].endswith("| 821,557 |")
    # The article has no figure for the memory.
    assert lines[-2].startswith("| resident MB |")
    assert lines[-2].endswith("|  |")


def test_without_published_figures_there_is_no_column_for_them() -> None:
    lines = lay_out(ClusterRow("cluster-x", "Three nodes: x", "About x.", measure, []))
    assert f"| | {RECORDS} | {KAFKA} |" in lines
