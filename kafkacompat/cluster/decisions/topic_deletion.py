"""The deletion of topics: brokers are requested to delete their replicas, and the topic goes when all have confirmed.

A deletion waits for the end of a reassignment and for brokers that are down. A replica that could not be deleted is tried again
when a broker starts, or when a new controller takes over. /admin/delete_topics keeps the names meanwhile; the caller removes
those that a decision names as finished.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafkacompat.cluster.decisions.situation import (
    Decision,
    DeletionProgress,
    Presence,
    Replica,
    ReplicaStop,
    Situation,
    TopicPartition,
)
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import MetadataImage, TopicImage
from kafkacompat.wire.errors import ErrorCode


def queue_deletions(draft: MetadataDraft, situation: Situation, topics: Iterable[str]) -> Decision:
    """Start the deletion of topics; those that do not exist are finished at once."""
    names = list(dict.fromkeys(topics))
    new = {name: DeletionProgress() for name in names if name in draft.topics and not situation.is_queued(name)}
    deletions = resume_deletions(draft, situation.with_deletions(new), new)
    unknown = tuple(name for name in names if name not in draft.topics and name not in deletions.finished)
    return deletions.after(Decision(situation, finished=unknown))


def resume_deletions(draft: MetadataDraft, situation: Situation, topics: Collection[str] | None = None) -> Decision:
    """Go on with the given queued deletions, or with all: after the end of a reassignment, or when a broker is back.

    Removes topics whose replicas are all deleted from the draft.
    """
    presence = Presence(draft.brokers, situation)
    changes: dict[str, DeletionProgress | None] = {}
    finished: list[str] = []
    stops: list[ReplicaStop] = []
    for name in sorted(situation.deletions if topics is None else situation.deletions.keys() & topics):
        topic, progress = draft.topics.get(name), situation.deletions[name]
        if topic is None or progress.confirmed >= _list_replicas(topic):
            _finish(draft, topic)
            changes[name] = None
            finished.append(name)
        elif not any(partition.is_reassigned for partition in topic.partitions):
            wanted = _list_deletable(topic, progress, presence)
            changes[name] = progress._replace(has_started=True, pending=progress.pending | wanted)
            stops += [_request_deletion(name, replica) for replica in sorted(wanted)]
    return Decision(situation.with_deletions(changes), (), tuple(stops), tuple(finished))


def _finish(draft: MetadataDraft, topic: TopicImage | None) -> None:
    if topic is not None:
        draft.remove_topic(topic.name)


def _list_replicas(topic: TopicImage) -> frozenset[Replica]:
    return frozenset(
        Replica(partition.partition, node) for partition in topic.partitions for node in partition.replicas
    )


def _list_deletable(topic: TopicImage, progress: DeletionProgress, presence: Presence) -> frozenset[Replica]:
    """List the replicas that are not deleted and whose brokers can do it now."""
    left = _list_replicas(topic) - progress.confirmed - progress.pending
    return frozenset(
        replica
        for replica in left
        if presence.is_present(TopicPartition(topic.name, replica.partition), replica.broker_id)
    )


def _request_deletion(name: str, replica: Replica) -> ReplicaStop:
    return ReplicaStop(replica.broker_id, TopicPartition(name, replica.partition), delete=True)


def record_answers(
    draft: MetadataDraft, situation: Situation, broker_id: int, answers: Mapping[TopicPartition, ErrorCode]
) -> Decision:
    """Note what a broker answered to StopReplica with deletion, by partition; the last answer finishes a topic."""
    changes: dict[str, DeletionProgress | None] = {}
    for key, code in answers.items():
        progress = changes.get(key.topic) or situation.deletions.get(key.topic)
        replica = Replica(key.partition, broker_id)
        if progress is not None and replica in progress.pending:
            changes[key.topic] = _record_answer(progress, replica, code)
    situation = situation.with_deletions(changes)
    done = [name for name in changes if name in draft.topics and _is_confirmed(draft.topics[name], situation)]
    return resume_deletions(draft, situation, done)


def _record_answer(progress: DeletionProgress, replica: Replica, code: ErrorCode) -> DeletionProgress:
    deleted = {replica} if code == ErrorCode.NONE else set()
    return progress._replace(pending=progress.pending - {replica}, confirmed=progress.confirmed | deleted)


def _is_confirmed(topic: TopicImage, situation: Situation) -> bool:
    return situation.deletions[topic.name].confirmed >= _list_replicas(topic)


def fail_pending(
    situation: Situation, broker_ids: Collection[int], keys: Collection[TopicPartition] | None = None
) -> Situation:
    """Note that brokers have failed, or only their replicas of the given partitions: their deletion is requested again."""
    changes: dict[str, DeletionProgress | None] = {}
    for name, progress in situation.deletions.items():
        lost = {
            replica
            for replica in progress.pending
            if replica.broker_id in broker_ids and (keys is None or TopicPartition(name, replica.partition) in keys)
        }
        if lost:
            changes[name] = progress._replace(pending=progress.pending - lost)
    return situation.with_deletions(changes)


def explain_wait(metadata: MetadataDraft | MetadataImage, situation: Situation, name: str) -> str | None:
    """Say what the deletion of a topic waits for; None if only answers are outstanding, or if the topic is gone."""
    topic, progress = metadata.topics.get(name), situation.deletions.get(name)
    if topic is None or progress is None:
        return None
    if any(partition.is_reassigned for partition in topic.partitions):
        return "a reassignment is in progress"
    left = _list_replicas(topic) - progress.confirmed - progress.pending
    brokers = sorted({replica.broker_id for replica in left})
    return f"replicas on broker(s) {', '.join(map(str, brokers))} could not be deleted" if brokers else None
