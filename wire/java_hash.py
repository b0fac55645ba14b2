"""Java's string hash, by which Kafka spreads group ids over the partitions of its offsets topic."""

from __future__ import annotations


def java_string_hash(text: str) -> int:
    """Return what Java's ``String.hashCode`` gives: a signed 32-bit number over the UTF-16 units of *text*."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8) + low) & 0xFFFFFFFF
    return value - 0x100000000 if value & 0x80000000 else value


def partition_for_key(key: str, partition_count: int) -> int:
    """Return the partition of a coordinator key, such as a group id.

    The absolute value is computed as in Kafka: the one hash without a positive counterpart counts as 0.
    """
    value = java_string_hash(key)
    return (0 if value == -0x80000000 else abs(value)) % partition_count
