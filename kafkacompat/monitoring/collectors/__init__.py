"""What the metrics are computed from, one file for each subject. `partitions` makes the one pass over all partitions.

A collector is an iterator of metrics that is made for each scrape. It yields None where others may have a turn: no turn covers
all partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from prometheus_client.metrics_core import Metric

Collected: TypeAlias = "Iterator[Metric | None]"

IN_A_TURN = 200
"""Partitions, groups or the like, at some ten microseconds each, between two turns of others."""
