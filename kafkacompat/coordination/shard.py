"""One partition of a coordinator's topic that this broker leads."""

from __future__ import annotations

from kafkacompat.coordination.writer import ShardWriter


class Shard:
    """One partition of a coordinator's topic that this broker leads.

    While ``is_loading``, no request may see its contents. Once ``is_active`` is False it belongs to another broker, and
    work that is still under way for it must not change the registry.
    """

    def __init__(self, partition: int, writer: ShardWriter, leader_epoch: int = 0) -> None:
        self.partition = partition
        self.writer = writer
        self.leader_epoch = leader_epoch
        self.is_loading = True
        self.is_active = True
