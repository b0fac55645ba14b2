"""Which tests share a worker of pytest-xdist, and which start first.

`--dist loadgroup` would do the first, but it does not group with pytest 9.2 (pytest-xdist 3.8, its issue 1386).
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

SPARK = "compat_tests/spark"
LONGEST_GROUPS = (
    "compat_tests/test_chaos.py",
    SPARK,
    "compat_tests/test_tls.py",
    "compat_tests/test_same_answers.py",
    "compat_tests/test_compaction.py",
    "compat_tests/test_takeover.py",
    "compat_tests/test_storage_dump.py",
    "compat_tests/test_sasl.py",
    "compat_tests/test_java_tools.py",
    "compat_tests/test_disk_full.py",
    "compat_tests/test_cluster_command.py",
    "compat_tests/test_old_clients.py",
)
"""The groups that take longest, the longest first."""


class GroupScheduling(LoadScopeScheduling):
    """Gives each group to one worker, in the order in which the tests were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(nodeid: str) -> str:
    """Return the group of a test: its module, whose tests share brokers; all tests with Spark share a session."""
    module = nodeid.partition("::")[0]
    return SPARK if module.startswith(f"{SPARK}/") else module


def rank_of(nodeid: str) -> int:
    """Return the place of a test's group among the groups; those that are not among the longest share the last one."""
    group = group_of(nodeid)
    return LONGEST_GROUPS.index(group) if group in LONGEST_GROUPS else len(LONGEST_GROUPS)
