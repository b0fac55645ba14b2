"""The error of a broker that cannot be a member of its cluster, apart from the modules that only members need."""

from __future__ import annotations


class ClusterError(Exception):
    """The broker cannot be a member of this cluster; the message is one sentence for its user."""
