"""Jars fetched and Spark's classes kept ahead of the first start."""
