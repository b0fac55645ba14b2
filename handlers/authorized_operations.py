"""The operations that a client is authorized for: all of them, as there is no authorizer.

A set is a number with one bit for each operation, by the codes of AclOperation.
"""

from __future__ import annotations

_CODES = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}


def _as_bits(names: str) -> int:
    return sum(1 << _CODES[name] for name in names.split())


TOPIC_OPERATIONS = _as_bits("READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS")
CLUSTER_OPERATIONS = _as_bits("CREATE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE")
GROUP_OPERATIONS = _as_bits("READ DELETE DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS")
