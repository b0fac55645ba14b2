"""Watermarked windows over JSON events, into a compacted topic and a table (docs/SPARK.md)."""
