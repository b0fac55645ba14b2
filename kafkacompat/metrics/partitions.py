"""What passes through one partition of this broker, and how in-sync sets change."""

from __future__ import annotations

from dataclasses import dataclass


class PartitionTraffic:
    """Bytes of batches of one partition: appended as leader, appended as follower, sent to consumers, sent to followers.

    ``appends`` and ``fetches`` count batches and responses, the ``refused_`` ones those with an error.

    Records that were appended as leader are not counted: they are what the log's end has moved by while this broker led.
    """

    __slots__ = (
        "_led_from",
        "_led_records",
        "appended_bytes",
        "appends",
        "fetches",
        "followed_bytes",
        "refused_appends",
        "refused_fetches",
        "sent_bytes",
        "sent_to_replicas_bytes",
    )

    def __init__(self) -> None:
        self.appended_bytes = 0
        self.followed_bytes = 0
        self.sent_bytes = 0
        self.sent_to_replicas_bytes = 0
        self.appends = 0
        self.refused_appends = 0
        self.fetches = 0
        self.refused_fetches = 0
        self._led_records = 0
        self._led_from: int | None = None

    def note_role(self, is_leader: bool, log_end_offset: int) -> None:
        """Note the role from now on, with the present end of the log."""
        self._led_records = self.count_records(log_end_offset)
        self._led_from = log_end_offset if is_leader else None

    def note_fetch(self, size_bytes: int, failed: bool, to_replica: bool) -> None:
        """Count what a response says of the partition to a consumer or to a follower."""
        self.fetches += 1
        if failed:
            self.refused_fetches += 1
        if to_replica:
            self.sent_to_replicas_bytes += size_bytes
        else:
            self.sent_bytes += size_bytes

    def count_records(self, log_end_offset: int) -> int:
        """Return how many records were appended as leader, with the present end of the log."""
        return self._led_records + (0 if self._led_from is None else log_end_offset - self._led_from)


@dataclass(slots=True)
class InSyncCounts:
    """Changes of in-sync sets that the controller has committed for this leader, and those that it has rejected."""

    shrinks: int = 0
    expands: int = 0
    failures: int = 0

    def note_change(self, old_size: int, new_size: int) -> None:
        """Count a change from a set of *old_size* replicas to one of *new_size*."""
        self.shrinks += new_size < old_size
        self.expands += new_size > old_size
