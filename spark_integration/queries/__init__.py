"""Queries and jobs while they run: progress, bars, and the summary at the end."""
