"""The election of one partition's leader: functions from a partition to the partition after the election.

Each raises the leader epoch and the partition epoch by one. *online* lists the replicas that may lead, *present* those that
serve requests at all. The rules are those of Kafka 3.9's ZooKeeper controller.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kafkacompat.metadata.image import NO_LEADER, PartitionImage


def elect_offline(
    partition: PartitionImage,
    online: Sequence[int],
    *,
    doubtful: Collection[int] = (),
    unclean: bool = False,
    recovery_supported: bool = True,
) -> PartitionImage | None:
    """Elect a leader for a partition whose leader is gone: its first replica that is in sync, None if there is none.

    The *doubtful* replicas may lack their last records. If another one leads, they leave the in-sync set until they have fetched
    these again.
    *unclean* allows the first replica that is not in sync, which loses records: it becomes the whole in-sync set, and the
    partition is recovering (KIP-704). A partition that never had a leader gets its first one.
    """
    if not partition.has_state:
        first = [node for node in partition.replicas if node in online]
        return lead(partition, first[0], first) if first else None
    in_sync = [node for node in partition.in_sync_replicas if node in online]
    remaining = [node for node in in_sync if node not in doubtful] or in_sync
    leader = _find_in_sync(partition, partition.replicas, remaining)
    if leader is not None:
        return lead(partition, leader, remaining)
    if not unclean:
        return None
    leader = next((node for node in partition.replicas if node in online), None)
    if leader is None:
        return None
    is_recovering = recovery_supported or partition.is_recovering
    return lead(partition, leader, [leader])._replace(is_recovering=is_recovering)


def elect_reassigned(partition: PartitionImage, online: Sequence[int]) -> PartitionImage | None:
    """Elect the first replica that a reassignment keeps and that is in sync; None if there is none."""
    leader = _find_in_sync(partition, partition.target_replicas, online)
    return None if leader is None else lead(partition, leader, partition.in_sync_replicas)


def elect_preferred(partition: PartitionImage, online: Sequence[int]) -> PartitionImage | None:
    """Elect the preferred replica, the first one; None if it is not online or not in sync."""
    leader = _find_in_sync(partition, partition.replicas[:1], online)
    return None if leader is None else lead(partition, leader, partition.in_sync_replicas)


def elect_for_shutdown(
    partition: PartitionImage, online: Sequence[int], shutting_down: Collection[int]
) -> PartitionImage | None:
    """Elect a leader in place of a broker that shuts down; such brokers leave the in-sync set. None if nobody can lead."""
    leader = _find_in_sync(partition, partition.replicas, [node for node in online if node not in shutting_down])
    if leader is None:
        return None
    return lead(partition, leader, [node for node in partition.in_sync_replicas if node not in shutting_down])


def remove_in_sync(partition: PartitionImage, leaving: Collection[int]) -> PartitionImage:
    """Take brokers out of the in-sync set and out of leadership.

    The last members stay in the set, because they alone have all records. If all of them leave at once, all stay.
    """
    remaining = tuple(node for node in partition.in_sync_replicas if node not in leaving)
    leader = NO_LEADER if partition.leader in leaving else partition.leader
    in_sync = remaining or partition.in_sync_replicas
    if leader == partition.leader and in_sync == partition.in_sync_replicas:
        return partition
    return lead(partition, leader, in_sync)


def raise_leader_epoch(partition: PartitionImage) -> PartitionImage:
    """Keep leader and in-sync set under a new epoch, so that the leader accepts a changed assignment."""
    return lead(partition, partition.leader, partition.in_sync_replicas)


def lead(partition: PartitionImage, leader: int, in_sync_replicas: Sequence[int]) -> PartitionImage:
    """Let *leader* lead under the next epochs."""
    return partition._replace(
        leader=leader,
        leader_epoch=partition.leader_epoch + 1,
        in_sync_replicas=tuple(in_sync_replicas),
        partition_epoch=partition.partition_epoch + 1,
    )


def _find_in_sync(partition: PartitionImage, candidates: Sequence[int], online: Collection[int]) -> int | None:
    in_sync = partition.in_sync_replicas
    return next((node for node in candidates if node in in_sync and node in online), None)
