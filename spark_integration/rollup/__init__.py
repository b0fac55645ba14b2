"""Watermarked windows over JSON events, into a compacted topic and a table (docs/SPARK.md)."""

from spark_integration.rollup.pipeline import RollupSummary, command, rollup
from spark_integration.rollup.settings import Rollup

__all__ = ["Rollup", "RollupSummary", "command", "rollup"]
